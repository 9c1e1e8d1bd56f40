"""The probe on targets whose answer is known."""

import json

import networkx as nx
import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import adgn
from adgn.analysis.probe.hops import HopView
from adgn.analysis.probe.measure import Screening
from adgn.analysis.probe.question import graph_question
from adgn.analysis.probe.suggestion import suggest


def noise(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def undirected(graph):
    """Edges of a networkx graph, in both directions."""
    pairs = torch.tensor(list(nx.convert_node_labels_to_integers(graph).edges)).t()
    return torch.cat([pairs, pairs.flip(0)], dim=1)


def shell_mean(edges, x, hops):
    """For each node the mean of x over the nodes at exactly so many hops, by networkx."""
    graph = nx.Graph(edges.t().tolist())
    found = torch.zeros(len(x))
    for node, distances in nx.all_pairs_shortest_path_length(graph, cutoff=hops):
        values = [float(x[other, 0]) for other, d in distances.items() if d == hops]
        found[node] = sum(values) / max(len(values), 1)
    return found


SHAPES = {
    "path": nx.path_graph(300),
    "ring": nx.cycle_graph(300),
    "grid": nx.grid_2d_graph(18, 18),
}


@pytest.mark.parametrize("hops", [1, 2, 3])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_target_exactly_k_hops_away_is_found_at_k(shape, hops):
    edges = undirected(SHAPES[shape])
    x = noise(SHAPES[shape].number_of_nodes(), 2)
    y = shell_mean(edges, x, hops)
    found = adgn.probe(adgn.Graph.from_arrays(x, edges, y=y, directed=False), splits=2, hops=5)
    assert found.helps
    assert found.hops == hops
    assert not found.directed
    scores = found.curve().scores
    assert scores[hops].mean > 0.99
    assert all(score.mean < 0.5 for score in scores[:hops])


def test_a_target_that_ignores_the_graph_is_told_as_such():
    edges = undirected(SHAPES["ring"])
    x = noise(300, 3)
    y = x @ torch.tensor([1.0, -2.0, 0.5]) + 0.3 * noise(300, seed=1)
    found = adgn.probe(adgn.Graph.from_arrays(x, edges, y=y, directed=False))
    assert not found.helps
    assert found.hops == 0
    default = {"name": "adgn", "num_layers": 4, "phi": "sum"}
    assert found.suggestion["model"] == default
    assert "does not help" in found.text() or "not sure" in found.text()


@pytest.mark.parametrize("direction", ["in", "out"])
def test_a_directed_target_shows_its_direction(direction):
    generator = torch.Generator().manual_seed(0)
    edges = torch.randint(0, 400, (2, 1600), generator=generator)
    x = noise(400, 2)
    source, target = edges if direction == "out" else edges.flip(0)
    y = torch.zeros(400).index_add(0, source, x[target, 0])
    found = adgn.probe(adgn.Graph.from_arrays(x, edges, y=y, directed=True), splits=2, hops=3)
    assert found.helps
    assert found.direction == direction
    assert found.hops == 1
    assert found.suggestion["model"]["direction"] == direction
    assert found.curve("undirected").scores[1].mean < 0.9
    assert f"Direction: {direction}" in found.text()


def test_a_target_of_both_directions_needs_both():
    generator = torch.Generator().manual_seed(0)
    edges = torch.randint(0, 400, (2, 1600), generator=generator)
    x = noise(400, 1)
    heard = torch.zeros(400).index_add(0, edges[1], x[edges[0], 0])
    told = torch.zeros(400).index_add(0, edges[0], x[edges[1], 0])
    graph = adgn.Graph.from_arrays(x, edges, y=heard - told, directed=True)
    found = adgn.probe(graph, splits=2, hops=2)
    assert (found.direction, found.hops) == ("both", 1)
    assert found.curve("both").scores[1].mean > 0.99
    assert found.curve("undirected").scores[1].mean < 0.5


def test_classes_of_neighbours_are_found_and_agreement_is_measured():
    """Two groups that are linked within themselves; features are noise but for a weak hint."""
    generator = torch.Generator().manual_seed(0)
    y = torch.arange(300) % 2
    partner = 2 * torch.randint(0, 150, (900,), generator=generator)
    source = torch.randint(0, 300, (900,), generator=generator)
    edges = torch.stack([source, partner + y[source]])
    x = noise(300, 4)
    x[:, 0] += 1.0 * y
    graph = adgn.Graph.from_arrays(x, edges, y=y.tolist(), directed=False)
    found = adgn.probe(graph, splits=3)
    assert found.helps
    assert found.features_only.mean < found.curve().scores[found.hops].mean - 0.1
    assert found.agreement.homophily == 1.0
    assert found.agreement.adjusted == pytest.approx(1.0)
    assert found.agreement.informativeness == pytest.approx(1.0)


def test_whole_graphs_are_probed():
    """The target is the number of edges of a graph: one hop of sums, and no feature has it."""
    generator = np.random.default_rng(0)
    graphs = []
    for seed in range(120):
        nodes = int(generator.integers(5, 15))
        graph = nx.gnm_random_graph(nodes, int(generator.integers(5, 15)), seed=seed)
        edges = torch.tensor(list(graph.edges)).t()
        both = torch.cat([edges, edges.flip(0)], dim=1)
        y = torch.tensor([float(edges.size(1))])
        graphs.append(Data(x=torch.ones(nodes, 1), edge_index=both, y=y))
    found = adgn.probe(graphs, kind="regression", hops=2)
    assert found.level == "graph"
    assert found.helps
    assert found.hops == 1
    assert found.curve().scores[1].mean > 0.999
    assert any(warning.kind == "computable" for warning in found.warnings)


def test_a_task_of_many_graphs_has_the_tasks_metric_and_constant():
    small = {"task": {"train": [2, 40], "val": [2, 20], "test": [2, 20], "min_nodes": 10}}
    found = adgn.probe("laplacian", settings=[small], hops=2)
    assert found.metric == "log10_mse"
    assert not found.higher_is_better
    assert found.helps
    assert (found.hops, found.operator) == (1, "laplacian")
    assert found.curve().scores[1].mean < -8
    constant = adgn.training.train(
        "laplacian", **small, loop={"max_epochs": 1}, model={"hidden_channels": 2}
    ).constant["log10_mse"]
    assert found.constant.mean == pytest.approx(constant, abs=1e-5)
    assert any(warning.kind == "computable" for warning in found.warnings)


def test_the_findings_for_programs_have_what_they_promise():
    edges = undirected(SHAPES["ring"])
    x = noise(300, 1)
    graph = adgn.Graph.from_arrays(x, edges, y=shell_mean(edges, x, 1), directed=False)
    content = json.loads(json.dumps(adgn.probe(graph, splits=2, hops=2).to_json(), allow_nan=False))
    assert content["helps"] is True
    assert content["direction"] == "undirected"
    assert content["hops"] == 1
    assert set(content["scores"]) == {"undirected"}
    assert set(content["scores"]["undirected"]) == {"0", "1", "2"}
    for score in (*content["scores"]["undirected"].values(), content["constant"]):
        assert set(score) == {"mean", "deviation", "low", "high"}
    assert content["features_only"] == content["scores"]["undirected"]["0"]
    assert content["warnings"][0].keys() == {"kind", "text"}
    assert content["suggestion"] == {"model": {"name": "adgn", "num_layers": 4, "phi": "sum"}}


def wide_data(classes=True):
    """Features (more than rows), edges, and targets: the sum of incoming neighbours' feature 1."""
    generator = torch.Generator().manual_seed(0)
    edges = torch.randint(0, 90, (2, 300), generator=generator)
    x = noise(90, 140)
    heard = torch.zeros(90).index_add(0, edges[1], 4 * x[edges[0], 0])
    x[:, 1] = 3 * heard.sign()
    y = torch.zeros(90).index_add(0, edges[1], x[edges[0], 1])
    return x, edges, (y > 0).tolist() if classes else y


@pytest.mark.parametrize("classes", [True, False])
def test_inner_products_of_rows_find_what_features_find(classes, monkeypatch):
    options = {"splits": 2, "hops": 2, "operators": ["mean", "sum"]}
    x, edges, y = wide_data(classes)
    graph = adgn.Graph.from_arrays(x, edges, y=y, directed=True)
    by_products = adgn.probe(graph, **options).to_json()
    monkeypatch.setattr("adgn.analysis.probe.measure._PRODUCTS", 0)
    by_features = adgn.probe(graph, **options).to_json()
    assert by_products["direction"] == by_features["direction"]
    assert by_products["hops"] == by_features["hops"]
    for direction, hops in by_features["scores"].items():
        for hop, score in hops.items():
            found = by_products["scores"][direction][hop]["mean"]
            assert found == pytest.approx(score["mean"], abs=1e-4), (direction, hop)


def test_test_rows_have_no_say_in_the_suggestion():
    parts = ["train"] * 50 + ["valid"] * 20 + ["test"] * 20
    x, edges, y = wide_data()
    columns = {f"f{n}": column.tolist() for n, column in enumerate(x[:, :3].t())}
    links = {"source": edges[0].tolist(), "target": edges[1].tolist()}
    found = []
    for flipped in (False, True):
        labels = [
            label != (flipped and part == "test") for label, part in zip(y, parts, strict=True)
        ]
        nodes = {"id": list(range(90)), **columns, "label": labels, "part": parts}
        graph = adgn.Graph.from_tables(nodes, links, target_column="label", split="part")
        found.append(adgn.probe(graph, hops=1, operators=["mean", "sum"]))
    assert found[0].features_only.mean != found[1].features_only.mean
    assert found[0].suggestion == found[1].suggestion
    assert found[0].suggestion["model"]["name"] == "adgn"


@pytest.mark.parametrize(
    ("by_sums", "expected"),
    [
        (0.70, {"phi": "sum"}),
        (0.62, {"phi": "sum"}),
        (0.52, {"phi": "gcn", "epsilon": 0.5}),
    ],
)
def test_sums_are_suggested_unless_they_gain_less_than_half(by_sums, expected):
    """Features alone have 0.5, GCN's operator 0.7."""
    scores = {
        HopView(): 0.5,
        HopView(3, "out", "gcn"): 0.7,
        HopView(1, "out", "sum"): by_sums,
        HopView(1, "in", "sum"): 0.9,  # another direction does not count
    }
    found = suggest(Screening(scores, None), True, "out", 3, True)["model"]
    assert found == {"name": "adgn", "num_layers": 6, "direction": "out", **expected}


def test_it_is_reproducible_and_random_states_are_left_alone():
    edges = undirected(SHAPES["ring"])
    graph = adgn.Graph.from_arrays(noise(300, 2), edges, y=(noise(300, seed=2) > 0).tolist())
    before = torch.random.get_rng_state(), np.random.get_state()[1].copy()
    first, second = (adgn.probe(graph, splits=2, hops=2).to_json() for _ in range(2))
    first.pop("seconds"), second.pop("seconds")
    assert first == second
    assert torch.random.get_rng_state().equal(before[0])
    assert (np.random.get_state()[1] == before[1]).all()


def test_a_graph_without_edges_has_nothing_to_tell():
    nothing = torch.empty(2, 0, dtype=torch.long)
    graph = adgn.Graph.from_arrays(noise(40, 2), nothing, y=[0, 1] * 20)
    found = adgn.probe(graph, splits=2)
    assert not found.helps
    assert found.direction is None
    assert found.text().startswith("The graph has no edges")
    json.dumps(found.to_json(), allow_nan=False)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hops": 0}, "hops=0 is not valid; give a number from 1 to 100"),
        ({"splits": 0}, "splits=0 is not valid"),
        ({"directions": ["inn"]}, "direction='inn'"),
        ({"directions": "in"}, "give a list of in, out"),
        ({"operators": ["means"]}, "operator='means'"),
        ({"metric": "speed"}, "metric='speed'"),
        ({"settings": [{"task": {}}]}, "settings are for a task"),
    ],
)
def test_wrong_arguments_are_told(options, message):
    graph = adgn.Graph.from_arrays(noise(20, 1), [range(19), range(1, 20)], y=[0, 1] * 10)
    with pytest.raises(ValueError, match=message):
        adgn.probe(graph, **options)


def test_a_graph_without_a_target_is_told():
    graph = adgn.Graph.from_arrays(noise(20, 1), [range(19), range(1, 20)])
    with pytest.raises(ValueError, match="no target"):
        adgn.probe(graph)


def test_a_column_of_splits_without_test_rows_is_told():
    table = {"id": list(range(8)), "x": [0.5] * 8, "y": [0, 1] * 4, "part": ["train", "valid"] * 4}
    edges = {"source": [0, 1], "target": [1, 2]}
    graph = adgn.Graph.from_tables(table, edges, target_column="y", split="part")
    with pytest.raises(ValueError, match="'test'"):
        graph_question(graph)


def test_the_published_figures_of_chameleon_and_squirrel(data_root):
    """One hop of GCN's operator alone, in and out, within two points on three splits."""
    for name, heard, told in (("chameleon", 34, 68),):
        found = adgn.probe(
            name,
            splits=3,
            hops=1,
            operators=["gcn"],
            directions=["in", "out"],
            alone=True,
            settings=[{"task": {"root": str(data_root)}}],
        )
        assert 100 * found.curve("out").scores[1].mean == pytest.approx(told, abs=2)
        assert 100 * found.curve("in").scores[1].mean == pytest.approx(heard, abs=2)
        assert found.helps
        assert found.direction == "out"
        assert any(warning.kind == "twins" for warning in found.warnings)
