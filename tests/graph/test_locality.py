"""Nodes in a better order: against the order by its definition, and the graph as it was given."""

import gc
import weakref

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from adgn.graph import (
    CSR,
    SparseOperator,
    SparsePattern,
    TwoWayOperator,
    backend,
    graph_operator,
    locality,
)
from adgn.graph.locality import CACHE_BYTES, renumbered
from adgn.graph.native import locality_calls as calls
from adgn.graph.native.library import native_library
from tests.graph.native.guards import Guards, guarded_csr
from tests.graphs import graphs

pytestmark = pytest.mark.skipif(
    backend().name == "torch", reason=f"native kernels not in use: {backend().reason}"
)


def order_by_definition(operator, first):
    """Which node comes next is asked of all nodes that are left."""
    matrix = operator.to_dense() != 0
    touching = matrix.long() if torch.equal(matrix, matrix.t()) else matrix.long() + matrix.t()
    nodes, order, node = len(matrix), [], first
    latest = torch.zeros(nodes, dtype=torch.long)  # when a neighbour was last placed
    while True:
        order.append(node)
        for rows in (matrix, matrix.t()):
            for count, other in enumerate(rows[node].nonzero().view(-1).tolist(), 1):
                latest[other] = len(order) * 4 * nodes + (rows is not matrix) * nodes + count
        left = [other for other in range(nodes) if other not in order]
        if not left:
            return order
        known = {other: int(touching[other, order].sum()) for other in left}
        share = {other: 63 * known[other] // max(1, int(touching[other].sum())) for other in left}
        heard = [other for other in left if known[other]]
        node = max(heard, key=lambda o: (share[o], latest[o])) if heard else left[0]


@given(graphs(), st.data())
def test_the_order_is_the_one_that_is_defined(example, data):
    operator = graph_operator(example.edge_index, num_nodes=example.num_nodes)
    patterns = (operator.pattern.csr, operator.pattern.transposed)
    first = data.draw(st.integers(0, example.num_nodes - 1))
    count = data.draw(st.integers(0, example.num_nodes))
    expected = order_by_definition(operator, first)
    found = calls.order_by_neighbours(native_library(), *patterns, first, count)
    assert found.tolist() == expected[:count]


@given(graphs(), st.booleans())
def test_it_stays_inside_of_its_arrays(example, wrong):
    operator = graph_operator(example.edge_index, num_nodes=example.num_nodes)
    expected = calls.order_by_neighbours(
        native_library(), operator.pattern.csr, operator.pattern.transposed
    )
    guards = Guards(shift=1)
    csr = guarded_csr(guards, operator.pattern.csr)
    transposed = guarded_csr(guards, operator.pattern.transposed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch, "empty", lambda n, dtype, device: guards.empty(None, (n,), dtype))
        # With `wrong` a directed graph passes for its own transpose.
        found = calls.order_by_neighbours(native_library(), csr, csr if wrong else transposed)
    assert guards.untouched()
    assert sorted(found.tolist()) == list(range(example.num_nodes))
    if operator.pattern.is_symmetric is False and not wrong:
        assert torch.equal(found, expected)


@pytest.mark.parametrize(("first", "count"), [(-1, 3), (3, 1), (0, 4), (0, -1)])
def test_nodes_that_are_not_there(first, count):
    csr = graph_operator(torch.zeros(2, 0, dtype=torch.long), num_nodes=3).pattern.csr
    with pytest.raises(ValueError, match=f"first={first} and count={count} do not fit 3 nodes"):
        calls.order_by_neighbours(native_library(), csr, csr, first, count)


def test_a_matrix_that_is_no_graph():
    features = SparseOperator.from_entries(
        torch.tensor([0]), torch.tensor([2]), torch.ones(1), (2, 3)
    )
    with pytest.raises(ValueError, match=r"csr has shape \[2, 3\] and transposed \[3, 2\]"):
        calls.order_by_neighbours(
            native_library(), features.pattern.csr, features.pattern.transposed
        )


@given(graphs(), st.integers(1, 5), st.data())
def test_waits_are_those_of_a_cache(example, window, data):
    csr = graph_operator(example.edge_index, num_nodes=example.num_nodes).pattern.csr
    numbers = st.lists(st.integers(0, example.num_nodes - 1), max_size=9)
    rows, begin = data.draw(numbers), data.draw(st.integers(0, 9))
    held, entries, waits = [], 0, 0
    for i, row in enumerate(rows):
        for column in csr.col[csr.rowptr[row] : csr.rowptr[row + 1]].tolist():
            entries += i >= begin
            if column not in held:
                waits += i >= begin and column - 1 not in held
                held = [*held, column][-window:]
    guards = Guards(shift=1)
    rows = guards.around(torch.tensor(rows, dtype=torch.int32))
    found = calls.read_rows(native_library(), guarded_csr(guards, csr), rows, begin, window)
    assert found == (entries, waits)
    assert guards.untouched()


@pytest.mark.parametrize("row", [-1, 3])
def test_rows_that_are_not_there(row):
    csr = graph_operator(torch.zeros(2, 0, dtype=torch.long), num_nodes=3).pattern.csr
    rows = torch.tensor([0, row], dtype=torch.int32)
    with pytest.raises(ValueError, match=rf"rows\[1\] = {row} is not a row; rows are 0 to 2"):
        calls.read_rows(native_library(), csr, rows, 0, 1)


@pytest.mark.parametrize("order", [[0, 1, 3], [0, -1, 2], [0, 2, 2]])
def test_an_order_that_is_no_permutation(order):
    csr = graph_operator(torch.zeros(2, 0, dtype=torch.long), num_nodes=3).pattern.csr
    with pytest.raises(ValueError, match=r"order\[\d\] = -?\d does not continue a permutation"):
        calls.renumber(native_library(), csr, torch.tensor(order, dtype=torch.int32))


def mesh(side, numbers):
    """The edges of a grid, both ways; node `i` of the grid has the number `numbers[i]`."""
    grid = torch.arange(side * side).view(side, side)
    pairs = torch.cat(
        [
            torch.stack([grid[:, :-1].flatten(), grid[:, 1:].flatten()]),
            torch.stack([grid[:-1].flatten(), grid[1:].flatten()]),
        ],
        dim=1,
    )
    return numbers[torch.cat([pairs, pairs.flip(0)], dim=1)]


def shuffled(nodes):
    return torch.randperm(nodes, generator=torch.Generator().manual_seed(1))


ALONG = torch.arange(48 * 48)


def with_window(nodes):
    """How large a state must be for so many to be in the cache."""
    return CACHE_BYTES // nodes


def found_for(edge_index, nodes, window=64, **options):
    operator = graph_operator(edge_index, num_nodes=nodes, **options)
    return renumbered(native_library(), operator, with_window(window)), operator


@pytest.mark.parametrize("directed", [False, True])
def test_the_operator_is_that_of_the_same_graph(directed):
    side, nodes = 24, 576
    edge_index = mesh(side, shuffled(nodes))
    if directed:
        edge_index = edge_index[:, : edge_index.size(1) // 2]
    weight = torch.rand(edge_index.size(1), generator=torch.Generator().manual_seed(2))
    options = {"num_nodes": nodes, "normalization": "gcn"}
    inward, outward = (
        graph_operator(edge_index, weight, direction=one, **options) for one in ("in", "out")
    )
    for operator in (inward, TwoWayOperator(inward, outward)):
        found = renumbered(native_library(), operator, with_window(64))
        order = found.order.long()
        assert sorted(order.tolist()) == list(range(nodes))
        assert torch.equal(found.place[order], torch.arange(nodes, dtype=torch.int32))
        parts = [operator] if operator is inward else [inward, outward]
        new = found.operator
        new = [new] if operator is inward else [new.inward, new.outward]
        for given_one, new_one in zip(parts, new, strict=True):
            dense = given_one.to_dense()[order][:, order]
            assert torch.equal(new_one.to_dense(), dense)
            assert new_one.is_symmetric == given_one.is_symmetric
        states = torch.randn(nodes, 3)
        assert torch.equal(found.there(states), states[order])
        assert torch.equal(found.back(found.there(states)), states)


def test_only_a_graph_with_a_better_order_gets_one():
    side, nodes = 48, 48 * 48
    generator = torch.Generator().manual_seed(0)
    along, at_random = mesh(side, torch.arange(nodes)), mesh(side, shuffled(nodes))
    drawn = torch.randint(0, nodes, (2, 8 * nodes), generator=generator)
    assert found_for(at_random, nodes)[0] is not None
    assert found_for(along, nodes)[0] is None  # its order is good
    assert found_for(along, nodes, window=24)[0] is None  # not even with less than a row of it
    assert found_for(drawn, nodes)[0] is None  # it has no better one
    assert found_for(at_random, nodes, window=nodes)[0] is None  # all states are in the cache
    assert found_for(torch.zeros(2, 0, dtype=torch.long), nodes)[0] is None


def test_less_is_read_in_the_new_order():
    side, window = 60, 256
    nodes = side * side

    def waits(operator):
        rows = torch.arange(nodes, dtype=torch.int32)
        return calls.read_rows(native_library(), operator.pattern.csr, rows, 0, window)[1]

    found, given_one = found_for(mesh(side, shuffled(nodes)), nodes, window)
    before, after = waits(given_one), waits(found.operator)
    assert before > 3 * nodes  # nearly one for each of the four neighbours
    assert after < 0.5 * nodes  # of most nodes the cache has all neighbours, or those before them


def test_it_is_worked_out_once_and_values_anew(monkeypatch):
    nodes = 576
    edge_index, weight = mesh(24, shuffled(nodes)), torch.ones(4 * 24 * 23)
    operator = graph_operator(edge_index, weight, num_nodes=nodes)
    orders, real = [], locality.order_by_neighbours

    def counting(*arguments):
        orders.append(arguments)
        return real(*arguments)

    monkeypatch.setattr(locality, "order_by_neighbours", counting)
    found = renumbered(native_library(), operator, with_window(64))
    again = renumbered(native_library(), operator, with_window(64))
    assert again.operator is found.operator
    operator.value.mul_(3)
    tripled = renumbered(native_library(), operator, with_window(64)).operator
    assert torch.equal(tripled.value, torch.full_like(tripled.value, 3))
    # Other weights, and another size of states: the same order and the same pattern.
    other = operator.with_values(operator.value - 1)
    doubled = renumbered(native_library(), other, with_window(32)).operator
    assert doubled.pattern is tripled.pattern
    assert len([one for one in orders if len(one) == 3]) == 1
    kept = weakref.ref(doubled)
    del doubled, other
    gc.collect()
    assert kept() is None  # it ends with its values
    with torch.inference_mode():
        unknown = operator.with_values(operator.value.clone())
    # Writes into it cannot be seen, so nothing could be remembered.
    assert renumbered(native_library(), unknown, with_window(64)) is None


def test_samples_decide_as_the_whole_graph_does(monkeypatch):
    side = 48
    nodes = side * side
    for edge_index, expected in ((mesh(side, shuffled(nodes)), True), (mesh(side, ALONG), False)):
        pattern = graph_operator(edge_index, num_nodes=nodes).pattern
        order = calls.order_by_neighbours(native_library(), pattern.csr, pattern.transposed)
        for known in (order, None):
            saved = locality._saved(native_library(), pattern, 64, known)
            assert (saved > 0.3) is expected
            assert (saved > 0) is expected


def test_another_default_device_does_not_matter():
    nodes = 48 * 48
    operator = graph_operator(mesh(48, shuffled(nodes)), num_nodes=nodes)
    with torch.device("meta"):
        found = renumbered(native_library(), operator, with_window(64))
        assert found.there(torch.ones(nodes, 2, device="cpu")).device.type == "cpu"


@given(graphs(), st.integers(0, 3), st.data())
def test_a_pattern_with_other_numbers(example, channels, data):
    nodes = example.num_nodes
    operator = graph_operator(example.edge_index, num_nodes=nodes)
    order = torch.tensor(data.draw(st.permutations(range(nodes))), dtype=torch.int32)
    guards = Guards(shift=1)
    csr = guarded_csr(guards, operator.pattern.csr)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch, "empty_like", lambda t: guards.empty(None, t.shape, t.dtype))
        rowptr, col, slot, place = calls.renumber(native_library(), csr, guards.around(order))
    assert guards.untouched()
    new = SparsePattern.from_csr(CSR(rowptr, col, csr.shape))
    value = torch.arange(1.0, operator.num_entries + 1)
    moved = SparseOperator(new, value[slot.long()]).to_dense()
    expected = operator.with_values(value).to_dense()
    assert torch.equal(moved, expected[order.long()][:, order.long()])
    assert torch.equal(place[order.long()], torch.arange(nodes, dtype=torch.int32))
    states = torch.randn(channels, nodes, dtype=torch.float64).t()  # not contiguous
    taken = calls.take_rows(native_library(), states, order)
    assert torch.equal(taken, states[order.long()])


def test_patterns_that_the_kernels_cannot_read():
    csr = CSR(torch.zeros(4, dtype=torch.long), torch.zeros(0, dtype=torch.long), (3, 3))
    with pytest.raises(ValueError, match=r"cannot read torch\.int64 rowptr"):
        calls.order_by_neighbours(native_library(), csr, csr)
