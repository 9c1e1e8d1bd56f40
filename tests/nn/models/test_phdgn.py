"""PH-DGN: gradients of the energy, symplectic steps, and what damping takes away."""

import pytest
import torch

from adgn.nn import build_model
from tests.graphs import edges

DIRECTED = edges((0, 1), (1, 2), (3, 2), (3, 3), (0, 1), (2, 0))
UNDIRECTED = torch.cat([DIRECTED, DIRECTED.flip(0)], 1)
X = torch.randn(4, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(4))
GRAPHS = pytest.mark.parametrize("graph", [UNDIRECTED, DIRECTED], ids=["undirected", "directed"])


def phdgn(num_layers=1, **options):
    torch.manual_seed(2)
    settings = {"encoder": "none", "readout": "none", "start": "split", **options}
    return build_model("phdgn", 4, 4, 4, num_layers, **settings).double()


@GRAPHS
@pytest.mark.parametrize("phi", ["sum", "gcn"])
def test_the_gradient_of_the_energy_is_autograds(phi, graph):
    physics = phdgn(phi=phi).propagation
    operator = physics.operator(X, graph)
    for half in (physics.kinetic, physics.potential):
        x = X[:, :2].clone().requires_grad_()
        (expected,) = torch.autograd.grad(half.energy(x, operator).sum(), x)
        torch.testing.assert_close(half(x, operator), expected, rtol=1e-12, atol=1e-13)


def test_with_the_operator_in_place_of_its_transpose_it_is_not():
    """That would be the gradient on symmetric graphs only."""
    half = phdgn().propagation.kinetic
    for graph, same in ((UNDIRECTED, True), (DIRECTED, False)):
        operator = phdgn().propagation.operator(X, graph)
        x = X[:, :2]
        slope = half.inner(x, operator).tanh()
        wrong = slope @ half.W + operator @ (slope @ half.V)
        assert torch.allclose(wrong, half(x, operator)) == same


def test_the_energy_is_log_cosh():
    physics = phdgn().propagation
    operator = physics.operator(X, DIRECTED).to_dense()
    p, q = X.tensor_split(2, dim=-1)
    expected = torch.zeros(4, dtype=torch.float64)
    for half, x in ((physics.kinetic, p), (physics.potential, q)):
        a = x @ half.W.T + operator @ x @ half.V.T + half.bias
        expected += a.cosh().log().sum(-1)
    torch.testing.assert_close(physics.energy(X, DIRECTED), expected)
    assert physics.energy(1e4 * X, DIRECTED).isfinite().all()


def defect(model, graph) -> float:
    """How far JᵀΩJ is from Ω for the Jacobian J of all steps."""
    jacobian = torch.autograd.functional.jacobian(lambda x: model(x, graph), X).reshape(16, 16)
    omega = torch.zeros(4, 4, dtype=torch.float64)
    omega[:2, 2:], omega[2:, :2] = torch.eye(2), -torch.eye(2)
    omega = torch.block_diag(*[omega] * 4)
    return float((jacobian.T @ omega @ jacobian - omega).abs().max())


@GRAPHS
def test_conservative_steps_are_symplectic(graph):
    assert defect(phdgn(5, epsilon=0.3), graph) < 1e-12


@pytest.mark.parametrize("options", [{"damping": "constant"}, {"forcing": "mlp"}], ids=str)
def test_driven_steps_are_not_symplectic(options):
    assert defect(phdgn(5, epsilon=0.3, **options), DIRECTED) > 1e-2


@torch.no_grad()
def energies(model, graph, steps):
    physics = model.propagation
    operator = physics.operator(X, graph)
    path = physics.steps(physics.pairs(X), operator, 0, steps)
    return torch.stack([physics.energy(pairs, operator).sum() for pairs in (X, *path)])


@torch.no_grad()
def test_the_energy_stays_near_its_first_value_over_many_steps():
    """The drift of 2 000 steps is that of 200, and falls with the step size."""
    drifts = []
    for epsilon in (0.1, 0.05):
        path = energies(phdgn(epsilon=epsilon), DIRECTED, 2000)
        drift = (path / path[0] - 1).abs()
        assert drift[200:].max() < 1.5 * drift[:200].max()
        drifts.append(float(drift.max()))
    assert drifts[0] < 0.2
    assert drifts[1] < 0.6 * drifts[0]


@torch.no_grad()
def test_explicit_euler_gains_energy_where_symplectic_euler_does_not():
    model = phdgn(epsilon=0.1)
    physics = model.propagation
    operator = physics.operator(X, DIRECTED)
    p, q = X.tensor_split(2, dim=-1)
    for _ in range(2000):
        p, q = (
            p - 0.1 * physics.potential(q, operator),
            q + 0.1 * physics.kinetic(p, operator),
        )
    gained = (
        physics.energy(torch.cat([p, q], -1), DIRECTED).sum() / physics.energy(X, DIRECTED).sum()
    )
    assert gained > 2


@torch.no_grad()
@pytest.mark.parametrize("kind", ["constant", "mlp", "graph"])
def test_damping_is_never_negative_and_takes_energy_out(kind):
    model = phdgn(damping=kind, epsilon=0.02)
    physics = model.propagation
    assert (physics.damping(10 * X[:, :2], physics.operator(X, DIRECTED)) >= 0).all()
    if kind == "constant":
        damped, free = energies(model, DIRECTED, 500), energies(phdgn(epsilon=0.02), DIRECTED, 500)
        assert damped[-1] < 0.8 * free[-1]


def test_what_is_read():
    both = phdgn(3)(X, DIRECTED)
    torch.testing.assert_close(both, phdgn(3).propagation.trajectory(X, DIRECTED)[-1])
    p = phdgn(3, start="doubled", read="p")(X, DIRECTED)
    q = phdgn(3, start="doubled", read="q")(X, DIRECTED)
    assert p.shape == q.shape == both.shape == (4, 4)
    assert not torch.allclose(p, q)


def test_split_states_need_an_even_size():
    with pytest.raises(ValueError, match=r"start='split' needs an even number.*hidden_channels=3"):
        build_model("phdgn", 3, 3, 2, 2, start="split")


def test_checkpoints_change_nothing():
    grads = []
    for memory in ("full", "checkpoint"):
        model = phdgn(7, memory=memory, damping="mlp", forcing="graph")
        model(X, DIRECTED).sin().sum().backward()
        grads.append([p.grad for p in model.parameters()])
    torch.testing.assert_close(*grads)


def test_time_moves_the_push():
    physics = phdgn(forcing="mlp").propagation
    operator = physics.operator(X, DIRECTED)
    first, later = (physics.forcing(X[:, :2], time, operator) for time in (0.0, 1.0))
    assert (first - later).abs().max() > 0.01
