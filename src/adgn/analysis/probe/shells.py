"""Features of the nodes at a distance of exactly k: what powers of an operator mix up."""

from itertools import pairwise

import numpy as np
import scipy.sparse
import torch
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components
from torch import Tensor

from adgn.data.own.inputs import Inputs
from adgn.graph import OperatorDirection

COLUMNS = 128  # features of shells; more are projected
_WORK = 3e9  # pairs of nodes times features
_PAIRS = 4_000_000  # of nodes, in one block of rows
_DENSE = 0.25  # the share of pairs that are connected from which on dense matrices are faster
Values = NDArray[np.float32]


def neighbour_matrix(inputs: Inputs, direction: OperatorDirection) -> scipy.sparse.csr_matrix:
    """`[N, N]`, sparse: 1 where the node of the row hears the node of the column."""
    source, target = inputs.edges(direction)[0].numpy()
    ones = np.ones(len(source), dtype=np.float32)
    shape = (inputs.num_nodes, inputs.num_nodes)
    matrix = scipy.sparse.csr_matrix((ones, (target, source)), shape)
    matrix.data[:] = 1.0  # edges that are listed twice are one
    return matrix


def affordable(inputs: Inputs, columns: int) -> bool:
    """Whether distances of all pairs, and their features, are a matter of seconds."""
    matrix = neighbour_matrix(inputs, "in")
    _, part = connected_components(matrix, directed=False)
    pairs = float(np.square(np.bincount(part).astype(float)).sum())
    return pairs * min(columns, COLUMNS) <= _WORK


def shell_features(
    inputs: Inputs, direction: OperatorDirection, x: Tensor, hops: int
) -> list[Tensor]:
    r"""For $k = 1 \dots K$, `[N, F]`: the mean over the nodes at a distance of exactly $k$.

    Distances are found for a block of rows at a time, by products with the sparse matrix of
    neighbours.

    Args:
        inputs: The graph.
        direction: Where a node listens.
        x: `[N, F]`.
        hops: The number $K$.

    Example:
        >>> path = Inputs(torch.eye(4), torch.tensor([[0, 1, 2], [1, 2, 3]]))
        >>> shell_features(path, "in", path.x, 2)[1][3].tolist()  # two hops before node 3: node 1
        [0.0, 1.0, 0.0, 0.0]
    """
    matrix = neighbour_matrix(inputs, direction)
    values = x.numpy()
    found = [np.zeros_like(values) for _ in range(hops)]
    _, part = connected_components(matrix, directed=False)
    reachable = np.cumsum(np.bincount(part)[part])  # pairs of nodes, at most, up to each row
    rows = _rows_of_one_graph if reachable[-1] > _DENSE * len(values) ** 2 else _rows_of_many
    ends = np.searchsorted(reachable, np.arange(_PAIRS, reachable[-1] + _PAIRS, _PAIRS), "right")
    for first, last in pairwise(np.unique([0, *ends, len(values)]).tolist()):
        rows(matrix, values, [block[first:last] for block in found], first)
    return [torch.from_numpy(block) for block in found]


def _rows_of_one_graph(
    matrix: scipy.sparse.csr_matrix, values: Values, found: list[Values], first: int
) -> None:
    """Most pairs of nodes are connected: what is reached is a dense matrix, nodes × rows."""
    rows = len(found[0])
    backward = matrix.T.tocsr()
    edge = np.zeros((len(values), rows), dtype=np.float32)
    edge[np.arange(first, first + rows), np.arange(rows)] = 1.0
    unseen = edge == 0
    for block in found:
        edge = ((backward @ edge > 0) & unseen).astype(np.float32)
        count = edge.sum(0)
        if not count.any():
            break
        unseen &= edge == 0
        block[:] = (edge.T @ values) / np.maximum(count, 1).reshape(-1, 1)


def _rows_of_many(
    matrix: scipy.sparse.csr_matrix, values: Values, found: list[Values], first: int
) -> None:
    """Nodes reach few others: what is reached is a sparse matrix, rows × nodes."""
    rows = np.arange(len(found[0]))
    ones = np.ones(len(rows), dtype=np.float32)
    edge = scipy.sparse.csr_matrix((ones, (rows, rows + first)), (len(rows), len(values)))
    seen = edge
    for block in found:
        edge = edge @ matrix
        edge.data[:] = 1.0
        edge = edge - edge.multiply(seen)
        edge.eliminate_zeros()
        if edge.nnz == 0:
            break
        seen = seen + edge
        count = np.maximum(np.diff(edge.indptr), 1).reshape(-1, 1)
        block[:] = (edge @ values) / count
