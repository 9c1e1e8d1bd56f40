"""Features of the nodes at a distance of exactly k: what powers of an operator mix up."""

from itertools import pairwise

import numpy as np
import scipy.sparse
import torch
from scipy.sparse.csgraph import connected_components
from torch import Tensor

from adgn.data.own.inputs import Inputs
from adgn.graph import OperatorDirection

COLUMNS = 128  # features of shells; more are projected
_WORK = 3e9  # pairs of nodes times features
_PAIRS = 4_000_000  # of nodes, in one block of rows


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

    Distances are found for a block of rows at a time, by products of sparse matrices.

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
    nodes = len(values)
    found = [np.zeros_like(values) for _ in range(hops)]
    _, part = connected_components(matrix, directed=False)
    reachable = np.cumsum(np.bincount(part)[part])  # pairs of nodes, at most, up to each row
    ends = np.searchsorted(reachable, np.arange(_PAIRS, reachable[-1] + _PAIRS, _PAIRS), "right")
    borders = np.unique([0, *ends, nodes])
    for first, last in pairwise(borders.tolist()):
        rows = np.arange(last - first)
        ones = np.ones(len(rows), dtype=np.float32)
        edge = scipy.sparse.csr_matrix((ones, (rows, rows + first)), (len(rows), nodes))
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
            block[first:last] = (edge @ values) / count
    return [torch.from_numpy(block) for block in found]
