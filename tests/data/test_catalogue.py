import ast
import functools
import inspect
import re
from pathlib import Path

import pytest

import adgn
from adgn.data import (
    CATALOGUE,
    NODE_DATASETS,
    TARGETS,
    GraphPropertyDataset,
    GraphTransfer,
    TreeNeighborsMatch,
    find_dataset,
    prepare,
    verify,
)

DOCS = Path(__file__).parents[2] / "docs" / "data.md"


@pytest.mark.parametrize("name", CATALOGUE)
def test_every_data_set_is_documented(name):
    text = DOCS.read_text()
    assert re.search(rf"^\| `{name}` \|", text, re.MULTILINE), f"{name} has no row in {DOCS}"


def test_every_target_and_its_constant_score_is_documented():
    text = DOCS.read_text()
    for target in TARGETS.values():
        score = target.constant_score
        row = rf"^\| `{target.name}` \|.*\| {score.per_graph:.4f} \| {score.paper:.4f} \|"
        assert re.search(row, text, re.MULTILINE), target.name


def test_every_node_dataset_is_in_the_catalogue():
    assert set(NODE_DATASETS) < set(CATALOGUE)


def test_statistics_of_synthetic_sets_are_true():
    assert len(TreeNeighborsMatch(2)) + len(TreeNeighborsMatch(2, "test")) == 96
    assert len(GraphTransfer("ring", 4, "test")) == 100


SMALL = {"min_nodes": 6, "train": (1, 1), "val": (1, 1), "test": (1, 1)}
SYNTHETIC = {
    "graph-property": lambda root: GraphPropertyDataset(root, **SMALL),
    "tree-neighbors-match": lambda root: TreeNeighborsMatch(2),
    "graph-transfer": lambda root: GraphTransfer("line", 3),
}


def test_every_synthetic_set_is_compared():
    assert set(SYNTHETIC) == set(CATALOGUE) - set(NODE_DATASETS)


@pytest.mark.parametrize("name", SYNTHETIC)
def test_feature_counts_of_synthetic_sets_are_true(name, tmp_path):
    features = SYNTHETIC[name](tmp_path).num_features
    assert CATALOGUE[name].statistics["features"].startswith(f"{features} (")
    header, row = (
        [cell.strip() for cell in re.search(start + ".*", DOCS.read_text())[0].split("|")]
        for start in (r"\| name \| task", rf"\| `{name}` \|")
    )
    assert row[header.index("features")] == str(features)


@pytest.mark.parametrize("name", CATALOGUE)
def test_usage_expressions_are_calls_of_what_the_package_has(name):
    call = ast.parse(CATALOGUE[name].usage, mode="eval").body
    package, *path = ast.unparse(call.func).split(".")
    assert package == "adgn"
    called = functools.reduce(getattr, path, adgn)
    given = [ast.literal_eval(value) for value in call.args]
    named = {keyword.arg: ast.literal_eval(keyword.value) for keyword in call.keywords}
    bound = inspect.signature(called).bind(*given, **named)
    assert [*bound.arguments.values()] == [*given, *named.values()]


def test_prepare_and_verify_a_node_dataset(data_root, tmp_path):
    (tmp_path / "WebKB").symlink_to(data_root / "WebKB")
    before = verify("wisconsin", tmp_path)
    assert {(s.role, s.state) for s in before} == {("raw", "ok")}
    assert len(before) == 12
    prepare("wisconsin", tmp_path)
    after = verify("wisconsin", tmp_path)
    assert [(s.role, s.state) for s in after][12:] == [("prepared", "ok")]
    prepared = after[-1].path
    prepared.write_bytes(prepared.read_bytes()[:-1])
    damaged = verify("wisconsin", tmp_path)[-1]
    assert damaged.state == "damaged"
    assert str(prepared) in damaged.detail


def test_verify_names_missing_and_changed_raw_files(tmp_path):
    folder = tmp_path / "Amazon/Photo/raw"
    assert [s.state for s in verify("photo", tmp_path)] == ["missing"]
    folder.mkdir(parents=True)
    (folder / "amazon_electronics_photo.npz").write_bytes(b"nonsense")
    (state,) = verify("photo", tmp_path)
    assert state.state == "damaged"
    assert "truncated or changed" in state.detail


def test_sets_made_in_memory_need_no_preparation(tmp_path):
    for name in ("graph-transfer", "tree-neighbors-match"):
        prepare(name, tmp_path)
        assert verify(name, tmp_path) == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.long
def test_property_set_verifies(property_root):
    assert [s.state for s in verify("graph-property", property_root)] == ["ok"]


def test_unknown_name():
    with pytest.raises(ValueError, match=r"name='graph-propery'.*'graph-property'"):
        find_dataset("graph-propery")
