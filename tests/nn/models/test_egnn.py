"""EGNN against its recursion, and the bounds of its Dirichlet energy."""

import itertools

import pytest
import torch

from adgn.graph import graph_operator
from adgn.nn import build_model
from tests.graphs import edges

PAIRS = edges((0, 1), (1, 2), (2, 3), (3, 0), (0, 2), (4, 2))
GRAPH = torch.cat([PAIRS, PAIRS.flip(0)], 1)
X = torch.randn(5, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(4))


def egnn(num_layers, **options):
    settings = {"encoder": "none", "readout": "none", **options}
    return build_model("egnn", 3, 3, 3, num_layers, **settings).double()


def dense(graph=GRAPH):
    return graph_operator(graph, num_nodes=5, normalization="gcn", like=X).to_dense()


def energy(x, operator):
    """Tr(Xᵀ (I − Â) X)."""
    return float((x * (x - operator @ x)).sum())


def test_layers_are_the_equation():
    model = egnn(3, c_min=0.3, beta=0.1)
    torch.manual_seed(0)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter)
    x, operator = X, dense()
    for weight, b in zip(model.propagation.weight, model.propagation.b, strict=True):
        mixed = 0.7 * operator @ x + 0.2 * x + 0.1 * X
        x = torch.maximum(mixed @ weight, b)
    torch.testing.assert_close(model(X, GRAPH), x)


def test_it_begins_as_a_linear_recursion_with_the_first_layer_scaled():
    operator = dense()
    step = 0.8 * operator + 0.1 * torch.eye(5, dtype=torch.float64)
    x = 0.25**0.5 * (step @ X + 0.1 * X)
    x = step @ x + 0.1 * X
    torch.testing.assert_close(egnn(2, c_max=0.25)(X, GRAPH), x)


@torch.no_grad()
def test_the_energy_stays_between_its_bounds_at_any_depth():
    """For W = I: an upper bound by the first energy; from layer to layer at least c_min² of it
    where no eigenvalue of Â is negative, as here with self loops of weight 5.
    """
    loops = torch.arange(5).repeat(2, 1)
    graph = torch.cat([GRAPH, loops], 1)
    weight = torch.cat([torch.ones(12), torch.full((5,), 5.0)]).double()
    operator = graph_operator(graph, weight, num_nodes=5, normalization="gcn", like=X).to_dense()
    assert torch.linalg.eigvalsh(operator).min() > 0
    states = egnn(64).propagation.trajectory(X, graph, weight)
    energies = [energy(x, operator) for x in states]
    assert all(value <= energies[0] * (1 + 1e-12) for value in energies)
    assert all(b >= 0.2**2 * a for a, b in itertools.pairwise(energies))
    assert energies[-1] > 1e-3 * energies[0]


@torch.no_grad()
def test_without_the_first_states_it_smooths_everything_away():
    operator = dense()
    kept, lost = egnn(64), egnn(64, beta=0.0)
    assert energy(kept(X, GRAPH), operator) > 1e-3 * energy(X, operator)
    assert energy(lost(X, GRAPH), operator) < 1e-6 * energy(X, operator)


def test_the_penalty_is_the_distance_from_the_start():
    model = egnn(3)
    assert model.propagation.penalty() == 0
    model.propagation.penalty().backward()
    assert model.propagation.weight.grad.isfinite().all()
    with torch.no_grad():
        model.propagation.weight[1, 0, 0] += 3
        model.propagation.weight[2, 0, 1] -= 4
    assert model.propagation.penalty().item() == pytest.approx(7)


def test_beta_is_a_part_of_c_min():
    with pytest.raises(ValueError, match=r"beta=0.5 is more than c_min=0.2"):
        egnn(2, beta=0.5)
