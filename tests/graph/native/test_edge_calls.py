"""The native kernels along edges: every width stays inside its arrays, wrong sizes are refused."""

import pytest
import torch

from adgn.graph import CSR, SparsePattern, graph_operator
from adgn.graph.attention import attend_reference
from adgn.graph.native import edge_calls
from adgn.graph.similarity import edge_cosine_reference
from tests.graph.native.guards import Guards, Unguarded, guarded_csr

WIDTHS = [*range(1, 36), 47, 48, 49, 63, 64, 65, 70]


def some_graph(dtype, generator):
    """Twenty nodes, one of them alone, with some weights of zero."""
    edges = torch.randint(0, 19, (2, 80), generator=generator)
    weight = torch.rand(80, dtype=dtype, generator=generator)
    weight[::7] = 0
    return graph_operator(edges, weight, num_nodes=20, like=torch.zeros(1, dtype=dtype))


def attention_both_ways(native, guards, operator, states, heads, keep, grad):
    csr = guarded_csr(guards, operator.pattern.csr)
    keep = None if keep is None else guards.around(keep)
    value, states = guards.around(operator.value), guards.around(states)
    kept = edge_calls.attention(native, csr, value, states, heads, 0.2, keep)
    back = edge_calls.attention_backward(native, csr, states, heads, 0.2, kept, guards.around(grad))
    return *kept, back


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_attention_reads_and_writes_nothing_outside_of_its_arrays(native, isa, dtype, monkeypatch):
    generator = torch.Generator().manual_seed(0)
    operator = some_graph(dtype, generator)
    exact = {torch.float32: 2e-5, torch.float64: 1e-13}[dtype]
    for width in WIDTHS:
        heads = 1 + width % 3
        states = torch.randn(20, heads * (width + 2), dtype=dtype, generator=generator)
        grad = torch.randn(20, heads * width, dtype=dtype, generator=generator)
        keep = None
        if width % 2:
            keep = torch.rand(heads, operator.num_entries, dtype=dtype, generator=generator)
        problem = (operator, states, heads, keep, grad)
        expected = attention_both_ways(native, Unguarded(), *problem)
        guards = Guards(shift=width // 2 % 2)
        with monkeypatch.context() as patch:
            patch.setattr(edge_calls, "buffers", guards)
            results = attention_both_ways(native, guards, *problem)
        assert all(torch.equal(a, b) for a, b in zip(results, expected, strict=True)), width
        assert guards.untouched(), width
        states.requires_grad_()
        reference = attend_reference(operator, states, heads, 0.2, keep)
        (back,) = torch.autograd.grad(reference, states, grad)
        torch.testing.assert_close(results[0], reference, rtol=exact, atol=exact)
        torch.testing.assert_close(results[-1], back, rtol=exact, atol=10 * exact)


@pytest.mark.parametrize("longest", ["first", "last"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_attention_over_rows_of_every_length(native, isa, dtype, longest, monkeypatch):
    # No entry, a part of a vector, whole vectors, more than are held in registers.
    lengths = list(range(40)) if longest == "last" else list(range(39, -1, -1))
    target = torch.repeat_interleave(torch.arange(40), torch.tensor(lengths))
    source = torch.cat([torch.arange(length) for length in lengths])
    generator = torch.Generator().manual_seed(0)
    weight = torch.rand(target.numel(), dtype=dtype, generator=generator)
    edges = torch.stack([source, target])
    operator = graph_operator(edges, weight, num_nodes=40, like=torch.zeros(1, dtype=dtype))
    states = torch.randn(40, 2 * (5 + 2), dtype=dtype, generator=generator)
    grad = torch.randn(40, 10, dtype=dtype, generator=generator)
    guards = Guards()
    with monkeypatch.context() as patch:
        patch.setattr(edge_calls, "buffers", guards)
        found = attention_both_ways(native, guards, operator, states, 2, None, grad)
    assert guards.untouched()
    states.requires_grad_()
    expected = attend_reference(operator, states, 2, 0.2, None)
    (back,) = torch.autograd.grad(expected, states, grad)
    exact = {torch.float32: 2e-5, torch.float64: 1e-13}[dtype]
    torch.testing.assert_close(found[0], expected, rtol=exact, atol=exact)
    torch.testing.assert_close(found[-1], back, rtol=exact, atol=10 * exact)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_cosines_read_and_write_nothing_outside_of_their_arrays(native, isa, dtype, monkeypatch):
    generator = torch.Generator().manual_seed(0)
    operator = some_graph(dtype, generator)
    exact = {torch.float32: 2e-5, torch.float64: 1e-13}[dtype]
    grad = torch.randn(operator.num_entries, dtype=dtype, generator=generator)

    def both_ways(guards, x):
        csr = guarded_csr(guards, operator.pattern.csr)
        norm = guards.around(x.norm(dim=1))
        x = guards.around(x)
        found = edge_calls.cosines(native, csr, x, norm, 0.5)
        back = edge_calls.cosines_backward(native, csr, x, norm, 0.5, found, guards.around(grad))
        return found, back, edge_calls.edge_dots(native, csr, x, x)

    for width in WIDTHS:
        x = torch.randn(20, width, dtype=dtype, generator=generator)
        expected = both_ways(Unguarded(), x)
        guards = Guards(shift=width // 2 % 2)
        with monkeypatch.context() as patch:
            patch.setattr(edge_calls, "buffers", guards)
            results = both_ways(guards, x)
        assert all(torch.equal(a, b) for a, b in zip(results, expected, strict=True)), width
        assert guards.untouched(), width
        x.requires_grad_()
        reference = edge_cosine_reference(operator, x, 0.5)
        (back,) = torch.autograd.grad(reference, x, grad)
        torch.testing.assert_close(results[0], reference, rtol=exact, atol=exact)
        torch.testing.assert_close(results[1], back, rtol=20 * exact, atol=20 * exact)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_shares_follow_exp_over_its_whole_range(native, isa, dtype):
    """Each target hears a source of logit 0 and one of logit −t: shares 1 : exp(−t)."""
    steps = torch.linspace(0, 120 if dtype == torch.float32 else 800, 4001, dtype=torch.float64)
    count = steps.numel()
    target = torch.arange(count)
    row, col = torch.cat([target, target]), torch.cat([target, target + count])
    pattern, _ = SparsePattern.from_entries(row, col, (2 * count, 2 * count))
    states = torch.zeros(2 * count, 3, dtype=dtype)
    states[count:, 1] = -steps.to(dtype)
    value = torch.ones(2 * count, dtype=dtype)
    _, share, _ = edge_calls.attention(native, pattern.csr, value, states, 1, 1.0, None)
    second = share.view(count, 2)[:, 1].double()
    exact = torch.exp(states[count:, 1].double())
    exact = exact / (1 + exact)
    normal = exact > 1.05 * torch.finfo(dtype).tiny
    error = ((second - exact) / exact)[normal].abs().max()
    assert error < 4 * torch.finfo(dtype).eps
    assert (second[~normal] <= 2 * torch.finfo(dtype).tiny).all()


def square(rows=3):
    rowptr = torch.arange(rows + 1, dtype=torch.int32)
    return CSR(rowptr, torch.arange(rows, dtype=torch.int32), (rows, rows))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"value": torch.ones(2)}, r"value has shape \[2\]; expected \[3\]"),
        ({"states": torch.ones(2, 8)}, r"states has shape \[2, 8\]; expected \[3, heads"),
        ({"states": torch.ones(3, 7)}, r"states has shape \[3, 7\]"),
        ({"states": torch.ones(3, 4)}, r"states has shape \[3, 4\].*at least one channel"),
        ({"keep": torch.ones(2, 4)}, r"keep has shape \[2, 4\]; expected \[2, 3\]"),
        ({"csr": CSR(square().rowptr, square().col + 1, (3, 3))}, r"col\[2\] is out of range"),
        ({"csr": CSR(square().rowptr, square().col, (3, 4))}, r"expected \[N, N\]"),
    ],
)
def test_attention_of_wrong_sizes_is_refused(native, change, message):
    given = {"csr": square(), "value": torch.ones(3), "states": torch.ones(3, 8), "keep": None}
    given |= change
    with pytest.raises(ValueError, match=message):
        edge_calls.attention(native, heads=2, slope=0.2, **given)


def test_gradients_of_wrong_sizes_are_refused(native):
    csr, states, x = square(), torch.ones(3, 8), torch.ones(3, 4)
    out, share, used = edge_calls.attention(native, csr, torch.ones(3), states, 2, 0.2, None)
    for kept, grad in (
        ((out, share, used), out[:2]),
        ((out, share[:, :2], used), out),
        ((out[:, :3], share, used), out),
    ):
        with pytest.raises(ValueError, match=r"has shape .*; expected"):
            edge_calls.attention_backward(native, csr, states, 2, 0.2, kept, grad)
    norm, ones = torch.ones(3), torch.ones(3)
    for sizes in ((x[:2], norm, ones, ones), (x, norm[:2], ones, ones), (x, norm, ones, ones[:1])):
        with pytest.raises(ValueError, match=r"has shape .*; expected"):
            edge_calls.cosines_backward(native, csr, *sizes[:2], 0.5, *sizes[2:])
    with pytest.raises(ValueError, match=r"right has shape \[3, 5\]; expected \[3, 4\]"):
        edge_calls.edge_dots(native, csr, x, torch.ones(3, 5))


def test_a_pattern_written_into_is_transposed_again(native):
    """A gradient after a change follows the new entries."""
    csr, x = square(), torch.eye(3, 4)
    norm, grad = torch.ones(3), torch.ones(3)
    for _ in range(2):
        found = edge_calls.cosines(native, csr, x, norm, 0.5)
        back = edge_calls.cosines_backward(native, csr, x, norm, 0.5, found, grad)
        fresh = CSR(csr.rowptr.clone(), csr.col.clone(), csr.shape)
        assert torch.equal(
            back, edge_calls.cosines_backward(native, fresh, x, norm, 0.5, found, grad)
        )
        csr.col[0] = 2


def test_a_graph_without_nodes(native):
    csr = CSR(torch.zeros(1, dtype=torch.int32), torch.empty(0, dtype=torch.int32), (0, 0))
    out, *rest = edge_calls.attention(native, csr, torch.empty(0), torch.empty(0, 6), 2, 0.2, None)
    assert out.shape == (0, 2)
    back = edge_calls.attention_backward(native, csr, torch.empty(0, 6), 2, 0.2, (out, *rest), out)
    assert back.shape == (0, 6)
    x, none = torch.empty(0, 5), torch.empty(0)
    assert edge_calls.cosines(native, csr, x, none, 0.5).shape == (0,)
    assert edge_calls.cosines_backward(native, csr, x, none, 0.5, none, none).shape == (0, 5)
