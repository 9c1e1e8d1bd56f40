"""What a graph is like: agreement of neighbours, distances to labels, diameter, resistance."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from scipy.sparse.csgraph import breadth_first_order, connected_components, shortest_path
from scipy.sparse.linalg import cg, splu
from torch import Tensor

from adgn.analysis.probe.shells import neighbour_matrix
from adgn.data.own.inputs import Inputs

EXACT = 2000  # nodes of a component up to which all pairs are looked at
_BLOCK = 256  # sources at a time
_SWEEPS = 4
_PAIRS = 32  # of nodes whose resistance is estimated, fewer on large graphs
_LARGE = 200_000  # edges

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Agreement:
    r"""Whether neighbours have the same class, or similar values.

    With $h$ the share of edges between nodes of one class and $D_c$ the sum of the degrees of the
    nodes of class $c$, in the undirected graph with $E$ edges, the adjusted homophily is
    $(h - \sum_c D_c^2 / (2E)^2) / (1 - \sum_c D_c^2 / (2E)^2)$: 0 where edges do not care for
    classes, 1 where all agree
    ([Platonov et al. 2023](https://arxiv.org/abs/2209.06177)). The label informativeness is
    $2 - H(y_u, y_v) / H(y_u)$ over edges: the share of a neighbour's class that a class tells.

    Attributes:
        edges: Edges between labelled nodes.
        homophily: $h$; of values `None`.
        adjusted: The adjusted homophily; of values the correlation over edges.
        informativeness: `None` for values.
    """

    edges: int
    homophily: float | None
    adjusted: float
    informativeness: float | None


def agreement(inputs: Inputs, y: Tensor, known: Tensor, classes: int) -> Agreement | None:
    """How far neighbours agree; `None` where there is no edge between labelled nodes.

    Args:
        inputs: One graph or many, whose nodes have targets.
        y: Classes `[N]`, or values `[N, T]`, of which the first is looked at.
        known: `[N]`; which nodes are labelled.
        classes: How many classes; 0 for values.
    """
    source, target = inputs.edges("undirected")[0].numpy()
    labelled = known.numpy()
    kept = labelled[source] & labelled[target] & (source != target)
    source, target = source[kept], target[kept]
    if not len(source):
        return None
    if not classes:
        values = y[:, 0].double().numpy()
        left, right = values[source], values[target]
        if left.std() == 0:
            return None
        return Agreement(len(source) // 2, None, float(np.corrcoef(left, right)[0, 1]), None)
    label = y.numpy()
    pairs = np.bincount(label[source] * classes + label[target], minlength=classes**2)
    joint = pairs.reshape(classes, classes) / len(source)
    share = joint.sum(1)
    same, chance = float(joint.trace()), float(np.square(share).sum())
    adjusted = (same - chance) / (1 - chance) if chance < 1 else 0.0
    entropy = _entropy(share)
    told = 2 - _entropy(joint.ravel()) / entropy if entropy > 0 else 0.0
    return Agreement(len(source) // 2, same, adjusted, told)


def _entropy(share: NDArray[np.float64]) -> float:
    positive = share[share > 0]
    return float(-(positive * np.log(positive)).sum())


def distances_from(matrix: scipy.sparse.csr_matrix, sources: Ints) -> Ints:
    """`[N]`: the hops from the nearest source along the rows' entries; −1 where there is no way.

    Example:
        >>> path = scipy.sparse.csr_matrix(np.eye(4, k=1) + np.eye(4, k=-1))
        >>> distances_from(path, np.array([1])).tolist()
        [1, 0, 1, 2]
    """
    nodes = matrix.shape[0]
    ones = np.ones(len(sources), dtype=np.float32)
    first = scipy.sparse.csr_matrix((ones, (np.zeros_like(sources), sources)), (1, nodes))
    corner = scipy.sparse.csr_matrix((nodes + 1, 1), dtype=np.float32)
    # A node before all sources, so that one search starts at all of them.
    whole = scipy.sparse.hstack([scipy.sparse.vstack([matrix, first]), corner], format="csr")
    order, before = breadth_first_order(whole, nodes)
    place = np.empty(nodes + 1, dtype=np.int64)
    place[order] = np.arange(len(order))
    came_from = place[before[order[1:]]]  # never decreases: levels are stretches of the order
    found = np.full(nodes, -1, dtype=np.int64)
    begin, end, level = 1, 1 + int(np.searchsorted(came_from, 1)), 0
    while begin < end:
        found[order[begin:end]] = level
        begin, end, level = end, 1 + int(np.searchsorted(came_from, end)), level + 1
    return found


@dataclass(frozen=True)
class Extent:
    """How far apart the nodes of the largest connected part are.

    Attributes:
        components: Connected parts of the undirected graph.
        largest: Nodes of the largest one.
        isolated: Nodes without any edge to another.
        diameter: The largest distance in it, or a lower bound.
        exact: Whether diameter and resistance are exact.
        mean_resistance: The mean effective resistance of pairs of its nodes.
        largest_resistance: The largest one, of the pairs that were looked at.
        pairs: How many pairs were looked at.
    """

    components: int
    largest: int
    isolated: int
    diameter: int
    exact: bool
    mean_resistance: float
    largest_resistance: float
    pairs: int


def extent(inputs: Inputs, seed: int = 0) -> Extent:
    """Diameter and effective resistance of the largest connected part.

    Up to 2,000 nodes both are exact. Above, the diameter is a lower bound by sweeps, each of which
    starts at the farthest node of the one before; resistances are of random pairs, by conjugate
    gradients.
    """
    matrix = neighbour_matrix(inputs, "undirected")
    matrix.setdiag(0)
    matrix.eliminate_zeros()
    count, part = connected_components(matrix, directed=False)
    isolated = int((np.diff(matrix.indptr) == 0).sum())
    sizes = np.bincount(part)
    inside = np.flatnonzero(part == sizes.argmax())
    largest = matrix[inside][:, inside].tocsr()
    nodes = len(inside)
    if nodes == 1:
        return Extent(count, 1, isolated, 0, True, 0.0, 0.0, 0)
    exact = nodes <= EXACT
    diameter = _exact_diameter(largest) if exact else _swept_diameter(largest)
    found = _all_resistances(largest) if exact else _some_resistances(largest, seed)
    return Extent(count, nodes, isolated, diameter, exact, *found)


def _exact_diameter(matrix: scipy.sparse.csr_matrix) -> int:
    longest = 0
    for first in range(0, matrix.shape[0], _BLOCK):
        sources = np.arange(first, min(first + _BLOCK, matrix.shape[0]))
        longest = max(longest, int(shortest_path(matrix, unweighted=True, indices=sources).max()))
    return longest


def _swept_diameter(matrix: scipy.sparse.csr_matrix) -> int:
    longest, start = 0, int(np.diff(matrix.indptr).argmax())
    for _ in range(_SWEEPS):
        distance = distances_from(matrix, np.array([start]))
        if distance.max() <= longest:
            break
        longest, start = int(distance.max()), int(distance.argmax())
    return longest


def _laplacian(matrix: scipy.sparse.csr_matrix) -> scipy.sparse.csc_matrix:
    weights = matrix.astype(np.float64)
    return (scipy.sparse.diags(np.asarray(weights.sum(1)).ravel()) - weights).tocsc()


def _all_resistances(matrix: scipy.sparse.csr_matrix) -> tuple[float, float, int]:
    """R(u, v) = M(u, u) + M(v, v) − 2 M(u, v), M the inverse without the last node."""
    nodes = matrix.shape[0]
    factor = splu(_laplacian(matrix)[:-1, :-1])

    def columns() -> Iterator[tuple[int, int, NDArray[np.float64]]]:
        for first in range(0, nodes - 1, _BLOCK):
            last = min(first + _BLOCK, nodes - 1)
            right = np.zeros((nodes - 1, last - first))
            right[np.arange(first, last), np.arange(last - first)] = 1.0
            yield first, last, factor.solve(right)

    own = np.zeros(nodes - 1)
    for first, last, solved in columns():
        own[first:last] = solved[np.arange(first, last), np.arange(last - first)]
    total, largest = 0.0, float(own.max())  # to the last node: R(u, last) = M(u, u)
    for first, last, solved in columns():
        pairs = own[:, None] + own[None, first:last] - 2 * solved
        total += float(pairs.sum())
        largest = max(largest, float(pairs.max()))
    count = nodes * (nodes - 1) // 2
    return (total / 2 + float(own.sum())) / count, largest, count


def _some_resistances(matrix: scipy.sparse.csr_matrix, seed: int) -> tuple[float, float, int]:
    nodes = matrix.shape[0]
    laplacian = _laplacian(matrix).tocsr()
    scale = scipy.sparse.diags(1 / laplacian.diagonal())
    generator = np.random.default_rng(seed)
    count = _PAIRS if matrix.nnz <= _LARGE else max(4, _PAIRS * _LARGE // matrix.nnz)
    found = []
    for _ in range(count):
        pair = generator.choice(nodes, 2, replace=False)
        right = np.zeros(nodes)
        right[pair] = 1.0, -1.0
        solved, _ = cg(laplacian, right, rtol=1e-4, maxiter=2000, M=scale)
        found.append(float(solved[pair[0]] - solved[pair[1]]))
    return float(np.mean(found)), float(np.max(found)), count


@dataclass(frozen=True)
class LabelDistances:
    """How far test rows are from the nearest train row, in hops of the undirected graph.

    Attributes:
        shares: The share of test rows at each distance, from 0 on.
        unreachable: The share without a way to any train row.
        median: The median distance of those with a way.
    """

    shares: tuple[float, ...]
    unreachable: float
    median: float


def label_distances(inputs: Inputs, train: Tensor, test: Tensor) -> LabelDistances:
    """Distances of test nodes to train nodes."""
    matrix = neighbour_matrix(inputs, "undirected")
    distance = distances_from(matrix, train.numpy())[test.numpy()]
    reached = distance[distance >= 0]
    counts = np.bincount(reached) if len(reached) else np.zeros(0)
    return LabelDistances(
        shares=tuple(float(count) / len(distance) for count in counts),
        unreachable=float((distance < 0).mean()),
        median=float(np.median(reached)) if len(reached) else float("nan"),
    )
