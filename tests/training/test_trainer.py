import pytest
import torch
from torch import nn
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GCNConv

from adgn.data import GraphTransfer
from adgn.graph.checks import NonFiniteError
from adgn.nn import ADGN
from adgn.training import (
    Callback,
    DivergedError,
    EarlyStopping,
    FullGraph,
    Interrupted,
    LabelledBatch,
    PackedBatches,
    Trainer,
)
from adgn.training.seeding import own_randomness


class Keeper:
    """A checkpointer that keeps every state, as if it were due after every step."""

    def __init__(self):
        self.lines = []
        self.states = []

    def record(self, line):
        self.lines.append(line)

    def due(self, epoch):
        return True

    def save(self, state):
        copied = {
            key: {k: v.clone() if isinstance(v, torch.Tensor) else v for k, v in value.items()}
            if key in ("weights", "best_weights") and value
            else value
            for key, value in state.items()
        }
        copied["optimizer"] = {
            "param_groups": [dict(group) for group in state["optimizer"]["param_groups"]],
            "state": {
                n: {k: v.clone() for k, v in s.items()}
                for n, s in state["optimizer"]["state"].items()
            },
        }
        copied["lines"] = list(self.lines)
        self.states.append(copied)


def graphs(split, count):
    return GraphTransfer("line", 2, split, num_graphs=count).packed


def make(*, checkpointer=None, epochs=3, dropout=0.3, **options):
    with own_randomness(0):
        model = ADGN(1, 5, 1, num_layers=2, epsilon=0.7, dropout=dropout)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    options.setdefault("schedule", torch.optim.lr_scheduler.StepLR(optimizer, 2))
    return Trainer(
        model,
        PackedBatches(graphs("train", 10), 4, seed=1),
        PackedBatches(graphs("val", 5), 4),
        optimizer=optimizer,
        max_epochs=epochs,
        seed=2,
        checkpointer=checkpointer,
        **options,
    )


def weights(trainer):
    return [weight.tolist() for weight in trainer.model.state_dict().values()]


def test_training_lowers_the_loss_and_keeps_the_best_weights():
    trainer = make(epochs=60, dropout=0.0, schedule=None)
    assert trainer.fit() == "max_epochs"
    lines = trainer.history
    assert lines[-1]["train_loss"] < 0.5 * lines[0]["train_loss"]
    trainer.restore_best()
    best = min(line["val"]["log10_mse"] for line in lines)
    assert trainer.evaluate("val")["log10_mse"] == best
    assert trainer.stopping.best == best


def test_every_state_leads_to_the_same_end():
    keeper = Keeper()
    whole = make(checkpointer=keeper)
    whole.fit()
    assert len(keeper.states) > 10  # after every step and epoch, at the start and at the end
    for state in keeper.states:
        again = make()
        again.history = list(state["lines"])
        again.load_state_dict(state)
        again.fit()
        assert weights(again) == weights(whole)
        assert again.history == whole.history == keeper.lines
        assert [w.tolist() for w in again.best_weights.values()] == [
            w.tolist() for w in whole.best_weights.values()
        ]


def test_same_seed_same_bits_other_seed_others():
    runs = [make(), make(), make()]
    runs[2].seed = 3
    for run in runs:
        run.fit()
    assert weights(runs[0]) == weights(runs[1]) != weights(runs[2])


def test_global_random_numbers_are_left_alone():
    before = torch.get_rng_state()
    make().fit()
    assert torch.get_rng_state().equal(before)


def test_stop_request_ends_after_the_step_and_goes_on_exactly():
    class Stop(Callback):
        steps = 0

        def on_step(self, trainer):
            self.steps += 1
            if self.steps == 4:
                trainer.request_stop()

    whole, keeper = make(), Keeper()
    whole.fit()
    stopped = make(checkpointer=keeper, callbacks=[Stop()])
    with pytest.raises(Interrupted, match="epoch 2") as stop:
        stopped.fit()
    assert stop.value.epoch == 2
    again = make()
    again.load_state_dict(keeper.states[-1])
    again.fit()
    assert weights(again) == weights(whole)
    stopped.fit()  # the same object goes on, too
    assert weights(stopped) == weights(whole)


def test_accumulated_batches_are_one_large_batch():
    def trained(batch_size, accumulate):
        with own_randomness(0):
            model = ADGN(1, 5, 1, num_layers=2).double()
        source = PackedBatches(graphs("train", 10), batch_size)
        source.graphs.x.data = source.graphs.x.double()
        source.graphs.y.data = source.graphs.y.double()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        trainer = Trainer(model, source, optimizer=optimizer, max_epochs=3, accumulate=accumulate)
        trainer.fit()
        return model.state_dict()

    whole, parts = trained(10, 1), trained(3, 4)  # batches of 3, 3, 3 and 1 graphs
    for name, weight in whole.items():
        torch.testing.assert_close(weight, parts[name])


def test_gradients_are_clipped():
    trainer = make(epochs=1, schedule=None, clip_norm=1e-6)
    trainer.optimizer = torch.optim.SGD(trainer.model.parameters(), lr=1.0)
    before = [p.detach().clone() for p in trainer.model.parameters()]
    trainer.fit()
    moved = sum(
        float((a - b.detach()).square().sum())
        for a, b in zip(before, trainer.model.parameters(), strict=True)
    )
    assert 0 < moved**0.5 <= 3 * 1e-6 * 1.001  # three steps


def test_evaluation_cadence_and_passes_per_epoch():
    trainer = make(epochs=5, evaluate_every=2, passes_per_epoch=3)
    trainer.fit()
    assert ["val" in line for line in trainer.history] == [False, True, False, True, True]
    assert trainer.progress.passes == 15


def test_early_stopping_by_patience_and_target():
    trainer = make(epochs=500, stopping=EarlyStopping("min", patience=0, ties=False))
    assert trainer.fit() == "patience"
    assert trainer.progress.epoch < 500
    trainer = make(epochs=500, stopping=EarlyStopping("min", target=5.0))
    assert trainer.fit() == "target"
    assert trainer.progress.epoch == 1


class Explodes(nn.Module):
    """Finite at first, then not: what divergence looks like from outside."""

    def __init__(self, calls):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1, 1))
        self.calls = calls

    def forward(self, x, edge_index):
        self.calls -= self.training
        return x @ self.weight * (float("nan") if self.calls < 0 else 1.0)


def test_divergence_stops_with_the_epoch_and_advice_and_keeps_finite_states():
    keeper = Keeper()
    trainer = Trainer(
        Explodes(7), PackedBatches(graphs("train", 10), 4), max_epochs=9, checkpointer=keeper
    )
    with pytest.raises(DivergedError, match=r"train loss is not finite in epoch 3.*Lower") as error:
        trainer.fit()
    assert error.value.epoch == 3
    assert all(
        bool(weight.isfinite().all())
        for state in keeper.states
        for weight in state["weights"].values()
    )


class Overflows(nn.Module):
    """Finite where it is trained, infinite where it is scored."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1, 1))

    def forward(self, x, edge_index):
        out = x @ self.weight
        return out if self.training else out + float("inf")


def test_an_infinite_validation_error_is_divergence_not_the_best_score():
    trainer = Trainer(
        Overflows(),
        PackedBatches(graphs("train", 10), 4),
        PackedBatches(graphs("val", 4), 4),
        max_epochs=3,
    )
    with pytest.raises(DivergedError, match="is not finite in epoch 1"):
        trainer.fit()


def test_weights_that_are_not_finite_are_never_saved():
    trainer = make(checkpointer=Keeper())
    with torch.no_grad():
        next(trainer.model.parameters()).fill_(float("nan"))
    with pytest.raises(DivergedError, match="a weight is not finite"):
        trainer.fit()
    assert trainer.checkpointer.states == []


def test_divergence_inside_the_network_is_divergence_but_wrong_data_is_not():
    trainer = make(epochs=50, dropout=0.0, schedule=None)
    trainer.optimizer = torch.optim.SGD(trainer.model.parameters(), lr=1e30)
    with pytest.raises(DivergedError, match="diverged"):
        trainer.fit()
    packed = graphs("train", 4)
    packed.x[0, 0] = float("inf")
    with pytest.raises(NonFiniteError, match=r"x\[0, 0\] = inf is not finite"):
        Trainer(ADGN(1, 5, 1, num_layers=2), PackedBatches(packed, 4)).fit()


class PlainGCN(nn.Module):
    """A user's own model, with PyG's layers and without any option of ours."""

    def __init__(self):
        super().__init__()
        self.first, self.second = GCNConv(2, 8), GCNConv(8, 3)

    def forward(self, x, edge_index):
        return self.second(self.first(x, edge_index).relu(), edge_index)


def test_any_module_on_any_loader_of_masked_data():
    with own_randomness(1):
        y = torch.arange(12) % 3
        x = torch.randn(12, 2) + y.view(-1, 1)
        mask = torch.rand(12) < 0.6
        edges = torch.stack([torch.arange(12), torch.arange(12).roll(3)])
        data = Data(x=x, edge_index=edges, y=y, train_mask=mask, val_mask=~mask)
        model = PlainGCN()
    trainer = Trainer(
        model,
        DataLoader([data]),
        DataLoader([data]),
        objective="classification",
        optimizer=torch.optim.Adam(model.parameters(), lr=0.05),
        max_epochs=60,
    )
    trainer.fit()
    assert trainer.evaluate("train")["accuracy"] > 0.9


def test_own_forward_and_a_graph_level_module():
    class Mean(nn.Module):
        def __init__(self):
            super().__init__()
            self.lin = nn.Linear(1, 1)

        def forward(self, x, edge_index, batch, batch_size):
            total = torch.zeros(batch_size, 1).index_add(0, batch, x)
            return self.lin(total)

    source = PackedBatches(graphs("train", 10), 4, seed=0)
    trainer = Trainer(Mean(), source, max_epochs=2)
    trainer.fit()
    seen = []

    def forward(model, batch: LabelledBatch):
        seen.append(batch.num_graphs)
        return model(batch.x, None, batch.batch, batch.num_graphs)

    Trainer(Mean(), source, max_epochs=1, forward=forward).fit()
    assert seen[:3] == [4, 4, 2]


def test_outputs_that_do_not_fit_the_targets_are_refused_at_the_first_step():
    with pytest.raises(ValueError, match=r"output has shape \[4, 2\], but the targets \[4, 1\]"):
        Trainer(ADGN(1, 5, 2, num_layers=2), PackedBatches(graphs("train", 4), 4)).fit()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_epochs": 0}, "max_epochs=0"),
        ({"accumulate": 0}, "accumulate=0"),
        ({"clip_norm": 0.0}, "clip_norm=0.0"),
        ({"monitor": "log10_mes"}, "Did you mean 'log10_mse'"),
        ({"monitor_split": "val"}, "has no batches"),
        ({"objective": "regresion"}, "Did you mean 'regression'"),
    ],
)
def test_wrong_arguments_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        Trainer(ADGN(1, 5, 1, num_layers=2), PackedBatches(graphs("train", 4), 4), **options)


def test_no_train_batches():
    with pytest.raises(ValueError, match="train batches are empty"):
        Trainer(PlainGCN(), [], objective="classification").fit()


def test_dropout_is_off_in_evaluation_and_the_mode_comes_back():
    trainer = make(dropout=0.5)
    trainer.model.train()
    assert trainer.evaluate("val") == trainer.evaluate("val")
    assert trainer.model.training


def test_restoring_the_best_needs_a_best():
    with pytest.raises(ValueError, match="call fit first"):
        make().restore_best()


def test_single_graph_with_masks_trains_on_its_train_nodes_only():
    x, y = torch.eye(4), torch.tensor([0, 1, 0, 1])
    edges = torch.empty(2, 0, dtype=torch.long)
    model = ADGN(4, 4, 2, num_layers=1)
    train = FullGraph(x, edges, y, torch.tensor([0, 1]))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    trainer = Trainer(model, train, objective="classification", optimizer=optimizer, max_epochs=1)
    before = model.encoder.weight.detach().clone()
    trainer.fit()
    moved = (model.encoder.weight.detach() - before).abs().sum(dim=0)
    assert (moved[:2] > 0).all()
    assert (moved[2:] == 0).all()


def test_loader_batches_without_a_scored_node_neither_diverge_nor_count():
    torch.manual_seed(0)
    edges = torch.tensor([[0, 1, 2], [1, 2, 3]])

    def part(train, val):
        data = Data(x=torch.randn(4, 2), edge_index=edges, y=torch.tensor([0, 1, 0, 1]))
        data.train_mask, data.val_mask = torch.tensor(train), torch.tensor(val)
        return data

    some, none = [True, True, False, False], [False] * 4
    parts = [part(none, some), part(some, none), part(some, some)]

    def trained(train, val):
        with own_randomness(0):
            model = ADGN(2, 4, 2, num_layers=2)
        trainer = Trainer(model, train, val, objective="classification", max_epochs=2)
        trainer.fit()
        return weights(trainer), trainer.evaluate("val")

    assert trained(parts, parts) == trained(parts[1:], [parts[0], parts[2]])
    with pytest.raises(ValueError, match="the val mask selects no node in any of the 1 batches"):
        trained(parts, [parts[1]])


def ring(nodes, **attributes):
    """One graph, both ways round; half of its nodes are for training."""
    forth = torch.arange(nodes)
    edges = torch.cat([torch.stack([forth, forth.roll(1)]), torch.stack([forth.roll(1), forth])], 1)
    mask = forth % 2 == 0
    x = torch.randn(nodes, 2, generator=torch.Generator().manual_seed(0))
    return Data(x=x, edge_index=edges, train_mask=mask, val_mask=~mask, **attributes)


def scores_of(data, objective="regression", model=None, **options):
    with own_randomness(0):
        model = model or ADGN(2, 4, options.pop("out", 1), num_layers=2, **options)
    trainer = Trainer(model, data, data, objective=objective, max_epochs=2)
    trainer.fit()
    return trainer.evaluate("val")


def test_regression_targets_may_be_a_vector():
    y = torch.randn(8, generator=torch.Generator().manual_seed(1))
    assert scores_of([ring(8, y=y)]) == scores_of([ring(8, y=y.view(-1, 1))])


@pytest.mark.parametrize("nodes", [3, 5])
def test_targets_of_a_graph_may_be_a_vector_of_its_values(nodes):
    """Also where a graph has as many values as nodes."""

    def graphs_with(shape):
        generator = torch.Generator().manual_seed(1)
        made = [ring(nodes, y=torch.randn(3, generator=generator).view(shape)) for _ in range(4)]
        for graph in made:
            del graph.train_mask, graph.val_mask
        return DataLoader(made, batch_size=2)

    rows, plain = graphs_with((1, 3)), graphs_with((3,))
    expected = scores_of(rows, out=3, level="graph")
    assert scores_of(plain, out=3, level="graph") == pytest.approx(expected)


def test_unknown_labels_are_neither_trained_on_nor_scored():
    y = torch.tensor([0, 1, 1, 0, 0, 1, 1, 0])
    unknown = torch.tensor([0, 3, 6])
    few = ring(8, y=y)
    few.train_mask[unknown] = False
    few.val_mask[unknown] = False
    labels = y.clone()
    labels[unknown] = -1
    expected = scores_of([few], "classification", out=2)
    assert scores_of([ring(8, y=labels)], "classification", out=2) == expected


def test_a_batch_of_unknown_labels_is_passed_over_also_when_steps_are_accumulated():
    known, unknown = ring(4, y=torch.tensor([0, 1, 0, 1])), ring(4, y=torch.full((4,), -1))

    def trained(parts, accumulate):
        with own_randomness(0):
            model = ADGN(2, 4, 2, num_layers=2)
        options = {"objective": "classification", "max_epochs": 3, "accumulate": accumulate}
        trainer = Trainer(model, parts, **options)
        trainer.fit()
        return weights(trainer)

    assert trained([known, unknown, known], 1) == trained([known, known], 1)
    assert trained([unknown, known, known, unknown], 2) == trained([known, known], 1)
    with pytest.raises(ValueError, match=r"every label of the train batches is -1"):
        trained([unknown], 1)


class WeightedMean(nn.Module):
    """A model that does not check what it is given."""

    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(2, 1)

    def forward(self, x, edge_index, edge_weight=None):
        weight = 1.0 if edge_weight is None else edge_weight.view(-1, 1)
        return self.lin(torch.zeros_like(x).index_add(0, edge_index[1], x[edge_index[0]] * weight))


@pytest.mark.parametrize("model", ["ours", "theirs"])
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize("name", ["x", "edge_weight", "y"])
@pytest.mark.parametrize("split", ["train", "val"])
def test_data_that_are_not_finite_are_named_and_no_divergence(model, value, name, split):
    def data(wrong):
        made = ring(6, y=torch.zeros(6, 1), edge_weight=torch.ones(12))
        del made.train_mask, made.val_mask
        if wrong:
            made[name].view(-1)[2] = value
        return [made]

    with own_randomness(0):
        ours = model == "ours"
        network = ADGN(2, 4, 1, num_layers=2, phi="sum") if ours else WeightedMean()
    trainer = Trainer(network, data(split == "train"), data(split == "val"), max_epochs=2)
    with pytest.raises(NonFiniteError, match=rf"^{name}\[.*\] = {value} is not finite"):
        trainer.fit()


def test_a_score_that_is_not_defined_cannot_be_followed():
    data = ring(8, y=torch.zeros(8, dtype=torch.long))
    model = ADGN(2, 4, 2, num_layers=2)
    trainer = Trainer(model, [data], objective="classification", monitor="roc_auc", max_epochs=2)
    with pytest.raises(ValueError, match=r"roc_auc is not defined on the train split.*one class"):
        trainer.fit()


@pytest.mark.parametrize("monitor", ["roc_auc", "average_precision"])
def test_rankings_can_be_followed(monitor):
    data = ring(8, y=torch.tensor([0, 1, 1, 0, 0, 1, 1, 0]))
    with own_randomness(0):
        model = ADGN(2, 4, 2, num_layers=2)
    trainer = Trainer(
        model, [data], [data], objective="classification", monitor=monitor, max_epochs=5
    )
    trainer.fit()
    assert trainer.stopping.best == max(line["val"][monitor] for line in trainer.history)
