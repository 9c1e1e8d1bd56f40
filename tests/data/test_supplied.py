"""Data sets whose file a user puts into the data root, on small files made here."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from adgn.data import NODE_DATASETS, DamagedFileError, DataError, MissingFileError, load, verify
from adgn.data import nodes as nodes_module
from adgn.data.supplied import is_available, read_supplied

NODES, FEATURES = 30, 4
FILTERED = replace(NODE_DATASETS["chameleon-filtered"], nodes=NODES, features=FEATURES, classes=3)
DIRECTED = replace(FILTERED, name="chameleon-filtered-directed", directed=True)


def arrays():
    part = np.arange(NODES) % 5
    rolled = [np.roll(part, split) for split in range(10)]
    return {
        "node_features": np.random.default_rng(0).random((NODES, FEATURES)).astype(np.float32),
        "node_labels": np.arange(NODES) % 3,
        "edges": np.array([[0, 1], [1, 2], [5, 3], [4, 4]]),
        "train_masks": np.array([row < 2 for row in rolled]),
        "val_masks": np.array([row == 2 for row in rolled]),
        "test_masks": np.array([row > 2 for row in rolled]),
    }


@pytest.fixture
def file(tmp_path):
    path = tmp_path / FILTERED.file
    path.parent.mkdir()
    np.savez(path, **arrays())
    return path


def changed(path, **changes):
    np.savez(path, **{k: v for k, v in {**arrays(), **changes}.items() if v is not None})


def test_edges_are_stored_once_and_heard_in_both_directions(file):
    _, data = read_supplied(FILTERED, file)
    assert data.edge_index.t().tolist() == [
        [0, 1], [1, 0], [1, 2], [2, 1], [3, 5], [4, 4], [5, 3],
    ]  # fmt: skip
    _, directed = read_supplied(DIRECTED, file)
    assert directed.edge_index.t().tolist() == arrays()["edges"].tolist()


def test_load_prepares_it_as_any_other(file, tmp_path, monkeypatch):
    monkeypatch.setattr(nodes_module, "find_node_dataset", lambda name: FILTERED)
    data = load("chameleon-filtered", tmp_path, features="dense")
    given = arrays()
    assert data.x.tolist() == given["node_features"].tolist()
    assert data.y.tolist() == given["node_labels"].tolist()
    for part in ("train", "val", "test"):
        mask = data[f"{part}_mask"]
        assert mask.dtype == torch.bool
        assert mask.t().tolist() == given[f"{part}_masks"].tolist()
    # Another file in its place is another data set, not the one that was prepared.
    changed(file, node_labels=(np.arange(NODES) + 1) % 3)
    assert load("chameleon-filtered", tmp_path).y[0] == 1


def test_masks_may_be_zeros_and_ones(file):
    changed(file, train_masks=arrays()["train_masks"].astype(np.int64))
    _, data = read_supplied(FILTERED, file)
    assert data.train_mask.dtype == torch.bool


@pytest.mark.parametrize("name", [n for n, entry in NODE_DATASETS.items() if entry.file])
def test_without_its_file_it_says_what_to_get_from_where(name, tmp_path):
    entry = NODE_DATASETS[name]
    assert not is_available(name, tmp_path)
    with pytest.raises(MissingFileError) as caught:
        load(name, tmp_path)
    assert str(tmp_path / entry.file) in str(caught.value)
    assert entry.origin in str(caught.value)
    assert [state.state for state in verify(name, tmp_path)] == ["missing"]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"val_masks": None}, r"has no val_masks \(it has node_features.*expected"),
        ({"edges": np.zeros((2, 3), int)}, r"edges is int64 of shape \[2, 3\]; .*\[E, 2\]"),
        ({"edges": np.array([[0, 99]])}, r"nodes from 0 to 99; with 30 nodes they are 0 to 29"),
        ({"node_labels": np.zeros(NODES)}, r"node_labels is float64.*classes from 0 on"),
        ({"node_labels": np.full(NODES, -1)}, "node_labels"),
        ({"node_features": np.full((NODES, 4), np.nan)}, "node_features.*finite"),
        ({"node_features": np.zeros(NODES)}, r"shape \[30\]; expected finite numbers"),
        ({"train_masks": np.ones((3, NODES), bool)}, r"shape \[3, 30\]; .*\[10, 30\]"),
        ({"train_masks": np.full((10, NODES), 2)}, "train_masks is int64"),
        ({"train_masks": np.zeros((10, NODES), bool)}, r"train_masks\[0\] has no node"),
        ({"test_masks": arrays()["train_masks"]}, "in split 0, node 0 is in two of"),
    ],
)
def test_wrong_files_are_told_by_what_is_wrong(file, changes, message):
    changed(file, **changes)
    with pytest.raises(DataError, match=message):
        read_supplied(FILTERED, file)


def test_what_is_no_archive_of_plain_arrays(file):
    file.write_bytes(b"something else")
    with pytest.raises(DamagedFileError, match="good copy"):
        read_supplied(FILTERED, file)
    changed(file, node_labels=np.array([{}] * NODES, dtype=object))
    with pytest.raises(DamagedFileError, match="plain arrays"):
        read_supplied(FILTERED, file)
    np.save(file.with_suffix(".npy"), np.zeros(3))
    file.with_suffix(".npy").replace(file)
    with pytest.raises(DamagedFileError, match="plain arrays"):
        read_supplied(FILTERED, file)


def test_a_file_of_another_data_set_has_other_counts(file, tmp_path):
    with pytest.raises(DataError, match=r"'nodes': 30.*expected.*'nodes': 890"):
        load("chameleon-filtered", tmp_path)


def test_the_cornell_that_is_texas_is_refused(data_root, tmp_path):
    entry = NODE_DATASETS["cornell-fixed"]
    texas = load("texas", data_root, features="dense")
    path = tmp_path / entry.file
    path.parent.mkdir()
    content = {
        "node_features": texas.x.numpy(),
        "node_labels": texas.y.numpy(),
        "edges": load("cornell", data_root).edge_index.t().numpy(),
        **{f"{part}_masks": texas[f"{part}_mask"].t().numpy() for part in ("train", "val", "test")},
    }
    np.savez(path, **content)
    with pytest.raises(DataError, match="has the labels of Texas"):
        load("cornell-fixed", tmp_path)
    np.savez(path, **{**content, "node_labels": (texas.y.numpy() + 1) % 5})
    assert load("cornell-fixed", tmp_path).num_edges == 298
