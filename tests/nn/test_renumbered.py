"""Integrations with nodes in another order give what they give in the order of the user."""

import pytest
import torch

from adgn.graph import TwoWayOperator, backend, graph_operator, locality, set_backend
from adgn.graph.native.library import native_library
from adgn.nn import ADGN
from adgn.nn.integration import integrate
from adgn.nn.integration_run import integrate_reference
from adgn.nn.integrators import resolve_integrator
from tests.crossing import covering
from tests.graph.test_locality import mesh, shuffled

SIDE, CHANNELS, STEPS = 20, 5, 6
NODES = SIDE * SIDE
ACTS = {"tanh": torch.tanh, "relu": torch.relu, "identity": None}
pytestmark = pytest.mark.skipif(
    backend().name == "torch", reason=f"native kernels not in use: {backend().reason}"
)


@pytest.fixture(autouse=True)
def small_cache(monkeypatch):
    """So small that a graph of 400 nodes does not fit, and none is so tiny that it is one block."""
    monkeypatch.setattr(locality, "CACHE_BYTES", 64 * CHANNELS * 8)
    monkeypatch.setattr("adgn.nn.steppers._TINY_BYTES", 0)


def graph(kind="undirected", dtype=torch.float64):
    edge_index = mesh(SIDE, shuffled(NODES))
    if kind != "undirected":
        edge_index = edge_index[:, : edge_index.size(1) // 2]
    generator = torch.Generator().manual_seed(3)
    weight = torch.rand(edge_index.size(1), generator=generator, dtype=dtype) + 0.5
    operators = [
        graph_operator(edge_index, weight, num_nodes=NODES, normalization="gcn", direction=one)
        for one in ("in", "out")
    ]
    return TwoWayOperator(*operators) if kind == "both" else operators[0]


def problem(operator, sets=1, dtype=torch.float64):
    generator = torch.Generator().manual_seed(4)
    sent = CHANNELS * (2 if isinstance(operator, TwoWayOperator) else 1)
    shapes = ((NODES, CHANNELS), (sets, CHANNELS, CHANNELS), (sets, sent, CHANNELS))
    leaves = [torch.randn(shape, generator=generator, dtype=dtype) / 3 for shape in shapes]
    leaves.append(torch.randn(sets, CHANNELS, generator=generator, dtype=dtype))
    return [leaf.requires_grad_() for leaf in leaves]


def solved(function, operator, leaves, act="tanh", **options):
    x, *weights = leaves
    settings = {"epsilon": 0.1, "act": ACTS[act], "num_steps": STEPS}
    result = function(x, operator, *weights, **settings, **options)
    pull = torch.linspace(-1, 1.7, result.numel(), dtype=result.dtype).view_as(result)
    return [result.detach(), *torch.autograd.grad((result * pull).sum(), leaves)]


def is_renumbered(operator, dtype=torch.float64):
    row_bytes = CHANNELS * dtype.itemsize
    return locality.renumbered(native_library(), operator, row_bytes) is not None


@covering(
    "kind, act, sets, memory, integrator",
    ("undirected", "directed", "both"),
    ACTS,
    (1, STEPS),
    ("full", "checkpoint"),
    ("euler", "rk4"),
    strength=2,
)
def test_values_and_gradients_are_those_of_the_plain_loop(kind, act, sets, memory, integrator):
    operator = graph(kind)
    assert is_renumbered(operator)
    leaves = problem(operator, sets)
    found = solved(integrate, operator, leaves, act, memory=memory, integrator=integrator)
    scheme = resolve_integrator(integrator)
    expected = solved(integrate_reference, operator, leaves, act, integrator=scheme)
    for a, b in zip(found, expected, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-10)
    with torch.no_grad():
        x, *weights = leaves
        settings = {"epsilon": 0.1, "act": ACTS[act], "num_steps": STEPS}
        alone = integrate(x, operator, *weights, **settings, integrator=integrator)
    assert torch.equal(alone, found[0])


def test_the_gradient_has_a_gradient():
    operator = graph()
    assert is_renumbered(operator)
    leaves = problem(operator)

    def second(function):
        x, *weights = leaves
        out = function(x, operator, *weights, epsilon=0.1, act=torch.tanh, num_steps=STEPS)
        (first,) = torch.autograd.grad(out.pow(3).sum(), x, create_graph=True)
        return torch.autograd.grad(first.square().sum(), leaves)

    for a, b in zip(second(integrate), second(integrate_reference), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-9)


def test_other_values_count_at_once_and_not_between_the_passes():
    operator = graph()
    leaves = problem(operator)
    solved(integrate, operator, leaves)
    operator.value.mul_(2)
    found = solved(integrate, operator, leaves)
    expected = solved(integrate_reference, operator, leaves)
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)
    x, *weights = leaves
    result = integrate(x, operator, *weights, epsilon=0.1, act=torch.tanh, num_steps=STEPS)
    operator.value.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        result.sum().backward()


def test_a_network_does_not_show_it():
    edge_index = mesh(SIDE, shuffled(NODES))
    torch.manual_seed(0)
    network = ADGN(3, CHANNELS, 2, num_layers=STEPS, phi="gcn").double()
    x = torch.randn(NODES, 3, dtype=torch.float64)
    outputs = network(x, edge_index)
    with set_backend("torch"):
        expected = network(x, edge_index)
    torch.testing.assert_close(outputs, expected, rtol=1e-10, atol=1e-10)
    assert torch.equal(outputs, network(x, edge_index))
    # The same graph with other numbers: the outputs move with the nodes.
    moved = shuffled(NODES).flip(0)
    again = network(x[moved.argsort()], moved[edge_index])
    torch.testing.assert_close(again[moved], outputs, rtol=1e-10, atol=1e-10)
    compiled = torch.compile(network, backend="aot_eager")
    torch.testing.assert_close(compiled(x, edge_index), outputs, rtol=1e-10, atol=1e-10)


def test_few_steps_are_run_as_they_are(monkeypatch):
    operator = graph()
    x, *weights = problem(operator)
    asked = []
    monkeypatch.setattr(
        "adgn.nn.integration_run.renumbered", lambda *arguments: asked.append(arguments)
    )
    for steps in (3, 4):
        integrate(x, operator, *weights, epsilon=0.1, act=torch.tanh, num_steps=steps)
    assert len(asked) == 1
