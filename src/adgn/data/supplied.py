"""Data sets whose file users put into the data root: read, and checked by what is in it.

The files are `.npz` archives with the arrays `node_features` [N, F], `node_labels` [N], `edges`
[E, 2], and `train_masks`, `val_masks`, `test_masks` [10, N], as Platonov et al. (2023) publish
theirs. Nothing is unpickled.
"""

import hashlib
import os
import zipfile
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import to_undirected

from adgn.data.node_datasets import NODE_DATASETS, NodeDataset
from adgn.data.root import DamagedFileError, DataError, MissingFileError, data_root

SPLITS = 10
_MASKS = ("train_masks", "val_masks", "test_masks")
_ARRAYS = ("node_features", "node_labels", "edges", *_MASKS)
# The labels of Texas, which the file that goes around as Cornell has: as int64, in order.
_TEXAS_LABELS = "ad6aab2bba7360ed"


def is_available(name: str, root: str | os.PathLike[str] | None = None) -> bool:
    """Whether a node data set can be had: always, but for one that users supply, with its file.

    Example:
        >>> is_available("texas"), is_available("chameleon-filtered", "/nowhere")
        (True, False)
    """
    entry = NODE_DATASETS[name]
    return not entry.file or (data_root(root) / entry.file).is_file()


def supplied_file(entry: NodeDataset, root: Path) -> Path:
    """The file of a data set that users supply; an error says where to get it and to put it."""
    path = root / entry.file
    if not path.is_file():
        raise MissingFileError(
            f"{path} is missing: {entry.name!r} is not downloaded. Get {path.name} from "
            f"{entry.origin}, and put it there"
        )
    return path


def read_supplied(entry: NodeDataset, path: Path) -> tuple[Tensor, Data]:
    """Features, and the rest of the data, with masks [N, 10].

    Raises:
        DamagedFileError: It is not such an archive.
        DataError: An array is missing or not as it must be, or the file is another data set's.
    """
    arrays = _read_arrays(path)
    x, y = arrays["node_features"], arrays["node_labels"]
    if x.ndim != 2 or x.dtype.kind not in "fiub" or not np.isfinite(x).all():
        raise _wrong(path, "node_features", x, "finite numbers of shape [N, F]")
    nodes = len(x)
    if y.shape != (nodes,) or y.dtype.kind not in "iu" or (nodes and y.min() < 0):
        raise _wrong(path, "node_labels", y, f"classes from 0 on, of shape [{nodes}]")
    edges = arrays["edges"]
    if edges.ndim != 2 or edges.shape[1] != 2 or edges.dtype.kind not in "iu":
        raise _wrong(path, "edges", edges, "integers of shape [E, 2]")
    if edges.size and not 0 <= edges.min() <= edges.max() < nodes:
        raise DataError(
            f"{path}: edges has nodes from {edges.min()} to {edges.max()}; with {nodes} nodes they "
            f"are 0 to {nodes - 1}"
        )
    masks = _masks(path, arrays, nodes)
    labels = hashlib.sha256(y.astype("<i8").tobytes()).hexdigest()[:16]
    if entry.name == "cornell-fixed" and labels == _TEXAS_LABELS:
        raise DataError(
            f"{path} has the labels of Texas: it is the Cornell that goes around, whose features "
            f"and labels are Texas's, and not {entry.origin}"
        )
    edge_index = torch.from_numpy(edges.astype(np.int64)).t().contiguous()
    if not entry.directed:
        edge_index = to_undirected(edge_index, num_nodes=nodes)
    features = torch.from_numpy(np.ascontiguousarray(x, dtype=np.float32))
    return features, Data(edge_index=edge_index, y=torch.from_numpy(y.astype(np.int64)), **masks)


def _read_arrays(path: Path) -> dict[str, np.ndarray]:
    try:
        if not zipfile.is_zipfile(path):  # NumPy would take a single array, or text, for one
            raise ValueError("it is not a .npz file")
        # An array of objects would have to be unpickled; NumPy refuses it.
        with np.load(path, allow_pickle=False) as archive:
            names = list(archive.files)
            missing = [name for name in _ARRAYS if name not in names]
            arrays = {name: archive[name] for name in _ARRAYS if name in names}
    except (EOFError, OSError, ValueError, zipfile.BadZipFile) as error:
        raise DamagedFileError(
            f"{path} is not an archive of plain arrays ({error}); put a good copy in its place"
        ) from error
    if missing:
        raise DataError(
            f"{path} has no {', '.join(missing)} (it has {', '.join(names) or 'nothing'}); "
            f"expected {', '.join(_ARRAYS)}"
        )
    return arrays


def _masks(path: Path, arrays: dict[str, np.ndarray], nodes: int) -> dict[str, Tensor]:
    for name in _MASKS:
        mask = arrays[name]
        if mask.dtype.kind in "iu" and np.isin(mask, (0, 1)).all():
            mask = arrays[name] = mask.astype(bool)
        if mask.shape != (SPLITS, nodes) or mask.dtype.kind != "b":
            raise _wrong(path, name, mask, f"booleans of shape [{SPLITS}, {nodes}]")
        if not mask.any(axis=1).all():
            raise DataError(f"{path}: {name}[{int(np.argmin(mask.any(axis=1)))}] has no node")
    counts = np.sum([arrays[name] for name in _MASKS], axis=0)
    if counts.max(initial=0) > 1:
        split, node = np.argwhere(counts > 1)[0]
        raise DataError(f"{path}: in split {split}, node {node} is in two of {', '.join(_MASKS)}")
    return {
        name.removesuffix("s"): torch.from_numpy(np.ascontiguousarray(arrays[name].T))
        for name in _MASKS
    }


def _wrong(path: Path, name: str, array: np.ndarray, expected: str) -> DataError:
    return DataError(
        f"{path}: {name} is {array.dtype} of shape {list(array.shape)}; expected {expected}"
    )
