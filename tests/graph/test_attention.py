"""Attention along edges: by hand, against the reference, gradients of any order, all threads."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.autograd import gradcheck, gradgradcheck

from adgn.graph import attend, edge_operator, graph_operator, set_backend
from adgn.graph.attention import attend_reference
from tests.graphs import Example, edges, graphs

CHANNELS = st.sampled_from([1, 2, 3, 4, 7, 8, 9, 16, 30, 31, 33, 64, 65, 90])


def by_hand(example, states, heads, slope):
    """Node by node and edge by edge, in plain numbers."""
    channels = states.size(1) // heads - 2
    sent = states[:, : heads * channels].view(-1, heads, channels)
    source, target = states[:, heads * channels :].view(-1, 2, heads).unbind(1)
    out = torch.zeros_like(sent)
    for node in range(example.num_nodes):
        for head in range(heads):
            shares = []
            for neighbour, weight in example.neighbours(node):
                logit = float(source[neighbour, head] + target[node, head])
                shares.append(weight * math.exp(logit if logit > 0 else slope * logit))
            for (neighbour, _), share in zip(example.neighbours(node), shares, strict=True):
                out[node, head] += share / sum(shares) * sent[neighbour, head]
    return out.flatten(1)


def operator_of(example, dtype=torch.float64):
    like = torch.zeros(1, dtype=dtype)
    return graph_operator(
        example.edge_index, example.weight(dtype), num_nodes=example.num_nodes, like=like
    )


@given(graphs(), st.integers(1, 3), st.sampled_from([1, 4, 9]))
def test_it_is_what_it_says(example, heads, channels):
    states = example.features(heads * (channels + 2))
    out = attend(operator_of(example), states, heads=heads, negative_slope=0.3)
    torch.testing.assert_close(out, by_hand(example, states, heads, 0.3))


@given(graphs(max_nodes=12), st.integers(1, 3), CHANNELS, st.booleans(), st.integers(0, 99))
def test_values_and_gradients_are_the_reference(example, heads, channels, drops, seed):
    operator = operator_of(example)
    states = example.features(heads * (channels + 2), seed=seed).requires_grad_()
    keep = None
    if drops:
        generator = torch.Generator().manual_seed(seed)
        keep = 2.0 * torch.randint(0, 2, (heads, operator.num_entries), generator=generator)
        keep = keep.double()
    ours = attend(operator, states, heads=heads, keep=keep)
    theirs = attend_reference(operator, states, heads, 0.2, keep)
    torch.testing.assert_close(ours, theirs)
    pull = torch.linspace(-1, 2, ours.numel(), dtype=torch.float64).view_as(ours)
    gradients = [torch.autograd.grad(out, states, pull)[0] for out in (ours, theirs)]
    torch.testing.assert_close(*gradients)


SMALL = Example(6, edges((0, 1), (1, 2), (2, 0), (0, 2), (3, 3), (4, 3), (4, 2), (1, 2)))


@pytest.mark.parametrize("heads", [1, 2])
def test_gradients_of_first_and_second_order(heads):
    operator = operator_of(SMALL)
    states = SMALL.features(heads * 5).requires_grad_()
    keep = torch.linspace(0, 2, heads * operator.num_entries).double().view(heads, -1)

    def heard(states):
        return attend(operator, states, heads=heads, keep=keep)

    assert gradcheck(heard, states, check_forward_ad=True)
    assert gradgradcheck(heard, states)


def test_gradients_in_the_weights_of_edges():
    weight = torch.linspace(0.5, 2, 8, dtype=torch.float64, requires_grad=True)
    states = SMALL.features(5)

    def heard(weight):
        operator = graph_operator(SMALL.edge_index, weight, num_nodes=6, like=states)
        return attend(operator, states, heads=1)

    assert gradcheck(heard, weight)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_large_logits_neither_overflow_nor_vanish(dtype):
    """The largest of a node's logits decides, however large it is."""
    operator = graph_operator(edges((0, 2), (1, 2)), num_nodes=3, like=torch.zeros(1, dtype=dtype))
    for top in (1e3, 1e30):
        states = torch.tensor([[7, top, 0], [5, -top, 0], [0, 0, 0]], dtype=dtype)
        assert attend(operator, states, heads=1).flatten().tolist() == [0, 0, 7]
    equal = torch.tensor([[7, 1e30, 0], [5, 1e30, 0], [0, 0, 0]], dtype=dtype)
    assert attend(operator, equal, heads=1).flatten().tolist() == [0, 0, 6]


def test_what_is_not_a_number_is_passed_on():
    operator = graph_operator(edges((0, 2), (1, 2), (1, 0)), num_nodes=3)
    states = torch.tensor([[1.0, math.nan, 0.0], [2.0, 0.0, 0.0], [3.0, 0.0, 0.0]])
    out = attend(operator, states, heads=1).flatten()
    assert out.isnan().tolist() == [False, False, True]


@pytest.mark.parametrize("heads", [1, 3])
def test_the_number_of_threads_changes_no_bit(heads):
    generator = torch.Generator().manual_seed(0)
    edge_index = torch.randint(0, 4000, (2, 30000), generator=generator)
    operator = graph_operator(edge_index, num_nodes=4000)
    states = torch.randn(4000, heads * 32, generator=generator, requires_grad=True)

    def solve(threads):
        before = torch.get_num_threads()
        torch.set_num_threads(threads)
        try:
            out = attend(operator, states, heads=heads)
            return out, *torch.autograd.grad(out, states, out.detach())
        finally:
            torch.set_num_threads(before)

    for one, two in zip(solve(1), solve(2), strict=True):
        assert torch.equal(one, two)


def test_torch_alone_gives_the_same():
    operator, states = operator_of(SMALL), SMALL.features(10)
    expected = attend(operator, states, heads=2)
    with set_backend("torch"):
        torch.testing.assert_close(attend(operator, states, heads=2), expected)
    listed = edge_operator(SMALL.edge_index, like=states)
    torch.testing.assert_close(attend(listed, states, heads=2), expected)


def test_vmap_over_states():
    operator = operator_of(SMALL)
    batch = torch.stack([SMALL.features(4, seed=seed) for seed in range(3)])
    together = torch.func.vmap(lambda states: attend(operator, states, heads=1))(batch)
    apart = torch.stack([attend(operator, states, heads=1) for states in batch])
    torch.testing.assert_close(together, apart)
