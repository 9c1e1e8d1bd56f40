import pickle
import shutil
from pathlib import Path

import pytest
import torch_geometric.datasets
from torch_geometric.data import Data

from adgn.data import NODE_DATASETS, DamagedFileError, MissingFileError, load
from adgn.data.node_datasets import PUBLIC_DATASETS
from adgn.data.raw_files import (
    check_raw_file,
    known_digests,
    obtain_raw_files,
    raw_files,
    read_with_pyg,
)

CORA = NODE_DATASETS["cora"]
PHOTO = NODE_DATASETS["photo"]


@pytest.fixture
def no_internet(monkeypatch):
    """PyG's classes with addresses at which nobody answers."""
    monkeypatch.setattr(torch_geometric.datasets.Planetoid, "url", "http://127.0.0.1:9/data")
    monkeypatch.setattr(torch_geometric.datasets.Amazon, "url", "http://127.0.0.1:9/")


@pytest.mark.parametrize("entry", PUBLIC_DATASETS.values(), ids=lambda entry: entry.name)
def test_layout_is_the_one_of_the_checksums(tmp_path, entry):
    paths = {path.relative_to(tmp_path).as_posix() for path in raw_files(entry, tmp_path)}
    assert paths <= known_digests().keys()
    assert list(tmp_path.iterdir()) == []  # asking for the layout downloads and writes nothing


@pytest.mark.parametrize("entry", PUBLIC_DATASETS.values(), ids=lambda entry: entry.name)
def test_published_files_pass(data_root, entry):
    for path in raw_files(entry, data_root):
        check_raw_file(path, data_root)


@pytest.mark.usefixtures("no_internet")
@pytest.mark.parametrize("entry", [CORA, PHOTO], ids=["cora", "photo"])
def test_missing_without_internet_names_file_root_and_remedy(tmp_path, entry):
    with pytest.raises(MissingFileError) as caught:
        obtain_raw_files(entry, tmp_path)
    message = str(caught.value)
    assert str(raw_files(entry, tmp_path)[0]) in message
    assert f"data root {tmp_path}" in message
    assert "copy the raw files" in message
    assert list(tmp_path.iterdir()) == []  # nothing half-downloaded stays


def copy_raw(entry, source, target):
    for path in raw_files(entry, source):
        copy = target / path.relative_to(source)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)


@pytest.mark.usefixtures("no_internet")
def test_files_that_are_there_need_no_internet(tmp_path, data_root):
    copy_raw(CORA, data_root, tmp_path)
    assert obtain_raw_files(CORA, tmp_path) == raw_files(CORA, tmp_path)


def test_one_missing_file_is_named(tmp_path, data_root, no_internet):
    copy_raw(CORA, data_root, tmp_path)
    gone = tmp_path / "Planetoid/Cora/raw/ind.cora.graph"
    gone.unlink()
    with pytest.raises(MissingFileError, match=r"ind\.cora\.graph is missing \(1 file"):
        obtain_raw_files(CORA, tmp_path)


@pytest.mark.parametrize("damage", [lambda b: b[:-1], lambda b: b"", lambda b: b[:-1] + b"?"])
def test_truncated_and_changed_files_are_refused(tmp_path, data_root, damage):
    copy_raw(CORA, data_root, tmp_path)
    victim = tmp_path / "Planetoid/Cora/raw/ind.cora.allx"
    victim.write_bytes(damage(victim.read_bytes()))
    with pytest.raises(DamagedFileError, match=r"ind\.cora\.allx .* truncated or changed.*Delete"):
        obtain_raw_files(CORA, tmp_path)


def test_download_by_pyg_brings_the_missing_files(tmp_path, data_root, monkeypatch):
    source = data_root / "Amazon/Photo/raw"
    monkeypatch.setattr(torch_geometric.datasets.Amazon, "url", f"{source.as_uri()}/")
    (path,) = obtain_raw_files(PHOTO, tmp_path)
    assert path.read_bytes() == (source / path.name).read_bytes()
    assert [item.name for item in tmp_path.iterdir()] == ["Amazon"]


def test_a_broken_download_is_never_put_in_place(tmp_path, data_root, monkeypatch):
    mirror = tmp_path / "mirror"
    mirror.mkdir()
    name = "amazon_electronics_photo.npz"
    whole = (data_root / "Amazon/Photo/raw" / name).read_bytes()
    (mirror / name).write_bytes(whole[: len(whole) // 2])
    monkeypatch.setattr(torch_geometric.datasets.Amazon, "url", f"{mirror.as_uri()}/")
    root = tmp_path / "root"
    with pytest.raises(DamagedFileError, match="truncated or changed"):
        obtain_raw_files(PHOTO, root)
    assert list(root.iterdir()) == []


def test_pickles_that_are_not_the_published_ones_are_never_read(tmp_path, data_root):
    copy_raw(CORA, data_root, tmp_path)
    victim = tmp_path / "Planetoid/Cora/raw/ind.cora.x"
    trap = tmp_path / "trap"

    class Trap:  # a pickle that creates a file when it is read
        def __reduce__(self):
            return Path.touch, (trap,)

    victim.write_bytes(pickle.dumps(Trap()))
    with pytest.raises(DamagedFileError):
        load("cora", tmp_path)
    assert not trap.exists()


def test_reading_writes_nothing_beside_the_raw_files(tmp_path, data_root):
    copy_raw(CORA, data_root, tmp_path)
    assert isinstance(read_with_pyg(CORA, tmp_path), Data)
    assert [item.name for item in (tmp_path / "Planetoid/Cora").iterdir()] == ["raw"]
