import time
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
import torch
from scipy.sparse import csr_matrix
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.model_selection import GridSearchCV, cross_val_score
from torch_geometric.data import Data, InMemoryDataset

import adgn
from adgn import Graph, GraphClassifier, GraphRegressor, NodeClassifier, NodeRegressor
from adgn._util.environment import NotEnoughMemoryError
from adgn.data import GraphInputError
from adgn.estimators import NotFittedError
from adgn.nn import available_models
from adgn.training import Callback, Interrupted
from tests.estimators.graphs import many_graphs, two_groups

QUICK = {"loop": {"max_epochs": 15}}
BRIEF = {"loop": {"max_epochs": 4}}  # where it does not matter whether something is learnt


@pytest.fixture(scope="module")
def fitted():
    graph, labels = two_groups()
    return NodeClassifier(settings=QUICK, test_size=0.2).fit(graph), graph, labels


def test_it_learns_and_predicts_what_is_not_labelled(fitted):
    model, _, labels = fitted
    assert (model.predict()[100:] == labels[100:]).mean() > 0.8
    assert model.classes_.tolist() == ["left", "right"]


def test_probabilities_are_those_of_the_predictions(fitted):
    model, graph, _ = fitted
    probability = model.predict_proba()
    assert probability.shape == (graph.num_nodes, 2)
    np.testing.assert_allclose(probability.sum(axis=1), 1.0)
    assert (model.classes_[probability.argmax(axis=1)] == model.predict()).all()


def test_scores_are_of_held_out_rows(fitted):
    model, graph, labels = fitted
    rows = model.parts_.test.numpy()
    assert model.score() == (model.predict()[rows] == labels[rows]).mean()
    assert model.score(rows) == model.score(rows, labels[rows]) == model.score()
    assert set(model.scores()) == {
        *("accuracy", "macro_f1", "roc_auc", "average_precision", "log_loss")
    }
    wrong = np.where(labels == "left", "right", "left")
    assert model.score(rows, wrong[rows]) == pytest.approx(1 - model.score())
    assert model.score(graph) == (model.predict()[:100] == labels[:100]).mean()


def test_weights_of_the_average_are_one_in_sum(fitted):
    model, _, _ = fitted
    assert sum(member.weight for member in model.members_) == pytest.approx(1)
    assert {row["name"] for row in model.tried()} >= {"adgn-sum", "adgn-gcn", "mlp"}


def test_a_table_has_the_users_ids():
    graph, _ = two_groups(ids=[f"node {n}" for n in range(120)])
    table = NodeClassifier(model="mlp", settings=QUICK).fit(graph).predictions([3, 7])
    assert table["id"].to_pylist() == ["node 3", "node 7"]
    assert table.column_names == [
        *("id", "prediction", "probability", "probability of left", "probability of right")
    ]


def test_a_random_state_gives_the_same_bits_and_another_one_others():
    graph, _ = two_groups()

    def probability(**options):
        return NodeClassifier(settings=BRIEF, **options).fit(graph).predict_proba()

    first = probability(random_state=1)
    assert (first == probability(random_state=1)).all()
    assert (first != probability(random_state=2)).any()
    before = np.random.get_state()[1][0], torch.get_rng_state()
    assert (probability(random_state=np.random.RandomState(5)) != first).any()
    assert before[0] == np.random.get_state()[1][0]
    assert before[1].equal(torch.get_rng_state())


def test_parameters_are_scikit_learns():
    graph, _ = two_groups()
    model = NodeClassifier(graph=graph, model="gcn", model_options={"num_layers": 2})
    copy = clone(model)
    assert copy is not model
    assert copy.graph is graph  # shared: a graph may be large
    assert copy.get_params() == model.get_params()
    assert copy.set_params(model="mlp").model == "mlp"
    with pytest.raises(ValueError, match="Invalid parameter 'modle'"):
        copy.set_params(modle="mlp")
    assert is_classifier(NodeClassifier())
    assert is_regressor(NodeRegressor())
    assert "model='gcn'" in repr(NodeClassifier(model="gcn"))


def test_cross_validation_over_node_splits():
    graph, labels = two_groups(unlabelled=0)
    model = NodeClassifier(graph=graph, model="mlp", settings=QUICK)
    scores = cross_val_score(model, np.arange(120), labels, cv=3)
    assert scores.shape == (3,)
    assert scores.mean() > 0.5
    search = GridSearchCV(model, {"model": ["mlp", "gcn"]}, cv=2)
    search.fit(np.arange(120), labels)
    assert search.best_params_["model"] in ("mlp", "gcn")


def test_nodes_that_may_not_be_learnt_from_have_no_influence():
    graph, labels = two_groups(unlabelled=0)
    mask = np.arange(120) < 60
    turned_over = np.where(labels == "left", "right", "left")
    other = graph.with_target(np.where(mask, labels, turned_over).tolist())
    first, second = (
        NodeClassifier(model="gcn", settings=QUICK).fit(g, nodes=mask).predict_proba()
        for g in (graph, other)
    )
    assert (first == second).all()


def test_test_rows_have_no_influence():
    graph, labels = two_groups(unlabelled=0)
    model = NodeClassifier(settings=BRIEF, test_size=0.25).fit(graph)
    changed = labels.copy()
    rows = model.parts_.test.numpy()
    changed[rows[labels[rows] == "left"]] = "right"
    split = np.full(120, "train", dtype=object)
    split[model.parts_.valid] = "valid"
    split[rows] = "test"
    fixed = replace(graph, split=pa.array(split.tolist()))
    first = NodeClassifier(settings=BRIEF).fit(fixed)
    second = NodeClassifier(settings=BRIEF).fit(fixed.with_target(changed.tolist()))
    assert (first.predict_proba() == second.predict_proba()).all()
    assert first.score() != second.score()


@pytest.mark.parametrize("name", available_models())
def test_any_registered_method(name):
    graph, _ = two_groups(nodes=40, unlabelled=5)
    options = {"num_layers": 2, "hidden_channels": 8}
    settings = {"loop": {"max_epochs": 2}}
    model = NodeClassifier(model=name, model_options=options, settings=settings).fit(graph)
    # Of a reservoir several are tried, and those that help are averaged.
    assert all(member.name.startswith(name) for member in model.members_)
    assert len(model.attempts_) == (4 if name == "gesn" else 1)
    assert model.predict_proba().shape == (40, 2)


@pytest.mark.parametrize("name", ["adgn-reservoir", "gesn"])
def test_a_reservoir_is_solved_in_seconds(name, tmp_path):
    graph, _ = two_groups(nodes=400, unlabelled=5)
    model = NodeClassifier(model=name, test_size=0.3).fit(graph)
    assert all(attempt.epochs == 1 for attempt in model.attempts_)
    # From the features alone no model can tell more than 63 %: Φ(1 / (2 · 1.5)).
    assert model.score() > 0.7
    assert model.seconds_ < 30
    again = NodeClassifier(model=name, test_size=0.3).fit(graph)
    assert (again.predict_proba() == model.predict_proba()).all()
    loaded = adgn.load(model.save(tmp_path / "model"))
    np.testing.assert_allclose(loaded.predict_proba(graph), model.predict_proba(), atol=1e-6)


@pytest.mark.parametrize("name", ["adgn-reservoir", "gesn"])
def test_one_reservoir_where_options_say_which(name):
    graph, _ = two_groups(nodes=40)
    options = {"gesn": {"radius": 2.0}, "adgn-reservoir": {"epsilon": 0.5}}[name]
    model = NodeClassifier(model=name, model_options=options).fit(graph)
    assert [member.name for member in model.members_] == [name]
    (network,) = [member.model.network for member in model.members_]
    assert network.parameter_counts()["total"] == network.parameter_counts()["readout"]


def test_a_search_around_a_reservoir():
    graph, _ = two_groups(nodes=60)
    model = NodeClassifier(model="adgn-reservoir").fit(graph, minutes=0.1)
    assert any("search" in attempt.name for attempt in model.attempts_)


def test_options_without_a_model_are_told():
    graph, _ = two_groups()
    with pytest.raises(ValueError, match="model_options are given without a model"):
        NodeClassifier(model_options={"num_layers": 2}).fit(graph)
    with pytest.raises(ValueError, match="num_layer"):
        NodeClassifier(model="gcn", model_options={"num_layer": 2}).fit(graph)


def test_sparse_features_and_dense_ones_give_alike_models():
    generator = np.random.default_rng(0)
    x = (generator.random((150, 80)) < 0.05).astype(np.float32)
    y = (x[:, :10].sum(axis=1) > 0).astype(int)
    edges = generator.integers(0, 150, (2, 300))
    options = {"model": "gcn", "settings": QUICK}
    dense = NodeClassifier(**options).fit(Graph.from_arrays(x, edges, y=y))
    sparse = NodeClassifier(**options).fit(Graph.from_arrays(csr_matrix(x), edges, y=y))
    np.testing.assert_allclose(dense.predict_proba(), sparse.predict_proba(), atol=1e-4)


def test_class_weights_turn_predictions_to_the_rare_class():
    generator = np.random.default_rng(0)
    y = np.array([1] * 30 + [0] * 270)
    x = y[:, None] + generator.normal(0, 1.0, (300, 1))
    graph = Graph.from_arrays(x, generator.integers(0, 300, (2, 200)), y=y)

    def rare(**options):
        model = NodeClassifier(model="mlp", settings={"loop": {"max_epochs": 60}}, **options)
        return (model.fit(graph).predict() == 1).sum()

    plain = rare(metric="accuracy")
    assert rare(metric="accuracy", class_weight="balanced") > plain
    assert rare(metric="accuracy", class_weight={1: 20.0}) > plain


@pytest.mark.parametrize(
    ("weight", "message"),
    [("equal", "class_weight='equal'"), ({"x": 1}, "'x'"), ({"left": 0.0}, "not > 0")],
)
def test_wrong_class_weights_are_told(weight, message):
    graph, _ = two_groups()
    with pytest.raises(ValueError, match=message):
        NodeClassifier(class_weight=weight).fit(graph)


def test_a_rare_class_is_followed_by_its_ranking():
    y = [0] * 95 + [1] * 5
    graph = Graph.from_arrays([[float(n)] for n in range(100)], [[0], [1]], y=y)
    model = NodeClassifier(model="mlp", settings=QUICK).fit(graph)
    assert model.quality_.metric == "average_precision"


def test_a_class_that_validation_lacks_is_not_ranked():
    y = [0] * 40 + [1]
    graph = Graph.from_arrays([[float(n)] for n in range(41)], [[0], [1]], y=y)
    model = NodeClassifier(model="mlp", settings=QUICK)
    assert model.fit(graph).quality_.metric == "accuracy"
    with pytest.raises(ValueError, match="metric='roc_auc' compares classes"):
        model.set_params(metric="roc_auc").fit(graph)


def test_networks_that_need_too_much_memory_are_left_out(monkeypatch):
    def refuse(config, runs=1, ranks=1):
        if config.model.name == "adgn":
            raise NotEnoughMemoryError("it needs 900 GB")

    monkeypatch.setattr("adgn.training.api.check_run_memory", refuse)
    model = NodeClassifier(settings=QUICK).fit(two_groups()[0])
    notes = {row["name"]: row["note"] for row in model.tried()}
    assert notes["adgn-sum"] == "it needs 900 GB"
    with pytest.raises(ValueError, match=r"no model could be trained.*900 GB"):
        NodeClassifier(model="adgn").fit(two_groups()[0])


def test_several_values_in_their_own_units():
    generator = np.random.default_rng(0)
    x = generator.normal(0, 1, (200, 2))
    y = np.stack([100 + 10 * x[:, 0], 1e-3 * x[:, 1]], axis=1)
    graph = Graph.from_arrays(x, generator.integers(0, 200, (2, 400)), y=y)
    model = NodeRegressor(settings=QUICK, test_size=0.2).fit(graph)
    assert model.predict().shape == (200, 2)
    assert model.score() > 0.95
    assert model.predict()[:, 0].mean() == pytest.approx(100, abs=3)
    assert set(model.scores()) == {"r2", "mse", "mae"}


def test_whole_graphs_by_class():
    model = GraphClassifier(settings={"loop": {"max_epochs": 40}}, test_size=0.2)
    model.fit(many_graphs())
    assert model.predict_proba().shape == (60, 2)
    assert model.score() > 0.9


def test_whole_graphs_by_values():
    model = GraphRegressor(settings=QUICK, test_size=0.2).fit(many_graphs(values=True))
    assert model.predict().shape == (60, 2)
    assert model.score() > 0.9
    assert model.predictions()["nodes"][0].as_py() == pytest.approx(model.predict()[0, 1])


def test_graphs_at_a_time_give_what_all_together_give():
    graphs = many_graphs()
    model = GraphClassifier(model="gin", settings=QUICK).fit(graphs)
    kept = (graphs.graph_of_node < 10).numpy()
    some = Graph.from_arrays(
        graphs.x[kept],
        graphs.edge_index[:, kept[graphs.edge_index[0]]],
        graph_of_node=graphs.graph_of_node[kept],
        directed=False,
        level="graph",
    )
    np.testing.assert_allclose(
        model.predict_proba(some), model.predict_proba()[:10], rtol=1e-4, atol=1e-5
    )


def test_new_nodes_and_edges_are_predicted_without_training(fitted):
    model, graph, _ = fitted
    x = torch.cat([graph.x, torch.tensor([[1.0, 0.0]])])
    edges = torch.cat([graph.edge_index, torch.tensor([[0], [120]])], dim=1)
    larger = Graph.from_arrays(x, edges)
    assert model.predict(larger).shape == (121,)
    assert model.predict_proba(larger)[120].sum() == pytest.approx(1)


def test_pyg_data_are_taken_as_they_are():
    torch.manual_seed(0)
    y = torch.tensor([0, 1] * 30)
    edges = torch.randint(0, 60, (2, 100))
    data = Data(x=torch.randn(60, 3) + y.view(-1, 1), edge_index=edges, y=y)
    model = NodeClassifier(model="mlp", settings=QUICK).fit(data)
    assert model.predict(data).shape == (60,)


def test_a_graph_without_edges_and_one_with_weights():
    y = [0, 1] * 20
    x = [[float(value), 1.0] for value in y]
    alone = Graph.from_arrays(x, np.empty((2, 0), dtype=int), y=y)
    assert NodeClassifier(settings=QUICK).fit(alone).score(alone) == 1
    generator = np.random.default_rng(0)
    weighted = Graph.from_arrays(
        x, generator.integers(0, 40, (2, 80)), y=y, edge_weight=generator.random(80)
    )
    assert NodeClassifier(settings=QUICK).fit(weighted).score(weighted) > 0.8


def test_what_cannot_be_learnt_from_is_told():
    graph, _ = two_groups()
    with pytest.raises(TypeError, match="fit was given nothing"):
        NodeClassifier().fit()
    with pytest.raises(GraphInputError, match="no target"):
        NodeClassifier().fit(Graph.from_arrays([[1.0]] * 5, [[0], [1]]))
    with pytest.raises(GraphInputError, match="use GraphClassifier"):
        NodeClassifier().fit(many_graphs())
    with pytest.raises(ValueError, match="minutes=0"):
        NodeClassifier().fit(graph, minutes=0)
    with pytest.raises(ValueError, match="metric='acuracy'"):
        NodeClassifier(metric="acuracy").fit(graph)
    with pytest.raises(NotFittedError, match="call fit"):
        NodeClassifier().predict(graph)
    model = NodeClassifier(model="mlp", settings=QUICK).fit(graph)
    with pytest.raises(ValueError, match="there are no test rows"):
        model.score()
    with pytest.raises(GraphInputError, match="position 500"):
        model.predict([500])


def test_a_search_stops_in_time_and_is_used(tmp_path):
    graph, _ = two_groups()
    model = NodeClassifier(model="gcn", settings=BRIEF)
    started = time.monotonic()
    model.fit(graph, minutes=0.1, run_dir=tmp_path)
    assert time.monotonic() - started < 60  # 6 seconds, and what is under way on a busy machine
    searched = [row for row in model.tried() if row["name"].endswith("-search")]
    assert searched
    assert any("configurations tried" in row["note"] for row in searched)


class StopInEpoch(Callback):
    def __init__(self, epoch):
        self.epoch = epoch

    def on_epoch(self, trainer, line):
        if line["epoch"] == self.epoch:
            trainer.request_stop()


def test_a_fit_that_was_stopped_goes_on_exactly(tmp_path):
    graph, _ = two_groups()
    whole = NodeClassifier(settings=BRIEF).fit(graph, run_dir=tmp_path / "whole")
    model = NodeClassifier(settings=BRIEF)
    with pytest.raises(Interrupted):
        model.fit(graph, run_dir=tmp_path / "stopped", callbacks=[StopInEpoch(2)])
    model.fit(graph, run_dir=tmp_path / "stopped")
    assert (model.predict_proba() == whole.predict_proba()).all()


def test_a_folder_keeps_runs_on_other_data_and_configurations_apart(tmp_path):
    first, _ = two_groups(seed=0)
    other, _ = two_groups(seed=1)
    model = NodeClassifier(model="mlp", settings=QUICK).fit(first, run_dir=tmp_path)
    before = model.predict_proba()
    assert (model.fit(other, run_dir=tmp_path).predict_proba() != before).any()
    assert len(list(tmp_path.glob("mlp-own-*"))) == 2
    model.set_params(settings={"loop": {"max_epochs": 3}})
    with pytest.raises(adgn.training.RunError, match="another configuration"):
        model.fit(first, run_dir=tmp_path)


class Stored(InMemoryDataset):
    def __init__(self, graphs):
        super().__init__()
        self.data, self.slices = self.collate(graphs)


def test_data_sets_of_pyg_are_fitted_and_predicted():
    x = torch.arange(24.0).view(12, 2)
    edges = torch.tensor([[0, 1, 2, 3], [1, 2, 3, 4]])
    one = Stored([Data(x=x, edge_index=edges, y=torch.tensor([0, 1] * 6))])
    quick = {"model": "mlp", "settings": {"loop": {"max_epochs": 2}}}
    assert NodeClassifier(**quick).fit(one).predict(one).shape == (12,)
    many = Stored([Data(x=x + n, edge_index=edges, y=float(n)) for n in range(8)])
    assert GraphRegressor(**quick).fit(many).predict(many).shape == (8,)


def test_pyg_data_for_a_prediction_have_the_direction_of_the_training_graph():
    x, edges = torch.rand(20, 2), torch.stack([torch.arange(19), torch.arange(1, 20)])
    both = torch.cat([edges, edges.flip(0)], dim=1)
    y = torch.tensor([0, 1] * 10)
    model = NodeClassifier(settings={"loop": {"max_epochs": 2}})
    model.fit(Data(x=x, edge_index=both, y=y))  # undirected, by its looks
    one_way = model.predict_proba(Data(x=x, edge_index=edges))
    assert one_way == pytest.approx(model.predict_proba(), abs=1e-6)
    with pytest.raises(GraphInputError, match="directed=False"):
        model.predict(Graph.from_arrays(x, edges))


def test_a_class_that_a_fold_has_not_trained_on_counts_as_wrong():
    graph, labels = two_groups(unlabelled=0)
    labels = labels.copy()
    labels[:3] = "rare"  # all of them in the first fold
    model = NodeClassifier(graph=graph.with_target(None), model="mlp", settings=QUICK)
    folds = [(np.arange(40, 120), np.arange(40)), (np.arange(80), np.arange(80, 120))]
    scores = cross_val_score(model, np.arange(120), labels, cv=folds)
    assert np.isfinite(scores).all()
    assert scores[0] <= 37 / 40
    fold = model.fit(folds[0][0], labels[40:])
    found = fold.scores(folds[0][1], labels[:40])
    assert found["accuracy"] == (fold.predict(folds[0][1]) == labels[:40]).mean()
    assert all(np.isfinite(list(found.values())))
    with pytest.raises(GraphInputError, match="never seen"):  # of a whole graph it is a slip
        fold.score(graph.with_target(labels.tolist()))


def test_labelled_rows_that_are_not_used_are_counted():
    graph, _ = two_groups()
    split = pa.array(["train"] * 60 + ["valid"] * 20 + [None] * 40)
    model = NodeClassifier(model="mlp", settings=QUICK).fit(replace(graph, split=split))
    assert any("is empty for 20 of 100 labelled nodes" in note for note in model.notes_)


@pytest.mark.parametrize("name", [None, "mlp"])
def test_a_very_short_time_gives_one_model_and_says_so(name):
    graph, _ = two_groups()
    model = NodeClassifier(model=name, settings=QUICK).fit(graph, minutes=1e-6)
    assert len(model.tried()) == 1
    assert "more than minutes=1e-06 allow" in model.notes_[-1]
