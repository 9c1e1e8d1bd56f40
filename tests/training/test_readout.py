"""Readouts in closed form: the same as scikit-learn's on the explicit matrix of states."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.linear_model import Ridge
from torch_geometric.data import Batch, Data

import adgn
from adgn.nn import GraphNetwork, available_models, build_model
from adgn.training import (
    Callback,
    ConfigError,
    DivergedError,
    FullGraph,
    Interrupted,
    LabelledBatch,
    TrainConfig,
    Trainer,
    evaluate,
    open_run,
    predict,
    resume,
)
from adgn.training.objective import resolve_objective
from adgn.training.readout import PENALTIES, FixedStates, RidgeReadout

RESERVOIR = {"train_recurrent": False, "readout": "ridge"}
MODELS = {
    "adgn": {"name": "adgn", **RESERVOIR},
    "gesn": {"name": "gesn", "radius": 3.0},
    "gcn": {"name": "gcn", **RESERVOIR},
}
every_model = pytest.mark.parametrize("options", MODELS.values(), ids=MODELS)


def network(options, level="node", outputs=2, hidden=9, seed=0):
    torch.manual_seed(seed)
    settings = {key: value for key, value in options.items() if key != "name"}
    model = build_model(options["name"], 3, hidden, outputs, 3, level=level, **settings)
    return model.double().eval()


def random(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def graph(nodes=60, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, nodes, (2, 3 * nodes), generator=generator)


def explicit(states, targets, penalty, standardise=False, weight=None):
    """scikit-learn's solution, for a penalty relative to the Gram matrix's mean diagonal."""
    share = np.ones(len(states)) if weight is None else weight
    mean = share @ states / share.sum()
    deviation = np.sqrt(share @ (states - mean) ** 2 / share.sum())
    scale = deviation if standardise else np.ones_like(mean)
    rows = (states - mean) / scale
    gram_trace = float((share[:, None] * rows**2).sum())
    unit = gram_trace / min(states.shape)
    ridge = Ridge(alpha=penalty * unit, solver="cholesky", tol=0)
    ridge.fit(rows, targets, sample_weight=share)
    coefficients = np.atleast_2d(ridge.coef_) / scale
    return coefficients, np.atleast_1d(ridge.intercept_) - coefficients @ mean


@every_model
@pytest.mark.parametrize("train", [40, 6])  # more rows than features, and fewer
def test_regression_of_nodes_is_scikit_learns(options, train):
    x, edges, y = random(60, 3), graph(), random(60, 2, seed=1)
    model = network(options)
    sources = [FullGraph(x, edges, y, rows) for rows in torch.arange(60).split([train, 60 - train])]
    trainer = Trainer(model, *sources, penalties=[1e-3])
    assert trainer.fit() == "solved"
    states = model.states(x, edges).detach().numpy()
    weight, bias = explicit(states[:train], y[:train].numpy(), 1e-3)
    np.testing.assert_allclose(model.readout.weight.detach(), weight, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(model.readout.bias.detach(), bias, rtol=1e-8, atol=1e-8)
    expected = states @ weight.T + bias
    np.testing.assert_allclose(model(x, edges).detach(), expected, rtol=1e-8, atol=1e-8)


@every_model
def test_classes_are_one_vs_rest(options):
    """The answers are those of a ridge regression on one-hot targets; logits are a multiple."""
    x, edges = random(60, 3), graph()
    y = (x[:, 0] > 0).long() + (x[:, 1] > 0.5).long()
    y[3] = -1  # unknown
    model = network(options, outputs=3)
    sources = [FullGraph(x, edges, y, rows) for rows in torch.arange(60).split([40, 20])]
    trainer = Trainer(model, *sources, objective="classification", penalties=[0.01])
    trainer.fit()
    states = model.states(x, edges).detach().numpy()
    known = np.delete(np.arange(40), 3)
    weight, bias = explicit(states[known], np.eye(3)[y[known]], 0.01)
    (line,) = trainer.history
    np.testing.assert_allclose(model.readout.weight.detach() / line["scale"], weight, atol=1e-8)
    np.testing.assert_allclose(model.readout.bias.detach() / line["scale"], bias, atol=1e-8)
    answers = model(x, edges).argmax(1).numpy()
    assert (answers == (states @ weight.T + bias).argmax(1)).all()
    # The scale makes them better logits than ones and zeros are.
    outputs = torch.from_numpy(states[40:] @ weight.T + bias)
    unscaled = torch.nn.functional.cross_entropy(outputs, y[40:])
    assert trainer.evaluate("val")["loss"] < unscaled


def small_graphs(count, level="graph"):
    datas = []
    for seed in range(count):
        nodes = 4 + seed % 5
        x = random(nodes, 3, seed=seed)
        y = x.sum() + x.max() if level == "graph" else x.sum(1)
        datas.append(Data(x, graph(nodes, seed), y=y.view(-1, 1)))
    return datas


@every_model
@pytest.mark.parametrize("level", ["node", "graph"])
def test_many_graphs_streamed_are_the_whole(options, level):
    datas = small_graphs(50, level)

    def solved(batch_size):
        model = network(options, level, outputs=1, hidden=5)
        batches = [
            Batch.from_data_list(datas[first : min(first + batch_size, 40)])
            for first in range(0, 40, batch_size)
        ]
        held_out = [Batch.from_data_list(datas[40:])]
        Trainer(model, batches, held_out, penalties=[1e-4]).fit()
        return model

    whole = solved(40)
    # Of nodes each graph of a batch has its share, which is kept in single precision; a batch of
    # one graph has no shares.
    sizes, close = ((7, 16), 1e-6) if level == "node" else ((1, 7, 16), 1e-8)
    for size in sizes:
        parts = solved(size).readout
        torch.testing.assert_close(parts.weight, whole.readout.weight, rtol=close, atol=close)
        torch.testing.assert_close(parts.bias, whole.readout.bias, rtol=close, atol=close)
    batch = Batch.from_data_list(datas[:40])
    states = whole.states(batch.x, batch.edge_index, batch=batch.batch)
    rows = whole.pool(states, batch.batch).detach().numpy()
    shares = None  # of nodes: each graph counts alike
    if level == "node":
        shares = 1 / np.bincount(batch.batch)[batch.batch]
    weight, bias = explicit(rows, batch.y.numpy(), 1e-4, level == "graph", shares)
    np.testing.assert_allclose(whole.readout.weight.detach(), weight, rtol=close, atol=close)
    np.testing.assert_allclose(whole.readout.bias.detach(), bias, rtol=close, atol=close)


def test_the_penalty_is_the_best_on_validation():
    x, edges = random(60, 3), graph()
    y = x[:, :1] + 0.5 * random(60, 1, seed=4)
    parts = torch.arange(60).split([25, 35])

    def score(penalties):
        model = network(MODELS["adgn"], outputs=1, hidden=40)
        sources = [FullGraph(x, edges, y, rows) for rows in parts]
        trainer = Trainer(model, *sources, penalties=penalties)
        trainer.fit()
        return trainer.evaluate("val")["mse"], trainer.history[0]["penalty"]

    single = {penalty: score([penalty])[0] for penalty in PENALTIES}
    best = min(single, key=single.get)
    assert PENALTIES[0] < best < PENALTIES[-1]
    assert score(None) == (single[best], best)


def test_equal_scores_take_the_larger_penalty():
    solver = RidgeReadout(
        network(MODELS["gesn"], hidden=4), resolve_objective("classification"), [1e-6, 1.0]
    )
    states = torch.eye(4).double().repeat(3, 1)
    batch = LabelledBatch(states, states, states.argmax(1) % 2, size=12)
    solver.add(states, batch)
    assert solver.choose([(states, batch)], "accuracy", "max").penalty == 1.0


SETTINGS = {
    "task": {"name": "graph-transfer", "distance": 2, "train": 24, "val": 6, "test": 6},
    "model": {"name": "adgn", "hidden_channels": 8, **RESERVOIR},
    "loop": {"batch_size": 7, "evaluate_every": 5},
}


@pytest.mark.parametrize("name", ["adgn", "gesn"])
def test_a_run_is_solved_kept_and_found_again(name, tmp_path):
    settings = {**SETTINGS, "model": {**SETTINGS["model"], "name": name}}
    result = adgn.train(settings, run_dir=tmp_path / "run")
    assert (result.stopped, result.epochs, result.best_epoch) == ("solved", 1, 1)
    assert result.parameters == {"encoder": 0, "propagation": 0, "readout": 9, "total": 9}
    (line,) = map(json.loads, (tmp_path / "run" / "metrics.jsonl").read_text().splitlines())
    assert line["penalty"] in PENALTIES
    assert evaluate(tmp_path / "run") == result.scores
    assert resume(tmp_path / "run").scores == result.scores
    again = adgn.train(settings)
    assert again.scores == result.scores
    for left, right in zip(again.model.parameters(), result.model.parameters(), strict=True):
        assert torch.equal(left, right)
    prepared = open_run(tmp_path / "run")
    ((_, rows),) = predict(tmp_path / "run", ["test"])
    (batch,) = prepared.source("test").batches(0)
    outputs = prepared.model.eval()(batch.x, batch.graph, batch=batch.batch)
    torch.testing.assert_close(rows["prediction"], outputs[batch.rows])


class StopAt(Callback):
    def __init__(self, step):
        self.step, self.seen = step, 0

    def on_step(self, trainer):
        self.seen += 1
        if self.seen == self.step:
            trainer.request_stop()


def test_a_run_that_was_stopped_goes_on_to_the_same_end(tmp_path):
    whole = adgn.train(SETTINGS, run_dir=tmp_path / "whole")
    with pytest.raises(Interrupted):
        adgn.train(SETTINGS, run_dir=tmp_path / "run", callbacks=[StopAt(2)])
    assert resume(tmp_path / "run").scores == whole.scores
    best = [(tmp_path / name / "best.safetensors").read_bytes() for name in ("run", "whole")]
    assert best[0] == best[1]


@pytest.mark.parametrize("name", available_models())
def test_every_model_can_be_a_reservoir(name):
    model = {"name": name, "hidden_channels": 4, "num_layers": 2, **RESERVOIR}
    result = adgn.train({**SETTINGS, "model": model})
    assert result.stopped == "solved"
    assert result.parameters["total"] == result.parameters["readout"] > 0
    assert np.isfinite(result.scores["test"]["mse"])


def test_embeddings_are_random_too():
    task = {"name": "tree-neighbors-match", "radius": 2, "permutations": 4}
    model = {"hidden_channels": 8, "encoder": "embedding", **RESERVOIR}
    # The task has no validation rows to choose a penalty on.
    result = adgn.train(TrainConfig(task=task, model=model, optimizer={"penalties": [1e-3]}))
    assert result.parameters["encoder"] == 0
    assert result.stopped == "solved"


def test_states_of_one_graph_are_computed_once(monkeypatch):
    calls = []
    propagate = GraphNetwork.states

    def counted(self, *args, **options):
        calls.append(1)
        return propagate(self, *args, **options)

    monkeypatch.setattr(GraphNetwork, "states", counted)
    x, edges, y = random(60, 3), graph(), random(60, 2, seed=1)
    model = network(MODELS["gesn"])
    sources = [FullGraph(x, edges, y, rows) for rows in torch.arange(60).split([40, 20])]
    trainer = Trainer(model, *sources)
    trainer.fit()
    trainer.restore_best()
    before = trainer.evaluate("val")
    assert len(calls) == 1
    x.mul_(2)  # the remembered states are those of other features now
    assert trainer.evaluate("val") != before
    with torch.no_grad():
        model.encoder.weight.mul_(2)
    trainer.evaluate("val")
    assert len(calls) == 3


def test_no_more_states_are_remembered_than_fit(monkeypatch):
    monkeypatch.setattr("adgn.training.readout.REMEMBERED_BYTES", 10 * 9 * 8)
    states = FixedStates(network(MODELS["gesn"]))
    batches = [LabelledBatch(random(10, 3, seed=s), graph(10), random(10, 2), 10) for s in range(4)]
    first = [states(batch) for batch in batches]
    assert len(states._known) == 2  # the first one, which fits, and the last one
    assert states(batches[0]) is first[0]
    assert torch.equal(states(batches[1]), first[1])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"model": {"readout": "ridge"}}, "readout='ridge' with train_recurrent=True is not valid"),
        ({"model": {**RESERVOIR, "dropout": 0.5}}, "readout='ridge' with dropout=0.5"),
        (
            {"optimizer": {"penalties": [1e-3]}},
            r"penalties=\[0.001\] has no effect with model.read",
        ),
        ({"model": RESERVOIR, "optimizer": {"penalties": [-1.0]}}, "give numbers from 0 on"),
        ({"model": RESERVOIR, "optimizer": {"penalties": []}}, "optimizer.penalties"),
        ({"model": RESERVOIR, "stopping": {"split": "train"}}, "chooses its penalty on validation"),
    ],
)
def test_wrong_settings(settings, message):
    with pytest.raises(ConfigError, match=message):
        adgn.train("graph-transfer", **settings)


def test_wrong_trainers():
    model = network(MODELS["gesn"], outputs=1)
    source = FullGraph(random(60, 3), graph(), random(60, 1), torch.arange(9))
    with pytest.raises(ValueError, match="forward was given"):
        Trainer(model, source, source, forward=lambda module, batch: batch.y)
    with pytest.raises(ValueError, match="chooses its penalty on validation rows"):
        Trainer(model, source)
    Trainer(model, source, penalties=[1e-3]).fit()
    own = replace(resolve_objective("regression"), name="mine")
    with pytest.raises(ValueError, match="objective 'mine'"):
        Trainer(model, source, source, objective=own).fit()


def test_states_that_explode_are_told():
    model = network({"name": "adgn", "act": None, "epsilon": 1e200, **RESERVOIR}, outputs=1)
    source = FullGraph(random(60, 3), graph(), random(60, 1), torch.arange(9))
    with pytest.raises(DivergedError, match="explodes with these random weights"):
        Trainer(model, source, source).fit()
