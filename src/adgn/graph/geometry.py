"""Places of a graph's nodes in the plane, and who is near whom there."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from adgn.graph.operator import SparsePattern

# All distances between the nodes of a component are held at once, a few times: 0.5 GB each.
MAX_COMPONENT = 8192
# Up to here components are remembered. One takes at most 50 kB, all that are kept 0.4 GB.
_SMALL_COMPONENT = 64
_DIGITS = 9  # of coordinates; what is below is rounding, and would decide on which side a node is


@dataclass(frozen=True)
class PlaneGeometry:
    r"""A graph's nodes in the plane, by Isomap on the graph itself.

    Each connected component (edges taken both ways) is embedded on its own: its shortest-path
    distances are approximated by distances in the plane (classical scaling, scikit-learn's
    `KernelPCA` of $-\frac12 d^2$). An axis points to where $\sum z^3 > 0$; for a graph that is its
    own mirror image that is not decided, and the numbering of nodes decides.

    Attributes:
        plane: `[N, 2]`; the places.
        near: `[2, pairs]`; receiver and sender of each pair of nodes of one component that are at
            most as far apart as makes them as many as the component's distinct edges, or more where
            distances are equal.

    Example:
        >>> path = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
        >>> pattern, _ = SparsePattern.from_entries(path[1], path[0], (3, 3))
        >>> geometry = PlaneGeometry.of(pattern)
        >>> geometry.plane[:, 0].abs().tolist()
        [1.0, 0.0, 1.0]
        >>> geometry.near.tolist()
        [[0, 1, 1, 2], [1, 0, 2, 1]]
    """

    plane: Tensor
    near: Tensor

    @classmethod
    def of(cls, pattern: SparsePattern) -> "PlaneGeometry":
        """The geometry of the graph whose operator has this pattern."""
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        csr = pattern.csr
        row, col = (part.cpu().numpy().astype(np.int64) for part in (csr.row, csr.col))
        other = row != col
        row, col = row[other], col[other]
        nodes = pattern.shape[0]
        matrix = coo_array((np.ones(len(row)), (row, col)), shape=(nodes, nodes))
        _, component = connected_components(matrix, directed=False)
        sizes = np.bincount(component, minlength=1)
        if len(sizes) and sizes.max() > MAX_COMPONENT:
            raise ValueError(
                f"the graph has a connected component of {sizes.max()} nodes, whose distances from "
                f"each other take {8e-9 * float(sizes.max()) ** 2:.1f} GB; nodes are placed in the "
                f"plane for components of up to {MAX_COMPONENT}. Use a model without an embedding, "
                "such as 'ggcn', or a part of the graph"
            )
        # Nodes by component, in their order; and the place of each in its component.
        by_component = np.argsort(component, kind="stable")
        first = np.concatenate([[0], np.cumsum(sizes)])
        place = np.empty(nodes, dtype=np.int64)
        place[by_component] = np.arange(nodes) - first[component[by_component]]
        edge_order = np.argsort(component[row], kind="stable")
        edges = np.stack([place[row], place[col]])[:, edge_order].astype(np.int32)
        edge_first = np.searchsorted(component[row][edge_order], np.arange(len(sizes) + 1))
        plane, near = np.zeros((nodes, 2)), [np.zeros((2, 0), dtype=np.int64)]
        for number, size in enumerate(sizes):
            own = edges[:, edge_first[number] : edge_first[number + 1]]
            if size < 2:
                continue
            ends = np.unique(np.sort(own, axis=0), axis=1)
            members = by_component[first[number] : first[number + 1]]
            place_nodes = _small_component if size <= _SMALL_COMPONENT else _component
            plane[members], pairs = place_nodes(int(size), ends.tobytes(), own.shape[1])
            near.append(members[pairs])
        device = csr.col.device
        return cls(
            torch.from_numpy(plane).to(device),
            torch.from_numpy(np.concatenate(near, axis=1)).to(device),
        )


def _component(nodes: int, ends: bytes, count: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Places of a connected component's nodes, and its near pairs; `count` are its edges."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import shortest_path
    from sklearn.decomposition import KernelPCA

    first, second = np.frombuffer(ends, dtype=np.int32).reshape(2, -1)
    matrix = coo_array((np.ones(len(first)), (first, second)), shape=(nodes, nodes)).tocsr()
    distance = shortest_path(matrix, directed=False, unweighted=True)
    # A seed: the iterative solver starts from random numbers, and else from NumPy's global state.
    scaling = KernelPCA(2, kernel="precomputed", random_state=0)
    plane = _rounded(_oriented(scaling.fit_transform(-0.5 * distance**2)))
    upper = np.triu_indices(nodes, 1)
    apart = _rounded(np.hypot(*(plane[upper[0]] - plane[upper[1]]).T))
    wanted = min((count + 1) // 2, len(apart))  # each pair counts in both directions
    radius = np.partition(apart, wanted - 1)[wanted - 1]
    one, two = (part[apart <= radius] for part in upper)
    pairs = np.stack([np.concatenate([one, two]), np.concatenate([two, one])]).astype(np.int32)
    return plane, pairs[:, np.lexsort(pairs[::-1])]


# Small graphs of a data set come back in every batch; a large one is remembered with its pattern.
_small_component = lru_cache(maxsize=2**13)(_component)


def _oriented(plane: NDArray[Any]) -> NDArray[Any]:
    """The same with axes that point to the longer tail, or else to the farthest of the nodes."""
    for axis in plane.T:
        lean = (axis**3).sum()
        if abs(lean) <= 1e-9 * (np.abs(axis) ** 3).sum():
            lean = axis[np.argmax(np.round(np.abs(axis), _DIGITS))]
        if lean < 0:
            axis *= -1
    return plane


def _rounded(values: NDArray[Any]) -> NDArray[Any]:
    """Without what rounding has left of zeros and of equal numbers; and no −0."""
    rounded: NDArray[Any] = np.round(values, _DIGITS) + 0.0
    return rounded
