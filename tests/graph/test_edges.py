import pytest
import torch
from torch_geometric import EdgeIndex

from adgn.graph import GraphBlocks, edge_list, edges_with_loops, graph_operator

X = torch.zeros(4, 1)
EDGES = torch.tensor([[0, 1, 3, 2], [1, 2, 3, 0]])


@pytest.mark.parametrize(
    "form",
    [
        EDGES,
        EDGES.int(),
        EdgeIndex(EDGES, sparse_size=(4, 4)),
        torch.sparse_coo_tensor(EDGES.flip(0), torch.ones(4), (4, 4)),
    ],
    ids=["int64", "int32", "EdgeIndex", "sparse"],
)
def test_all_forms_give_the_same_edges(form):
    edges = edge_list(form, 4, X)
    assert edges.dtype == torch.long
    assert edges.tolist() == EDGES.tolist()


def test_compressed_matrices_list_their_entries_by_row():
    matrix = torch.sparse_coo_tensor(EDGES.flip(0), torch.ones(4), (4, 4)).to_sparse_csr()
    edges = edge_list(matrix, 4, X)
    assert sorted(edges.t().tolist()) == sorted(EDGES.t().tolist())
    assert (edges[1].diff() >= 0).all()


def test_prepared_graphs():
    blocks = GraphBlocks(torch.tensor([[0, 1, 2], [1, 0, 3]]), torch.tensor([0, 2, 4]))
    assert edge_list(blocks.select(torch.tensor([1])), 2, X[:2]).tolist() == [[0], [1]]


def test_the_same_tensor_is_validated_once():
    edges = EDGES.clone().int()
    assert edge_list(edges, 4, X) is edge_list(edges, 4, X)


def test_wrong_edges():
    with pytest.raises(ValueError, match=r"edge_index\[0, 2\] = 3 is out of range for 3 nodes"):
        edge_list(EDGES, 3, X)


def test_an_operator_has_no_edges():
    with pytest.raises(TypeError, match="SparseOperator, which has no edges"):
        edge_list(graph_operator(EDGES, num_nodes=4), 4, X)


def test_loops_carry_the_mean_of_incoming_features():
    edges = torch.tensor([[0, 1, 2, 2], [2, 2, 2, 1]])
    features = torch.tensor([[1.0], [3.0], [100.0], [5.0]])
    looped, filled = edges_with_loops(edges, features, 3)
    assert looped.tolist() == [[0, 1, 2, 0, 1, 2], [2, 2, 1, 0, 1, 2]]
    assert filled.squeeze(-1).tolist() == [1.0, 3.0, 5.0, 0.0, 5.0, 2.0]


def test_loops_are_made_once_unless_a_gradient_is_wanted():
    edges, features = EDGES.clone(), torch.rand(4, 2)
    assert edges_with_loops(edges, features, 4)[1] is edges_with_loops(edges, features, 4)[1]
    learned = features.clone().requires_grad_()
    assert edges_with_loops(edges, learned, 4)[1].requires_grad
