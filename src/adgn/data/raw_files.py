"""The raw files of the node data sets: where PyG wants them, whether they are the right ones.

PyG knows the layout, the addresses and how to fetch. Its downloads are written in place and over
connections whose certificates it does not check, so they go to a staging folder first and are moved
to their place once their checksums hold. The checksums also guard PyG's reader of Planetoid's
files, which are pickles: nothing but the published bytes is ever handed to it.
"""

import tempfile
import warnings
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from torch_geometric.data import Data

from adgn.data.files import sha256_of_file
from adgn.data.node_datasets import NodeDataset
from adgn.data.root import DamagedFileError, DataError, MissingFileError


class _RawFilesOnly:
    """Keeps a PyG data set from downloading, processing and unpickling when it is created."""

    result: Data

    def _download(self) -> None:
        pass

    def _process(self) -> None:
        pass

    def load(self, path: str, data_cls: type[Data] = Data) -> None:
        """Nothing is loaded: there is no processed file."""

    def save(self, data_list: list[Data], path: str) -> None:
        """Keep what `process` made instead of pickling it."""
        self.result = data_list[0]


def _pyg_dataset(entry: NodeDataset, root: Path) -> Any:
    import torch_geometric.datasets  # here, as it takes a second and only preparation needs it

    original = getattr(torch_geometric.datasets, entry.pyg_class)
    kind = type(f"{entry.pyg_class}Files", (_RawFilesOnly, original), {})
    arguments = {"name": entry.pyg_name} if entry.pyg_name else {}
    return kind(root=str(root / entry.pyg_class), **arguments)


def raw_files(entry: NodeDataset, root: Path) -> list[Path]:
    """The raw files of a data set below a data root, whether they are there or not."""
    if entry.file:
        return [root / entry.file]
    return [Path(path) for path in _pyg_dataset(entry, root).raw_paths]


@cache
def known_digests() -> dict[str, str]:
    """The SHA-256 digest of every raw file, by its path below the data root."""
    text = resources.files("adgn.data").joinpath("SHA256SUMS").read_text()
    return {path: digest for digest, path in (line.split("  ", 1) for line in text.splitlines())}


def check_raw_file(path: Path, root: Path) -> None:
    """Raise `DamagedFileError` unless a raw file has its published checksum."""
    expected = known_digests()[path.relative_to(root).as_posix()]
    found = sha256_of_file(path)
    if found != expected:
        raise DamagedFileError(
            f"{path} ({path.stat().st_size} bytes) is truncated or changed: its SHA-256 is "
            f"{found}, expected {expected}. Delete it and load again with a connection to the "
            "internet, or put a good copy in its place"
        )


def obtain_raw_files(entry: NodeDataset, root: Path) -> list[Path]:
    """The raw files, the missing ones downloaded, all with the right checksum."""
    paths = raw_files(entry, root)
    missing = [path for path in paths if not path.exists()]
    if missing:
        _download(entry, root, missing)
    for path in paths:
        check_raw_file(path, root)
    return paths


def _download(entry: NodeDataset, root: Path, missing: list[Path]) -> None:
    root.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".download-", dir=root) as folder:
        staging = Path(folder)
        dataset = _pyg_dataset(entry, staging)
        Path(dataset.raw_dir).mkdir(parents=True)
        try:
            dataset.download()
        except Exception as error:  # whatever goes wrong, the files are not there
            raise MissingFileError(
                f"{missing[0]} is missing ({len(missing)} file(s) of {entry.name!r} in all) and "
                f"could not be downloaded: {error!r}. Connect to the internet, or copy the raw "
                f"files to that place below the data root {root}"
            ) from error
        for path in missing:
            fetched = staging / path.relative_to(root)
            if not fetched.exists():
                raise DataError(f"PyG's download of {entry.name!r} did not bring {path.name}")
            check_raw_file(fetched, staging)
        for path in missing:
            path.parent.mkdir(parents=True, exist_ok=True)
            (staging / path.relative_to(root)).replace(path)


def read_with_pyg(entry: NodeDataset, root: Path) -> Data:
    """What PyG makes of the raw files: features dense, nothing written to disk."""
    dataset = _pyg_dataset(entry, root)
    # PyG's reader of Planetoid's files adds a filter to the process's warnings; it is undone here.
    with warnings.catch_warnings():
        dataset.process()
    return dataset.result
