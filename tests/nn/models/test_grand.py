import math
from itertools import pairwise

import pytest
import torch
import torch_geometric.nn as pyg
from torch import nn

from adgn.nn import build_model


def grand(num_layers, *, smooth=True, **options):
    torch.manual_seed(3)
    model = build_model("grand", 3, 4, 2, num_layers, act=None, readout="linear", **options)
    for parameter in model.propagation.parameters():
        nn.init.normal_(parameter)
    if smooth:  # the kink of LeakyReLU would hide the order of the method
        model.propagation.rate.attention.negative_slope = 1.0
    return model.double()


def orders(errors):
    return [math.log2(coarse / fine) for coarse, fine in pairwise(errors)]


def test_converges_with_order_4_to_a_fine_solution(graph):
    @torch.no_grad()
    def at_time_two(steps):
        return grand(steps, epsilon=2 / steps)(graph.x, graph.edge_index)

    exact = at_time_two(256)
    errors = [float((at_time_two(steps) - exact).abs().max()) for steps in (8, 16, 32)]
    assert errors[-1] > 1e-9  # far enough from rounding for the order to mean something
    assert all(3.6 < order < 4.6 for order in orders(errors)), (errors, orders(errors))


def test_the_rate_is_attention_minus_the_state(graph):
    """A tiny step moves the states by ε a (GAT(x) − x), by PyG's attention."""
    model = grand(1, epsilon=1e-6, smooth=False)
    rate = model.propagation.rate
    attention = pyg.GATConv(4, 4).double()
    attention.load_state_dict(rate.attention.state_dict())
    states = model.encoder(graph.x)
    expected = torch.sigmoid(rate.alpha) * (attention(states, graph.edge_index) - states)
    moved = model.propagation(states, graph.edge_index) - states
    torch.testing.assert_close(moved / 1e-6, expected, rtol=1e-4, atol=1e-5)


def gradients(model, graph, weight):
    model.zero_grad()
    weight.grad = None
    model(graph.x, graph.edge_index, weight).square().sum().backward()
    return [p.grad.clone() for p in model.parameters()] + [weight.grad.clone()]


def test_adjoint_gradients_converge_to_those_through_the_steps(graph):
    """They belong to two discretisations of one equation: the distance falls with order 4."""
    weight = graph.edge_weight.clone().requires_grad_()
    errors = []
    for n in (4, 8, 16):
        direct = gradients(grand(n, epsilon=1 / n, adjoint=False), graph, weight)
        adjoint = gradients(grand(n, epsilon=1 / n, adjoint=True), graph, weight)
        errors.append(max(float((a - d).abs().max()) for a, d in zip(adjoint, direct, strict=True)))
    assert all(order > 3.5 for order in orders(errors)), (errors, orders(errors))
    assert errors[-1] < 1e-3


@pytest.mark.parametrize("adjoint", [True, False])
def test_outputs_do_not_depend_on_how_gradients_are_taken(graph, adjoint):
    expected = grand(3, adjoint=False)(graph.x, graph.edge_index)
    torch.testing.assert_close(grand(3, adjoint=adjoint)(graph.x, graph.edge_index), expected)


def test_without_gradients_nothing_is_recorded(graph):
    with torch.no_grad():
        assert not grand(3)(graph.x, graph.edge_index).requires_grad


@pytest.mark.parametrize("heads", [1, 2])
def test_the_adjoint_by_hand_is_that_of_autograd(graph, heads):
    """The same adjoint with and without the shortcut that plain attention takes."""
    model = grand(3, smooth=False, heads=heads, epsilon=0.3)
    attention = model.propagation.rate.attention
    found = []
    for hook in (None, attention.register_forward_hook):  # with a hook it is called as a module
        seen = []
        handle = None if hook is None else hook(lambda *_, seen=seen: seen.append(1))
        x = graph.x.clone().requires_grad_()
        out = model(x, graph.edge_index, graph.edge_weight)
        found.append([out, *torch.autograd.grad(out.sin().sum(), [x, *model.parameters()])])
        if handle is not None:
            handle.remove()
            assert len(seen) == 2 * 3 * 4  # ahead and back, in each of four stages of three steps
    torch.testing.assert_close(*found)
