"""Columns as features: what is decided, what follows, and what new data may not do."""

import json

import numpy as np
import pyarrow as pa
import pytest
import torch

from adgn.data import Graph, GraphInputError, Preprocessing

RING = 60


def graph_with(edges=None, directed=True, **columns):
    count = len(next(iter(columns.values())))
    nodes = {"id": list(range(count)), **columns}
    if edges is None:
        edges = {"source": list(range(count - 1)), "target": list(range(1, count))}
    return Graph.from_tables(nodes, edges, id="id", directed=directed)


def repeated(*values):
    return list(values) * (RING // len(values))


def fitted(graph, rows=None):
    """Decisions by column, and features by name; the plan survives JSON."""
    plan = Preprocessing.fit(graph, rows)
    again = Preprocessing.from_json(json.loads(json.dumps(plan.to_json())))
    assert again == plan
    features = again.transform(graph)
    assert features.names == plan.names
    dense = features.x.to_dense()
    assert dense.shape == (graph.num_nodes, len(plan.names))
    decisions = {row.column: row for row in plan.decisions()}
    return plan, decisions, dict(zip(plan.names, dense.T, strict=True)), features


def test_numbers_are_standardised():
    values = np.arange(RING) * 3.0 + 7
    _, decisions, x, _ = fitted(graph_with(v=values))
    assert decisions["v"][1:] == ("number", 1, 0, "")
    expected = (values - values.mean()) / values.std()
    assert x["v"].numpy() == pytest.approx(expected, abs=1e-6)


def test_only_the_chosen_rows_are_looked_at():
    values = np.arange(RING) * 1.0
    kinds = ["a"] * 20 + ["b"] * 20 + ["c"] * 20
    plan, _, x, features = fitted(graph_with(v=values, k=kinds), torch.arange(40))
    assert x["v"][:40].mean().item() == pytest.approx(0, abs=1e-6)
    assert x["v"][:40].std(unbiased=False).item() == pytest.approx(1, abs=1e-6)
    assert "k=c" not in plan.names
    assert any("20 row(s) with a category" in note for note in features.notes)


def test_missing_numbers_are_flagged_and_stand_at_the_mean():
    values = [1.0, None, 3.0, float("nan")] * 15
    _, decisions, x, _ = fitted(graph_with(v=values))
    assert decisions["v"].missing == 30
    assert x["v"].tolist()[:4] == [-1, 0, 1, 0]
    assert x["v: missing"].tolist()[:4] == [0, 1, 0, 1]


def test_truth_values_and_zeros_and_ones_stay():
    ints, bools = repeated(0, 1, 1), [True, None, False] * 20
    _, decisions, x, _ = fitted(graph_with(i=ints, b=bools))
    assert (decisions["i"].kind, decisions["b"].kind) == ("0/1", "0/1")
    assert x["i"].tolist() == ints
    assert x["b"].tolist()[:3] == [1, 0, 0]
    assert x["b: missing"].tolist()[:3] == [0, 1, 0]


def test_categories_with_missing_values():
    _, decisions, x, _ = fitted(graph_with(k=repeated("red", "blue", None)))
    assert decisions["k"][1:4] == ("category", 3, 20)
    assert [x[name].tolist()[:3] for name in ("k=blue", "k=red", "k: missing")] == [
        [0, 1, 0],
        [1, 0, 0],
        [0, 0, 1],
    ]


def test_rare_categories_share_a_feature():
    kinds = ["a"] * 150 + ["b"] * 145 + ["c"] * 3 + ["d"] * 2
    _, decisions, x, _ = fitted(graph_with(k=kinds))
    assert list(x) == ["k=a", "k=b", "k: other"]
    assert x["k: other"].sum() == 5
    assert decisions["k"].note.startswith("2 of 4 categories, with 5 of 300 rows, are rare")


def test_ten_thousand_categories_are_told():
    kinds = [f"c{number}" for number in range(10_000)] * 2
    kinds += [f"f{number}" for number in range(120) for _ in range(20)]
    plan, decisions, x, _ = fitted(graph_with(k=kinds))
    assert len(plan.names) == 101
    assert x["k: other"].sum() == len(kinds) - 100 * 20
    assert "10,020 of 10,120 categories, with 20,400 of 22,400 rows" in decisions["k"].note


def test_names_of_rows_are_left_out():
    _, decisions, x, _ = fitted(graph_with(name=[f"p{i}" for i in range(RING)], v=range(RING)))
    assert decisions["name"].kind == "left out"
    assert "60 different values in 60 rows" in decisions["name"].note
    assert list(x) == ["v"]
    assert "if it names the rows: ignore=['v']" in decisions["v"].note


def test_columns_without_variance_are_left_out():
    columns = {"c": [5] * RING, "k": ["same"] * RING, "n": pa.nulls(RING), "v": [1.5, 2] * 30}
    _, decisions, x, _ = fitted(graph_with(**columns))
    assert list(x) == ["v"]
    assert decisions["c"][1:] == ("left out", 0, 0, "always 5")
    assert decisions["k"].note == "always 'same'"
    assert decisions["n"].note == "no value is known"


def test_a_column_that_is_known_or_not():
    _, _, x, _ = fitted(graph_with(v=[5, None] * 30))
    assert list(x) == ["v: missing"]
    assert x["v: missing"].tolist()[:2] == [0, 1]


def test_lists_of_numbers_are_vectors():
    vectors = [[1.0, 2.0], [3.0, 2.0], None] * 20
    _, decisions, x, _ = fitted(graph_with(e=vectors))
    assert list(x) == ["e[0]", "e[1]", "e: missing"]
    assert x["e[0]"].tolist()[:3] == [-1, 1, 0]
    assert "1 of its entries never change" in decisions["e"].note
    with pytest.raises(GraphInputError, match="lists of 1 to 2 numbers"):
        Preprocessing.fit(graph_with(e=[[1.0], [1.0, 2.0]] * 30))


@pytest.mark.parametrize(
    "values",
    [
        pa.array(np.arange(RING), pa.timestamp("s")),
        pa.array(np.arange(RING).astype(np.int32), pa.date32()),
        [f"2020-01-{1 + day % 28:02d}" for day in range(RING)],
        [f"{1 + day % 28}/12/2020 10:00" for day in range(RING)],
    ],
    ids=["timestamp", "date", "ISO text", "other text"],
)
def test_dates_are_refused_with_advice(values):
    with pytest.raises(GraphInputError, match=r"column 'd' has dates.*time='d'.*ignore=\['d'\]"):
        Preprocessing.fit(graph_with(d=values))


def test_long_text_is_refused_with_advice():
    text = [f"a long sentence with quite a few words about the number {i}" for i in range(RING)]
    with pytest.raises(GraphInputError, match=r"'t' has text of 5\d letters.*ignore=\['t'\]"):
        Preprocessing.fit(graph_with(t=text))


def test_decimal_commas_are_recognised():
    with pytest.raises(GraphInputError, match=r"column 'n' has numbers with a comma.*decimal=','"):
        Preprocessing.fit(graph_with(n=repeated("1,5", "2,25", "-3,0")))


def test_all_unusable_columns_are_told_at_once():
    columns = {
        "d": pa.array(np.arange(RING), pa.timestamp("s")),
        "s": [{"a": 1}] * RING,
    }
    with pytest.raises(GraphInputError, match=r"2 columns .*ignore=\['d', 's'\]") as error:
        Preprocessing.fit(graph_with(**columns))
    assert "struct" in str(error.value)


def test_infinite_numbers_are_refused():
    values = [1.0] * (RING - 1) + [float("inf")]
    with pytest.raises(GraphInputError, match="column 'v' is infinite at row 59"):
        Preprocessing.fit(graph_with(v=values))


def test_whole_numbers_above_the_exact_ones_are_numbers():
    values = [2**60 + (place % 7) * 2**50 for place in range(RING)]
    _, _, x, _ = fitted(graph_with(v=values))
    expected = (np.arange(RING) % 7 - np.mean(np.arange(RING) % 7)) / np.std(np.arange(RING) % 7)
    assert x["v"].numpy() == pytest.approx(expected, abs=1e-3)


def test_categories_that_are_numbers_are_the_same_in_new_data():
    nodes = {"id": range(4), "zip": [7.0, None, 8.0, 7.0]}
    graph = Graph.from_tables(nodes, None, id="id", categories=["zip"], directed=True)
    plan = Preprocessing.fit(graph)
    assert plan.names == ("zip=7", "zip=8", "zip: missing")
    assert plan.category_columns == ("zip",)
    for values in ([8, 7], [8.0, 7.0], ["8", "7"]):
        assert plan.transform(graph_with(zip=values)).x.tolist() == [[0, 1, 0], [1, 0, 0]]


def test_dates_of_edges_split_nothing():
    edges = {"source": [0, 1], "target": [1, 2], "when": pa.array([1, 2], pa.timestamp("s"))}
    with pytest.raises(GraphInputError, match=r"edges of nodes: column 'when' has") as error:
        Preprocessing.fit(graph_with(edges, v=[1.0, 2.0, 4.0]))
    assert "time=" not in str(error.value)


def wide(count=200, columns=60, scale=1.0):
    generator = np.random.default_rng(0)
    return (generator.random((count, columns)) < 0.05) * scale


@pytest.mark.parametrize("as_array", [False, True])
def test_a_wide_block_of_zeros_and_ones_stays_and_is_sparse(as_array):
    matrix = wide()
    if as_array:
        graph = Graph.from_arrays(matrix, [[0], [1]])
    else:
        graph = graph_with(**{f"w{i}": column for i, column in enumerate(matrix.T)})
    plan, decisions, _, features = fitted(graph)
    assert plan.sparse
    assert features.x.layout == torch.sparse_csr
    assert torch.equal(features.x.to_dense(), torch.from_numpy(matrix).float())
    (row,) = decisions.values()
    assert row.kind == "0/1"
    assert row.features == 60
    assert "as they are" in row.note


@pytest.mark.parametrize("as_array", [False, True])
def test_a_wide_block_of_mostly_zeros_is_scaled_and_not_shifted(as_array):
    generator = np.random.default_rng(1)
    matrix = wide() * generator.random((200, 60)) * 8
    if as_array:
        graph = Graph.from_arrays(matrix, [[0], [1]])
    else:
        graph = graph_with(**{f"w{i}": column for i, column in enumerate(matrix.T)})
    plan, decisions, _, features = fitted(graph)
    assert plan.sparse
    scale = np.sqrt((matrix**2).sum() / np.count_nonzero(matrix))
    assert features.x.to_dense().numpy() == pytest.approx(matrix / scale, abs=1e-6)
    (row,) = decisions.values()
    assert row.kind == "sparse number"
    assert "mostly zero" in row.note


@pytest.mark.parametrize("layout", ["dense", "sparse"])
def test_arrays_are_standardised_as_columns_are(layout):
    generator = np.random.default_rng(0)
    matrix = generator.normal(3, 2, (RING, 3)).astype(np.float32)
    matrix[:, 1] = 4
    x = torch.from_numpy(matrix)
    graph = Graph.from_arrays(
        x.to_sparse_csr() if layout == "sparse" else x, [[0], [1]], feature_names=["a", "b", "c"]
    )
    plan, decisions, features, _ = fitted(graph)
    table = graph_with(a=matrix[:, 0], b=matrix[:, 1], c=matrix[:, 2])
    _, _, expected, _ = fitted(table)
    assert plan.names == ("a", "c")
    for name in plan.names:
        assert features[name].numpy() == pytest.approx(expected[name].numpy(), abs=1e-5)
    assert decisions["x (3 columns)"].note == "1 left out: always the same"


def test_weights_are_divided_by_their_mean():
    edges = {"source": [0, 1, 2], "target": [1, 2, 3], "weight": [1.0, 2.0, 6.0]}
    graph = graph_with(edges, v=range(RING))
    _, decisions, _, features = fitted(graph)
    assert features.edge_weight.tolist() == pytest.approx([1 / 3, 2 / 3, 2])
    assert decisions["edge weights"].note.startswith("divided by 3")
    plan = Preprocessing.fit(graph)
    with pytest.raises(GraphInputError, match="no edge weights; the model was trained with them"):
        plan.transform(graph_with(v=range(RING)))
    unweighted = Preprocessing.fit(graph_with(v=range(RING))).transform(graph)
    assert unweighted.edge_weight is None
    assert any("3 edge weights are not used" in note for note in unweighted.notes)
    edges["weight"] = [0, 0, 0]
    with pytest.raises(GraphInputError, match="all 3 edge weights of nodes are 0"):
        Preprocessing.fit(graph_with(edges, v=range(RING)))


def test_columns_of_edges_become_features_of_nodes():
    edges = {"source": [0, 1, 2], "target": [1, 2, 1], "kind": ["x", "y", "y"], "ok": [1, 0, 1]}
    directed = graph_with(edges, v=[1.0, 2.0, 4.0])
    plan, decisions, x, _ = fitted(directed)
    assert x["ok (incoming edges)"].tolist() == [0, 1, 0]
    assert x["ok (outgoing edges)"].tolist() == [1, 0, 1]
    assert x["kind=y (incoming edges)"].tolist() == [0, 0.5, 1]
    assert decisions["edges: ok"].features == 2
    assert "means over incoming edges and outgoing edges" in decisions["edges: ok"].note
    undirected = graph_with(edges, directed=False, v=[1.0, 2.0, 4.0])
    _, _, x, _ = fitted(undirected)
    assert x["ok (edges)"].tolist() == pytest.approx([1, 2 / 3, 0.5])
    with pytest.raises(GraphInputError, match="has no columns of edges"):
        plan.transform(graph_with(v=[1.0, 2.0, 4.0]))


def test_a_graph_without_columns_has_degrees():
    edges = {"source": [0, 0, 0, 1], "target": [1, 2, 3, 2]}
    graph = Graph.from_tables({"id": [0, 1, 2, 3]}, edges, directed=True)
    plan, decisions, x, _ = fitted(graph)
    assert plan.names == ("log in-degree", "log out-degree")
    degrees = np.log1p([3, 1, 0, 0])
    expected = (degrees - degrees.mean()) / degrees.std()
    assert x["log out-degree"].numpy() == pytest.approx(expected, abs=1e-6)
    assert "no other column" in decisions["log in-degree"].note
    ring = Graph.from_arrays(None, [[0, 1, 2], [1, 2, 0]], ids=[0, 1, 2], directed=False)
    plan, decisions, x, _ = fitted(ring)
    assert plan.names == ("constant",)
    assert x["constant"].tolist() == [1, 1, 1]
    assert decisions["(none)"].note == "nothing tells nodes apart"


TRAINED = {"v": np.arange(RING) * 1.0, "k": repeated("red", "blue", "green"), "b": repeated(0, 1)}


def new(**changes):
    columns = {name: list(values[:6]) for name, values in TRAINED.items()} | changes
    return graph_with(**{name: values for name, values in columns.items() if values is not None})


def test_new_data_is_treated_the_same_way():
    plan = Preprocessing.fit(graph_with(**TRAINED))
    whole = plan.transform(graph_with(**TRAINED)).x
    assert torch.equal(plan.transform(new()).x, whole[:6])


def test_new_data_with_an_unknown_category():
    plan = Preprocessing.fit(graph_with(**TRAINED))
    features = plan.transform(new(k=["red", "pink", "pink", "blue", "green", None]))
    columns = [plan.names.index(f"k={name}") for name in ("red", "blue", "green")]
    assert features.x[:, columns].sum(1).tolist() == [1, 0, 0, 1, 1, 0]
    assert any("2 row(s) with a category" in n and "'pink'" in n for n in features.notes)
    assert any("column 'k': 1 missing value(s)" in note for note in features.notes)


def test_an_unknown_category_is_another_one_where_there_were_others():
    kinds = ["a"] * 150 + ["b"] * 145 + ["c"] * 3 + ["d"] * 2
    plan = Preprocessing.fit(graph_with(k=kinds))
    features = plan.transform(graph_with(k=["zebra", "a"]))
    assert features.x.tolist() == [[0, 0, 1], [1, 0, 0]]


def test_new_data_without_a_column():
    plan = Preprocessing.fit(graph_with(**TRAINED))
    with pytest.raises(GraphInputError, match=r"nodes lacks 1 column\(s\) .* 'k'; add them"):
        plan.transform(new(k=None))
    with pytest.raises(GraphInputError, match=r"'v'; .*Did you mean 'V'"):
        plan.transform(new(v=None, V=[1.0] * 6))


def test_new_data_with_another_column_says_so():
    plan = Preprocessing.fit(graph_with(**TRAINED))
    features = plan.transform(new(extra=[1] * 6))
    assert torch.equal(features.x, plan.transform(new()).x)
    assert any("1 column(s) that the model has never seen" in note for note in features.notes)


@pytest.mark.parametrize(
    ("column", "values", "expected"),
    [
        ("v", ["1", "x", "3", "4", "5", "6"], "numbers"),
        ("k", [0.5] * 6, "text"),
        ("b", ["yes"] * 6, "numbers"),
    ],
)
def test_new_data_of_another_type(column, values, expected):
    plan = Preprocessing.fit(graph_with(**TRAINED))
    message = rf"column '{column}' has values of the type .*trained with {expected} in it"
    with pytest.raises(GraphInputError, match=message):
        plan.transform(new(**{column: values}))


def test_new_data_with_missing_values_that_training_had_not():
    plan = Preprocessing.fit(graph_with(**TRAINED))
    features = plan.transform(new(v=[None, *range(1, 6)]))
    assert features.x[0, plan.names.index("v")] == 0
    assert any("column 'v': 1 missing value(s)" in note for note in features.notes)
    nothing = plan.transform(new(v=pa.nulls(6)))
    assert any("column 'v': 6 missing value(s)" in note for note in nothing.notes)


def test_new_arrays_of_another_width():
    plan = Preprocessing.fit(Graph.from_arrays(np.eye(3), [[0], [1]]))
    with pytest.raises(GraphInputError, match=r"x has 2 columns; the model was trained with 3"):
        plan.transform(Graph.from_arrays(np.eye(2), [[0], [1]]))
    with pytest.raises(GraphInputError, match=r"x has 0 columns; the model was trained with 3"):
        plan.transform(new())


def test_many_columns_of_one_kind_are_one_row():
    columns = {f"n{i}": np.arange(RING) * (i + 1.5) for i in range(30)}
    _, decisions, _, _ = fitted(graph_with(**columns, k=repeated("a", "b")))
    assert list(decisions) == ["n0 … n29 (30 columns)", "k"]
    assert decisions["n0 … n29 (30 columns)"].features == 30


def test_names_with_a_leading_zero_are_not_lost_in_numbers():
    plan = Preprocessing.fit(graph_with(code=repeated("007", "x12")))
    with pytest.raises(GraphInputError, match=r"'007'.*categories=\['code'\]"):
        plan.transform(graph_with(code=[7, 12]))
    plain = Preprocessing.fit(graph_with(code=repeated("7", "x12")))
    assert plain.transform(graph_with(code=[7, 7])).x[:, 0].tolist() == [1, 1]


@pytest.mark.parametrize("directed", [True, False])
def test_another_direction_than_in_training_is_refused(directed):
    plan = Preprocessing.fit(graph_with(directed=directed, v=[1.0, 2.0, 4.0]))
    with pytest.raises(GraphInputError, match=f"directed={directed}"):
        plan.transform(graph_with(directed=not directed, v=[1.0, 2.0]))
    # Where there are no edges they have no direction.
    assert len(plan.transform(Graph.from_tables({"id": [0], "v": [2.0]}, None, id="id")).x) == 1


def test_degrees_of_a_graph_without_edges_are_those_that_the_model_knows():
    plan = Preprocessing.fit(graph_with(edges={"source": [0, 0], "target": [1, 2]}, v=[1, 1, 1]))
    assert plan.transform(Graph.from_tables({"id": [0], "v": [1]}, None, id="id")).x.shape == (1, 2)
