import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adgn.graph import CSR, SparseOperator, SparsePattern, graph_operator, set_backend
from adgn.graph.native import calls
from tests.crossing import covering
from tests.graph.native.guards import Guards, Unguarded, guarded_csr

shared_fixture = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def test_tanh_single_is_within_three_units_in_the_last_place(native, isa):
    size = torch.cat([torch.linspace(0, 12, 200_001), torch.logspace(-37, 2, 100_001)])
    x = torch.cat([size, -size]).float()
    exact = x.double().tanh()
    unit = torch.nextafter(exact.float().abs(), torch.tensor(2.0)) - exact.float().abs()
    error = (calls.tanh(native, x).double() - exact).abs() / unit.double()
    assert error.max() < 3


def test_tanh_double_is_accurate_to_1e15(native, isa):
    size = torch.cat(
        [
            torch.linspace(0, 25, 200_001, dtype=torch.float64),
            torch.logspace(-300, 2, 100_001, dtype=torch.float64),
        ]
    )
    x = torch.cat([size[1:], -size[1:]])
    exact = x.tanh()
    assert ((calls.tanh(native, x) - exact) / exact).abs().max() < 1e-15


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_tanh_of_special_numbers(native, isa, dtype):
    inf, nan = float("inf"), float("nan")
    x = torch.tensor([0.0, -0.0, inf, -inf, nan, 1e30, -1e30, 5e-324, 1e-45], dtype=dtype)
    result = calls.tanh(native, x)
    torch.testing.assert_close(result, x.tanh(), rtol=1e-6, atol=0, equal_nan=True)
    assert result[:2].signbit().tolist() == [False, True]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_products_of_every_width_are_exact_and_stay_in_their_rows(native, isa, dtype):
    generator = torch.Generator().manual_seed(0)
    edges = torch.randint(0, 20, (2, 90), generator=generator)
    operator = graph_operator(edges, num_nodes=21, like=torch.zeros(1, dtype=dtype))  # one alone
    for width in range(1, 150):
        # Whole numbers: every order of adding them up gives the same.
        x = torch.randint(-9, 9, (21, width), generator=generator).to(dtype)
        product = calls.multiply(native, operator.pattern.csr, operator.value, x)
        assert torch.equal(product, operator.to_dense() @ x), width


@shared_fixture
@given(data=st.data())
def test_sorting_equals_torchs(native, data):
    rows, columns = data.draw(st.integers(1, 30)), data.draw(st.integers(1, 30))
    entry = st.tuples(st.integers(0, rows - 1), st.integers(0, columns - 1))
    entries = torch.tensor(data.draw(st.lists(entry, max_size=200)), dtype=torch.long)
    row, col = entries.reshape(-1, 2).unbind(1)
    ours, slot = SparsePattern.from_entries(row, col, (rows, columns))
    with set_backend("torch"):
        theirs, their_slot = SparsePattern.from_entries(row, col, (rows, columns))
    assert slot.tolist() == their_slot.tolist()
    assert ours.is_symmetric == theirs.is_symmetric
    assert ours.to_transposed.tolist() == theirs.to_transposed.tolist()
    for mine, other in ((ours.csr, theirs.csr), (ours.transposed, theirs.transposed)):
        assert mine.shape == other.shape
        assert mine.rowptr.dtype == other.rowptr.dtype and mine.col.dtype == other.col.dtype
        assert mine.rowptr.tolist() == other.rowptr.tolist()
        assert mine.col.tolist() == other.col.tolist()


def test_sorting_names_an_entry_out_of_range(native):
    row, col = torch.tensor([0, 1]), torch.tensor([0, 7])
    with pytest.raises(ValueError, match=r"entry 1 is at row 1, column 7, outside of shape \[2, 3"):
        SparsePattern.from_entries(row, col, (2, 3))


def by_hand(rowptr, col, block_ptr=None, nodes=3):
    csr = CSR(torch.tensor(rowptr).int(), torch.tensor(col).int(), (nodes, nodes))
    return SparseOperator(SparsePattern(csr, csr, None, block_ptr), torch.ones(len(col)))


@pytest.mark.parametrize(
    ("rowptr", "col", "message"),
    [
        ([0, 1, 2, 3], [0, 1, 3], r"col\[2\] is out of range"),
        ([0, 1, 2, 3], [0, -1, 2], r"col\[1\] is out of range"),
        ([1, 1, 2, 3], [0, 1, 2], r"rowptr\[0\]"),
        ([0, 3, 2, 3], [0, 1, 2], r"rowptr\[2\]"),
        ([0, 1, 2, 9], [0, 1, 2], r"rowptr\[3\]"),
        ([0, 1, 2, 2], [0, 1, 2], r"rowptr\[3\]"),
    ],
)
def test_an_operator_made_by_hand_is_checked_before_it_is_trusted(native, rowptr, col, message):
    with pytest.raises(ValueError, match=message):
        by_hand(rowptr, col) @ torch.ones(3, 16)


def test_a_pattern_written_into_is_checked_again(native):
    operator = by_hand([0, 1, 2, 3], [0, 1, 2])
    _ = operator @ torch.ones(3, 16)
    operator.pattern.csr.col[1] = 1000
    with pytest.raises(ValueError, match=r"col\[1\] is out of range"):
        _ = operator @ torch.ones(3, 16)


def test_blocks_that_are_not_separate_are_refused(native):
    operator = by_hand([0, 1, 2, 3], [0, 2, 1])
    for block_ptr, message in (
        ([0, 2, 3], r"col\[1\] lies outside of its row's block"),
        ([0, 2], r"block_ptr\[1\]"),
        ([0, 3, 2, 3], r"block_ptr\[2\]"),
        ([1, 3], r"block_ptr\[0\]"),
    ):
        with pytest.raises(ValueError, match=message):
            calls.check_pattern(native, operator.pattern.csr, torch.tensor(block_ptr))
    calls.check_pattern(native, operator.pattern.csr, torch.tensor([0, 1, 1, 3]))


def test_values_must_match_the_pattern(native):
    operator = by_hand([0, 1, 2, 3], [0, 1, 2])
    wrong = SparseOperator(operator.pattern, torch.ones(2))
    with pytest.raises(ValueError, match=r"values of shape \[2\] for 3 entries"):
        _ = wrong @ torch.ones(3, 16)


@pytest.mark.parametrize("nodes", [2, 4])
def test_states_must_match_the_pattern(native, nodes):
    """Before C++ reads or writes beyond them."""
    operator, x = by_hand([0, 1, 2, 3], [0, 1, 2]), torch.ones(nodes, 16)
    csr, value, weight = operator.pattern.csr, operator.value, torch.eye(16).unsqueeze(0)
    steps = calls.integration(native, csr, value, weight, weight, None, None, 0.1, "identity", 1)
    kept = (torch.zeros(1, 3, 16), None, None)
    with pytest.raises(ValueError, match=rf"x has shape \[{nodes}, 16\]; the operator of shape"):
        calls.multiply(native, csr, value, x)
    with pytest.raises(ValueError, match=rf"x has shape \[{nodes}, 16\]; the operator and"):
        calls.forward(native, steps, x, keep=False)
    with pytest.raises(ValueError, match=rf"grad has shape \[{nodes}, 16\]; the operator and"):
        calls.backward(native, steps, x, kept, None)


def test_states_must_match_the_weights(native):
    operator, weight = by_hand([0, 1, 2, 3], [0, 1, 2]), torch.eye(16).unsqueeze(0)
    csr, value = operator.pattern.csr, operator.value
    steps = calls.integration(native, csr, value, weight, weight, None, None, 0.1, "identity", 1)
    with pytest.raises(ValueError, match=r"x has shape \[3, 8\].*shape \[3, 16\]"):
        calls.forward(native, steps, torch.ones(3, 8), keep=False)


@pytest.mark.parametrize("channels", [1, 5, 16, 64, 80])
def test_products_agree_for_all_instruction_sets(native, isa, channels):
    generator = torch.Generator().manual_seed(0)
    edges = torch.randint(0, 40, (2, 300), generator=generator)
    operator = graph_operator(edges, num_nodes=40, normalization="gcn")
    x = torch.randn(40, channels, generator=generator)
    torch.testing.assert_close(operator @ x, operator.to_dense() @ x)


def test_blocks_that_are_not_there_are_refused(native):
    operator = by_hand([0, 1, 2, 3], [0, 2, 1])
    pointer = torch.tensor([0, 1, 3])
    rowptr, col, slot = calls.take_blocks(
        native, operator.pattern.csr, pointer, torch.tensor([1, 0, 1])
    )
    assert rowptr.tolist() == [0, 1, 2, 3, 4, 5]
    assert col.tolist() == [1, 0, 2, 4, 3]
    assert slot.tolist() == [1, 2, 0, 1, 2]
    for block in (-1, 2):
        with pytest.raises(IndexError):
            calls.take_blocks(native, operator.pattern.csr, pointer, torch.tensor([0, block]))
    with pytest.raises(ValueError, match="lies outside of its row's block"):
        calls.take_blocks(native, operator.pattern.csr, torch.tensor([0, 2, 3]), torch.tensor([0]))


def test_blocks_are_taken_from_inside_their_arrays(native, monkeypatch):
    operator, ptr = some_blocks(torch.float32, torch.Generator().manual_seed(0))
    csr, blocks = operator.pattern.csr, torch.tensor([1, 1, 0])
    expected = calls.take_blocks(native, csr, ptr, blocks)
    guards = Guards(shift=1)
    # What the call makes itself is guarded, too.
    with monkeypatch.context() as patch:
        patch.setattr(
            torch, "empty", lambda size, dtype, device: guards.empty(None, (size,), dtype)
        )
        arguments = (guarded_csr(guards, csr), guards.around(ptr), guards.around(blocks))
        taken = calls.take_blocks(native, *arguments)
    assert all(torch.equal(a, b) for a, b in zip(taken, expected, strict=True))
    assert guards.untouched()


WIDTHS = range(1, 71)


def some_blocks(dtype, generator):
    """Two graphs side by side, the first with a node alone, and where each begins."""
    edges = torch.randint(0, 9, (2, 30), generator=generator)
    edges = torch.cat([edges, 10 + torch.randint(0, 13, (2, 40), generator=generator)], 1)
    weight = torch.rand(70, dtype=dtype, generator=generator)
    like = torch.zeros(1, dtype=dtype)
    return graph_operator(edges, weight, num_nodes=23, like=like), torch.tensor([0, 10, 23])


def test_guards_notice_a_cell_that_is_written_beyond():
    for place in (-1, 6):
        guards = Guards(shift=1)
        guarded = guards.around(torch.zeros(2, 3))
        assert guards.untouched()
        beyond = guarded.as_strided((1,), (1,), guarded.storage_offset() + place)
        assert beyond.isnan().all()
        beyond.fill_(0.0)
        assert not guards.untouched()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_products_read_and_write_nothing_outside_of_their_arrays(native, isa, dtype, monkeypatch):
    generator = torch.Generator().manual_seed(0)
    operator, _ = some_blocks(dtype, generator)
    for width in WIDTHS:
        x = torch.randn(23, width, dtype=dtype, generator=generator)
        for csr, value in (
            (operator.pattern.csr, operator.value),
            (operator.pattern.transposed, operator.transposed_value),  # the backward pass
        ):
            expected = calls.multiply(native, csr, value, x)
            guards = Guards(shift=width // 2 % 2)
            with monkeypatch.context() as patch:
                patch.setattr(calls, "buffers", guards)
                arguments = (guarded_csr(guards, csr), guards.around(value), guards.around(x))
                product = calls.multiply(native, *arguments)
            assert torch.equal(product, expected), width
            assert guards.untouched(), width


@covering(
    "matrices, dtype, activation, by_blocks",
    [1, 2],
    [torch.float32, torch.float64],
    calls.ACTIVATIONS,
    [False, True],
    strength=3,
)
def test_steps_read_and_write_nothing_outside_of_their_arrays(
    native, isa, matrices, dtype, activation, by_blocks, monkeypatch
):
    generator = torch.Generator().manual_seed(0)
    operator, ptr = some_blocks(dtype, generator)

    def both_ways(guards, x, weights, grad):
        """Forward and backward through two steps, all arrays guarded."""
        w_self, w_neigh, bias = map(guards.around, weights)
        block_ptr = guards.around(ptr) if by_blocks else None
        rest = (w_self, w_neigh, bias, block_ptr, 0.1, activation, 2)
        pattern = operator.pattern
        sides = [
            (guarded_csr(guards, csr), guards.around(value))
            for csr, value in (
                (pattern.csr, operator.value),
                (pattern.transposed, operator.transposed_value),
            )
        ]
        # The second matrix is the transpose, as for both directions of a graph.
        ahead = calls.integration(native, *sides[0], *rest, *([sides[1]] if matrices == 2 else []))
        first = guards.around(x)
        out, *kept = calls.forward(native, ahead, first, keep=True)
        alone, *_ = calls.forward(native, ahead, guards.around(x), keep=False)
        back = calls.integration(native, *sides[1], *rest, *([sides[0]] if matrices == 2 else []))
        grads = tuple(guards.around(torch.zeros_like(weight)) for weight in weights)
        kept = (*kept, first if activation == "tanh" else None)
        grad_x = calls.backward(native, back, guards.around(grad), kept, grads)
        return out, alone, grad_x, *grads

    for width in WIDTHS:
        x, grad = (torch.randn(23, width, dtype=dtype, generator=generator) for _ in range(2))
        sets = 1 + width % 2
        shapes = ((sets, width, width), (sets, matrices * width, width), (sets, width))
        weights = [0.3 * torch.randn(shape, dtype=dtype, generator=generator) for shape in shapes]
        expected = both_ways(Unguarded(), x, weights, grad)
        guards = Guards(shift=width // 2 % 2)
        with monkeypatch.context() as patch:
            patch.setattr(calls, "buffers", guards)
            results = both_ways(guards, x, weights, grad)
        assert all(torch.equal(a, b) for a, b in zip(results, expected, strict=True)), width
        assert all(bool(result.isfinite().all()) for result in results), width
        assert guards.untouched(), width


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("matrices", [1, 2])
def test_blocks_of_every_size_give_what_whole_layers_give(native, isa, matrices, weighted):
    """Rows of a block are gathered in another order, and tiles end wherever a block does."""
    generator = torch.Generator().manual_seed(0)
    sizes = torch.arange(60)
    ptr = torch.cat([torch.zeros(1, dtype=torch.long), sizes.cumsum(0)])
    nodes, channels, steps = int(ptr[-1]), 9, 6
    ends = [
        begin + torch.randint(0, int(size), (2, 3 * int(size)), generator=generator)
        for begin, size in zip(ptr[:-1].tolist(), sizes.tolist(), strict=True)
        if size
    ]
    hub = torch.stack([torch.arange(20), torch.zeros(20, dtype=torch.long)]) + int(ptr[-2])
    edges = torch.cat([*ends, hub], 1)
    weight = torch.rand(edges.size(1), generator=generator) if weighted else None
    operator = graph_operator(edges, weight, num_nodes=nodes)
    pattern, grad = operator.pattern, torch.randn(nodes, channels, generator=generator)
    sides = (
        (pattern.csr, operator.value.detach()),
        (pattern.transposed, operator.transposed_value.detach()),
    )
    x = torch.randn(nodes, channels, generator=generator)
    shapes = ((1, channels, channels), (1, matrices * channels, channels), (1, channels))
    weights = [0.2 * torch.randn(shape, generator=generator) for shape in shapes]

    def both_ways(block_ptr):
        rest = (*weights, block_ptr, 0.1, "tanh", steps)
        ahead = calls.integration(native, *sides[0], *rest, *([sides[1]] if matrices == 2 else []))
        back = calls.integration(native, *sides[1], *rest, *([sides[0]] if matrices == 2 else []))
        out, *kept = calls.forward(native, ahead, x, keep=True)
        grads = tuple(map(torch.zeros_like, weights))
        return out, calls.backward(native, back, grad, (*kept, x), grads), grads

    (out, grad_x, grads), (expected, expected_x, expected_grads) = both_ways(ptr), both_ways(None)
    assert torch.equal(out, expected)
    assert torch.equal(grad_x, expected_x)
    for found, other in zip(grads, expected_grads, strict=True):  # added up in another order
        torch.testing.assert_close(found, other, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("blocks", [None, [0], [0, 0, 0]])
@pytest.mark.parametrize("activation", calls.ACTIVATIONS)
def test_a_graph_without_nodes(native, activation, blocks):
    """Its arrays have no address; `make sanitize` sees whether one is used all the same."""
    row = torch.empty(0, dtype=torch.long)
    pattern, slot = SparsePattern.from_entries(row, row, (0, 0))
    csr, x, value = pattern.csr, torch.empty(0, 5), torch.empty(0)
    assert slot.tolist() == csr.col.tolist() == pattern.transposed.col.tolist() == []
    assert csr.rowptr.tolist() == pattern.transposed.rowptr.tolist() == [0]
    assert calls.multiply(native, csr, value, x).shape == (0, 5)
    assert calls.tanh(native, x).shape == (0, 5)
    weights = [torch.ones(2, 5, 5), torch.ones(2, 5, 5), torch.ones(2, 5)]
    block_ptr = None if blocks is None else torch.tensor(blocks)
    steps = calls.integration(native, csr, value, *weights, block_ptr, 0.1, activation, 2)
    out, states, active = calls.forward(native, steps, x, keep=True)
    assert out.shape == (0, 5)
    sums = tuple(map(torch.zeros_like, weights))
    kept = (states, active, x if activation == "tanh" else None)
    assert calls.backward(native, steps, out, kept, sums).shape == (0, 5)
    assert all(not total.any() for total in sums)
    if block_ptr is not None:
        count = torch.arange(len(blocks) - 1)
        rowptr, col, taken = calls.take_blocks(native, csr, block_ptr, count)
        assert (rowptr.tolist(), col.tolist(), taken.tolist()) == ([0], [], [])
