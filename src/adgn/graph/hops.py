"""Operators of the nodes at a given distance: the neighbours, and the neighbours of neighbours."""

from typing import Literal

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from adgn.graph.adjacency import Adjacency, normalized
from adgn.graph.blocks import SelectedGraphs
from adgn.graph.cache import cached
from adgn.graph.checks import check_same_place, is_traced
from adgn.graph.direction import OperatorDirection, check_operator_direction, turned
from adgn.graph.edges import edge_list
from adgn.graph.operator import SparseOperator, SparsePattern


def hop_operator(
    edge_index: Adjacency,
    hops: Literal[1, 2],
    *,
    num_nodes: int,
    direction: OperatorDirection = "undirected",
    like: Tensor | None = None,
) -> SparseOperator:
    r"""The normalised operator of the pairs of nodes at distance exactly one or two.

    $$
    \bar{\mathbf{A}}_k = \mathbf{D}_k^{-1/2} \mathbf{N}_k \mathbf{D}_k^{-1/2}, \qquad
    (\mathbf{N}_k)_{uv} = [\mathrm{dist}(v, u) = k]
    $$

    with $\mathbf{D}_k$ the row sums of $\mathbf{N}_k$ itself; where one is zero, so are the row and
    the column. An edge is there or not: how often it is stored does not matter, and self loops are
    left out. $\mathbf{N}_2$ is worked out sparsely, once per graph, and kept like the operators of
    [`graph_operator`][adgn.graph.graph_operator]. It may have many more entries than there are
    edges: a node of degree $d$ makes up to $d (d - 1)$ pairs.

    Args:
        edge_index: The graph; an edge list, an `EdgeIndex`, a sparse matrix or a batch of prepared
            graphs. An operator, which has entries and no edges, is refused.
        hops: The distance $k$, 1 or 2.
        num_nodes: The number of nodes.
        direction: Along which edges distances are counted, see `graph_operator`.
        like: The tensor whose dtype and device the operator must have; by default torch's default
            dtype and the edges' device.

    Example:
        >>> path = torch.tensor([[0, 1, 2], [1, 2, 3]])
        >>> hop_operator(path, 2, num_nodes=4).to_dense().tolist()[0]  # only node 2 is two hops off
        [0.0, 0.0, 1.0, 0.0]
    """
    if hops not in (1, 2):
        raise ValueError(f"hops={hops!r} is not valid; it must be 1 or 2")
    check_operator_direction(direction)
    dtype = torch.get_default_dtype() if like is None else like.dtype
    if like is not None and torch.is_autocast_enabled(like.device.type):
        dtype = torch.float32  # autocast's sparse products are in single
    key = ("hops", hops, dtype, direction)
    if isinstance(edge_index, SelectedGraphs):
        blocks = edge_index.blocks

        def build_whole() -> SparseOperator:
            whole = blocks.edge_index
            return _operator(whole, hops, blocks.num_nodes, direction, dtype)

        if like is not None:
            check_same_place("edge_index", edge_index.node_ptr, "x", like)
        return edge_index.rows_of(key, build_whole)
    if isinstance(edge_index, Tensor):
        reference = edge_index if like is None else like
        if is_traced(reference):
            raise ValueError(
                "the pairs of nodes two hops apart depend on the graph, so this model cannot be "
                "traced or exported; torch.compile works where parts may stay as they are "
                "(fullgraph=False)"
            )
        edges = edge_list(edge_index, num_nodes, reference)
        return cached(
            (edge_index,),
            (*key, num_nodes),
            lambda: _operator(edges, hops, num_nodes, direction, dtype),
        )
    raise TypeError(
        f"edge_index is a {type(edge_index).__name__}, which has entries and no edges to count "
        "hops along; pass a [2, E] tensor, a sparse matrix or a batch of GraphBlocks"
    )


def _operator(
    edges: Tensor, hops: int, num_nodes: int, direction: OperatorDirection, dtype: torch.dtype
) -> SparseOperator:
    (source, target), _ = turned(edges, None, num_nodes, direction)
    other = source != target
    row, col = _pairs(target[other], source[other], hops, num_nodes)
    pattern, _ = SparsePattern.from_entries(row, col, (num_nodes, num_nodes))
    ends = pattern.csr.row.long(), pattern.csr.col.long()
    ones = torch.ones(pattern.csr.col.numel(), dtype=dtype, device=edges.device)
    return SparseOperator(pattern, normalized(ones, *ends, num_nodes, "sym"))


def _pairs(row: Tensor, col: Tensor, hops: int, num_nodes: int) -> tuple[Tensor, Tensor]:
    """Rows and columns of the pairs at that distance, of edges that are no self loops."""
    if hops == 1:
        return row, col
    # SciPy multiplies patterns without making anything dense; on other devices it is done once.
    ends = row.cpu().numpy(), col.cpu().numpy()
    one = sparse.csr_array((np.ones(row.numel(), dtype=bool), ends), shape=(num_nodes, num_nodes))
    two = (one @ one).tocsr()
    within = one + sparse.eye_array(num_nodes, dtype=bool, format="csr")
    # Of booleans "greater" is "and not".
    found = (two > within).tocoo()
    return (
        torch.from_numpy(found.row.astype(np.int64)).to(row.device),
        torch.from_numpy(found.col.astype(np.int64)).to(row.device),
    )
