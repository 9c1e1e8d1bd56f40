"""PathGCN: its expectation densely, the mean of its walks, and runs that a seed decides."""

import pytest
import torch

import adgn
from adgn.graph import GraphBlocks
from adgn.nn import build_model
from adgn.training import Callback, Interrupted, resume
from adgn.transforms import DIGL, EdgeGraph
from tests.graphs import edges

GRAPH = edges((0, 1), (1, 0), (1, 2), (2, 3), (3, 0), (2, 2), (0, 1), (4, 2))
X = torch.randn(6, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(4))


def dense_mean():
    matrix = torch.zeros(6, 6, dtype=torch.float64)
    for source, target in GRAPH.t().tolist():
        matrix[target, source] += 1
    return matrix / matrix.sum(1, keepdim=True).clamp(min=1)


def model_of(**options):
    torch.manual_seed(0)
    return build_model("pathgcn", 3, 4, 2, **{"num_layers": 2, "length": 4, **options}).double()


def test_in_evaluation_it_is_the_expectation():
    model = model_of(alpha=0.3).eval()
    first = x = X @ model.encoder.weight.T + model.encoder.bias
    for along, lin in zip(model.propagation.along, model.propagation.lins, strict=True):
        mixed = sum(
            w * (torch.linalg.matrix_power(dense_mean(), s) @ x) for s, w in enumerate(along)
        )
        x = 0.3 * first + 0.7 * (mixed @ lin.weight.T).clamp(min=0)
    expected = x @ model.readout.weight.T + model.readout.bias
    before = torch.get_rng_state()
    torch.testing.assert_close(model(X, GRAPH), expected)
    assert torch.equal(torch.get_rng_state(), before)


@torch.no_grad()
def test_the_mean_of_a_layer_over_walks_is_its_expectation():
    """Before the activation a layer is linear in the walks: five standard errors of the mean."""
    model = model_of(num_layers=1, act=None, walks=3)
    expected = model.eval()(X, GRAPH)
    model.train()
    torch.manual_seed(1)
    drawn = torch.stack([model(X, GRAPH) for _ in range(120)])
    error = drawn.std(0) / 120**0.5
    assert ((drawn.mean(0) - expected).abs() <= 5 * error + 1e-12).all()
    assert error[0].max() > 1e-4  # walks differ
    assert (error[5] < 1e-12).all()  # and a node without edges has but one


@torch.no_grad()
@pytest.mark.parametrize("given", ["blocks", "operator"])
def test_walks_and_their_expectation_are_one_model_where_rows_do_not_sum_to_one(given):
    """Five standard errors of the mean, on a diffused graph made undirected."""
    after = DIGL(alpha=0.2, k=3, undirected=True)(EdgeGraph(GRAPH, 6))
    blocks = GraphBlocks(
        after.edge_index, torch.tensor([0, 6]), after.edge_weight.double(), normalized=True
    )
    graph = blocks.select(torch.tensor([0]))
    sums = graph.operator("mean", torch.float64).to_dense().sum(1)
    assert (sums - 1).abs().max() > 0.1
    if given == "operator":
        graph = graph.operator("mean", torch.float64)
    model = model_of(num_layers=1, act=None, walks=3)
    expected = model.eval()(X, graph)
    model.train()
    torch.manual_seed(1)
    drawn = torch.stack([model(X, graph) for _ in range(120)])
    error = drawn.std(0) / 120**0.5
    assert ((drawn.mean(0) - expected).abs() <= 5 * error + 1e-12).all()


@torch.no_grad()
def test_with_one_walk_states_are_those_along_a_path():
    """On a ring a node hears one other: a walk is certain, in training too."""
    ring = edges((0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 0))
    model = model_of(walks=1, length=3)
    torch.testing.assert_close(model(X, ring), model.eval()(X, ring))


def test_walks_are_drawn_anew_and_follow_the_seed():
    model = model_of()
    torch.manual_seed(5)
    first, second = model(X, GRAPH), model(X, GRAPH)
    torch.manual_seed(5)
    assert torch.equal(model(X, GRAPH), first)
    assert not torch.equal(first, second)


def test_length_one_is_no_walk():
    model = model_of(length=1)
    torch.testing.assert_close(model(X, GRAPH), model(X, GRAPH[:, :0]))


def test_gradients_while_training():
    model = model_of(walks=2)

    def outputs(x):
        torch.manual_seed(0)  # the same walks
        return model(x, GRAPH)

    assert torch.autograd.gradcheck(outputs, X.clone().requires_grad_())


def test_learned_edge_weights_need_the_expectation():
    weight = torch.ones(8, dtype=torch.float64, requires_grad=True)
    with pytest.raises(ValueError, match="requires a gradient, but random walks have none"):
        model_of()(X, GRAPH, weight)
    assert torch.autograd.grad(model_of().eval()(X, GRAPH, weight).sum(), weight)[0].any()


class StopAt(Callback):
    def __init__(self, step):
        self.step, self.seen = step, 0

    def on_step(self, trainer):
        self.seen += 1
        if self.seen == self.step:
            trainer.request_stop()


def test_a_run_follows_its_seed_and_goes_on_exactly(tmp_path):
    settings = {
        "task": {"name": "graph-transfer", "topology": "crossed_ring", "distance": 3}
        | {"train": 6, "val": 3, "test": 3},
        "model": {"name": "pathgcn", "hidden_channels": 4, "num_layers": 2},
        "loop": {"max_epochs": 3, "batch_size": 3},
    }
    before = torch.get_rng_state()
    whole = adgn.train(settings, run_dir=tmp_path / "whole")
    assert torch.equal(torch.get_rng_state(), before)
    with pytest.raises(Interrupted):
        adgn.train(settings, run_dir=tmp_path / "run", callbacks=[StopAt(3)])
    assert resume(tmp_path / "run").scores == whole.scores
    best = [(tmp_path / name / "best.safetensors").read_bytes() for name in ("run", "whole")]
    assert best[0] == best[1]
    assert adgn.train(settings, seed=1).scores != whole.scores
