"""GPRGNN: a polynomial in a dense matrix, how its weights begin, and that they do not decay."""

import pytest
import torch

import adgn
from adgn.nn import build_model
from adgn.nn.models.gprgnn import starting_weights
from adgn.training.config import OptimizerConfig
from adgn.training.objective import build_optimizer
from tests.graphs import edges

GRAPH = edges((0, 1), (1, 0), (1, 2), (2, 3), (3, 0), (2, 2), (0, 1), (4, 2))
X = torch.randn(6, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(4))


def dense_gcn():
    """Node 2 has a self loop, edge 0 → 1 is there twice, node 5 is alone."""
    looped = torch.eye(6, dtype=torch.float64)
    for source, target in GRAPH.t().tolist():
        if source != target:
            looped[target, source] += 1
    scale = looped.sum(1).rsqrt()
    return scale[:, None] * looped * scale


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"alpha": 1.0},
        {"alpha": 0.0},
        {"start": "nppr", "alpha": -0.7},
        {"start": "sgc"},
        {"start": "random"},
    ],
)
def test_it_is_a_polynomial_in_the_dense_operator(options):
    torch.manual_seed(0)
    model = build_model("gprgnn", 3, 4, 2, 5, **options).double()
    hidden = (X @ model.encoder.weight.T + model.encoder.bias).clamp(min=0)
    gamma = model.propagation.gamma
    polynomial = sum(g * torch.linalg.matrix_power(dense_gcn(), k) for k, g in enumerate(gamma))
    expected = polynomial @ hidden @ model.readout.weight.T + model.readout.bias
    torch.testing.assert_close(model(X, GRAPH), expected)


@pytest.mark.parametrize(
    ("start", "alpha", "gamma"),
    [
        ("ppr", 0.2, [0.2, 0.16, 0.128, 0.512]),
        ("ppr", 0.9, [0.9, 0.09, 0.009, 0.001]),
        ("ppr", 1.0, [1.0, 0.0, 0.0, 0.0]),
        ("ppr", 0.0, [0.0, 0.0, 0.0, 1.0]),
        ("nppr", 0.5, [8 / 15, 4 / 15, 2 / 15, 1 / 15]),
        ("nppr", -0.5, [8 / 15, -4 / 15, 2 / 15, -1 / 15]),
        ("nppr", 0.0, [1.0, 0.0, 0.0, 0.0]),
        ("sgc", 0.3, [0.0, 0.0, 0.0, 1.0]),
    ],
)
def test_how_the_weights_of_hops_begin(start, alpha, gamma):
    found = starting_weights(start, 3, alpha)
    torch.testing.assert_close(found, torch.tensor(gamma))
    model = build_model("gprgnn", 3, 4, 2, 3, start=start, alpha=alpha)
    assert torch.equal(model.propagation.gamma, found)


def test_random_weights_follow_the_seed_and_have_sizes_that_sum_to_one():
    torch.manual_seed(3)
    first = starting_weights("random", 10, 0.1)
    torch.manual_seed(3)
    assert torch.equal(starting_weights("random", 10, 0.1), first)
    assert float(first.abs().sum()) == pytest.approx(1)
    assert (first < 0).any() and (first > 0).any()


def test_appnp_is_how_it_begins():
    """Σ α (1 − α)^k Â^k + (1 − α)^K Â^K is K steps of APPNP."""
    ours = build_model("gprgnn", 3, 4, 2, 7, alpha=0.2).double()
    appnp = build_model("appnp", 3, 4, 2, 7, alpha=0.2).double()
    state = ours.state_dict()
    del state["propagation.gamma"]
    appnp.load_state_dict(state)
    torch.testing.assert_close(ours(X, GRAPH), appnp(X, GRAPH), rtol=1e-6, atol=1e-6)


def test_the_weights_of_hops_do_not_decay():
    model = build_model("gprgnn", 3, 4, 2, 3)
    config = OptimizerConfig(name="sgd", lr=0.5, weight_decay=0.1)
    optimizer = build_optimizer(model.parameters(), config, model.undecayed_parameters())
    assert [group["weight_decay"] for group in optimizer.param_groups] == [0.1, 0.0]
    before = {name: weight.detach().clone() for name, weight in model.named_parameters()}
    for weight in model.parameters():
        weight.grad = torch.zeros_like(weight)
    optimizer.step()
    for name, weight in model.named_parameters():
        share = 1.0 if name == "propagation.gamma" else 0.95
        torch.testing.assert_close(weight.detach(), share * before[name])


def test_a_run_keeps_them_from_decaying():
    """With a decay so strong that all else is near zero after a few steps."""
    result = adgn.train(
        "graph-transfer",
        task={"distance": 2, "train": 4, "val": 2, "test": 2},
        model={"name": "gprgnn", "hidden_channels": 4, "num_layers": 3, "alpha": 0.5},
        optimizer={"name": "sgd", "lr": 1e-2, "weight_decay": 90.0, "momentum": 0.0},
        loop={"max_epochs": 6},
    )
    model = result.model.eval()
    assert model.encoder.weight.abs().max() < 1e-3
    torch.testing.assert_close(
        model.propagation.gamma.detach().cpu(),
        torch.tensor([0.5, 0.25, 0.125, 0.125]),
        atol=0.05,
        rtol=0,
    )


def test_dropping_what_is_propagated():
    torch.manual_seed(0)
    model = build_model("gprgnn", 3, 64, 2, 1, alpha=1.0, propagation_dropout=0.5)
    x = torch.rand(40, 3)
    states = model.states(x, torch.empty(2, 0, dtype=torch.long))
    hidden = model.encode(x).clamp(min=0)
    kept = states != 0
    torch.testing.assert_close(states[kept], 2 * hidden[kept])
    assert 0.4 < float(kept.sum() / (hidden != 0).sum()) < 0.6
    torch.testing.assert_close(model.eval().states(x, torch.empty(2, 0).long()), hidden)


def test_alpha_is_a_probability_of_ppr():
    with pytest.raises(ValueError, match=r"alpha=-0.5 with start='ppr' is not valid"):
        build_model("gprgnn", 3, 4, 2, 3, alpha=-0.5)
    with pytest.raises(ValueError, match=r"alpha=2.0 is not valid for gprgnn"):
        build_model("gprgnn", 3, 4, 2, 3, alpha=2.0)
