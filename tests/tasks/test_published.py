import math

import pytest

from adgn.tasks.published import (
    published_direction,
    published_row,
    published_tables,
    published_value,
)


def test_columns_of_property_prediction_are_found_under_their_true_targets():
    # GCN's published "SSSP" is the constant score of the Laplacian target.
    value = published_value("laplacian", "GCN", {})
    assert (value.column, value.mean, value.metric) == ("SSSP", 0.9499, "log10_mse_paper")
    assert published_value("sssp", "GCN", {}).column == "Eccentricity"
    assert published_value("diameter", "A-DGN", {"phi": "sum"}).mean == -0.5188
    assert published_value("eccentricity", "GCN", {}) is None
    assert published_value("connected", "GCN", {}) is None


def test_accuracies_are_shares():
    value = published_value("cs", "GCN", {})
    assert (value.mean, value.std) == (pytest.approx(0.9034), pytest.approx(0.0031))
    assert published_value("texas", "A-DGN", {"phi": "gcn"}).table == "heterophilic_benchmarks"


@pytest.mark.parametrize(
    ("options", "row"),
    [
        ({}, "A-DGN ws"),
        ({"weight_sharing": False}, "A-DGN ldw"),
        ({"phi": "gcn"}, "A-DGN ws (GCN)"),
        ({"phi": "gcn", "weight_sharing": False}, "A-DGN ldw (GCN)"),
    ],
)
def test_every_variant_has_its_row(options, row):
    assert published_row("A-DGN", options, "graph_property_prediction") == row
    assert row in published_tables()["graph_property_prediction"]["rows"]


def test_trees_by_radius():
    assert published_value("tree-neighbors-match", "A-DGN", {}, radius=5).mean == 0.41
    assert published_value("tree-neighbors-match", "GIN", {}, radius=8) is None
    assert published_value("tree-neighbors-match", "GIN", {}, radius=9) is None


@pytest.mark.parametrize(
    ("task", "options"),
    [
        ("diameter", {"phi": "sum", "train_recurrent": False}),
        ("diameter", {"phi": "gcn", "weight_sharing": False, "train_recurrent": False}),
        ("cs", {"phi": "gcn", "train_recurrent": False}),
        ("cs", {"phi": "gcn", "weight_sharing": False}),
        ("texas", {"phi": "sum", "weight_sharing": False}),
        ("tree-neighbors-match", {"phi": "sum", "weight_sharing": False}),
        ("tree-neighbors-match", {"phi": "gcn"}),
        ("tree-neighbors-match", {"train_recurrent": False}),
    ],
)
def test_variants_that_the_paper_did_not_run_have_no_value(task, options):
    changed = ("train_recurrent", "weight_sharing") if "tree" not in task else tuple(options)
    paper = {key: value for key, value in options.items() if key not in changed}
    assert published_value(task, "A-DGN", paper, radius=3) is not None
    assert published_value(task, "A-DGN", options, radius=3) is None


def test_what_is_in_no_table():
    assert published_value("cora", "GCN", {}) is None
    assert published_value("graph-transfer", "GCN", {}) is None
    assert published_value("sssp", "MLP", {}) is None


def test_every_mean_is_a_number():
    property_tables = ("graph_property_prediction", "graph_property_prediction_later")
    for table in (*property_tables, "graph_benchmarks", "heterophilic_benchmarks"):
        for row in published_tables()[table]["rows"].values():
            assert all(c["mean"] is None or math.isfinite(c["mean"]) for c in row.values())


@pytest.mark.parametrize("table", published_tables())
def test_every_row_says_where_its_nodes_listened(table):
    for row in published_tables()[table]["rows"]:
        direction = published_direction(table, row)
        assert direction in ("in", "out", "undirected", "any", None)
        if row.startswith("A-DGN"):
            assert direction in ("in", "any")


def test_directions_of_published_values():
    assert published_value("chameleon", "A-DGN", {"phi": "sum"}).direction == "in"
    assert published_value("chameleon", "GCN", {"direction": "out"}).direction == "out"
    assert published_value("cs", "GCN", {}).direction == "any"
    assert published_value("tree-neighbors-match", "GIN", {}, radius=3).direction == "in"


@pytest.mark.parametrize("direction", ["out", "both", "undirected"])
def test_the_paper_has_no_other_direction_of_its_own_method(direction):
    assert published_value("chameleon", "A-DGN", {"direction": direction}) is None
    assert (published_value("cs", "GCN", {"direction": direction}) is None) == (direction == "both")
