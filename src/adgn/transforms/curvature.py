r"""The balanced Forman curvature of edges.

Two ways to the counts that it needs: the native kernel, and products of sparse matrices, which are
slower and need no compiler. Only pairs that are asked for are counted at, so that after a change of
the graph those near it are enough.
"""

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import scipy.sparse
import torch
from numpy.typing import NDArray
from torch import Tensor

from adgn.graph.checks import check_choice, check_count, check_edge_index, check_tensor
from adgn.graph.native import calls
from adgn.graph.native.library import native_library

CurvatureKind = Literal["definition", "released"]
CURVATURES: tuple[CurvatureKind, ...] = ("definition", "released")
Integers = NDArray[np.int64]
Numbers = NDArray[np.float64]
_DENSE_ENTRIES = 2**22  # of what is counted at a time without the native kernel


class SimpleGraph:
    """A simple undirected graph that changes by one edge at a time, as sorted rows.

    Args:
        source, target: The ends of edges, in any direction. Self loops are left out, and edges
            between the same nodes are one.
        num_nodes: The number of nodes.

    Attributes:
        rowptr, col: The rows, of 32 bits: the neighbours of each node, ascending.
        first, second: The ends of each edge once, `first < second`, sorted.

    Example:
        >>> graph = SimpleGraph(np.array([0, 1, 2]), np.array([1, 0, 1]), 3)
        >>> graph.first.tolist(), graph.second.tolist(), graph.neighbours(1).tolist()
        ([0, 1], [1, 2], [0, 2])
    """

    def __init__(self, source: NDArray[Any], target: NDArray[Any], num_nodes: int) -> None:
        self.num_nodes = num_nodes
        apart = source != target
        low = np.minimum(source, target)[apart].astype(np.int64)
        high = np.maximum(source, target)[apart].astype(np.int64)
        self.keys: Integers = np.unique(low * num_nodes + high)
        row = np.concatenate([self.first, self.second])
        col = np.concatenate([self.second, self.first])
        order = np.lexsort((col, row))
        self.col = col[order].astype(np.int32)
        counts = np.bincount(row, minlength=num_nodes)
        self.rowptr = np.concatenate([[0], counts.cumsum()]).astype(np.int32)

    @property
    def first(self) -> Integers:
        """The smaller end of each edge."""
        return self.keys // self.num_nodes

    @property
    def second(self) -> Integers:
        """The larger end of each edge."""
        return self.keys % self.num_nodes

    @property
    def degree(self) -> Integers:
        """How many neighbours each node has."""
        return np.diff(self.rowptr).astype(np.int64)

    def neighbours(self, node: int) -> NDArray[np.int32]:
        """Those of a node, ascending."""
        return self.col[self.rowptr[node] : self.rowptr[node + 1]]

    def place(self, u: int, v: int) -> int:
        """Where the edge between two nodes is, or would be, among the edges."""
        return int(np.searchsorted(self.keys, min(u, v) * self.num_nodes + max(u, v)))

    def add(self, u: int, v: int) -> int:
        """Adds an edge that is not there; its place among the edges."""
        u, v = min(u, v), max(u, v)  # two new neighbours at one place come in the order of rows
        place = self.place(u, v)
        self.keys = np.insert(self.keys, place, u * self.num_nodes + v)
        where = [self._slot(u, v), self._slot(v, u)]
        self.col = np.insert(self.col, where, np.array([v, u], dtype=np.int32))
        self.rowptr[u + 1 :] += 1
        self.rowptr[v + 1 :] += 1
        return place

    def remove(self, u: int, v: int) -> int:
        """Removes an edge; the place where it was."""
        place = self.place(u, v)
        self.keys = np.delete(self.keys, place)
        self.col = np.delete(self.col, [self._slot(u, v), self._slot(v, u)])
        self.rowptr[u + 1 :] -= 1
        self.rowptr[v + 1 :] -= 1
        return place

    def near(self, u: int, v: int) -> NDArray[np.bool_]:
        """The edges whose curvature an edge between two nodes has a part in.

        They are those at one of the two, and those between a neighbour of one and a neighbour of
        the other: the sides and diagonals of a 4-cycle join no others.
        """
        mark = np.zeros(self.num_nodes, dtype=np.uint8)
        mark[self.neighbours(u)] |= 1
        mark[self.neighbours(v)] |= 2
        mark[[u, v]] |= 4
        a, b = mark[self.first], mark[self.second]
        between = ((a & 1) & (b >> 1 & 1)) | ((a >> 1 & 1) & (b & 1))
        found: NDArray[np.bool_] = (between | ((a | b) & 4)) > 0
        return found

    def _slot(self, node: int, neighbour: int) -> int:
        return int(self.rowptr[node] + np.searchsorted(self.neighbours(node), neighbour))


def balanced_forman_curvature(
    edge_index: Tensor, num_nodes: int, *, curvature: CurvatureKind = "definition"
) -> Tensor:
    r"""The balanced Forman curvature ([Topping et al.](https://arxiv.org/abs/2111.14522)).

    For an edge $i \sim j$ of a simple undirected graph it is 0 where a degree is 1, and else

    $$
    \mathrm{Ric}(i, j) = \frac{2}{d_i} + \frac{2}{d_j} - 2 + 2\,\frac{|\sharp_\Delta|}{d_{\max}}
        + \frac{|\sharp_\Delta|}{d_{\min}}
        + \frac{|\sharp^i_\square| + |\sharp^j_\square|}{\gamma_{\max}\, d_{\max}}
    $$

    with $\sharp_\Delta$ the common neighbours, $\sharp^i_\square$ the neighbours of $i$ on a
    4-cycle through the edge without diagonal, and $\gamma_{\max}$ the largest number of such cycles
    through one node of $\sharp^i_\square$ or $\sharp^j_\square$; without such cycles the last term
    is 0. It is above −2.

    The graph is the one of all given edges without their direction; an edge that is there several
    times, or in both directions, is one. A self loop is no edge of it and has the value NaN.

    Args:
        edge_index: `[2, E]`.
        num_nodes: The number of nodes.
        curvature: `"released"`: what the code published with the paper computes instead (see the
            page on transforms).

    Returns:
        `[E]` in double precision: a value for each column of `edge_index`, in that order.

    Example:
        >>> triangle = torch.tensor([[0, 1, 2], [1, 2, 0]])
        >>> balanced_forman_curvature(triangle, 3).tolist()
        [1.5, 1.5, 1.5]
        >>> square = torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]])
        >>> balanced_forman_curvature(square, 4).tolist()
        [1.0, 1.0, 1.0, 1.0]
    """
    check_tensor("edge_index", edge_index)
    check_count("num_nodes", num_nodes)
    check_edge_index(edge_index, num_nodes)
    check_choice("curvature", curvature, CURVATURES)
    source, target = edge_index.cpu().numpy().astype(np.int64)
    graph = SimpleGraph(source, target, num_nodes)
    values = curvature_of(graph, graph.first, graph.second, curvature)
    key = np.minimum(source, target) * num_nodes + np.maximum(source, target)
    result = np.full(source.size, np.nan)
    apart = source != target
    result[apart] = values[np.searchsorted(graph.keys, key[apart])]
    return torch.from_numpy(result).to(edge_index.device)


def curvature_of(
    graph: SimpleGraph, first: Integers, second: Integers, kind: CurvatureKind = "definition"
) -> Numbers:
    """The curvature of some edges of a graph, by their ends."""
    library = native_library()
    if not len(first):
        return np.empty(0)
    if library is None:
        counts = count_at_edges(graph, first, second)
    else:
        tensors = map(torch.from_numpy, (graph.rowptr, graph.col, first, second))
        counts = calls.count_at_edges(library, *tensors, lone=kind == "released").numpy()
    degree = graph.degree
    return FORMULAS[kind](degree[first], degree[second], *counts)


def by_definition(
    d_i: NDArray[Any],
    d_j: NDArray[Any],
    triangles: NDArray[Any],
    squares: NDArray[Any],
    most: NDArray[Any],
    lone: NDArray[Any] | None = None,
) -> Numbers:
    """The curvature from counts; all may be arrays of any one shape.

    Example:
        >>> by_definition(*np.array([[2], [2], [0], [2], [1]])).tolist()  # of a square
        [1.0]
    """
    low, high = np.minimum(d_i, d_j), np.maximum(d_i, d_j)
    value = 2 / low + 2 / high - 2 + triangles * (2 / high + 1 / low)
    value = value + squares / (np.maximum(most, 1) * high)
    result: Numbers = np.where(low == 1, 0.0, value)
    return result


def as_released(
    d_i: NDArray[Any],
    d_j: NDArray[Any],
    triangles: NDArray[Any],
    squares: NDArray[Any] | None,
    most: NDArray[Any] | None,
    lone: NDArray[Any],
) -> Numbers:
    r"""What the released code computes, from counts.

    In place of the 4-cycles it counts the nodes $k \sim j$ with $(\mathbf{A}^2)_{ik} > A_{ik}$, and
    those of the other side alike. As $i$ and $k$ have $j$ in common this leaves out just the common
    neighbours that have no other, the lone triangles: $d_i + d_j$ less these. Its largest count is
    that of $k = i$, the degree. An end of degree 1 is no special case.

    Example:
        >>> as_released(*np.array([[2], [2], [0], [0], [0], [0]])).tolist()  # of a long cycle
        [1.0]
    """
    low, high = np.minimum(d_i, d_j), np.maximum(d_i, d_j)
    value = 2 / low + 2 / high - 2 + triangles * (2 / high + 1 / low)
    result: Numbers = value + (d_i + d_j - lone) / (1.0 * high * high)
    return result


FORMULAS: dict[str, Callable[..., Numbers]] = {
    "definition": by_definition,
    "released": as_released,
}


def count_at_edges(graph: SimpleGraph, first: Integers, second: Integers) -> Integers:
    """The counts of the native kernel, `[4, edges]`, by products of sparse matrices.

    One product for each node that an edge begins at, and one for each that an edge ends at.
    """
    nodes = graph.num_nodes
    ones = np.ones(graph.col.size, dtype=np.int64)
    matrix = scipy.sparse.csr_matrix((ones, graph.col, graph.rowptr), (nodes, nodes))
    counts = np.zeros((4, len(first)), dtype=np.int64)
    for near, far in ((first, second), (second, first)):
        order = np.argsort(near, kind="stable")
        cuts = np.flatnonzero(np.diff(near[order])) + 1
        for edges in np.split(order, cuts):
            node = int(near[edges[0]])
            width = max(1, _DENSE_ENTRIES // len(graph.neighbours(node)))
            for start in range(0, len(edges), width):
                chosen = edges[start : start + width]
                triangles, squares, most, lone = _one_side(matrix, graph, node, far[chosen])
                counts[0, chosen] = triangles
                counts[1, chosen] += squares
                counts[2, chosen] = np.maximum(counts[2, chosen], most)
                counts[3, chosen] += lone
    return counts


def _one_side(
    matrix: scipy.sparse.csr_matrix, graph: SimpleGraph, node: int, others: Integers
) -> tuple[Integers, Integers, Integers, Integers]:
    """The counts at the edges from a node to others; of 4-cycles those on the node's side."""
    around = graph.neighbours(node)
    rows = matrix[around]  # of the neighbours k
    adjacent = rows[:, others].toarray()  # k ~ j
    outside = np.ones(graph.num_nodes, dtype=np.int64)
    outside[around] = outside[node] = 0
    beyond = rows @ scipy.sparse.diags(
        outside, dtype=np.int64
    )  # k ~ w, with w no neighbour of the node
    cycles = (beyond @ matrix[:, others]).toarray()
    cycles[(adjacent > 0) | (around[:, None] == others)] = 0
    own_triangles = rows[:, around].sum(axis=1)
    alone = np.asarray(own_triangles).ravel() == 1
    return adjacent.sum(0), (cycles > 0).sum(0), cycles.max(0), adjacent[alone].sum(0)
