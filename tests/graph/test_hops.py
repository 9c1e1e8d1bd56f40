"""Nodes at distance one and two: against shortest paths counted one by one."""

import networkx as nx
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric import EdgeIndex

from adgn.graph import GraphBlocks, cache_info, graph_operator, hop_operator, turned
from adgn.graph.direction import OPERATOR_DIRECTIONS
from tests.graphs import both_ways, edges, graphs

LIKE = torch.empty(0, dtype=torch.float64)


def brute_force(example_edges, num_nodes, hops, direction):
    """Row u: nodes from which the shortest path to u has so many edges, over own degrees."""
    network = nx.DiGraph()
    network.add_nodes_from(range(num_nodes))
    network.add_edges_from(turned(example_edges, None, num_nodes, direction)[0].t().tolist())
    matrix = torch.zeros(num_nodes, num_nodes, dtype=torch.float64)
    for source, targets in nx.all_pairs_shortest_path_length(network, cutoff=2):
        for target, distance in targets.items():
            if distance == hops:
                matrix[target, source] = 1
    degree = matrix.sum(1)
    scale = torch.where(degree > 0, degree.clamp(min=1).rsqrt(), 0.0)
    return scale[:, None] * matrix * scale


@given(graphs(), st.sampled_from([1, 2]), st.sampled_from(OPERATOR_DIRECTIONS))
def test_the_pairs_are_those_of_shortest_paths(example, hops, direction):
    found = hop_operator(
        *(example.edge_index, hops), num_nodes=example.num_nodes, direction=direction, like=LIKE
    )
    expected = brute_force(example.edge_index, example.num_nodes, hops, direction)
    torch.testing.assert_close(found.to_dense(), expected)
    if direction == "undirected":  # every node of a pair has a degree: nothing is stored in vain
        assert found.num_entries == int(expected.ne(0).sum())


def test_a_triangle_has_no_pair_two_hops_apart_and_a_star_all_of_its_leaves():
    triangle, star = both_ways((0, 1), (1, 2), (2, 0)), edges((0, 1), (0, 2), (3, 0))
    assert hop_operator(triangle, 2, num_nodes=3).num_entries == 0
    leaves = hop_operator(star, 2, num_nodes=5, like=LIKE).to_dense()  # node 4 is alone
    expected = torch.zeros(5, 5, dtype=torch.float64)
    expected[1:4, 1:4] = (1 - torch.eye(3).double()) / 2
    torch.testing.assert_close(leaves, expected)


def test_they_are_found_once_and_shared_by_both_directions():
    path = both_ways((0, 1), (1, 2), (2, 3))
    first = hop_operator(path, 2, num_nodes=4)
    assert first.is_symmetric
    misses = cache_info()["misses"]
    assert hop_operator(path, 2, num_nodes=4) is first
    assert cache_info()["misses"] == misses
    path[:, 0] = torch.tensor([3, 0])  # another graph
    assert hop_operator(path, 2, num_nodes=4) is not first


def test_every_form_of_a_graph_that_has_edges():
    graph = edges((0, 1), (1, 2), (2, 2), (3, 1), (0, 1))
    expected = hop_operator(graph, 2, num_nodes=4, direction="in", like=LIKE).to_dense()
    matrix = torch.sparse_coo_tensor(graph.flip(0), torch.ones(5).double(), (4, 4))
    blocks = GraphBlocks(graph, torch.tensor([0, 4]))
    forms = [
        EdgeIndex(graph, sparse_size=(4, 4)),
        matrix.to_sparse_csr(),
        blocks.select(torch.tensor([0])),
    ]
    for form in forms:
        found = hop_operator(form, 2, num_nodes=4, direction="in", like=LIKE)
        torch.testing.assert_close(found.to_dense(), expected)
    with pytest.raises(TypeError, match="is a SparseOperator, which has entries and no edges"):
        hop_operator(graph_operator(graph, num_nodes=4), 2, num_nodes=4)


def test_batches_of_prepared_graphs_take_their_parts():
    graph = edges((0, 1), (1, 2), (3, 4), (4, 5), (5, 6))
    blocks = GraphBlocks(graph, torch.tensor([0, 3, 7]))
    batch = blocks.select(torch.tensor([1, 0, 1]))
    found = hop_operator(batch, 2, num_nodes=11, like=LIKE).to_dense()
    second = hop_operator(graph[:, 2:] - 3, 2, num_nodes=4, like=LIKE).to_dense()
    first = hop_operator(graph[:, :2], 2, num_nodes=3, like=LIKE).to_dense()
    torch.testing.assert_close(found, torch.block_diag(second, first, second))


def test_wrong_arguments():
    path = edges((0, 1))
    with pytest.raises(ValueError, match="hops=3 is not valid; it must be 1 or 2"):
        hop_operator(path, 3, num_nodes=2)
    with pytest.raises(ValueError, match="direction='both' is two operators"):
        hop_operator(path, 2, num_nodes=2, direction="both")
    with pytest.raises(ValueError, match="out of range for 1 nodes"):
        hop_operator(path, 2, num_nodes=1)
