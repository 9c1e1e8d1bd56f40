import threading

import pytest
import torch
from hypothesis import given

from adgn.graph import (
    GraphBlocks,
    SparseOperator,
    SparsePattern,
    backend,
    graph_operator,
    set_backend,
)
from adgn.graph.cache import lazy_property
from adgn.nn import AntiSymmetricConv
from tests.forks import needs_fork, status_of_child
from tests.graphs import CORNER_CASES, Example, graphs

on_native = pytest.mark.skipif(
    backend().name == "torch", reason=f"native kernels not in use: {backend().reason}"
)
BACKENDS = [pytest.param("native", marks=on_native), "torch"]


@given(graphs())
def test_the_transpose_is_the_transpose(graph: Example):
    operator = graph_operator(graph.edge_index, graph.edge_weight, num_nodes=graph.num_nodes)
    turned = operator.pattern.transposed
    dense = torch.zeros(turned.shape, dtype=operator.value.dtype)
    dense[turned.row.long(), turned.col.long()] = operator.transposed_value
    assert torch.equal(dense, operator.to_dense().t())


@given(graphs())
def test_rows_are_sorted_and_hold_each_column_once(graph: Example):
    csr = graph_operator(graph.edge_index, num_nodes=graph.num_nodes).pattern.csr
    torch.sparse_csr_tensor(
        csr.rowptr, csr.col, torch.ones(csr.col.numel()), csr.shape, check_invariants=True
    )
    assert csr.col.dtype == torch.int32
    assert csr.col.numel() == len(set(map(tuple, graph.edge_index.t().tolist())))


@pytest.mark.parametrize("normalization", ["none", "gcn"])
def test_an_undirected_graph_keeps_one_set_of_arrays(normalization: str):
    def operator(name: str):
        graph = CORNER_CASES[name]
        return graph_operator(
            graph.edge_index,
            graph.edge_weight,
            num_nodes=graph.num_nodes,
            normalization=normalization,
        )

    assert operator("undirected").is_symmetric
    assert operator("weighted-undirected").is_symmetric
    assert not operator("directed").is_symmetric


def test_same_places_but_other_values_is_not_symmetric():
    weight = torch.tensor([1.0, 2.0])
    operator = graph_operator(torch.tensor([[0, 1], [1, 0]]), weight, num_nodes=2)
    assert operator.pattern.is_symmetric
    assert not operator.is_symmetric


def test_rectangular_patterns():
    pattern, slot = SparsePattern.from_entries(
        torch.tensor([1, 0, 1]), torch.tensor([2, 0, 2]), (2, 3)
    )
    assert pattern.csr.rowptr.tolist() == [0, 1, 2]
    assert pattern.csr.col.tolist() == [0, 2]
    assert slot.tolist() == [1, 0, 1]
    assert pattern.transposed.rowptr.tolist() == [0, 1, 1, 2]


def symmetric_operator(requires_grad=False):
    """A path of four nodes whose values are 1 in both directions."""
    graph = CORNER_CASES["undirected"]
    made = graph_operator(graph.edge_index, num_nodes=4, like=torch.zeros(0, dtype=torch.float64))
    return SparseOperator(made.pattern, made.value.clone().requires_grad_(requires_grad))


@pytest.mark.parametrize("serving", BACKENDS)
@pytest.mark.parametrize("fused", [False, True])  # a fused step does not count as a change
def test_gradients_follow_values_that_are_learned(serving, fused):
    operator = symmetric_operator(requires_grad=True)
    optimizer = torch.optim.Adam([operator.value], lr=1.0, fused=fused)
    x = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    with set_backend(serving):
        for _ in range(3):
            optimizer.zero_grad()
            x.grad = None
            (operator @ x).square().sum().backward()
            dense = operator.to_dense().detach()
            torch.testing.assert_close(x.grad, 2 * dense.t() @ dense @ x.detach())
            optimizer.step()


def changes():
    """Ways to change values, each of which makes a symmetric matrix asymmetric."""

    def at_once(operator):
        operator.value.mul_(torch.arange(1.0, 7, dtype=torch.float64))

    def one_entry(operator):
        operator.value[0] = 5

    def other_data(operator):
        operator.value.data = torch.arange(1.0, 7, dtype=torch.float64)

    return [at_once, one_entry, other_data]


@pytest.mark.parametrize("change", changes())
@pytest.mark.parametrize("serving", BACKENDS)
def test_gradients_follow_values_that_are_changed_in_place(serving, change):
    operator = symmetric_operator()
    x = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    with set_backend(serving):
        (operator @ x).sum().backward()
        assert operator.is_symmetric
        change(operator)
        x.grad = None
        (operator @ x).sum().backward()
    assert not operator.is_symmetric
    expected = operator.to_dense().t() @ torch.ones(4, 3, dtype=torch.float64)
    torch.testing.assert_close(x.grad, expected)


@pytest.mark.parametrize("change", changes())
@pytest.mark.parametrize("serving", BACKENDS)
def test_an_integration_follows_values_that_are_changed_in_place(serving, change):
    operator = symmetric_operator()
    layer = AntiSymmetricConv(3, phi="sum", num_iters=3).double()
    x = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    with set_backend(serving):
        layer(x, operator).sum().backward()
        change(operator)
        x.grad = None
        layer(x, operator).sum().backward()
        fresh = SparseOperator(operator.pattern, operator.value.clone())
        expected = torch.autograd.grad(layer(x, fresh).sum(), x)[0]
    torch.testing.assert_close(x.grad, expected)


@pytest.mark.parametrize("serving", BACKENDS)
def test_values_changed_before_the_backward_pass_are_told(serving):
    operator = symmetric_operator()
    layer = AntiSymmetricConv(3, phi="sum", num_iters=3).double()
    x = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    with set_backend(serving):
        for result in (operator @ x, layer(x, operator)):
            operator.value.mul_(2)
            with pytest.raises(RuntimeError, match="modified by an inplace operation"):
                result.sum().backward()


def test_a_batch_follows_values_that_are_changed_in_place():
    blocks = GraphBlocks(torch.tensor([[0, 1, 2], [1, 0, 3]]), torch.tensor([0, 2, 4]))
    for chosen in ([0], [1], [1, 0]):  # symmetric, not symmetric, both
        operator = blocks.select(torch.tensor(chosen)).operator("none", torch.float32)
        operator.value.mul_(torch.arange(2.0, 2 + operator.num_entries))
        x = torch.eye(operator.shape[0], requires_grad=True)
        (operator @ x).trace().backward()
        torch.testing.assert_close(x.grad, operator.to_dense().t())


def test_what_is_known_of_values_follows_them():
    operator = symmetric_operator()
    assert (operator.has_negative_values, operator.has_zero_values) == (False, False)
    operator.value[0] = -1
    assert (operator.has_negative_values, operator.has_zero_values) == (True, False)
    operator.value[0] = 0
    assert (operator.has_negative_values, operator.has_zero_values) == (False, True)
    operator.value.fill_(1)
    assert operator.is_symmetric


def test_constant_values_are_turned_over_once():
    graph = CORNER_CASES["weighted"]
    operator = graph_operator(graph.edge_index, graph.edge_weight, num_nodes=4)
    assert operator.transposed_value is operator.transposed_value


def test_values_made_in_inference_mode_are_read_anew():
    with torch.inference_mode():
        graph = CORNER_CASES["weighted"]
        pattern = graph_operator(graph.edge_index, num_nodes=4).pattern
        operator = SparseOperator(pattern, torch.ones(pattern.csr.col.numel()))
        first = operator.transposed_value.sum()
        operator.value.mul_(2)
        assert operator.transposed_value.sum() == 2 * first


class Slow:
    """Its property is worked out when `done` is set."""

    def __init__(self):
        self.reached, self.done = threading.Event(), threading.Event()
        self.times = 0

    @lazy_property
    def answer(self):
        """What was asked."""
        self.times += 1
        self.reached.set()
        return self.done.wait(60)


def test_a_lazy_property_is_worked_out_once():
    slow = Slow()
    assert slow.times == 0
    slow.done.set()
    assert (slow.answer, slow.answer, slow.times) == (True, True, 1)
    assert Slow.answer.__doc__ == "What was asked."


@needs_fork
def test_a_process_forked_while_a_property_is_worked_out_can_work_it_out():
    slow, quick = Slow(), Slow()
    thread = threading.Thread(target=lambda: slow.answer)
    thread.start()
    quick.done.set()
    try:
        assert slow.reached.wait(60)
        assert status_of_child(lambda: quick.answer) == 0
    finally:
        slow.done.set()
        thread.join()
