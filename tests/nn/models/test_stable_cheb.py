"""Chebyshev aggregations against PyG's, and the imaginary spectrum of Stable-ChebNet."""

import pytest
import torch
import torch_geometric.nn as pyg

from adgn.nn import build_model
from adgn.nn.aggregation import ChebAggregation
from tests.graphs import edges

PAIRS = edges((0, 1), (1, 2), (2, 3), (3, 0), (0, 2), (4, 2))
UNDIRECTED = torch.cat([PAIRS, PAIRS.flip(0)], 1)
X = torch.randn(6, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(4))  # 5 is alone


@pytest.mark.parametrize("degree", [1, 2, 5])
def test_the_aggregation_is_pygs_without_the_constant_term(degree):
    torch.manual_seed(0)
    ours = ChebAggregation(3, degree=degree).double()
    theirs = pyg.ChebConv(3, 3, degree + 1, bias=False).double()
    torch.nn.init.zeros_(theirs.lins[0].weight)
    for lin, weight in zip(theirs.lins[1:], ours.weight, strict=True):
        lin.weight.data.copy_(weight.detach())
    weight = torch.linspace(0.5, 1.5, 6, dtype=torch.float64).repeat(2)
    for given in ((), (weight,)):
        # PyG's scaled Laplacian of a node without edges is −1 and not 0: it is left out.
        out, expected = ours(X, UNDIRECTED, *given), theirs(X, UNDIRECTED, *given)
        torch.testing.assert_close(out[:5], expected[:5], rtol=1e-10, atol=1e-12)


def stable_cheb(num_layers=1, **options):
    torch.manual_seed(1)
    settings = {"encoder": "none", "readout": "none", "epsilon": 0.1, "degree": 3, **options}
    return build_model("stable-cheb", 3, 3, 3, num_layers, **settings).double()


def jacobian(model, graph):
    """Of the right-hand side: that of a step without the first states, by the step size."""
    full = torch.autograd.functional.jacobian(lambda x: model(x, graph), X).reshape(18, 18)
    return (full - torch.eye(18, dtype=torch.float64)) / 0.1


def test_a_step_is_the_sum_of_dense_polynomials():
    model = stable_cheb(gamma=0.2)
    layer = model.propagation.layers[0]
    adjacency = torch.zeros(6, 6, dtype=torch.float64).index_put(
        (UNDIRECTED[1], UNDIRECTED[0]), torch.ones(12, dtype=torch.float64)
    )
    scale = torch.where(adjacency.sum(1) == 0, 0.0, adjacency.sum(1).rsqrt())
    laplacian = -scale[:, None] * adjacency * scale
    values, vectors = torch.linalg.eigh(laplacian)
    h = layer.bias - 0.2 * X
    for k, w in enumerate([layer.W, *layer.phi.weight]):  # T_k(cos θ) = cos(k θ)
        cheb = vectors @ torch.diag(torch.cos(k * torch.acos(values.clamp(-1, 1)))) @ vectors.T
        h = h + cheb @ X @ (w - w.T).T
    torch.testing.assert_close(model(X, UNDIRECTED), X + 0.1 * torch.tanh(h))


@pytest.mark.parametrize("direction", ["in", "undirected"])
def test_the_spectrum_is_imaginary(direction):
    graph = UNDIRECTED if direction == "in" else PAIRS
    k = jacobian(stable_cheb(act=None, direction=direction), graph)
    assert k.abs().max() > 0.1
    torch.testing.assert_close(k, -k.T, rtol=0, atol=1e-12)
    assert torch.linalg.eigvals(k).real.abs().max() < 1e-12


@pytest.mark.parametrize("dropped", ["weights", "undirected", "gamma"])
def test_without_its_structure_it_is_not(dropped):
    options = {"gamma": 0.3} if dropped == "gamma" else {}
    model = stable_cheb(act=None, **options)
    model.propagation.layers[0].phi.antisymmetric = dropped != "weights"
    k = jacobian(model, PAIRS if dropped == "undirected" else UNDIRECTED)
    assert torch.linalg.eigvals(k).real.abs().max() > 0.01


def test_gamma_in_all_terms_would_amplify():
    """Σ T_k for k ≤ 3 is negative at some frequencies; ours is −γ at all of them."""
    ours = torch.linalg.eigvals(jacobian(stable_cheb(act=None, gamma=0.3), UNDIRECTED)).real
    torch.testing.assert_close(ours, torch.full_like(ours, -0.3), rtol=0, atol=1e-10)
    theta = torch.linspace(0, torch.pi, 200)
    assert sum(torch.cos(k * theta) for k in range(4)).min() < -0.3


def test_midpoint_keeps_the_norm():
    options = {"act": None, "bias": False, "epsilon": 0.3, "integrator": "implicit-midpoint"}
    with torch.no_grad():
        last = stable_cheb(100, **options)(X, UNDIRECTED)
    torch.testing.assert_close(last.norm(), X.norm(), rtol=1e-9, atol=0)


def test_wrong_degrees():
    with pytest.raises(ValueError, match="degree=0 is not valid for stable-cheb"):
        stable_cheb(degree=0)
    with pytest.raises(ValueError, match="degree=0"):
        ChebAggregation(3, degree=0)
