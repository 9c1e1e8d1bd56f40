import pytest
import torch

from adgn.graph import GraphBlocks, graph_operator
from adgn.graph.kernels import multiply_reference
from adgn.nn.steps import NativeStepper, TorchStepper, Weights


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
