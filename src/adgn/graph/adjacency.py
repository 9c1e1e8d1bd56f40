"""One way in for every form a graph comes in: edge list, `EdgeIndex`, sparse matrix, operator."""

from typing import TYPE_CHECKING, TypeAlias, Union

import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch_geometric import EdgeIndex

from adgn.graph.cache import cached
from adgn.graph.checks import (
    check_choice,
    check_edge_index,
    check_edge_weight,
    check_entries,
    check_same_place,
)
from adgn.graph.layout import NORMALIZATIONS, EdgeLayout, Normalization
from adgn.graph.operator import SparseOperator, SparsePattern

if TYPE_CHECKING:
    from adgn.graph.blocks import SelectedGraphs
    from adgn.graph.edge_operator import EdgeOperator

SPARSE_LAYOUTS = (torch.sparse_coo, torch.sparse_csr, torch.sparse_csc)

# A [2, E] edge list, PyG's EdgeIndex (a Tensor too), a torch sparse matrix, an operator, or a
# batch out of many prepared graphs.
Adjacency: TypeAlias = Union[Tensor, SparseOperator, "EdgeOperator", "SelectedGraphs"]


def graph_operator(
    edge_index: Adjacency,
    edge_weight: Tensor | None = None,
    *,
    num_nodes: int,
    normalization: Normalization = "none",
    like: Tensor | None = None,
) -> SparseOperator:
    r"""The sparse operator of a graph, built and validated once per graph.

    Row $u$ weighs the messages that node $u$ receives: with `normalization="none"`
    $a_{uj} = \sum_{e: j \to u} w_e$; with `"mean"` each row is divided by its sum; with `"gcn"`
    $a_{uj} = \hat{w}_{uj} / \sqrt{\hat{d}_u \hat{d}_j}$, where $\hat{w}$ has a self
    loop of weight 1 (2 for `"gcn-improved"`) at each node without one and $\hat{d}_u$ is
    the sum of the weights that come into $u$; with `"loops"` $a_{uj} = \hat{w}_{uj}$.

    Passing the same tensors again returns the same operator; a tensor that was changed in place
    is another graph.

    Args:
        edge_index: `[2, E]` node indices, row 0 the sources and row 1 the targets; or PyG's
            `EdgeIndex`; or a sparse `[N, N]` tensor in PyG's `adj_t` form, whose rows are the
            targets and whose values are the edge weights; or an operator, returned as it is; or a
            batch of prepared graphs ([`GraphBlocks`][adgn.graph.GraphBlocks]).
        edge_weight: `[E]`; gradients flow to it. All ones by default.
        num_nodes: The number of nodes.
        normalization: `"none"`, `"mean"`, `"loops"`, `"gcn"` or `"gcn-improved"`.
        like: The tensor whose dtype and device the operator must have; by default the weights',
            or torch's default dtype and the edges' device.

    Example:
        >>> edge_index = torch.tensor([[0, 1], [1, 0]])
        >>> graph_operator(edge_index, num_nodes=2, normalization="gcn").to_dense()
        tensor([[0.5000, 0.5000],
                [0.5000, 0.5000]])
        >>> once = graph_operator(edge_index, num_nodes=2)
        >>> graph_operator(edge_index, num_nodes=2) is once
        True
    """
    if like is not None and torch.is_autocast_enabled(like.device.type):
        like = like.new_empty(0, dtype=torch.float32)  # autocast's sparse products are in single
    if isinstance(edge_index, SparseOperator):
        return _checked_operator(edge_index, edge_weight, num_nodes, like)
    if hasattr(edge_index, "operator"):  # a batch of prepared graphs
        if edge_weight is not None:
            raise ValueError(
                "edge_weight was given together with prepared graphs, which bring their weights; "
                "pass it to GraphBlocks"
            )
        dtype = torch.get_default_dtype() if like is None else like.dtype
        operator = edge_index.operator(normalization, dtype)
        return _checked_operator(operator, None, num_nodes, like)
    layout = getattr(edge_index, "layout", torch.strided)
    if layout not in (torch.strided, *SPARSE_LAYOUTS):
        raise TypeError(
            f"edge_index has layout {layout}; sparse matrices may be "
            f"{', '.join(map(str, SPARSE_LAYOUTS))}: pass edge_index.to_sparse_csr()"
        )
    if not isinstance(edge_index, Tensor):
        raise TypeError(
            f"edge_index is a {type(edge_index).__name__}; expected a [2, E] tensor, a "
            "torch_geometric.EdgeIndex, a torch sparse tensor or a SparseOperator (a "
            "torch_sparse.SparseTensor converts with .to_torch_sparse_csr_tensor())"
        )
    check_choice("normalization", normalization, NORMALIZATIONS)
    if like is not None:
        check_same_place("edge_index", edge_index, "x", like)
    if edge_index.layout in SPARSE_LAYOUTS:
        if edge_weight is not None:
            raise ValueError(
                "edge_weight was given together with a sparse edge_index, whose values are the "
                "weights already; pass one of the two"
            )
        return _from_sparse(edge_index, num_nodes, normalization, like)
    return _from_edges(edge_index, edge_weight, num_nodes, normalization, like)


def sparse_features(x: Tensor) -> SparseOperator:
    """A CSR feature matrix as an operator, with the transpose that the encoder's gradient needs.

    Example:
        >>> x = torch.tensor([[0.0, 2.0], [0.0, 0.0]])
        >>> sparse = torch.sparse_csr_tensor([0, 1, 1], [1], [2.0], (2, 2), check_invariants=True)
        >>> bool((sparse_features(sparse) @ torch.eye(2) == x).all())
        True
    """

    def build() -> SparseOperator:
        row, col, value = entries(x)
        pattern, slot = SparsePattern.from_entries(row, col, (x.size(0), x.size(1)))
        return SparseOperator(
            pattern, value.new_zeros(pattern.csr.col.numel()).index_add(0, slot, value)
        )

    return cached((x,), "features", build)


def _from_edges(
    edge_index: Tensor,
    edge_weight: Tensor | None,
    num_nodes: int,
    normalization: Normalization,
    like: Tensor | None,
) -> SparseOperator:
    reference = like if like is not None else edge_weight
    dtype = torch.get_default_dtype() if reference is None else reference.dtype

    def build_layout() -> EdgeLayout:
        edges = plain_edges(edge_index, num_nodes)
        check_edge_index(edges, num_nodes)
        return EdgeLayout.build(edges[0].long(), edges[1].long(), num_nodes, normalization)

    layout = cached((edge_index,), ("layout", normalization, num_nodes), build_layout)

    def build() -> SparseOperator:
        if edge_weight is not None:
            like_weight = edge_weight if like is None else like
            check_edge_weight(edge_weight, edge_index.size(1), like_weight)
        return layout.operator(edge_weight, dtype)

    if edge_weight is None:
        return cached((edge_index,), ("operator", normalization, num_nodes, dtype), build)
    if _is_differentiated(edge_weight):
        return build()  # its history or tangent belongs to this step alone
    return cached((edge_index, edge_weight), ("operator", normalization, num_nodes, dtype), build)


def plain_edges(edge_index: Tensor, num_nodes: int) -> Tensor:
    """The tensor behind an `EdgeIndex`, whose size must be the graph's; others as they are."""
    if not isinstance(edge_index, EdgeIndex):
        return edge_index
    sizes = [size for size in edge_index.sparse_size() if size is not None]
    if any(size != num_nodes for size in sizes):
        raise ValueError(
            f"edge_index is an EdgeIndex with sparse_size={tuple(edge_index.sparse_size())}, but x "
            f"has {num_nodes} nodes; give it sparse_size=({num_nodes}, {num_nodes})"
        )
    edges: Tensor = edge_index.as_tensor()
    return edges


def _is_differentiated(weight: Tensor) -> bool:
    """Whether a derivative is taken in `weight`, backward, forward or by `torch.func`."""
    return (
        weight.requires_grad
        or bool(torch._C._functorch.is_functorch_wrapped_tensor(weight))
        or forward_ad.unpack_dual(weight).tangent is not None  # type: ignore[no-untyped-call]
    )


def _from_sparse(
    adjacency: Tensor, num_nodes: int, normalization: Normalization, like: Tensor | None
) -> SparseOperator:
    if adjacency.shape != (num_nodes, num_nodes):
        raise ValueError(
            f"the sparse edge_index has shape {list(adjacency.shape)}; expected "
            f"[{num_nodes}, {num_nodes}] for {num_nodes} nodes"
        )
    if adjacency.requires_grad:
        raise ValueError(
            "the sparse edge_index requires a gradient, which would be lost; pass a [2, E] "
            "edge_index and the weights as edge_weight, through which gradients flow"
        )

    def build() -> SparseOperator:
        target, source, weight = entries(adjacency)
        check_edge_weight(weight, weight.numel(), weight if like is None else like)
        return EdgeLayout.build(source, target, num_nodes, normalization).operator(
            weight, weight.dtype
        )

    dtype = None if like is None else like.dtype
    return cached((adjacency,), ("operator", normalization, num_nodes, dtype), build)


def entries(matrix: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Row, column and value of each entry of a torch sparse matrix, in the order of its entries.

    All are checked, for torch makes sparse tensors unchecked.

    Example:
        >>> row, col, value = entries(torch.tensor([[0.0, 7.0], [0.0, 0.0]]).to_sparse_csr())
        >>> row.tolist(), col.tolist(), value.tolist()
        ([0], [1], [7.0])
    """
    matrix = matrix.detach()
    if matrix.layout == torch.sparse_coo:
        (row, col), value = matrix._indices(), matrix._values()
    else:
        by_rows = matrix.layout == torch.sparse_csr
        pointers = matrix.crow_indices() if by_rows else matrix.ccol_indices()
        inner = matrix.col_indices() if by_rows else matrix.row_indices()
        _check_pointers("crow_indices" if by_rows else "ccol_indices", pointers, inner.numel())
        groups = torch.arange(pointers.numel() - 1, device=inner.device, dtype=inner.dtype)
        outer = groups.repeat_interleave(pointers.diff(), output_size=inner.numel())
        (row, col), value = (outer, inner) if by_rows else (inner, outer), matrix.values()
    check_entries(row, col, (matrix.size(0), matrix.size(1)))
    return row, col, value


def _check_pointers(name: str, pointers: Tensor, num_entries: int) -> None:
    """Raises unless the pointers count entries: torch would read whatever they point to."""
    wrong = pointers < torch.cat([pointers.new_zeros(1), pointers[:-1]])
    wrong[0] |= pointers[0] != 0
    wrong[-1] |= pointers[-1] != num_entries
    if bool(wrong.any()):
        place = int(wrong.nonzero()[0])
        raise ValueError(
            f"{name}[{place}] = {int(pointers[place])} of the sparse matrix is not valid; "
            f"{name} must ascend from 0 to the number of its entries, {num_entries}"
        )


def _checked_operator(
    operator: SparseOperator, edge_weight: Tensor | None, num_nodes: int, like: Tensor | None
) -> SparseOperator:
    if edge_weight is not None:
        raise ValueError(
            "edge_weight was given together with an operator, which has its values already; "
            "pass one of the two"
        )
    if operator.shape != (num_nodes, num_nodes):
        raise ValueError(
            f"the operator has shape {list(operator.shape)}, but x has {num_nodes} nodes"
        )
    if like is not None:
        check_same_place("the operator", operator.value, "x", like)
        if operator.value.dtype != like.dtype and not torch.is_autocast_enabled(like.device.type):
            raise TypeError(
                f"the operator has dtype {operator.value.dtype}, but x {like.dtype}; build it with "
                "graph_operator(..., like=x)"
            )
    return operator
