import torch
from hypothesis import given

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
