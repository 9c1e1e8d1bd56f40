"""Loading the node data sets, sparse features kept sparse."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import numpy as np
import scipy.sparse
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import remove_self_loops, to_undirected

from adgn._util.suggestions import unknown_name
from adgn.data.components import largest_component as take_largest_component
from adgn.data.features import as_stored, csr_from_parts, csr_from_scipy
from adgn.data.files import cache_path, load_or_build, sha256_of_file
from adgn.data.node_datasets import NodeDataset, find_node_dataset
from adgn.data.raw_files import known_digests, obtain_raw_files, read_with_pyg
from adgn.data.root import DamagedFileError, DataError, cache_folder, data_root
from adgn.data.supplied import read_supplied, supplied_file

# Raised when the meaning of the cached tensors changes, so that old files are not read as new.
FORMAT = 1
FEATURE_FORMS = ("auto", "sparse", "dense")
_MASKS = ("train_mask", "val_mask", "test_mask")


def load(
    name: str,
    root: str | os.PathLike[str] | None = None,
    *,
    features: Literal["auto", "sparse", "dense"] = "auto",
    largest_component: bool = False,
) -> Data:
    """Load a node data set, preparing it first where that has not been done.

    Raw files are looked for below the data root, where PyG's classes keep them
    (`Coauthor/CS/raw/...`), and downloaded by PyG where they are missing. Preparation checks
    their checksums and the data set's counts, and keeps one file below the data root.

    Args:
        name: one of `NODE_DATASETS`: pubmed, cora, cs, physics, computers, photo, chameleon,
            squirrel, actor, cornell, texas, wisconsin; or one whose file you have put into the data
            root, such as chameleon-filtered.
        root: the data root; see [`data_root`][adgn.data.data_root].
        features: `"auto"` gives a CSR tensor where at most one entry in eight is non-zero (all
            but computers and photo) and a dense one elsewhere; `"sparse"` and `"dense"` give
            what they say.
        largest_component: keep the largest connected component only.

    Returns:
        `x` [N, F] float32, dense or `torch.sparse_csr`; `edge_index` [2, E], exactly PyG's;
        `y` [N]; and where the data set has published splits the boolean masks `train_mask`,
        `val_mask`, `test_mask`: [N] for Planetoid's public split, [N, 10] for Geom-GCN's.

    Example:
        >>> data = load("texas", root="data")  # doctest: +SKIP
        >>> data.x.shape, data.train_mask.shape  # doctest: +SKIP
        (torch.Size([183, 1703]), torch.Size([183, 10]))
    """
    entry = find_node_dataset(name)
    if features not in FEATURE_FORMS:
        raise unknown_name("features", features, FEATURE_FORMS)
    data = _to_data(prepare_node_dataset(entry, root))
    if features != "auto":
        data.x = _to_form(data.x, features)
    return take_largest_component(data) if largest_component else data


def prepare_node_dataset(
    entry: NodeDataset, root: str | os.PathLike[str] | None = None
) -> dict[str, Tensor]:
    """A data set's tensors as they are kept, read from the data root or made and kept there."""
    folder = data_root(root)
    return load_or_build(prepared_path(entry, folder), lambda: _build(entry, folder))


def prepared_path(entry: NodeDataset, root: Path) -> Path:
    """The prepared file of a data set below a data root."""
    if entry.file:
        digests = {entry.file: sha256_of_file(supplied_file(entry, root))}
    else:
        digests = {path: d for path, d in known_digests().items() if path.startswith(entry.folder)}
    return cache_path(cache_folder(root), entry.name, {"format": FORMAT, "raw": digests})


def read_raw(entry: NodeDataset, root: Path) -> tuple[scipy.sparse.csr_matrix | Tensor, Data]:
    """Features, and the rest of the data, from raw files that are there."""
    if entry.file:
        return read_supplied(entry, supplied_file(entry, root))
    if entry.reads == "npz":
        (path,) = obtain_raw_files(entry, root)
        return _read_npz(path)
    obtain_raw_files(entry, root)
    data = read_with_pyg(entry, root)
    x = data.x
    data.x = None
    return x, data


def _read_npz(path: Path) -> tuple[scipy.sparse.csr_matrix, Data]:
    """What PyG's reader of these files gives, without ever making the features dense."""
    try:
        with np.load(path) as arrays:
            x = _npz_matrix(arrays, "attr")
            adjacency = _npz_matrix(arrays, "adj").tocoo()
            y = torch.from_numpy(arrays["labels"]).long()
    except (KeyError, ValueError, OSError) as error:
        raise DamagedFileError(f"{path} cannot be read: {error!r}") from error
    x.sum_duplicates()
    x.data[x.data > 0] = 1
    edges = torch.from_numpy(np.stack([adjacency.row, adjacency.col])).long()
    edges, _ = remove_self_loops(edges)
    return x, Data(edge_index=to_undirected(edges, num_nodes=x.shape[0]), y=y)


def _npz_matrix(arrays: Mapping[str, np.ndarray], name: str) -> scipy.sparse.csr_matrix:
    parts = tuple(arrays[f"{name}_{part}"] for part in ("data", "indices", "indptr"))
    return scipy.sparse.csr_matrix(parts, shape=tuple(arrays[f"{name}_shape"]))


def _build(entry: NodeDataset, root: Path) -> dict[str, Tensor]:
    raw_x, data = read_raw(entry, root)
    x = as_stored(raw_x)
    found = {
        "nodes": x.shape[0],
        "edges": data.num_edges,
        "features": x.shape[1],
        "classes": int(data.y.max()) + 1,
    }
    expected = {key: getattr(entry, key) for key in entry.checked}
    if {key: found[key] for key in expected} != expected:
        raise DataError(f"{entry.name} below {root} has {found}; expected {expected}")
    tensors = {"edge_index": data.edge_index.int(), "y": data.y.int()}
    tensors |= {mask: data[mask] for mask in _MASKS if mask in data}
    if isinstance(x, Tensor):
        return tensors | {"x": x}
    return tensors | {
        "x.values": torch.from_numpy(x.data).float(),
        "x.indices": torch.from_numpy(x.indices).int(),
        "x.indptr": torch.from_numpy(x.indptr).int(),
        "x.shape": torch.tensor(x.shape),
    }


def _to_data(tensors: Mapping[str, Tensor]) -> Data:
    if "x" in tensors:
        x = tensors["x"]
    else:
        rows, columns = tensors["x.shape"].tolist()
        parts = (tensors["x.indptr"], tensors["x.indices"], tensors["x.values"])
        x = csr_from_parts(*parts, (rows, columns))
    masks = {mask: tensors[mask] for mask in _MASKS if mask in tensors}
    return Data(x=x, edge_index=tensors["edge_index"].long(), y=tensors["y"].long(), **masks)


def _to_form(x: Tensor, form: str) -> Tensor:
    if form == "dense":
        return x.to_dense()
    return x if x.layout == torch.sparse_csr else csr_from_scipy(scipy.sparse.csr_matrix(x.numpy()))
