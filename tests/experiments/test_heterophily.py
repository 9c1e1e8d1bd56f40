import networkx
import pytest
import torch

from adgn.data import NODE_DATASETS
from adgn.experiments.api import plan_cells
from adgn.experiments.heterophily import HETEROPHILIC, HETEROPHILY, REPAIRED
from adgn.experiments.plan import plan_cell
from adgn.selection.spaces import grid_size
from adgn.tasks.protocols import conditions_of, published_protocol
from adgn.tasks.published import published_tables
from adgn.transforms import DIGL, EdgeGraph, resolve_transforms

TABLE = "heterophilic_benchmarks"


def plans(row):
    return [plan_cell("heterophily", row.key, column.key, "laptop") for column in HETEROPHILIC]


def test_every_method_of_the_paper_s_table_is_a_row_with_its_published_numbers():
    rows = {row.title: row for row in HETEROPHILY.rows}
    published = published_tables()[TABLE]["rows"]
    assert set(published) <= set(rows)
    assert not HETEROPHILY.quoted
    for title in published:
        for plan in plans(rows[title]):
            value = plan.published()
            there = published[title][plan.column.title]
            assert value.mean == pytest.approx(there["mean"] / 100)
            assert (value.row, value.column) == (title, plan.column.title)


@pytest.mark.parametrize("row", HETEROPHILY.rows, ids=lambda row: row.key)
def test_measured_rows_have_the_direction_of_their_published_number(row):
    value = plans(row)[0].published()
    if value is None:
        return
    published = published_protocol(TABLE, value.row).conditions.direction
    measured = conditions_of(plans(row)[0].base).direction
    assert measured == (published or "out")


def test_adgn_is_there_in_all_directions():
    for variant in ("sum", "gcn"):
        heard = {"": "in", "-out": "out", "-both": "both", "-undirected": "undirected"}
        for suffix, direction in heard.items():
            plan = plan_cell("heterophily", f"adgn-{variant}{suffix}", "texas", "laptop")
            assert plan.base.model.options["direction"] == direction
            assert plan.base.model.options["phi"] == variant
            assert (plan.published() is None) == (direction != "in")


def test_a_name_means_the_row_of_that_key_and_else_all_rows_of_a_model():
    def rows(name):
        return {plan.row.key for plan in plan_cells(["heterophily"], "laptop", [name])}

    assert rows("gcn") == {"gcn"}  # not the GCN after a transform
    assert rows("ggcn") == {"ggcn"}
    assert rows("sdrf-undirected") == {"sdrf-undirected"}
    assert rows("adgn") == {row.key for row in HETEROPHILY.rows if row.model == "adgn"}
    assert len(rows("adgn")) == 8


def test_transforms_are_part_of_the_search_and_of_the_definition():
    digl = plan_cell("heterophily", "digl", "texas", "laptop")
    assert [t["name"] for t in digl.base.task.transform] == ["reverse", "digl"]
    assert len(digl.space["task.transform"]) == 4
    chosen = {"task.transform": digl.space["task.transform"][1]}
    assert digl.config(chosen, digl.rounds[0][0]).task.transform[1]["alpha"] == 0.05
    plain = plan_cell("heterophily", "gcn", "texas", "laptop")
    assert "task.transform" not in plain.space
    assert plain.base.task.transform == []


@pytest.mark.parametrize("key", ["digl", "digl-undirected"])
def test_rows_of_digl_say_that_the_reference_normalises_again(key):
    row = plan_cell("heterophily", key, "texas", "laptop").row
    assert any("in the reference code it normalises them again" in note for note in row.notes)
    transforms = [t for text in row.space["task.transform"] for t in resolve_transforms(text)]
    assert not any(t.normalize for t in transforms if isinstance(t, DIGL))


def test_digl_is_searched_over_both_kernels_and_what_is_kept():
    row = plan_cell("heterophily", "digl", "texas", "laptop").row
    transforms = [t for text in row.space["task.transform"] for t in resolve_transforms(text)]
    found = [t for t in transforms if isinstance(t, DIGL)]
    assert {t.kernel for t in found} == {"ppr", "heat"}
    assert {t.k for t in found} == {32, 128}
    assert not any(t.undirected for t in found)


@pytest.mark.parametrize("key", ["sdrf", "sdrf-undirected"])
def test_sdrf_is_searched_with_removal_of_edges_and_without(key):
    barbell = torch.tensor(list(networkx.barbell_graph(6, 2).edges)).T
    row = plan_cell("heterophily", key, "chameleon", "laptop").row
    flows = [resolve_transforms(text)[0] for text in row.space["task.transform"]]
    assert {flow.iterations for flow in flows} == {100, 1000}
    removed = {flow(EdgeGraph(barbell, 14)).report["sdrf.removed"] > 0 for flow in flows}
    assert removed == {True, False}


METHODS = ["ggcn", "gprgnn", "h2gcn", "pairnorm", "geomgcn", "sgc", "cheb", "pathgcn", "gcnii"]


@pytest.mark.parametrize("model", METHODS)
def test_methods_have_a_row_and_a_search_on_every_graph(model):
    for column in HETEROPHILIC:
        plan = plan_cell("heterophily", model, column.key, "laptop")
        assert plan.row.model == model and plan.base.task.normalize
        assert 4 <= plan.tried == grid_size(plan.space)


def test_rows_whose_first_dropout_is_of_features_as_in_the_published_code():
    at = {
        row.key: plan_cell("heterophily", row.key, "texas", "laptop").space.get(
            "model.first_dropout"
        )
        for row in HETEROPHILY.rows
    }
    assert {key for key, value in at.items() if value == ["features"]} == {"ggcn"}


@pytest.mark.parametrize("budget", ["laptop", "paper"])
def test_a_gcn_after_a_transform_has_two_layers(budget):
    rewired = [row for row in HETEROPHILY.rows if "transform" in row.settings.get("task", {})]
    assert {row.key for row in rewired} > {"fa", "digl", "sdrf"}
    for row in rewired:
        space = plan_cell("heterophily", row.key, "texas", budget).space
        assert space["model.num_layers"] == [2], row.key


def test_notes_of_sdrf_say_what_it_does():
    directed, undirected = (
        " ".join(HETEROPHILY.row(key).notes) for key in ("sdrf", "sdrf-undirected")
    )
    assert "curvature ignores the directions" in directed
    assert "the highest that was seen" in directed
    assert "the highest that was seen" in undirected


def test_repaired_data_is_a_group_without_published_numbers():
    assert {column.key for column in REPAIRED} == {n for n, e in NODE_DATASETS.items() if e.file}
    assert {column.group for column in REPAIRED} == {"repaired data"}
    for column in REPAIRED:
        assert plan_cell("heterophily", "gcn", column.key, "laptop").published() is None
