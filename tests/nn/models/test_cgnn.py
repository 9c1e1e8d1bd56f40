"""CGNN against the closed form of its linear equation."""

import pytest
import torch

from adgn.graph import graph_operator
from adgn.nn import build_model

X = torch.randn(7, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(4))


def cgnn(num_layers, **options):
    torch.manual_seed(1)
    settings = {"encoder": "none", "readout": "none", **options}
    return build_model("cgnn", 3, 3, 3, num_layers, **settings).double()


@torch.no_grad()
@pytest.mark.parametrize("weighted", [False, True])
def test_the_states_are_the_exponential_of_the_whole_equation(graph, weighted):
    """vec X(t) = e^{tK} vec X⁰ + ∫ e^{sK} ds vec X⁰, by the exponential of one larger matrix."""
    model = cgnn(40, epsilon=0.05, weighted=weighted)
    physics = model.propagation
    operator = graph_operator(graph.edge_index, num_nodes=7, normalization="gcn", like=X).to_dense()
    half = torch.diag(physics.a.sigmoid() / 2)
    eye, own = torch.eye(7).double(), physics.mixing() - torch.eye(3).double()
    k = torch.kron(operator - eye, half) + torch.kron(eye, own)
    whole = torch.zeros(42, 42, dtype=torch.float64)
    whole[:21, :21], whole[:21, 21:] = k, torch.eye(21)
    both = torch.linalg.matrix_exp(2.0 * whole) @ torch.cat([X.flatten(), X.flatten()])
    expected = both[:21].view(7, 3)
    torch.testing.assert_close(model(X, graph.edge_index), expected, rtol=1e-6, atol=1e-7)
    without_source = (torch.linalg.matrix_exp(2.0 * k) @ X.flatten()).view(7, 3)
    assert (expected - without_source).abs().max() > 0.5


def test_mixing_is_symmetric_with_eigenvalues_between_0_and_1():
    physics = cgnn(1).propagation
    torch.nn.init.normal_(physics.m, std=3)
    mixing = physics.mixing()
    torch.testing.assert_close(mixing, mixing.T)
    values = torch.linalg.eigvalsh(mixing)
    assert values.min() > -1e-12
    assert values.max() < 1 + 1e-12
    expected = physics.m.clamp(0, 1).sort().values
    torch.testing.assert_close(values, expected, rtol=0, atol=1e-10)


def test_checkpoints_change_nothing(graph):
    grads = []
    for memory in ("full", "checkpoint"):
        model = cgnn(7, memory=memory)
        model(X, graph.edge_index).sin().sum().backward()
        grads.append([p.grad for p in model.parameters()])
    torch.testing.assert_close(*grads)
