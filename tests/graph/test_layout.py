import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from adgn.graph import EdgeLayout, graph_operator
from tests.graphs import Example, edges, graphs


@given(graphs(max_nodes=5, weighted=True))
def test_gradients_reach_the_edge_weights(graph: Example):
    if graph.edge_index.size(1) == 0:
        return
    for normalization in ("none", "gcn"):

        def entries(weight, normalization=normalization):
            operator = graph_operator(
                graph.edge_index, weight, num_nodes=graph.num_nodes, normalization=normalization
            )
            return operator.to_dense()

        weight = graph.edge_weight.clone().requires_grad_()
        assert torch.autograd.gradcheck(entries, weight)


def test_of_several_self_loops_the_last_counts():
    layout = EdgeLayout.build(*edges((1, 1), (0, 1), (1, 1)), 2, "gcn")
    operator = layout.operator(torch.tensor([5.0, 2.0, 7.0]), torch.float32)
    degree = torch.tensor([1.0, 9.0])  # node 1: 2 from node 0, 7 from itself
    assert torch.isclose(operator.to_dense()[1, 1], 7 / degree[1])


def test_repeated_edges_add_up():
    layout = EdgeLayout.build(*edges((0, 1), (0, 1)), 2, "none")
    operator = layout.operator(torch.tensor([2.0, 3.0]), torch.float32)
    assert operator.num_entries == 1
    assert operator.value.tolist() == [5.0]


@st.composite
def weighted_graphs(draw):
    num_nodes = draw(st.integers(1, 6))
    node = st.integers(0, num_nodes - 1)
    edges = draw(st.lists(st.tuples(node, node), max_size=12))
    weights = [draw(st.floats(0.1, 3.0)) for _ in edges]
    edge_index = torch.tensor(edges, dtype=torch.long).view(-1, 2).t().contiguous()
    return num_nodes, edge_index, torch.tensor(weights, dtype=torch.float64)


def dense_sum(num_nodes, edge_index, edge_weight):
    dense = torch.zeros(num_nodes, num_nodes, dtype=torch.float64)
    return dense.index_put((edge_index[1], edge_index[0]), edge_weight, accumulate=True)


@given(weighted_graphs())
def test_mean_divides_each_row_by_its_sum(graph):
    num_nodes, edge_index, edge_weight = graph
    operator = graph_operator(
        edge_index, edge_weight, num_nodes=num_nodes, normalization="mean"
    ).to_dense()
    plain = dense_sum(*graph)
    total = plain.sum(1, keepdim=True)
    expected = torch.where(total > 0, plain / torch.where(total > 0, total, 1.0), 0.0)
    torch.testing.assert_close(operator, expected)


@given(weighted_graphs())
def test_loops_fill_the_diagonal_and_nothing_else(graph):
    num_nodes, edge_index, edge_weight = graph
    operator = graph_operator(
        edge_index, edge_weight, num_nodes=num_nodes, normalization="loops"
    ).to_dense()
    plain = dense_sum(*graph)
    off_diagonal = ~torch.eye(num_nodes, dtype=torch.bool)
    torch.testing.assert_close(operator[off_diagonal], plain[off_diagonal])
    for node in range(num_nodes):
        own = edge_weight[(edge_index == node).all(0)]
        assert operator[node, node] == (own[-1] if len(own) else 1.0)


def test_gradients_reach_the_weights_of_a_mean():
    edge_index = torch.tensor([[0, 1, 2, 2], [1, 2, 1, 0]])
    weight = torch.tensor([1.0, 2.0, 0.5, 3.0], dtype=torch.float64, requires_grad=True)
    x = torch.rand(3, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))

    def averaged(w):
        return graph_operator(edge_index, w, num_nodes=3, normalization="mean") @ x

    assert torch.autograd.gradcheck(averaged, weight)


def test_weights_that_cancel_give_a_mean_of_zero():
    edge_index = torch.tensor([[0, 2], [1, 1]])
    weight = torch.tensor([1.0, -1.0])
    operator = graph_operator(edge_index, weight, num_nodes=3, normalization="mean")
    assert torch.equal(operator.to_dense(), torch.zeros(3, 3))


def test_a_negative_sum_has_no_mean():
    weight = torch.tensor([-1.0])
    with pytest.raises(ValueError, match=r"gives node 1 the degree -1; mean normalisation needs"):
        graph_operator(torch.tensor([[0], [1]]), weight, num_nodes=2, normalization="mean")
