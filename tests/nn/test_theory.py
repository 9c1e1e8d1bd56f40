"""The paper's propositions, on the update as it is implemented."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from adgn.nn import AntiSymmetricConv
from tests.graphs import Example, graphs

ACTIVATIONS = ["tanh", "sigmoid", "softplus", "relu", "identity"]


def without_loops(graph: Example) -> Example:
    keep = graph.edge_index[0] != graph.edge_index[1]
    weight = None if graph.edge_weight is None else graph.edge_weight[keep]
    return Example(graph.num_nodes, graph.edge_index[:, keep], weight)


def own_jacobian(layer: AntiSymmetricConv, graph: Example, x: Tensor, node: int) -> Tensor:
    """The derivative of one discrete step of `node` in its own state, [d, d]."""

    def step(state: Tensor) -> Tensor:
        states = torch.cat([x[:node], state.unsqueeze(0), x[node + 1 :]])
        return layer(states, graph.edge_index, graph.edge_weight)[node]

    return torch.autograd.functional.jacobian(step, x[node])


def right_hand_side(layer: AntiSymmetricConv, step: Tensor) -> Tensor:
    """The Jacobian of the ODE's right-hand side from that of one Euler step."""
    return (step - torch.eye(len(step), dtype=step.dtype)) / layer.epsilon


@pytest.mark.parametrize("act", ACTIVATIONS)
@given(graph=graphs(max_nodes=4), channels=st.integers(1, 8), seed=st.integers(0, 2**16))
def test_eigenvalues_are_imaginary_for_sum_without_diffusion(act, graph, channels, seed):
    torch.manual_seed(seed)
    graph = without_loops(graph)
    layer = AntiSymmetricConv(channels, "sum", gamma=0.0, epsilon=1.0, act=act).double()
    x = graph.features(channels, seed=seed)
    J = right_hand_side(layer, own_jacobian(layer, graph, x, 0))
    assert torch.linalg.eigvals(J).real.abs().max() < 1e-6


@pytest.mark.parametrize("act", ["tanh", "sigmoid", "softplus", "identity"])
@given(
    graph=graphs(max_nodes=4),
    channels=st.integers(1, 8),
    gamma=st.floats(0.01, 2.0),
    seed=st.integers(0, 2**16),
)
def test_diffusion_makes_the_discrete_step_stable(act, graph, channels, gamma, seed):
    torch.manual_seed(seed)
    graph = without_loops(graph)
    layer = AntiSymmetricConv(channels, "sum", gamma=gamma, epsilon=1.0, act=act).double()
    x = graph.features(channels, seed=seed)
    J = right_hand_side(layer, own_jacobian(layer, graph, x, 0))
    eigenvalues = torch.linalg.eigvals(J)
    # J = D (B − γI), D = diag(σ') and B anti-symmetric: for an eigenpair (λ, v),
    # Re λ · v*D⁻¹v = −γ v*v, so −γ max σ' ≤ Re λ ≤ −γ min σ'.
    slopes = -J.diagonal() / gamma
    assert (eigenvalues.real <= -gamma * slopes.min() + 1e-9).all()
    assert (eigenvalues.real >= -gamma * slopes.max() - 1e-9).all()
    # |1 + ελ| ≤ 1 exactly if ε ≤ −2 Re λ / |λ|².
    layer.epsilon = float((-2 * eigenvalues.real / eigenvalues.abs().square()).min()) * (1 - 1e-6)
    growth = torch.linalg.eigvals(own_jacobian(layer, graph, x, 0)).abs()
    assert growth.max() <= 1 + 1e-9
    layer.epsilon *= 1.01
    growth = torch.linalg.eigvals(own_jacobian(layer, graph, x, 0)).abs()
    assert growth.max() > 1


@given(graph=graphs(max_nodes=4, weighted=False), seed=st.integers(0, 2**16))
def test_gcn_stays_within_the_bauer_fike_radius_of_the_axis(graph, seed):
    torch.manual_seed(seed)
    layer = AntiSymmetricConv(4, "gcn", gamma=0.0, epsilon=1.0, act="identity").double()
    J = right_hand_side(layer, own_jacobian(layer, graph, graph.features(4), 0))
    kept = [source for source, _ in graph.neighbours(0) if source != 0]
    radius = torch.linalg.matrix_norm(layer.phi.lin.weight, 2) / (1 + len(kept))
    assert torch.linalg.eigvals(J).real.abs().max() <= radius + 1e-9


@given(
    graph=graphs(max_nodes=4, weighted=False),
    gamma=st.floats(0.0, 2.0),
    seed=st.integers(0, 2**16),
)
def test_gcn_stays_within_the_radius_of_what_diffusion_makes_of_the_axis(graph, gamma, seed):
    torch.manual_seed(seed)
    layer = AntiSymmetricConv(4, "gcn", gamma=gamma, epsilon=1.0, act="tanh").double()
    x = graph.features(4, seed=seed)
    J = right_hand_side(layer, own_jacobian(layer, graph, x, 0))
    layer.act = None
    before = layer(x, graph.edge_index, graph.edge_weight)[0] - x[0]
    slopes = 1 - before.detach().tanh().square()
    kept = [source for source, _ in graph.neighbours(0) if source != 0]
    own = torch.linalg.matrix_norm(layer.phi.lin.weight, 2) / (1 + len(kept))
    # Re λ · v*D⁻¹v = −γ v*v + Re v*Cv for an eigenpair (λ, v), with D = diag(σ').
    real = torch.linalg.eigvals(J).real
    assert (real <= -gamma * slopes.min() + own * slopes.max() + 1e-9).all()
    assert (real >= -gamma * slopes.max() - own * slopes.max() - 1e-9).all()


def test_the_interval_of_sum_does_not_hold_for_gcn():
    """V = 3I and a lonely node: C = V, and the real parts are 3 − γ."""
    layer = AntiSymmetricConv(2, "gcn", gamma=0.5, epsilon=1.0, act="identity").double()
    with torch.no_grad():
        layer.phi.lin.weight.copy_(3 * torch.eye(2))
    graph = Example(1, torch.empty(2, 0, dtype=torch.long), None)
    J = right_hand_side(layer, own_jacobian(layer, graph, torch.ones(1, 2).double(), 0))
    torch.testing.assert_close(torch.linalg.eigvals(J).real, torch.full((2,), 2.5).double())


def test_the_check_can_fail():
    """Without the anti-symmetry the eigenvalues leave the imaginary axis."""

    class Unconstrained(AntiSymmetricConv):
        def w_self(self):
            return self.W

    torch.manual_seed(0)
    graph = Example(2, torch.tensor([[0, 1], [1, 0]]))
    layer = Unconstrained(4, "sum", gamma=0.0, epsilon=1.0).double()
    J = right_hand_side(layer, own_jacobian(layer, graph, graph.features(4), 0))
    assert torch.linalg.eigvals(J).real.abs().max() > 1e-2
