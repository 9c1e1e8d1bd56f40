"""The largest connected component."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import scipy.sparse
import torch
from numpy.typing import NDArray
from pydantic import Field
from scipy.sparse.csgraph import breadth_first_order, connected_components

from adgn.transforms.base import EdgeGraph, Transform, register_transform

ComponentKind = Literal["weak", "strong", "released"]


@register_transform
class LargestComponent(Transform):
    """The nodes of the largest component, and the edges between them.

    Nodes keep their order and get new numbers; `kept` has the old ones. Of components of the same
    size, the one with the smallest node number is taken.

    `kind="released"` is what the code published with
    [SDRF](https://arxiv.org/abs/2111.14522) takes for a component: all nodes that edges lead to
    from a first node, which is the smallest one that no component so far has. The largest of these
    is the largest set of nodes that can be reached from one node, which on a directed graph is
    neither the weak nor the strong component.

    Example:
        >>> from adgn.transforms import EdgeGraph
        >>> graph = EdgeGraph(torch.tensor([[1, 2, 2], [2, 1, 3]]), 4)
        >>> LargestComponent()(graph).kept.tolist()
        [1, 2, 3]
        >>> LargestComponent(kind="strong")(graph).kept.tolist()
        [1, 2]
    """

    name = "largest_component"
    title = "the largest connected component"
    keeps_nodes = False
    is_slow = True

    kind: ComponentKind = Field(
        "weak",
        description="`weak`: edges taken as undirected; `strong`: paths both ways; `released`: "
        "what edges lead to from the smallest node not yet in a component",
    )

    def apply(self, graph: EdgeGraph) -> EdgeGraph:
        """The part of the graph, with `kept`."""
        edges = graph.edge_index
        members = torch.from_numpy(
            component_nodes(edges.cpu().numpy(), graph.num_nodes, self.kind)
        ).to(edges.device)
        number = torch.full((graph.num_nodes,), -1, dtype=edges.dtype, device=edges.device)
        number[members] = torch.arange(len(members), dtype=edges.dtype, device=edges.device)
        inside = (number[edges.long()] >= 0).all(dim=0)
        weight = None if graph.edge_weight is None else graph.edge_weight[inside]
        lost = graph.num_nodes - len(members)
        return replace(
            graph,
            edge_index=number[edges[:, inside].long()],
            num_nodes=len(members),
            edge_weight=weight,
            kept=members if graph.kept is None else graph.kept[members],
            report={**graph.report, "largest_component.left_out": float(lost)},
        )

    def describe(self, report: Mapping[str, float]) -> str:
        """How many nodes were left out."""
        return f"{self.kind} component: {report['left_out']:,.0f} nodes left out"


def component_nodes(
    edges: NDArray[Any], num_nodes: int, kind: ComponentKind = "weak"
) -> NDArray[np.int64]:
    """The nodes of the largest component, ascending; `edges` are `[2, E]`.

    Example:
        >>> component_nodes(np.array([[1], [0]]), 3, "released").tolist()
        [0, 1]
    """
    row, column = edges
    ones = np.ones(row.size, dtype=np.int8)
    matrix = scipy.sparse.coo_matrix((ones, (row, column)), (num_nodes, num_nodes)).tocsr()
    if kind == "released":
        return _largest_followed(matrix)
    _, label = connected_components(matrix, directed=True, connection=kind)
    sizes = np.bincount(label)
    # The first node of a largest component, for the labels of strong ones have no order.
    first = np.flatnonzero(sizes[label] == sizes.max())[0]
    return np.flatnonzero(label == label[first])


def _largest_followed(matrix: scipy.sparse.csr_matrix) -> NDArray[np.int64]:
    """What is reached from the smallest node that was not reached before, at its largest."""
    # All nodes of a strong component reach the same: they are one node here, with a size.
    count, label = connected_components(matrix, directed=True, connection="strong")
    coo = matrix.tocoo()
    ends = (label[coo.row], label[coo.col])
    merged = scipy.sparse.coo_matrix((coo.data, ends), (count, count)).tocsr()
    size = np.bincount(label)
    remaining = np.ones(count, dtype=bool)
    largest, most = np.empty(0, dtype=np.int64), 0
    for start in label:  # by the smallest node of each
        if not remaining[start]:
            continue
        reached = breadth_first_order(merged, start, return_predecessors=False)
        remaining[reached] = False  # they may be in an earlier component too
        total = int(size[reached].sum())
        if total > most:
            largest, most = reached, total
    return np.flatnonzero(np.isin(label, largest))
