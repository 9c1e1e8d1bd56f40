"""The native kernels against plain torch, on thousands of drawn graphs, states and weights."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from adgn.graph import SparseOperator, backend, graph_operator, set_backend
from adgn.nn.integration import integrate
from adgn.nn.integration_run import integrate_reference

NORMALIZATIONS = ["none", "mean", "sym", "laplacian", "skew", "loops", "gcn", "gcn-improved"]
ACTS = [torch.tanh, torch.relu, None]
NODES = st.one_of(st.integers(0, 8), st.integers(0, 120))
CHANNELS = st.one_of(st.integers(0, 9), st.sampled_from([15, 16, 17, 31, 33, 64, 65]))
DTYPES = st.sampled_from([torch.float32, torch.float64])


@pytest.fixture(autouse=True, scope="module")
def native_on_one_thread():
    if backend().name == "torch":
        pytest.skip(f"native kernels not in use: {backend().reason}")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    with set_backend("native"):
        yield
    torch.set_num_threads(before)


def strided(draw, shape, generator, dtype):
    """A random tensor whose memory is laid out in one of the ways that torch has."""
    way = draw(st.sampled_from(["plain", "transposed", "sliced", "offset", "expanded", "negative"]))
    if way == "transposed":
        return torch.randn(*shape[:-2], shape[-1], shape[-2], generator=generator, dtype=dtype).mT
    if way == "sliced":
        wide = torch.randn(*shape[:-1], 2 * shape[-1], generator=generator, dtype=dtype)
        return wide[..., ::2]
    if way == "offset":
        return torch.randn(shape[0] + 1, *shape[1:], generator=generator, dtype=dtype)[1:]
    if way == "expanded":
        return torch.randn(*shape[:-1], 1, generator=generator, dtype=dtype).expand(shape)
    x = torch.randn(*shape, generator=generator, dtype=dtype)
    if way == "negative":  # conj() of a real view: values are negated only when they are read
        return torch.complex(x, x).conj().imag
    return x


@st.composite
def cases(draw, dtypes=DTYPES):
    """An operator and states that it can multiply."""
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    nodes, dtype = draw(NODES), draw(dtypes)
    count = draw(st.integers(0, 4 * nodes))
    edges = (torch.rand(2, count, generator=generator) * nodes).long()
    if draw(st.booleans()):
        edges = torch.cat([edges, edges.flip(0)], dim=1)
    if draw(st.booleans()):
        edges = edges.int()
    weight = None
    if draw(st.booleans()):
        weight = torch.rand(edges.size(1), generator=generator, dtype=dtype) + 0.05
    shape = (*draw(st.sampled_from([(), (), (2,), (2, 1)])), nodes, draw(CHANNELS))
    x = strided(draw, shape, generator, dtype)
    normalization = draw(st.sampled_from(NORMALIZATIONS))
    like = torch.empty(0, dtype=dtype)
    with set_backend(draw(st.sampled_from(["native", "torch"]))):  # each builds the pattern
        operator = graph_operator(
            edges.long(), weight, num_nodes=nodes, normalization=normalization, like=like
        )
    return operator, x, generator


def close(found, exact, dtype, size=1.0):
    """Equal up to rounding, at the scale of what was added up."""
    error = 3e-5 if dtype == torch.float32 else 1e-10
    torch.testing.assert_close(found.double(), exact, rtol=error, atol=error * max(1.0, size))


@given(cases())
def test_products_and_their_gradients(case):
    operator, x, generator = case
    leaf = x.detach().clone(memory_format=torch.preserve_format).requires_grad_()
    product = operator @ leaf
    matrix = operator.to_dense().double()
    size = float(operator.value.abs().sum())
    close(operator @ x, matrix @ x.double(), x.dtype, size)
    close(product.detach(), matrix @ x.double(), x.dtype, size)
    pull = torch.randn(product.shape, generator=generator, dtype=x.dtype)
    (found,) = torch.autograd.grad(product, leaf, pull)
    close(found, matrix.mT @ pull.double(), x.dtype, size)


@given(cases(), st.data())
def test_integration(case, data):
    operator, x, generator = case
    channels, steps = x.size(-1), data.draw(st.sampled_from([1, 2, 5, 16, 17, 33]))
    sets = data.draw(st.sampled_from([1, steps]))
    scale = 0.4 / max(channels, 1) ** 0.5 / max(1.0, float(operator.value.abs().sum()) ** 0.5)
    shape = (sets, channels, channels)
    w_self = strided(data.draw, shape, generator, torch.float64) * scale
    w_neigh = strided(data.draw, shape, generator, torch.float64) * scale
    bias = None
    if data.draw(st.booleans()):
        bias = strided(data.draw, (sets, channels), generator, torch.float64)
    options = {"epsilon": 0.1, "act": data.draw(st.sampled_from(ACTS)), "num_steps": steps}
    memory = data.draw(st.sampled_from(["full", "checkpoint"]))

    def solve(function, dtype, **more):
        given = (x, w_self, w_neigh, bias)
        leaves = [t if t is None else t.detach().to(dtype).requires_grad_() for t in given]
        matrix = SparseOperator(operator.pattern, operator.value.to(dtype))
        # The kernels take [N, d]; what has more dimensions is left to torch.
        with set_backend("native" if x.dim() == 2 else "auto"):
            result = function(leaves[0], matrix, *leaves[1:], **options, **more)
        pull = torch.linspace(-1, 1.7, result.numel(), dtype=dtype).view_as(result)
        wanted = [leaf for leaf in leaves if leaf is not None]
        return [result.detach(), *torch.autograd.grad((result * pull).sum(), wanted)]

    exact = solve(integrate_reference, torch.float64)
    if x.dtype == torch.float32:  # near a kink of relu rounding decides, so values alone
        close(solve(integrate, torch.float32, memory=memory)[0], exact[0], x.dtype, 10.0)
    for found, right in zip(solve(integrate, torch.float64, memory=memory), exact, strict=True):
        torch.testing.assert_close(found, right, rtol=1e-7, atol=1e-9)
