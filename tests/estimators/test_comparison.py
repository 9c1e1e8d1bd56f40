import numpy as np
import pytest

import adgn
from adgn import GraphClassifier, NodeClassifier, NodeRegressor
from adgn.data import GraphInputError
from adgn.estimators import compare
from tests.estimators.graphs import many_graphs, two_groups

QUICK = {"loop": {"max_epochs": 10}}


def test_all_models_are_scored_on_the_rows_that_were_held_out():
    graph, labels = two_groups(nodes=200, unlabelled=0)
    model = NodeClassifier(settings=QUICK, test_size=0.25).fit(graph)
    rows = compare(graph, model)
    assert [row.name for row in rows] == [
        *("NodeClassifier", "features alone", "GCN, 5 layers", "constant")
    ]
    assert {row.rows for row in rows} == {50}
    assert rows[0].score == model.score()
    test = model.parts_.test.numpy()
    train = labels[model.parts_.train.numpy()]
    frequent = max(set(train), key=list(train).count)
    assert rows[-1].score == (labels[test] == frequent).mean()
    assert rows[0].score > rows[-1].score
    assert all(row.low <= row.score <= row.high for row in rows)


def test_the_interval_is_about_as_wide_as_that_of_a_share():
    graph, _ = two_groups(nodes=400, unlabelled=0)
    model = NodeClassifier(model="mlp", settings=QUICK, test_size=0.5).fit(graph)
    row = compare(None, model)[0]
    expected = 2 * 1.96 * (row.score * (1 - row.score) / 200) ** 0.5
    assert row.high - row.low == pytest.approx(expected, rel=0.2)


def test_values_and_whole_graphs():
    generator = np.random.default_rng(0)
    x = generator.normal(0, 1, (100, 2))
    graph = adgn.Graph.from_arrays(x, generator.integers(0, 100, (2, 200)), y=x[:, 0] * 3)
    rows = compare(None, NodeRegressor(settings=QUICK, test_size=0.2).fit(graph), resamples=50)
    assert rows[0].metric == "r2"
    assert rows[1].score > 0.99
    assert rows[-1].score < 0.1
    graphs = GraphClassifier(settings=QUICK, test_size=0.2).fit(many_graphs())
    assert compare(None, graphs, resamples=50)[-1].score == 0.5


def test_another_graph_is_held_out_as_a_whole():
    graph, _ = two_groups(seed=0)
    other, _ = two_groups(seed=5, unlabelled=40)
    model = NodeClassifier(settings=QUICK).fit(graph)
    rows = compare(other, model)
    assert rows[0].rows == 80
    assert rows[0].score == model.score(other)


def test_what_cannot_be_compared_is_told(tmp_path):
    graph, _ = two_groups()
    model = NodeClassifier(model="mlp", settings=QUICK).fit(graph)
    with pytest.raises(GraphInputError, match="no rows were held out"):
        compare(None, model)
    with pytest.raises(ValueError, match="not fitted in this process"):
        compare(graph, adgn.load(model.save(tmp_path)))


def test_one_row_has_no_r2_and_no_interval():
    graph = adgn.Graph.from_arrays([[float(n)] for n in range(10)], [[0], [1]], y=range(10))
    model = NodeRegressor(model="mlp", settings=QUICK, test_size=0.1).fit(graph)
    rows = compare(None, model, resamples=20)
    assert all(np.isnan([row.score, row.low, row.high]).all() for row in rows)
    assert all(np.isfinite(row.scores["mae"]) for row in rows)


def test_settings_of_the_network_do_not_change_the_gcn():
    graph, _ = two_groups()
    about_network = {"model": {"hidden_channels": 3}, "optimizer": {"lr": 1e-9}}
    gcns = [
        compare(None, NodeClassifier(model="gcn", settings=settings, test_size=0.3).fit(graph))[2]
        for settings in (QUICK, {**QUICK, **about_network})
    ]
    assert gcns[0].scores == gcns[1].scores
