"""PDE-GCN against dense equations: heat, leapfrog and its energy, the learned mixture."""

import itertools

import pytest
import torch

from adgn.graph import graph_operator
from adgn.nn import build_model
from tests.graphs import edges

PAIRS = edges((0, 1), (1, 2), (2, 3), (3, 0), (0, 2), (4, 2))
GRAPH = torch.cat([PAIRS, PAIRS.flip(0)], 1)
X = torch.randn(5, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(4))


def pdegcn(equation, num_layers, **options):
    settings = {"encoder": "none", "readout": "none", "equation": equation, **options}
    return build_model("pdegcn", 3, 3, 3, num_layers, **settings).double()


def laplacian():
    """Of the weights 1 / √(d_u d_v)."""
    weight = graph_operator(GRAPH, num_nodes=5, normalization="sym", like=X).to_dense()
    return torch.diag(weight.sum(1)) - weight


def test_fluxes_are_those_of_each_edge_once():
    """Gᵀ Kᵀ σ(K G X) with a dense G, one row per pair: tanh is odd, so orientation is nothing."""
    torch.manual_seed(0)
    weight = torch.randn(3, 3, dtype=torch.float64)
    physics = pdegcn("parabolic", 1).propagation
    operator = physics.prepared(X, GRAPH)
    gradient = torch.zeros(6, 5, dtype=torch.float64)
    rows = torch.arange(6)
    gradient[rows, PAIRS[0]], gradient[rows, PAIRS[1]] = 1, -1
    strength = operator.to_dense()[PAIRS[0], PAIRS[1]].unsqueeze(-1)
    flux = strength * torch.tanh(gradient @ X @ weight.T)
    expected = gradient.T @ flux @ weight
    torch.testing.assert_close(physics.divergence(X, operator, weight), expected)


@pytest.mark.parametrize("act", ["tanh", "relu", "gelu"])
@pytest.mark.parametrize("graph", [GRAPH, PAIRS], ids=["undirected", "directed"])
def test_what_one_node_loses_another_gains(graph, act):
    model = pdegcn("parabolic", 6, act=act)
    torch.nn.init.normal_(model.propagation.weight)
    out = model(X, graph)
    assert (out - X).abs().max() > 0.01
    torch.testing.assert_close(out.sum(0), X.sum(0))


def test_the_linear_heat_equation():
    step = torch.eye(5, dtype=torch.float64) - 0.1 * laplacian()
    expected = torch.linalg.matrix_power(step, 7) @ X
    torch.testing.assert_close(pdegcn("parabolic", 7, act=None)(X, GRAPH), expected)


@torch.no_grad()
def test_the_linear_wave_equation_keeps_its_discrete_energy():
    matrix = laplacian()
    largest = float(torch.linalg.eigvalsh(matrix).max())

    def energies(h, steps, equation="hyperbolic"):
        states = pdegcn(equation, steps, act=None, epsilon=h).propagation.trajectory(X, GRAPH)
        pairs = itertools.pairwise(states)
        return torch.stack(
            [((b - a) / h).square().sum() + (b * (matrix @ a)).sum() for a, b in pairs]
        )

    stable = energies(1.9 / largest**0.5, 500)  # h² λ < 4
    torch.testing.assert_close(stable, torch.full_like(stable, float(stable[0])), rtol=1e-9, atol=0)
    states = pdegcn("hyperbolic", 500, act=None, epsilon=2.1 / largest**0.5)(X, GRAPH)
    assert states.abs().max() > 1e6  # beyond the limit waves grow without bound
    assert energies(0.3, 500, "mixed")[-1] < 0.01 * energies(0.3, 1)[0]


def test_the_mixture_lies_between_both():
    matrix, h = laplacian(), 0.1
    model = pdegcn("mixed", 2, act=None, epsilon=h)
    with torch.no_grad():
        model.propagation.mixture.fill_(0.8)
    share = float(torch.tensor(0.8, dtype=torch.float64).sigmoid())
    second, first = share / h**2, (1 - share) / h
    before = x = X
    for _ in range(2):
        after = ((2 * second + first) * x - second * before - matrix @ x) / (first + second)
        before, x = x, after
    torch.testing.assert_close(model(X, GRAPH), x)
    for number, equation in ((-60.0, "parabolic"), (60.0, "hyperbolic")):
        with torch.no_grad():
            model.propagation.mixture.fill_(number)
        torch.testing.assert_close(model(X, GRAPH), pdegcn(equation, 2, act=None)(X, GRAPH))
