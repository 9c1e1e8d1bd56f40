import shutil
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
import torch_geometric.datasets
import torch_geometric.io

from adgn.data import NODE_DATASETS, DataError, load
from adgn.data import nodes as nodes_module
from adgn.data.node_datasets import PUBLIC_DATASETS
from adgn.data.raw_files import raw_files, read_with_pyg
from tests import warm

SPARSE = set(PUBLIC_DATASETS) - {"computers", "photo"}


@pytest.mark.parametrize("name", PUBLIC_DATASETS)
def test_every_data_set_matches_its_statistics(data_root, name):
    entry = NODE_DATASETS[name]
    data = load(name, data_root)
    found = (data.num_nodes, data.num_edges, data.num_features, int(data.y.max()) + 1)
    assert found == (entry.nodes, entry.edges, entry.features, entry.classes)
    assert data.x.layout == (torch.sparse_csr if name in SPARSE else torch.strided)
    assert data.x.dtype == torch.float32
    assert data.y.dtype == data.edge_index.dtype == torch.int64
    assert data.validate(raise_on_error=True)


@pytest.mark.parametrize("name", sorted(set(PUBLIC_DATASETS) - {"physics", "cs"}))
def test_equals_what_pyg_makes_of_the_files(data_root, name):
    data = load(name, data_root)
    expected = read_with_pyg(NODE_DATASETS[name], data_root)
    assert torch.equal(data.x.to_dense(), expected.x)
    for key in set(expected.keys()) - {"x"}:
        assert torch.equal(data[key], expected[key]), key
    assert set(data.keys()) == set(expected.keys())


def test_coauthor_equals_what_pyg_makes_of_some_of_its_rows(data_root, tmp_path):
    """PyG makes the whole dense; rows of the same file tell the same at a hundredth of the size."""
    (path,) = raw_files(NODE_DATASETS["physics"], data_root)
    rows = 300
    with np.load(path) as arrays:
        keys = [key for key in arrays.files if key.startswith(("attr_", "adj_", "labels"))]
        parts = {key: arrays[key] for key in keys if key != "attr_names"}
    for name in ("attr", "adj"):
        end = parts[f"{name}_indptr"][rows]
        parts[f"{name}_indptr"] = parts[f"{name}_indptr"][: rows + 1]
        inside = slice(0, end)
        parts[f"{name}_indices"] = parts[f"{name}_indices"][inside]
        parts[f"{name}_data"] = parts[f"{name}_data"][inside]
        parts[f"{name}_shape"] = np.array([rows, parts[f"{name}_shape"][1]])
    parts["adj_indices"] = parts["adj_indices"] % rows
    parts["adj_shape"] = np.array([rows, rows])
    parts["labels"] = parts["labels"][:rows]
    small = tmp_path / "small.npz"
    np.savez(small, **parts)
    x, data = nodes_module._read_npz(small)
    expected = torch_geometric.io.read_npz(str(small))
    assert (x.toarray() == expected.x.numpy()).all()
    assert torch.equal(data.edge_index, expected.edge_index)
    assert torch.equal(data.y, expected.y)


def test_cornell_has_texas_s_features_and_labels_with_other_edges(data_root):
    cornell, texas = load("cornell", data_root), load("texas", data_root)
    assert torch.equal(cornell.x.to_dense(), texas.x.to_dense())
    assert torch.equal(cornell.y, texas.y)
    assert not torch.equal(cornell.edge_index[:, :200], texas.edge_index[:, :200])
    assert torch.bincount(texas.y).min() == 1


@pytest.mark.parametrize("name", ["chameleon", "squirrel"])
def test_wikipedia_has_duplicated_nodes(data_root, name):
    data = load(name, data_root, features="dense")
    neighbours: dict[int, set[int]] = {node: set() for node in range(data.num_nodes)}
    for a, b in data.edge_index.t().tolist():
        neighbours[a].add(b)
    seen = {}
    for node, row in enumerate(data.x):
        seen.setdefault((row.numpy().tobytes(), frozenset(neighbours[node])), []).append(node)
    assert max(len(group) for group in seen.values()) > 1


def test_stated_kinds_of_features(data_root):
    pubmed = load("pubmed", data_root).x.values()
    assert not set(pubmed.unique().tolist()) <= {0.0, 1.0}
    for name in ("cs", "physics", "cora"):
        assert load(name, data_root).x.values().unique().tolist() == [1.0]
    assert load("photo", data_root).has_isolated_nodes()
    assert load("computers", data_root).has_isolated_nodes()


def test_features_in_the_form_asked_for(data_root):
    sparse = load("photo", data_root, features="sparse").x
    dense = load("photo", data_root, features="dense").x
    assert sparse.layout == torch.sparse_csr
    assert torch.equal(sparse.to_dense(), dense)
    assert load("texas", data_root, features="dense").x.layout == torch.strided
    with pytest.raises(ValueError, match=r"features='spares'.*'sparse'"):
        load("photo", data_root, features="spares")


@pytest.mark.long
def test_physics_is_never_dense(data_root, tmp_path):
    """Preparing and loading stays far below the 1.2 GB of the dense features."""
    program = (
        "import sys, adgn.data.nodes, torch_geometric.datasets\n"
        "def peak():\n"
        "    lines = open('/proc/self/status').read().splitlines()\n"
        "    return int(next(l for l in lines if l.startswith('VmHWM')).split()[1])\n"
        "before = peak()\n"
        "adgn.data.nodes.load('physics', sys.argv[1])\n"
        "print(peak() - before)\n"
    )
    (source,) = raw_files(NODE_DATASETS["physics"], data_root)
    copy = tmp_path / source.relative_to(data_root)
    copy.parent.mkdir(parents=True)
    shutil.copyfile(source, copy)
    done = warm.run([sys.executable, "-c", program, str(tmp_path)])
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 300_000  # kilobytes


def test_works_from_the_prepared_file_alone(data_root, tmp_path):
    expected = load("texas", data_root)
    prepared = nodes_module.prepared_path(NODE_DATASETS["texas"], data_root)
    (tmp_path / "adgn").mkdir()
    shutil.copyfile(prepared, tmp_path / "adgn" / prepared.name)
    data = load("texas", tmp_path)
    assert torch.equal(data.x.to_dense(), expected.x.to_dense())


def test_wrong_counts_are_refused(data_root, tmp_path, monkeypatch):
    (tmp_path / "WebKB").symlink_to(data_root / "WebKB")
    wrong = replace(NODE_DATASETS["texas"], edges=1)
    monkeypatch.setattr(nodes_module, "find_node_dataset", lambda name: wrong)
    with pytest.raises(DataError, match=r"texas .* 'edges': 325.*expected.*'edges': 1"):
        load("texas", tmp_path)
    assert list((tmp_path / "adgn").glob("*.safetensors")) == []


def test_unknown_name_suggests_the_nearest(tmp_path):
    with pytest.raises(ValueError, match=r"name='texsa'.*'texas'"):
        load("texsa", tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_changed_tensor_does_not_reach_the_file(data_root):
    first = load("photo", data_root)
    first.x.add_(1)
    assert torch.equal(load("photo", data_root).x + 1, first.x)
