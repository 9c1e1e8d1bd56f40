"""The values of the targets on given graphs, and what guessing them scores."""

import math

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from adgn.data.packed import PackedGraphs
from adgn.data.property_targets import ConstantScore

PAPER_BATCH_SIZE = 512


def distances(adjacency: NDArray[np.uint8]) -> NDArray[np.int16]:
    """Hops between all pairs of nodes of G graphs [G, N, N]; -1 where there is no path."""
    steps = adjacency.astype(np.float32)
    reached = np.broadcast_to(np.eye(steps.shape[1], dtype=bool), steps.shape)
    hops = np.where(reached, 0, -1).astype(np.int16)
    for length in range(1, steps.shape[1]):
        new = (reached.astype(np.float32) @ steps > 0) & ~reached
        if not new.any():
            break
        hops[new] = length
        reached = reached | new
    return hops


def compute_targets(
    adjacency: NDArray[np.uint8], values: NDArray[np.float64], source: NDArray[np.int64]
) -> dict[str, NDArray[np.float64]]:
    """All targets of G undirected graphs with N nodes each.

    Args:
        adjacency: 0/1 matrices [G, N, N], symmetric, diagonal empty.
        values: node values [G, N].
        source: the source node of each graph [G].

    Returns:
        name -> [G, N] for node targets, [G] for graph targets.

    Example:
        >>> line = np.array([[[0, 1, 0], [1, 0, 1], [0, 1, 0]]], dtype=np.uint8)
        >>> targets = compute_targets(line, np.array([[1.0, 3.0, 5.0]]), np.array([0]))
        >>> targets["sssp"].tolist(), targets["laplacian"].tolist(), targets["diameter"].tolist()
        ([[0.0, 1.0, 2.0]], [[-2.0, 0.0, 2.0]], [2.0])
    """
    hops = distances(adjacency)
    finite = np.maximum(hops, 0).astype(np.float64)
    eccentricity = finite.max(axis=2)
    differences = values[:, :, None] - values[:, None, :]
    return {
        "sssp": finite[np.arange(len(source)), source],
        "eccentricity": eccentricity,
        # A sum instead of a matrix product: its rounding does not depend on the BLAS in use.
        "laplacian": (adjacency * differences).sum(axis=2),
        "diameter": eccentricity.max(axis=1),
        "connected": (hops >= 0).all(axis=(1, 2)).astype(np.float64),
        "spectral_radius": np.abs(np.linalg.eigvalsh(adjacency.astype(np.float64))).max(axis=1),
    }


def _mean_per_graph(values: Tensor, graphs: PackedGraphs) -> Tensor:
    """The mean of each graph's rows of `values`, which has a row per node or per graph: [G]."""
    rows = values.reshape(values.shape[0], -1).mean(dim=1)
    if graphs.y_level == "graph":
        return rows
    counts = graphs.node_ptr.diff()
    owner = torch.arange(len(graphs), device=rows.device).repeat_interleave(counts)
    return rows.new_zeros(len(graphs)).index_add_(0, owner, rows) / counts


def constant_predictor_score(train: PackedGraphs, test: PackedGraphs) -> ConstantScore:
    """The score of predicting, everywhere on `test`, the mean over `train`'s graphs.

    The constant is the mean over graphs of the mean over nodes, the one that minimises the loss of
    the task on the train split.

    Example:
        >>> from adgn.data import GraphTransfer
        >>> train, test = (GraphTransfer("line", 3, split).packed for split in ("train", "test"))
        >>> score = constant_predictor_score(train, test)
        >>> round(10**score.per_graph, 1)  # the numbers are uniform in [-1, 1): 1/3 is expected
        0.3
    """
    constant = _mean_per_graph(train.y.double(), train).mean()
    errors = _mean_per_graph((test.y.double() - constant).square(), test)
    batches = torch.stack([batch.mean() for batch in torch.split(errors, PAPER_BATCH_SIZE)])
    return ConstantScore(_log10(errors.mean()), _log10(batches.mean()))


def _log10(value: Tensor) -> float:
    return math.log10(value) if value > 0 else -math.inf
