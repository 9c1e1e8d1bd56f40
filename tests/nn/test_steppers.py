"""Some steps forward and back, and checkpoints, which change only what is kept."""

import copy

import pytest
import torch
from torch import nn
from torch.nn.utils.parametrizations import spectral_norm

from adgn.graph import GraphBlocks, graph_operator
from adgn.graph.kernels import multiply_reference
from adgn.nn import ADGN
from adgn.nn.steppers import (
    NativeStepper,
    TorchStepper,
    Weights,
    checkpoint_interval,
    checkpointed,
    split_steps,
)
from tests.graphs import both_ways

GRAPH = both_ways((0, 1), (1, 2), (2, 3), (3, 4), (4, 0), (1, 3))
LAYERS = 16


def random_weights(sets=1, channels=4, bias=True):
    generator = torch.Generator().manual_seed(0)
    draw = torch.randn(sets, 3, channels, channels, generator=generator, dtype=torch.float64) / 9
    w_self, w_neigh, rest = (part.contiguous() for part in draw.unbind(1))
    return Weights(w_self, w_neigh, rest[:, 0].contiguous() if bias else None)


def pairs(count):
    """`count` graphs of two nodes each, one edge between them."""
    first = 2 * torch.arange(count)
    return GraphBlocks(torch.stack([first, first + 1]), 2 * torch.arange(count + 1))


@pytest.fixture
def operator():
    edges = torch.tensor([[0, 1, 2, 2], [1, 2, 0, 1]])
    return graph_operator(edges, num_nodes=3, like=torch.empty(0, dtype=torch.float64))


def test_one_step_is_the_update(operator):
    weights = random_weights()
    x = torch.randn(3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    heard = multiply_reference(operator, x) @ weights.w_neigh[0].t()
    rate = x @ weights.w_self[0].t() + heard + weights.bias[0]
    for activation, act in (("tanh", torch.tanh), ("relu", torch.relu), ("identity", lambda r: r)):
        result, kept = TorchStepper(operator, 0.1, activation).forward(x, weights, 1, False)
        torch.testing.assert_close(result, x + 0.1 * act(rate))
        assert kept == []


def test_steps_in_pieces_are_the_steps_at_once(operator, native):
    weights = random_weights(sets=5)
    x = torch.randn(3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    grad = torch.ones_like(x)
    for stepper in (
        TorchStepper(operator, 0.1, "tanh"),
        NativeStepper.choose(native, operator, weights, 0.1, "tanh"),
    ):
        whole, kept = stepper.forward(x, weights, 5, True)
        whole_grads = weights.zeros()
        whole_grad = stepper.backward(grad, weights, 5, kept, whole_grads)
        start, end = weights.of_steps(0, 2), weights.of_steps(2, 5)
        middle, early = stepper.forward(x, start, 2, True)
        last, late = stepper.forward(middle, end, 3, True)
        grads = weights.zeros()
        back = stepper.backward(grad, end, 3, late, grads.of_steps(2, 5))
        back = stepper.backward(back, start, 2, early, grads.of_steps(0, 2))
        torch.testing.assert_close(last, whole)
        torch.testing.assert_close(back, whole_grad)
        torch.testing.assert_close(grads.w_self, whole_grads.w_self)
        torch.testing.assert_close(grads.w_neigh, whole_grads.w_neigh)
        torch.testing.assert_close(grads.bias, whole_grads.bias)


def test_gradients_of_weights_are_added_to_what_is_there(operator, native):
    weights = random_weights(bias=False)
    x = torch.ones(3, 4, dtype=torch.float64)
    for stepper in (
        TorchStepper(operator, 0.1, "relu"),
        NativeStepper.choose(native, operator, weights, 0.1, "relu"),
    ):
        _, kept = stepper.forward(x, weights, 3, True)
        once, twice = weights.zeros(), weights.zeros()
        stepper.backward(x, weights, 3, kept, once)
        for _ in range(2):
            stepper.backward(x, weights, 3, kept, twice)
        torch.testing.assert_close(twice.w_self, 2 * once.w_self)
        torch.testing.assert_close(twice.w_neigh, 2 * once.w_neigh)
        assert once.bias is None


def test_many_small_graphs_are_worked_on_one_by_one(native):
    blocks = pairs(50)
    operator = blocks.select(torch.arange(50)).operator("none", torch.float64)
    stepper = NativeStepper.choose(native, operator, random_weights(), 0.1, "tanh")
    assert stepper.block_ptr is not None


def test_blocks_that_leave_the_cache_are_not(native):
    ring = torch.arange(9000)
    edges = torch.stack([ring, (ring + 1) % 9000])
    blocks = GraphBlocks(torch.cat([edges, edges + 9000], 1), torch.tensor([0, 9000, 18000]))
    operator = blocks.select(torch.tensor([0, 1, 0, 1])).operator("none", torch.float64)
    assert operator.pattern.block_ptr is not None
    stepper = NativeStepper.choose(native, operator, random_weights(), 0.1, "tanh")
    assert stepper.block_ptr is None
    small = pairs(50).select(torch.arange(50)).operator("none", torch.float64)
    many_weights = random_weights(sets=500, channels=16)
    assert NativeStepper.choose(native, small, many_weights, 0.1, "tanh").block_ptr is None


def network(phi, **options):
    torch.manual_seed(0)
    return ADGN(3, 4, 2, LAYERS, phi=phi, **options).double()


def inputs(edge_dim=None):
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(5, 3, generator=generator, dtype=torch.float64)
    if edge_dim is None:
        return x, {}
    attributes = torch.rand(GRAPH.size(1), edge_dim, generator=generator, dtype=torch.float64)
    return x, {"edge_attr": attributes}


def solve(model, x, kwargs):
    """Output, all gradients and the buffers after a step of training with its random numbers."""
    torch.manual_seed(7)
    x = x.clone().requires_grad_()
    output = model(x, GRAPH, **kwargs)
    gradients = torch.autograd.grad(output.square().sum(), [x, *model.parameters()])
    return [output.detach(), *gradients, *model.buffers(), torch.rand(3)]


def kept(model, x, kwargs):
    """How many bytes autograd holds on to, counting shared memory once."""
    storages = {}

    def pack(tensor):
        storages[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        model(x, GRAPH, **kwargs)
    return sum(storage.nbytes() for storage in storages.values())


@pytest.mark.parametrize("sharing", [True, False])
@pytest.mark.parametrize(
    ("phi", "options"),
    [
        ("gat", {"phi_kwargs": {"heads": 2}}),
        ("gat", {"edge_dim": 3}),
        ("gat", {"phi_kwargs": {"attention_dropout": 0.5}}),
        ("gcnii", {}),
        ("ggnn", {}),
        ("gin", {}),
        ("gin", {"phi_kwargs": {"mlp": "two-layer"}}),
        ("gine", {"edge_dim": 3}),
        ("graphsage", {}),
    ],
    ids=[
        "gat",
        "gat-edges",
        "gat-dropout",
        "gcnii",
        "ggnn",
        "gin",
        "gin-normed",
        "gine",
        "graphsage",
    ],
)
def test_values_gradients_and_statistics_are_those_of_full_memory(phi, options, sharing):
    options = {"weight_sharing": sharing, **options}
    full = network(phi, **options)
    saving = network(phi, memory="checkpoint", **options)
    x, kwargs = inputs(options.get("edge_dim"))
    for left, right in zip(solve(full, x, kwargs), solve(saving, x, kwargs), strict=True):
        torch.testing.assert_close(right, left, rtol=1e-12, atol=1e-14)
    assert kept(saving, x, kwargs) < kept(full, x, kwargs) / 2


class Normed(nn.Module):
    """An aggregation whose weights depend on a buffer that every call moves on."""

    def __init__(self):
        super().__init__()
        self.lin = spectral_norm(nn.Linear(4, 4, bias=False))

    def forward(self, x, edge_index):
        return graph_operator(edge_index, num_nodes=x.size(0), like=x) @ self.lin(x)


def test_the_second_computation_begins_with_the_buffers_of_the_first():
    torch.manual_seed(0)
    phi = Normed()
    full = network(copy.deepcopy(phi))
    saving = network(copy.deepcopy(phi), memory="checkpoint")
    x, kwargs = inputs()
    for left, right in zip(solve(full, x, kwargs), solve(saving, x, kwargs), strict=True):
        torch.testing.assert_close(right, left, rtol=1e-12, atol=1e-14)


def test_two_backward_passes_through_one_graph():
    model = network("gin", memory="checkpoint", phi_kwargs={"mlp": "two-layer"})
    output = model(inputs()[0], GRAPH).sum()
    first = torch.autograd.grad(output, list(model.parameters()), retain_graph=True)
    second = torch.autograd.grad(output, list(model.parameters()))
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


def test_transforms_and_evaluation_go_through():
    model = network("gat", memory="checkpoint")
    x, _ = inputs()
    expected = torch.autograd.functional.jacobian(lambda x: model(x, GRAPH), x)
    torch.testing.assert_close(torch.func.jacrev(lambda x: model(x, GRAPH))(x), expected)
    with torch.no_grad():
        assert not model(x, GRAPH).requires_grad


def test_steps_are_computed_twice_also_where_each_would_be_a_segment_of_its_own():
    calls = []

    def sine(x, first, last):
        calls.append(first)
        return x.sin()

    def steps(x, first, last):
        for _ in range(first, last):
            x = checkpointed(sine, x, 1, "checkpoint", lambda *_: [])
        return x

    x = torch.ones(1, requires_grad=True)
    checkpointed(steps, x, 9, "checkpoint", lambda *_: []).backward()
    assert len(calls) == 2 * 9


@pytest.mark.parametrize("count", range(1, 30))
def test_segments_cover_all_steps_once(count):
    length = checkpoint_interval(count)
    parts = split_steps(count, length)
    assert [step for first, last in parts for step in range(first, last)] == list(range(count))
    assert length**2 >= count > (length - 1) ** 2
