import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.autograd import gradcheck, gradgradcheck

from adgn.graph import (
    CSR,
    GraphBlocks,
    SparseOperator,
    SparsePattern,
    graph_operator,
    multiply_reference,
    set_backend,
)
from adgn.graph.kernels import multiply_transposed


@st.composite
def products(draw, dtype=torch.float64):
    rows, columns = draw(st.integers(1, 25)), draw(st.integers(1, 25))
    channels = draw(st.sampled_from([1, 2, 7, 8, 16, 17, 33, 64]))
    seed = draw(st.integers(0, 2**31))
    generator = torch.Generator().manual_seed(seed)
    count = draw(st.integers(0, 120))
    row = torch.randint(0, rows, (count,), generator=generator)
    col = torch.randint(0, columns, (count,), generator=generator)
    pattern, slot = SparsePattern.from_entries(row, col, (rows, columns))
    weight = torch.randn(count, generator=generator, dtype=dtype)
    value = weight.new_zeros(pattern.csr.col.numel()).index_add(0, slot, weight)
    return SparseOperator(pattern, value), torch.randn(
        columns, channels, generator=generator, dtype=dtype
    )


@given(products())
def test_product_is_the_reference(problem):
    operator, x = problem
    torch.testing.assert_close(operator @ x, multiply_reference(operator, x))
    torch.testing.assert_close(operator @ x, operator.to_dense() @ x)


@given(products())
def test_transposed_product_is_the_dense_one(problem):
    operator, x = problem
    left = torch.ones(operator.shape[0], x.size(1), dtype=x.dtype).cumsum(0)
    torch.testing.assert_close(multiply_transposed(operator, left), operator.to_dense().t() @ left)


@given(products(dtype=torch.float32))
def test_single_precision_errs_by_rounding_alone(problem):
    operator, x = problem
    double = SparseOperator(operator.pattern, operator.value.double())
    exact = multiply_reference(double, x.double())
    size = SparseOperator(operator.pattern, double.value.abs())
    bound = multiply_reference(size, x.double().abs()) * 130 * torch.finfo(torch.float32).eps
    assert ((operator @ x).double() - exact).abs().le(bound + 1e-40).all()


def small(requires_grad=True):
    generator = torch.Generator().manual_seed(0)
    edges = torch.randint(0, 6, (2, 14), generator=generator)
    weight = torch.rand(14, generator=generator, dtype=torch.float64, requires_grad=requires_grad)
    x = torch.randn(6, 3, generator=generator, dtype=torch.float64, requires_grad=True)
    return edges, weight, x


@pytest.mark.parametrize("normalization", ["none", "gcn"])
def test_gradients_in_states_and_weights(normalization):
    edges, weight, x = small()

    def product(weight, x):
        return graph_operator(edges, weight, num_nodes=6, normalization=normalization) @ x

    assert gradcheck(product, (weight, x), check_forward_ad=True)
    assert gradgradcheck(product, (weight, x))


def test_leading_dimensions_share_the_graph():
    edges, weight, _ = small(requires_grad=False)
    operator = graph_operator(edges, weight, num_nodes=6)
    x = torch.randn(2, 3, 6, 5, dtype=torch.float64)
    expected = torch.einsum("ij,abjc->abic", operator.to_dense(), x)
    torch.testing.assert_close(operator @ x, expected)
    expected = torch.einsum("ji,abjc->abic", operator.to_dense(), x)
    torch.testing.assert_close(multiply_transposed(operator, x), expected)


@pytest.mark.parametrize(("nodes", "channels"), [(0, 3), (6, 0), (0, 0)])
def test_leading_dimensions_of_nothing(nodes, channels):
    operator = graph_operator(torch.empty(2, 0, dtype=torch.long), num_nodes=nodes)
    x = torch.ones(2, nodes, channels)
    assert torch.equal(operator @ x, torch.zeros(2, nodes, channels))
    assert torch.equal(multiply_transposed(operator, x), torch.zeros(2, nodes, channels))


def test_vmap_and_jacobians():
    edges, weight, x = small(requires_grad=False)
    operator = graph_operator(edges, weight, num_nodes=6)
    dense = operator.to_dense()
    many = torch.randn(4, 6, 3, dtype=torch.float64)
    torch.testing.assert_close(torch.func.vmap(lambda s: operator @ s)(many), dense @ many)
    jacobian = torch.func.jacrev(lambda s: operator @ s)(x.detach()[:, :1])
    torch.testing.assert_close(jacobian[:, 0, :, 0], dense)
    jacobian = torch.func.jacfwd(lambda s: operator @ s)(x.detach()[:, :1])
    torch.testing.assert_close(jacobian[:, 0, :, 0], dense)


def test_states_that_are_not_contiguous():
    edges, weight, _ = small(requires_grad=False)
    operator = graph_operator(edges, weight, num_nodes=6)
    x = torch.randn(16, 12, dtype=torch.float64).t()[::2]
    assert not x.is_contiguous()
    torch.testing.assert_close(operator @ x, operator.to_dense() @ x)


def test_indices_of_64_bits():
    edges, weight, x = small(requires_grad=False)
    operator = graph_operator(edges, weight, num_nodes=6)

    def wide(csr):
        return CSR(csr.rowptr.long(), csr.col.long(), csr.shape)

    pattern = operator.pattern
    long = SparsePattern(wide(pattern.csr), wide(pattern.transposed), pattern.to_transposed)
    product = SparseOperator(long, operator.value) @ x
    torch.testing.assert_close(product, operator.to_dense() @ x)
    product.sum().backward()
    expected = operator.to_dense().sum(0).unsqueeze(1).expand(-1, 3)
    torch.testing.assert_close(x.grad, expected)


def test_wrong_shape_is_told():
    operator = graph_operator(torch.tensor([[0], [1]]), num_nodes=2)
    with pytest.raises(ValueError, match=r"shape \[2, 2\] multiplies \[\.\.\., 2, channels\]"):
        _ = operator @ torch.ones(3, 4)


@pytest.mark.parametrize("threads", [1, 2])
def test_the_number_of_threads_changes_no_bit(native, threads):
    generator = torch.Generator().manual_seed(1)
    edges = torch.randint(0, 4000, (2, 60_000), generator=generator)
    operator = graph_operator(edges, num_nodes=4000, normalization="gcn")
    x = torch.randn(4000, 48, generator=generator)
    before = torch.get_num_threads()
    expected = operator @ x
    try:
        torch.set_num_threads(threads)
        assert torch.equal(operator @ x, expected)
    finally:
        torch.set_num_threads(before)


def lazy(kind, tensor):
    """`tensor` in a form in which torch has not worked it out yet."""
    if kind == "negative":
        return torch._neg_view(-tensor)
    if kind == "imaginary part of a conjugate":
        return torch.complex(tensor, -tensor).conj().imag
    return torch._efficientzerotensor(tensor.shape, dtype=tensor.dtype)


LAZY = ["negative", "imaginary part of a conjugate", "zero"]


def worked_out(tensor):
    """The same numbers, in memory."""
    return tensor.clone()


@pytest.mark.parametrize("serving", ["auto", "torch"])
@pytest.mark.parametrize("kind", LAZY)
def test_lazy_states_values_and_gradients_are_worked_out(kind, serving):
    edges, weight, x = small(requires_grad=False)
    pattern = graph_operator(edges, weight, num_nodes=6).pattern
    number = pattern.csr.col.numel()
    value = torch.arange(1.0, 1 + number, dtype=torch.float64)
    states, values, grad = (lazy(kind, t) for t in (x.detach(), value, torch.ones_like(x)))
    with set_backend(serving):
        operator = SparseOperator(pattern, values)
        expected = SparseOperator(pattern, worked_out(values))
        torch.testing.assert_close(operator @ x, expected @ x)
        torch.testing.assert_close(expected @ states, expected @ worked_out(states))
        torch.testing.assert_close(operator @ states, expected @ worked_out(states))
        for lazy_one, plain in ((operator, expected), (expected, expected)):
            found = torch.autograd.grad(lazy_one @ x, x, grad)[0]
            wanted = torch.autograd.grad(plain @ x, x, worked_out(grad))[0]
            torch.testing.assert_close(found, wanted)


@pytest.mark.parametrize("serving", ["auto", "torch"])
def test_lazy_edges_are_worked_out(serving):
    edges = torch.tensor([[0, 1, 2], [1, 2, 0]])
    with set_backend(serving):
        expected = graph_operator(edges, num_nodes=3).to_dense()
        assert torch.equal(
            graph_operator(lazy("negative", edges), num_nodes=3).to_dense(), expected
        )
        batch = GraphBlocks(edges, lazy("negative", torch.tensor([0, 3])))
        operator = batch.select(lazy("negative", torch.tensor([0]))).operator("none", torch.float32)
        assert torch.equal(operator.to_dense(), expected)
        csr = CSR(
            lazy("negative", torch.arange(4, dtype=torch.int32)),
            lazy("negative", torch.tensor([2, 0, 1], dtype=torch.int32)),
            (3, 3),
        )
        by_hand = SparseOperator(SparsePattern(csr, csr, None), torch.ones(3))
        assert torch.equal(by_hand @ torch.eye(3), expected)
