"""Integrations with nodes in another order give what they give in the order of the user."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from adgn.graph import TwoWayOperator, backend, graph_operator, locality, set_backend
from adgn.graph.native.library import native_library
from adgn.nn import ADGN
from adgn.nn.integration import integrate
from adgn.nn.integration_run import integrate_reference
from adgn.nn.integrators import resolve_integrator
from tests.crossing import covering
from tests.graph.test_locality import mesh, shuffled
from tests.graphs import graphs

SIDE, CHANNELS, STEPS = 20, 5, 6
NODES = SIDE * SIDE
ROW_BYTES = 64  # five numbers, padded to a cache line
ACTS = {"tanh": torch.tanh, "relu": torch.relu, "identity": None}
pytestmark = pytest.mark.skipif(
    backend().name == "torch", reason=f"native kernels not in use: {backend().reason}"
)


@pytest.fixture(autouse=True)
def small_cache(monkeypatch):
    """So small that a graph of 400 nodes does not fit, and none is so tiny that it is one block."""
    monkeypatch.setattr(locality, "CACHE_BYTES", 64 * ROW_BYTES)
    monkeypatch.setattr("adgn.nn.steppers._TINY_BYTES", 0)


def graph(kind="undirected"):
    edge_index = mesh(SIDE, shuffled(NODES))
    if kind != "undirected":
        edge_index = edge_index[:, : edge_index.size(1) // 2]
    generator = torch.Generator().manual_seed(3)
    weight = torch.rand(edge_index.size(1), generator=generator, dtype=torch.float64) + 0.5
    operators = [
        graph_operator(edge_index, weight, num_nodes=NODES, normalization="gcn", direction=one)
        for one in ("in", "out")
    ]
    return TwoWayOperator(*operators) if kind == "both" else operators[0]


def problem(operator, sets=1):
    generator = torch.Generator().manual_seed(4)
    sent = CHANNELS * (2 if isinstance(operator, TwoWayOperator) else 1)
    shapes = ((NODES, CHANNELS), (sets, CHANNELS, CHANNELS), (sets, sent, CHANNELS))
    leaves = [torch.randn(shape, generator=generator, dtype=torch.float64) / 3 for shape in shapes]
    leaves.append(torch.randn(sets, CHANNELS, generator=generator, dtype=torch.float64))
    return [leaf.requires_grad_() for leaf in leaves]


def solved(function, operator, leaves, act="tanh", **options):
    x, *weights = leaves
    settings = {"epsilon": 0.1, "act": ACTS[act], "num_steps": STEPS}
    result = function(x, operator, *weights, **settings, **options)
    pull = torch.linspace(-1, 1.7, result.numel(), dtype=result.dtype).view_as(result)
    return [result.detach(), *torch.autograd.grad((result * pull).sum(), leaves)]


def is_renumbered(operator):
    return locality.renumbered(native_library(), operator, ROW_BYTES) is not None


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


@given(graphs(), st.sampled_from(["sum", "gcn"]), st.booleans())
def test_any_graph(example, phi, single):
    """All are renumbered, whether it pays or not."""
    dtype = torch.float32 if single else torch.float64
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(locality, "CACHE_BYTES", 1)
        patch.setattr(locality, "LEAST_SAVED", -1.0)
        torch.manual_seed(0)
        network = ADGN(3, CHANNELS, 2, num_layers=STEPS, phi=phi).to(dtype)
        x = example.features(3, dtype)
        graph = (example.edge_index, example.weight(dtype))
        if example.num_nodes > 1:
            normalization = "gcn" if phi == "gcn" else "none"
            operator = graph_operator(
                *graph, num_nodes=example.num_nodes, normalization=normalization, like=x
            )
            assert locality.renumbered(native_library(), operator, 64) is not None
        found = gradients(network, x, *graph)
        with set_backend("torch"):
            expected = gradients(network, x, *graph)
        close = {"rtol": 2e-4, "atol": 2e-4} if single else {"rtol": 1e-9, "atol": 1e-9}
        torch.testing.assert_close(found, expected, **close)


def gradients(network, x, *graph):
    x = x.clone().requires_grad_()
    out = network(x, *graph)
    parameters = list(network.parameters())
    # Expanded, as the gradient of a sum is.
    return [out.detach(), *torch.autograd.grad(out.sum(), [x, *parameters])]


def test_a_network_does_not_show_it():
    edge_index = mesh(SIDE, shuffled(NODES))
    torch.manual_seed(0)
    network = ADGN(3, CHANNELS, 2, num_layers=STEPS, phi="gcn").double()
    x = torch.randn(NODES, 3, dtype=torch.float64)
    operator = graph_operator(edge_index, num_nodes=NODES, normalization="gcn", like=x)
    assert is_renumbered(operator)
    found = gradients(network, x, edge_index)
    with set_backend("torch"):
        expected = gradients(network, x, edge_index)
    close = {"rtol": 1e-10, "atol": 1e-10}
    torch.testing.assert_close(found, expected, **close)
    assert all(map(torch.equal, found, gradients(network, x, edge_index)))
    # The same graph with other numbers: the outputs move with the nodes.
    moved = shuffled(NODES).flip(0)
    again = network(x[moved.argsort()], moved[edge_index])
    torch.testing.assert_close(again[moved], found[0], **close)
    compiled = torch.compile(network, backend="aot_eager")
    torch.testing.assert_close(gradients(compiled, x, edge_index), found, **close)
    with torch.inference_mode():
        assert torch.equal(network(x, edge_index), found[0])


def test_what_is_kept_belongs_to_the_order_it_was_made_in(monkeypatch):
    """A compiled backward pass does not decide again."""
    edge_index = mesh(SIDE, shuffled(NODES))
    torch.manual_seed(0)
    network = torch.compile(
        ADGN(3, CHANNELS, 2, num_layers=STEPS, phi="gcn").double(), backend="aot_eager"
    )
    x = torch.randn(NODES, 3, dtype=torch.float64)
    expected = gradients(network, x, edge_index)
    out = network(x, edge_index)
    monkeypatch.setattr("adgn.nn.integration_run.renumbered", lambda *_: None)
    found = torch.autograd.grad(out.sum(), list(network.parameters()))
    torch.testing.assert_close(list(found), expected[2:], rtol=1e-10, atol=1e-10)


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
