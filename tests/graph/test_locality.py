"""Nodes in a better order: against the order by its definition, and the graph as it was given."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from adgn.graph import SparseOperator, TwoWayOperator, backend, graph_operator
from adgn.graph.locality import CACHE_BYTES, renumbered
from adgn.graph.native import calls
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
    with pytest.raises(ValueError, match=r"shape \[2, 3\] has no order of nodes"):
        calls.order_by_neighbours(
            native_library(), features.pattern.csr, features.pattern.transposed
        )


@given(graphs(), st.integers(1, 5), st.data())
def test_misses_are_those_of_a_cache(example, window, data):
    csr = graph_operator(example.edge_index, num_nodes=example.num_nodes).pattern.csr
    numbers = st.lists(st.integers(0, example.num_nodes - 1), max_size=9)
    rows, begin = data.draw(numbers), data.draw(st.integers(0, 9))
    held, misses = [], 0
    for i, row in enumerate(rows):
        for column in csr.col[csr.rowptr[row] : csr.rowptr[row + 1]].tolist():
            if column not in held:
                held = [*held, column][-window:]
                misses += i >= begin
    guards = Guards(shift=1)
    rows = guards.around(torch.tensor(rows, dtype=torch.int32))
    found = calls.count_misses(native_library(), guarded_csr(guards, csr), rows, begin, window)
    assert found == misses
    assert guards.untouched()


@pytest.mark.parametrize("row", [-1, 3])
def test_rows_that_are_not_there(row):
    csr = graph_operator(torch.zeros(2, 0, dtype=torch.long), num_nodes=3).pattern.csr
    with pytest.raises(ValueError, match="rows has numbers out of range for 3 rows"):
        calls.count_misses(native_library(), csr, torch.tensor([0, row]), 0, 1)


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
        assert sorted(found.order.tolist()) == list(range(nodes))
        assert torch.equal(found.place[found.order], torch.arange(nodes))
        parts = [operator] if operator is inward else [inward, outward]
        new = found.operator
        new = [new] if operator is inward else [new.inward, new.outward]
        for given_one, new_one in zip(parts, new, strict=True):
            dense = given_one.to_dense()[found.order][:, found.order]
            assert torch.equal(new_one.to_dense(), dense)
            assert new_one.is_symmetric == given_one.is_symmetric
        states = torch.randn(nodes, 3)
        assert torch.equal(found.there(states), states[found.order])
        assert torch.equal(found.back(found.there(states)), states)


def test_only_a_graph_with_a_better_order_gets_one():
    side, nodes = 48, 48 * 48
    generator = torch.Generator().manual_seed(0)
    along, at_random = mesh(side, torch.arange(nodes)), mesh(side, shuffled(nodes))
    drawn = torch.randint(0, nodes, (2, 8 * nodes), generator=generator)
    assert found_for(at_random, nodes)[0] is not None
    assert found_for(along, nodes)[0] is None  # its order is good
    assert found_for(drawn, nodes)[0] is None  # it has no better one
    assert found_for(at_random, nodes, window=nodes)[0] is None  # all states are in the cache
    assert found_for(torch.zeros(2, 0, dtype=torch.long), nodes)[0] is None


def test_less_is_read_in_the_new_order():
    side, window = 60, 256
    nodes = side * side

    def misses(operator):
        rows = torch.arange(nodes)
        return calls.count_misses(native_library(), operator.pattern.csr, rows, 0, window)

    found, given_one = found_for(mesh(side, shuffled(nodes)), nodes, window)
    before, after = misses(given_one), misses(found.operator)
    assert before > 3 * nodes  # nearly one for each of the four neighbours
    assert after < 1.2 * nodes  # nearly one for each node, as along the mesh


def test_it_is_worked_out_once_and_anew_for_other_values():
    nodes = 576
    edge_index, weight = mesh(24, shuffled(nodes)), torch.ones(4 * 24 * 23)
    operator = graph_operator(edge_index, weight, num_nodes=nodes)
    found = renumbered(native_library(), operator, with_window(64))
    assert renumbered(native_library(), operator, with_window(64)) is found
    operator.value.mul_(3)
    again = renumbered(native_library(), operator, with_window(64))
    assert torch.equal(again.operator.value, torch.full_like(again.operator.value, 3))
    with torch.inference_mode():
        unknown = operator.with_values(operator.value.clone())
    # Writes into it cannot be seen, so nothing could be remembered.
    assert renumbered(native_library(), unknown, with_window(64)) is None
