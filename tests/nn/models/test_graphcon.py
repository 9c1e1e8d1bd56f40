import pytest
import torch
import torch_geometric.nn as pyg

from adgn.nn import build_model
from adgn.nn.models.graphcon import GraphCONOptions, OscillatorPropagation
from adgn.nn.wave import wave_energy


def oscillators(steps, channels=4, **options):
    torch.manual_seed(3)
    return OscillatorPropagation(channels, steps, GraphCONOptions(**options)).double()


def uncoupled(propagation):
    for parameter in propagation.coupling.parameters():
        torch.nn.init.zeros_(parameter)
    return propagation


def states(channels=4):
    return torch.randn(7, channels, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize(("coupling", "weighted"), [("gcn", False), ("gcn", True), ("gat", False)])
def test_a_step_is_its_formula_with_the_convolutions_of_pyg(graph, coupling, weighted):
    model = oscillators(3, coupling=coupling, epsilon=0.5, stiffness=0.7, damping=0.3)
    kind = pyg.GCNConv if coupling == "gcn" else pyg.GATConv
    conv = kind(4, 4).double()
    conv.load_state_dict(model.coupling.state_dict())
    weights = (graph.edge_weight,) if weighted else ()
    x = y = states()
    expected = x
    for _ in range(3):
        force = torch.relu(conv(expected, graph.edge_index, *weights))
        y = y + 0.5 * (force - 0.7 * expected - 0.3 * y)
        expected = expected + 0.5 * y
    torch.testing.assert_close(model(x, graph.edge_index, *weights), expected)
    torch.testing.assert_close(model.trajectory(x, graph.edge_index, *weights)[-1], expected)


@pytest.mark.parametrize("damping", [0.0, 0.6])
def test_without_coupling_it_is_the_damped_oscillator(graph, damping):
    """ẍ = −γ x − α ẋ has a closed form; the error falls with the step as a first order's does."""
    x, time, stiffness = states(), 2.0, 2.0
    decay, frequency = damping / 2, (stiffness - damping**2 / 4) ** 0.5
    swing = torch.tensor(frequency * time, dtype=torch.float64)
    factor = torch.cos(swing) + (1 + decay) / frequency * torch.sin(swing)  # x(0) = ẋ(0)
    exact = x * factor * torch.exp(torch.tensor(-decay * time, dtype=torch.float64))
    errors = []
    for steps in (200, 400):
        options = {"epsilon": time / steps, "stiffness": stiffness, "damping": damping}
        model = uncoupled(oscillators(steps, **options))
        errors.append((model(x, graph.edge_index) - exact).abs().max().item())
    assert errors[0] < 0.05
    assert 1.8 < errors[0] / errors[1] < 2.2


def test_a_linear_symmetric_coupling_keeps_the_energy_and_damping_does_not():
    nodes = torch.arange(7)
    ring = torch.stack([nodes, nodes.roll(1)])
    edges, x = torch.cat([ring, ring.flip(0)], 1), states()

    def energies(damping, symmetric=True):
        options = {"act": None, "epsilon": 0.2, "stiffness": 1.0, "damping": damping}
        model = oscillators(300, **options)
        weight = model.coupling.lin.weight
        with torch.no_grad():
            weight.copy_(0.2 * (weight + weight.t() if symmetric else weight - weight.t()))
            model.coupling.bias.zero_()
        run = model._acceleration(x, edges, None)
        found, at, velocity = [], x, x
        for _ in range(300):
            force = run(at, torch.zeros_like(at))
            found.append(wave_energy(at, velocity, force, 0.2))
            velocity = velocity + 0.2 * run(at, velocity)
            at = at + 0.2 * velocity
        torch.testing.assert_close(model(x, edges), at)
        return torch.stack(found).detach()

    kept = energies(0.0)
    torch.testing.assert_close(kept, kept[:1].expand(300), rtol=1e-10, atol=0)
    damped = energies(0.5)
    assert damped[-1] < 0.01 * damped[0]
    broken = energies(0.0, symmetric=False)
    assert (broken - broken[0]).abs().max() > 0.01 * broken[0].abs()


def test_steps_beyond_the_limit_explode(graph):
    """ε² γ < 4 without coupling and damping."""
    below, above = (
        uncoupled(oscillators(500, stiffness=1.0, damping=0.0, epsilon=2.0 * share))
        for share in (0.99, 1.01)
    )
    assert below(states(), graph.edge_index).abs().max() < 100
    assert above(states(), graph.edge_index).abs().max() > 1e6


@pytest.mark.parametrize("direction", ["in", "both"])
def test_checkpoints_change_nothing(graph, direction):
    found = []
    for memory in ("full", "checkpoint"):
        model = oscillators(9, memory=memory, direction=direction)
        out = model(states(), graph.edge_index)
        out.square().sum().backward()
        found.append([out, *(p.grad for p in model.parameters())])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other)


def test_attention_heads(graph):
    model = build_model("graphcon", 3, 4, 2, 2, coupling="gat", heads=2).double()
    assert model(graph.x, graph.edge_index).shape == (7, 2)
