import networkx as nx
import pytest
import torch

from adgn.nn import build_model
from adgn.nn.models.sonar import SONAROptions, WavePropagation

GRAPH = nx.connected_watts_strogatz_graph(12, 4, 0.3, seed=1)
EDGES = torch.tensor(list(GRAPH.to_directed().edges)).t()


def dense(kind):
    adjacency = torch.zeros(12, 12, dtype=torch.float64).index_put(
        (EDGES[1], EDGES[0]), torch.ones(EDGES.size(1), dtype=torch.float64)
    )
    degree = adjacency.sum(1)
    if kind == "none":
        return torch.diag(degree) - adjacency
    one = torch.eye(12, dtype=torch.float64)
    if kind == "rw":
        return one - adjacency / degree[:, None]
    return one - adjacency / (degree[:, None] * degree).sqrt()


def wave(steps, channels=3, **options):
    torch.manual_seed(4)
    return WavePropagation(channels, steps, SONAROptions(**options)).double()


def with_unit_speeds(propagation):
    with torch.no_grad():
        propagation.weight.copy_(torch.eye(3, dtype=torch.float64))
    return propagation


@pytest.fixture
def states():
    return torch.randn(12, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("kind", ["none", "sym"])
@pytest.mark.parametrize("steps", [1, 2, 7, 30])
def test_the_response_has_a_closed_form(states, kind, steps):
    """W = I from rest: cos((ℓ + ½) θ) / cos(θ / 2) on each eigenspace, θ = 2 asin(ε √λ / 2)."""
    epsilon = 0.3
    values, vectors = torch.linalg.eigh(dense(kind))
    theta = 2 * torch.asin(epsilon * values.clamp(min=0).sqrt() / 2)
    response = torch.cos((steps + 0.5) * theta) / torch.cos(theta / 2)
    expected = vectors @ (response[:, None] * (vectors.t() @ states))
    model = with_unit_speeds(wave(steps, epsilon=epsilon, laplacian=kind))
    torch.testing.assert_close(model(states, EDGES), expected, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("kind", ["none", "sym", "rw"])
@pytest.mark.parametrize("weight", ["free", "symmetric", "positive"])
def test_a_step_is_its_formula(states, kind, weight):
    model = wave(2, laplacian=kind, weight=weight, velocity="linear")
    root = model.weight[0]
    speeds = {"free": root, "symmetric": (root + root.t()) / 2, "positive": root @ root.t()}[weight]
    x, v = states, model.velocity(states)
    for _ in range(2):
        v = v - 0.5 * dense(kind) @ x @ speeds.t()
        x = x + 0.5 * v
    torch.testing.assert_close(model(states, EDGES), x)
    torch.testing.assert_close(model.trajectory(states, EDGES)[-1], x)


def test_the_stability_limit(states):
    """ε² λ_max < 4: bounded over a thousand steps below it, an explosion above it."""
    largest = torch.linalg.eigvalsh(dense("none"))[-1]
    limit = float(2 / largest.sqrt())
    below = with_unit_speeds(wave(1000, laplacian="none", epsilon=0.99 * limit))
    above = with_unit_speeds(wave(1000, laplacian="none", epsilon=1.01 * limit))
    assert below(states, EDGES).abs().max() < 100
    assert above(states, EDGES).abs().max() > 1e6


@pytest.mark.parametrize("kind", ["none", "sym"])
@pytest.mark.parametrize("resistance", ["none", "block"])
def test_the_energy_is_kept(states, kind, resistance):
    model = wave(400, laplacian=kind, epsilon=0.2, resistance=resistance)
    pairs = [(states, torch.zeros_like(states)), *model.waves(states, EDGES)]
    if resistance == "block":  # its weights come from the first states, not from later ones
        model.resistance.register_forward_pre_hook(lambda _, args: (states, *args[1:]))
    exact = torch.stack([model.energy(x, v, EDGES, discrete=True) for x, v in pairs])
    plain = torch.stack([model.energy(x, v, EDGES) for x, v in pairs])
    torch.testing.assert_close(exact, exact[:1].expand(401), rtol=1e-10, atol=0)
    assert plain[0] > 0
    assert 1e-6 < ((plain - plain[0]).abs().max() / plain[0]) < 0.5


@pytest.mark.parametrize(
    "structure",
    [
        {"weight": "free"},  # W is not symmetric
        {"laplacian": "rw"},  # L is not symmetric
        {"damping": True},
        {"forcing": True},
        {"resistance": "step"},
    ],
    ids=str,
)
def test_the_energy_is_lost_without_the_structure(states, structure):
    model = wave(400, epsilon=0.2, **structure)
    pairs = model.waves(states, EDGES)
    energies = torch.stack([model.energy(x, v, EDGES, discrete=True) for x, v in pairs])
    assert (energies - energies[0]).abs().max() > 1e-3 * energies[0].abs()


def test_damping_only_takes_energy_away(states):
    model = wave(200, epsilon=0.02, damping=True)
    energies = [model.energy(x, v, EDGES).item() for x, v in model.waves(states, EDGES)]
    assert energies[-1] < energies[0]


def test_resistance_is_a_weighted_laplacian(states):
    model = wave(1, laplacian="none", resistance="block", weight="symmetric")
    row, col = EDGES[1], EDGES[0]
    weight = model.resistance(states, row, col)
    matrix = torch.zeros(12, 12, dtype=torch.float64).index_put((row, col), weight)
    torch.testing.assert_close(matrix, matrix.t())
    laplacian = torch.diag(matrix.sum(1)) - matrix
    expected = states - 0.25 * laplacian @ states @ model.speeds()[0].t()
    torch.testing.assert_close(model(states, EDGES), expected)


@pytest.mark.parametrize("kind", ["none", "sym", "rw"])
def test_equal_resistances_are_none(states, kind):
    """With weights of one all kinds of Laplacian are those of the graph."""
    learned, plain = wave(5, laplacian=kind, resistance="step"), wave(5, laplacian=kind)
    learned.weight.data.copy_(plain.weight)
    for linear in (learned.resistance.one, learned.resistance.other):
        torch.nn.init.zeros_(linear.weight)
    torch.nn.init.ones_(learned.resistance.one.bias)
    torch.nn.init.constant_(learned.resistance.out, 1 / 3)
    torch.testing.assert_close(learned(states, EDGES), plain(states, EDGES))


FULL = {"damping": True, "forcing": True, "velocity": "linear", "resistance": "step"}


@pytest.mark.parametrize("options", [{}, FULL, {"direction": "both", "resistance": "block"}])
def test_checkpoints_change_nothing(states, options):
    found = []
    for memory in ("full", "checkpoint"):
        model = wave(9, memory=memory, **options)
        out = model(states, EDGES)
        out.square().sum().backward()
        found.append([out, *(p.grad for p in model.parameters())])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("direction", ["out", "undirected", "both"])
def test_directions(states, direction):
    path = torch.tensor([[0, 1, 2], [1, 2, 3]])
    model = wave(1, direction=direction, laplacian="none", weight="free")
    adjacency = torch.zeros(12, 12, dtype=torch.float64).index_put(
        (path[1], path[0]), torch.ones(3, dtype=torch.float64)
    )
    turned = {
        "out": [adjacency.t()],
        "undirected": [adjacency + adjacency.t()],
        "both": [adjacency, adjacency.t()],
    }[direction]
    expected = states
    for matrix, weight in zip(turned, model.weight, strict=True):
        laplacian = torch.diag(matrix.sum(1)) - matrix
        expected = expected - 0.25 * laplacian @ states @ weight.t()
    torch.testing.assert_close(model(states, path), expected)


def test_resistances_need_one_state_per_node(states):
    with pytest.raises(ValueError, match=r"x has shape \[2, 12, 3\]; learned resistances"):
        wave(1, resistance="block")(states.expand(2, 12, 3), EDGES)


def test_the_full_model_learns_in_all_parts():
    torch.manual_seed(0)
    model = build_model(
        "sonar", 3, 4, 2, 3, blocks=2, block_residual=True, block_norm="layer", **FULL
    )
    model(torch.randn(12, 3), EDGES).square().sum().backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in model.parameters())
