"""Dot products and cosines along edges: by hand, gradients of any order, all threads."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.autograd import gradcheck, gradgradcheck

from adgn.graph import edge_cosine, edge_dot, edge_operator, graph_operator, set_backend
from adgn.graph.similarity import edge_cosine_reference
from tests.graphs import Example, edges, graphs

CHANNELS = st.sampled_from([1, 2, 3, 4, 7, 8, 9, 16, 30, 31, 33, 64, 65, 90])


def operator_of(example):
    return graph_operator(
        example.edge_index, num_nodes=example.num_nodes, like=torch.zeros(1, dtype=torch.float64)
    )


@given(graphs(max_nodes=12), CHANNELS)
def test_dots_are_entries_of_the_dense_product(example, channels):
    operator = operator_of(example)
    left, right = (example.features(channels, seed=seed) for seed in (1, 2))
    expected = (left @ right.t())[operator.places]
    torch.testing.assert_close(edge_dot(operator, left, right), expected)


@given(graphs(max_nodes=12), CHANNELS)
def test_cosines_and_their_gradients_are_the_dense_ones(example, channels):
    operator = operator_of(example)
    x = example.features(channels).requires_grad_()
    with torch.no_grad():
        x[0] = 0  # a state without a direction
    size = x.norm(dim=1)
    dense = x @ x.t() / (size[:, None] * size).clamp(min=1e-9)
    cosine, expected = edge_cosine(operator, x), dense[operator.places]
    torch.testing.assert_close(cosine, expected)
    torch.testing.assert_close(edge_cosine_reference(operator, x), expected)
    pull = torch.linspace(-1, 2, cosine.numel(), dtype=torch.float64)
    # Along the gradient of a state of length zero the cosine grows by 1e9, which hides others.
    here, there = (torch.autograd.grad(out, x, pull)[0] for out in (cosine, expected))
    torch.testing.assert_close(here[1:], there[1:])
    torch.testing.assert_close(here[0], there[0], rtol=1e-9, atol=1e-3)


SMALL = Example(6, edges((0, 1), (1, 2), (2, 0), (0, 2), (3, 3), (4, 3), (4, 2)))


def test_gradients_of_first_and_second_order():
    operator = operator_of(SMALL)
    x, y = (SMALL.features(3, seed=seed).requires_grad_() for seed in (1, 2))
    for function, inputs in (
        (lambda x, y: edge_dot(operator, x, y), (x, y)),
        (lambda x: edge_cosine(operator, x), (x,)),
        (lambda x: edge_cosine(operator, x, 2.5), (x,)),  # some products of lengths are below
    ):
        assert gradcheck(function, inputs, check_forward_ad=True)
        assert gradgradcheck(function, inputs)


def test_cosines_do_not_change_with_the_lengths_of_states():
    operator, x = operator_of(SMALL), SMALL.features(5)
    scale = torch.logspace(-3, 3, 6, dtype=torch.float64).unsqueeze(1)
    torch.testing.assert_close(edge_cosine(operator, scale * x), edge_cosine(operator, x))


def test_the_gradient_of_a_cosine_is_orthogonal_to_its_state():
    """For a node that is an end of each edge: moving along its own state changes no cosine."""
    star = operator_of(Example(5, edges((0, 1), (0, 2), (3, 0), (4, 0))))
    x = torch.randn(5, 9, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    x.requires_grad_()
    (gradient,) = torch.autograd.grad(edge_cosine(star, x).sum(), x)
    zero = torch.zeros(5, dtype=torch.float64)
    torch.testing.assert_close((gradient * x).sum(1), zero, atol=1e-12, rtol=0)


def test_the_number_of_threads_changes_no_bit():
    generator = torch.Generator().manual_seed(0)
    edge_index = torch.randint(0, 4000, (2, 60000), generator=generator)
    operator = graph_operator(edge_index, num_nodes=4000)
    x = torch.randn(4000, 30, generator=generator, requires_grad=True)

    def solve(threads):
        before = torch.get_num_threads()
        torch.set_num_threads(threads)
        try:
            found = []
            for out in (edge_cosine(operator, x), edge_dot(operator, x, x)):
                found += [out, *torch.autograd.grad(out, x, out.detach())]
            return found
        finally:
            torch.set_num_threads(before)

    for one, two in zip(solve(1), solve(2), strict=True):
        assert torch.equal(one, two)


def test_torch_alone_gives_the_same():
    operator, x = operator_of(SMALL), SMALL.features(10)
    cosines, dots = edge_cosine(operator, x), edge_dot(operator, x, x)
    with set_backend("torch"):
        torch.testing.assert_close(edge_cosine(operator, x), cosines)
        torch.testing.assert_close(edge_dot(operator, x, x), dots)
    listed = edge_operator(SMALL.edge_index, like=x)
    dense = torch.zeros(6, 6, dtype=x.dtype).index_put(operator.places, cosines)
    torch.testing.assert_close(edge_cosine(listed, x), dense[listed.places])


def test_wrong_sizes_are_refused():
    operator = operator_of(SMALL)
    with pytest.raises(ValueError, match=r"right has shape \[5, 3\]; expected \[6, 3\]"):
        edge_dot(operator, torch.ones(6, 3).double(), torch.ones(5, 3).double())
    with pytest.raises(ValueError, match=r"x has shape \[5, 3\]; the operator of shape \[6, 6\]"):
        edge_cosine(operator, torch.ones(5, 3).double())
