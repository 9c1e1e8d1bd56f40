"""What makes scores look better than they are: twins across a split, labels among the features."""

import numpy as np
import scipy.sparse
import torch
from numpy.typing import NDArray
from torch import Tensor

from adgn.analysis.probe.shells import neighbour_matrix
from adgn.data.features import csr_to_scipy
from adgn.data.own.inputs import Inputs
from adgn.data.own.splits import Parts

_ROWS = 65_536  # whose features are hashed at a time
_TELLS = 0.999  # the share of a feature's variance that lies between classes
_MEMBERS = 5  # of a class, for a feature to tell it
Hashes = NDArray[np.uint64]


def twin_share(inputs: Inputs, parts: Parts, y: Tensor) -> tuple[float, float]:
    """Test nodes with a twin among the train nodes: the same features and the same neighbours.

    Neighbours are compared in both directions. Nodes without neighbours have no twins.

    Returns:
        The share of test nodes that have one, and the share of these whose target is that of a
        twin.
    """
    key = _node_hashes(inputs)
    edges = inputs.edge_index.numpy()
    linked = np.zeros(inputs.num_nodes, dtype=bool)
    linked[edges.ravel()] = True
    train, test = parts.train.numpy(), parts.test.numpy()
    train = train[linked[train]]
    values = y.numpy().reshape(len(y), -1)
    label = values.astype(np.float64) @ np.arange(1, values.shape[1] + 1)
    order = np.argsort(key[train], kind="stable")
    sorted_keys = key[train][order]
    first = np.searchsorted(sorted_keys, key[test])
    last = np.searchsorted(sorted_keys, key[test], side="right")
    has = (last > first) & linked[test]
    if not has.any():
        return 0.0, 0.0
    labels = label[train][order]
    agrees = [
        label[node] in labels[low:high]
        for node, low, high in zip(test[has], first[has], last[has], strict=True)
    ]
    return float(has.mean()), float(np.mean(agrees))


def _node_hashes(inputs: Inputs) -> Hashes:
    """A number for each node, the same for those with the same features and neighbours."""
    generator = np.random.default_rng(0)

    def draw(count: int) -> Hashes:
        return generator.integers(0, 2**64, count, dtype=np.uint64, endpoint=False)

    # Sums of whole numbers modulo 2^64 do not depend on their order.
    columns, nodes = draw(inputs.x.size(1)), draw(inputs.num_nodes)
    total = np.zeros(inputs.num_nodes, dtype=np.uint64)
    if inputs.x.layout == torch.sparse_csr:
        x = csr_to_scipy(inputs.x)
        bits = x.data.astype(np.float32).view(np.uint32).astype(np.uint64)
        row = np.repeat(np.arange(inputs.num_nodes), np.diff(x.indptr))
        np.add.at(total, row, (bits * columns[x.indices]).astype(np.uint64))
    else:
        x = inputs.x.float().numpy()
        for begin in range(0, len(x), _ROWS):
            bits = np.ascontiguousarray(x[begin : begin + _ROWS]).view(np.uint32)
            total[begin : begin + _ROWS] = (bits.astype(np.uint64) * columns).sum(axis=1)
    for matrix, odd in ((neighbour_matrix(inputs, "in"), 3), (neighbour_matrix(inputs, "out"), 5)):
        row = np.repeat(np.arange(inputs.num_nodes), np.diff(matrix.indptr))
        heard = np.zeros(inputs.num_nodes, dtype=np.uint64)
        np.add.at(heard, row, nodes[matrix.indices])
        total += heard * np.uint64(odd)
    return total


def telling_features(inputs: Inputs, y: Tensor, rows: Tensor, classes: int) -> list[int]:
    """Features that give the label away: columns whose variance lies between classes.

    Of values: columns that are a linear function of a target.

    Args:
        inputs: Nodes with features.
        y: Classes or values.
        rows: The labelled nodes.
        classes: How many classes; 0 for values.
    """
    chosen = rows.numpy()
    if inputs.x.layout == torch.sparse_csr:
        x = csr_to_scipy(inputs.x)[chosen].astype(np.float64)
    else:
        x = scipy.sparse.csr_matrix(inputs.x[rows].double().numpy())
    count = len(chosen)
    mean = np.asarray(x.mean(0)).ravel()
    variance = np.asarray(x.multiply(x).mean(0)).ravel() - mean**2
    if classes:
        label = y[rows].numpy()
        members = np.bincount(label, minlength=classes)
        left = scipy.sparse.csr_matrix(
            (np.ones(count), (label, np.arange(count))), (classes, count)
        )
        sums = np.asarray((left @ x).todense())
        frequent = members >= _MEMBERS
        middle = sums[frequent] / members[frequent, None]
        between = (members[frequent, None] / count * (middle - mean) ** 2).sum(0)
    else:
        target = y[rows].double().numpy().reshape(count, -1)
        target = (target - target.mean(0)) / np.maximum(target.std(0), 1e-300)
        between = (np.asarray(x.T @ target) / count).__pow__(2).max(1)
    tells = (variance > 1e-12 * np.maximum(mean**2, 1.0)) & (between >= _TELLS * variance)
    return [int(column) for column in np.flatnonzero(tells)]
