"""Directions: applied twice, weights, and the mark of the fully adjacent layer."""

import torch
from hypothesis import given

from adgn.transforms import EdgeGraph, FullyAdjacent, Reverse, Undirected
from tests.graphs import graphs


@given(graphs())
def test_reversed_twice_is_as_it_was(graph):
    edges, nodes = graph.edge_index, graph.num_nodes
    weight = torch.rand(edges.size(1))
    again = Reverse()(Reverse()(EdgeGraph(edges, nodes, weight)))
    assert torch.equal(again.edge_index, edges)
    assert torch.equal(again.edge_weight, weight)


@given(graphs())
def test_undirected_is_symmetric_and_the_same_twice(graph):
    once = Undirected()(EdgeGraph(graph.edge_index, graph.num_nodes))
    assert once.is_symmetric
    assert torch.equal(Undirected()(once).edge_index, once.edge_index)
    backwards = Undirected()(Reverse()(EdgeGraph(graph.edge_index, graph.num_nodes)))
    assert torch.equal(backwards.edge_index, once.edge_index)


def test_symmetry_looks_at_weights():
    edges = torch.tensor([[0, 1], [1, 0]])
    assert EdgeGraph(edges, 2, torch.tensor([2.0, 2.0])).is_symmetric
    assert not EdgeGraph(edges, 2, torch.tensor([2.0, 1.0])).is_symmetric
    assert Undirected()(EdgeGraph(edges, 2, torch.tensor([2.0, 1.0]))).is_symmetric


def test_fully_adjacent_marks_the_graph():
    graph = EdgeGraph(torch.tensor([[0], [1]]), 2)
    marked = FullyAdjacent()(graph)
    assert marked.fully_adjacent
    assert torch.equal(marked.edge_index, graph.edge_index)
