"""All data sets under one roof: what there is, making it ready, checking it."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from adgn._util.progress import ProgressCallback
from adgn.data.files import read_tensors
from adgn.data.node_datasets import NODE_DATASETS, NodeDataset, unknown_dataset
from adgn.data.nodes import prepare_node_dataset
from adgn.data.property import prepare_property
from adgn.data.property_targets import PUBLISHED_COLUMNS, TARGETS, PropertySettings
from adgn.data.raw_files import check_raw_file, raw_files
from adgn.data.root import DataError, cache_folder, data_root
from adgn.data.supplied import read_supplied

State = Literal["ok", "missing", "damaged"]


@dataclass(frozen=True)
class DatasetInfo:
    """One data set as the catalogue describes it.

    Args:
        name: its name.
        task: `"node classification"`, or what is predicted on many graphs.
        summary: what it is, in a line.
        statistics: the figures worth knowing, in words.
        defects: what a user must know before trusting a result.
        usage: the Python expression that gives it.
        on_disk: whether it has prepared files; if not it is made in memory each time.
    """

    name: str
    task: str
    summary: str
    statistics: Mapping[str, str]
    defects: tuple[str, ...]
    usage: str
    on_disk: bool = True


@dataclass(frozen=True)
class FileState:
    """Whether a file of a data set is there and whole; `detail` says what is wrong."""

    path: Path
    role: Literal["raw", "prepared"]
    state: State
    detail: str = ""


def _describe_node_dataset(entry: NodeDataset) -> DatasetInfo:
    splits = {
        "public": "Planetoid's public split; 20/30 per class by data seed",
        "geom-gcn": "Geom-GCN's ten fixed splits (48/32/20 %)",
        "per class": "20/30 per class by data seed",
        "file": "the ten of its file",
    }
    checked = "checked against the paper's table" if entry.in_paper_table else "checked"
    return DatasetInfo(
        name=entry.name,
        task="node classification",
        summary=f"{entry.title}: one graph, {entry.classes} classes of nodes",
        statistics={
            "nodes": f"{entry.nodes:,}",
            **({"file": f"{entry.file} below the data root; {entry.origin}"} if entry.file else {}),
            **({} if entry.file else {"edges": f"{entry.edges:,} (as PyG counts them, {checked})"}),
            "features": f"{entry.features:,}",
            "classes": str(entry.classes),
            "splits": splits[entry.splits],
        },
        defects=entry.defects,
        usage=f'adgn.data.load("{entry.name}")',
    )


_SYNTHETIC = (
    DatasetInfo(
        name="graph-property",
        task="graph property prediction",
        summary="random graphs of 25 to 34 nodes with distances and spectra to predict",
        statistics={
            "graphs": "5,120 train, 640 validation, 1,280 test",
            "nodes": "25 to 34 a graph (train), 25 to 29 (validation, test)",
            "edges": "22 to 553 undirected ones a graph (train)",
            "features": "2 (source flag, node value)",
            "targets": ", ".join(f"{t.name} ({t.level})" for t in TARGETS.values()),
        },
        defects=(
            "published columns are mislabelled: "
            + ", ".join(f'"{column}" is {name}' for column, name in PUBLISHED_COLUMNS.items())
            + "; true eccentricity was never trained",
        ),
        usage='adgn.data.GraphPropertyDataset(split="train", target="sssp")',
    ),
    DatasetInfo(
        name="tree-neighbors-match",
        task="graph classification",
        summary="binary trees whose root asks for the value of one leaf",
        statistics={
            "graphs": "96 (radius 2) to 32,000 (radius 5 and more), 80 % train, 20 % test",
            "nodes": "2^(radius + 1) - 1 a graph",
            "features": "2 (key, value)",
            "classes": "2^radius + 1",
        },
        defects=(),
        usage="adgn.data.TreeNeighborsMatch(radius=4)",
        on_disk=False,
    ),
    DatasetInfo(
        name="graph-transfer",
        task="graph regression",
        summary="a number at one node must be reported at another; line, ring, crossed ring",
        statistics={
            "graphs": "1,000 train, 100 validation, 100 test",
            "nodes": "distance + 1 (line), 2 * distance (ring, crossed ring) a graph",
            "features": "1 (the number at the source, 0 elsewhere)",
        },
        defects=(),
        usage='adgn.data.GraphTransfer("line", distance=10)',
        on_disk=False,
    ),
)

CATALOGUE: Mapping[str, DatasetInfo] = MappingProxyType(
    {
        info.name: info
        for info in (
            *_SYNTHETIC,
            *(_describe_node_dataset(entry) for entry in NODE_DATASETS.values()),
        )
    }
)


def find_dataset(name: str) -> DatasetInfo:
    """What the catalogue says about a data set.

    Example:
        >>> find_dataset("cornell").statistics["nodes"]
        '183'
    """
    if name not in CATALOGUE:
        raise unknown_dataset(name, CATALOGUE)
    return CATALOGUE[name]


def prepare(
    name: str, root: str | os.PathLike[str] | None = None, progress: ProgressCallback | None = None
) -> None:
    """Make a data set ready on disk, so that later use only reads it.

    Args:
        name: a name of `CATALOGUE`. Data sets that are made in memory need nothing.
        root: the data root; see [`data_root`][adgn.data.data_root].
        progress: called with (steps done, all steps) on the way.

    Example:
        >>> prepare("graph-transfer")  # made in memory: nothing to do
        >>> prepare("cornel")
        Traceback (most recent call last):
        ValueError: name='cornel' is not known. Did you mean 'cornell'? ...
    """
    info = find_dataset(name)
    if name in NODE_DATASETS:
        prepare_node_dataset(NODE_DATASETS[name], root)
    elif info.on_disk:
        prepare_property(PropertySettings(), root, progress)


def verify(name: str, root: str | os.PathLike[str] | None = None) -> list[FileState]:
    """Check the files of a data set: raw ones by their published checksum, prepared ones by theirs.

    Prepared files of all settings are checked. A data set that was never prepared has none.

    Example:
        >>> import tempfile
        >>> from adgn.data import GraphPropertyDataset
        >>> with tempfile.TemporaryDirectory() as root:
        ...     small = {"min_nodes": 6, "train": (1, 1), "val": (1, 1), "test": (1, 1)}
        ...     _ = GraphPropertyDataset(root, **small)
        ...     whole = verify("graph-property", root)
        ...     _ = whole[0].path.write_bytes(b"something else")
        ...     damaged = verify("graph-property", root)
        ...     missing = verify("photo", root)
        >>> [(state.role, state.state) for state in (*whole, *damaged, *missing)]
        [('prepared', 'ok'), ('prepared', 'damaged'), ('raw', 'missing')]
    """
    info = find_dataset(name)
    folder = data_root(root)
    states = []
    if name in NODE_DATASETS:
        entry = NODE_DATASETS[name]
        for path in raw_files(entry, folder):
            states.append(_state(path, "raw", partial(_check_raw, entry, folder)))
    if info.on_disk:
        pattern = f"{name}-{'[0-9a-f]' * 12}.safetensors"
        for path in sorted(cache_folder(folder).glob(pattern)):
            states.append(_state(path, "prepared", read_tensors))
    return states


def _check_raw(entry: NodeDataset, root: Path, path: Path) -> None:
    if not entry.file:
        check_raw_file(path, root)
    elif not path.exists():
        raise FileNotFoundError(path)
    else:
        read_supplied(entry, path)


def _state(
    path: Path, role: Literal["raw", "prepared"], check: Callable[[Path], object]
) -> FileState:
    try:
        check(path)
    except FileNotFoundError:
        return FileState(path, role, "missing", f"{path} is missing")
    except (DataError, OSError) as error:
        return FileState(path, role, "damaged", str(error))
    return FileState(path, role, "ok")
