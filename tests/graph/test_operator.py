import pytest
import torch
from hypothesis import given

from adgn.graph import SparsePattern, graph_operator
from tests.graphs import CORNER_CASES, Example, graphs


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
