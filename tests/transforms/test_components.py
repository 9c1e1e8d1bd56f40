"""The largest component, of three kinds, on small graphs and on the published sizes."""

import networkx
import torch
from hypothesis import given

from adgn.transforms import EdgeGraph, LargestComponent
from tests.graphs import graphs


@given(graphs())
def test_components_are_those_of_networkx(graph):
    edges, nodes = graph.edge_index, graph.num_nodes
    other = networkx.DiGraph(edges.t().tolist())
    other.add_nodes_from(range(nodes))
    for kind, find in (
        ("weak", networkx.weakly_connected_components),
        ("strong", networkx.strongly_connected_components),
    ):
        result = LargestComponent(kind=kind)(EdgeGraph(edges, nodes))
        largest = max(map(len, find(other)))
        first = min(min(part) for part in find(other) if len(part) == largest)
        expected = next(part for part in find(other) if first in part)
        assert result.kept.tolist() == sorted(expected)


def test_the_released_kind_follows_edges_from_the_smallest_node():
    # From 0 nothing but 1 is reached; from 2, all of 2, 3, 4, and 1, which 0 has had before.
    graph = EdgeGraph(torch.tensor([[0, 2, 3, 4], [1, 3, 4, 1]]), 5)
    assert LargestComponent(kind="released")(graph).kept.tolist() == [1, 2, 3, 4]
    assert LargestComponent(kind="weak")(graph).num_nodes == 5
    assert LargestComponent(kind="strong")(graph).num_nodes == 1


@given(graphs())
def test_the_released_kind_is_the_largest_set_that_one_node_reaches(graph):
    other = networkx.DiGraph(graph.edge_index.t().tolist())
    other.add_nodes_from(range(graph.num_nodes))
    largest = max(len(networkx.descendants(other, node)) + 1 for node in other)
    result = LargestComponent(kind="released")(EdgeGraph(graph.edge_index, graph.num_nodes))
    assert result.num_nodes == largest


def test_weights_and_earlier_numbers_follow():
    graph = EdgeGraph(
        torch.tensor([[0, 2, 3, 2], [1, 3, 4, 4]]), 5, torch.tensor([1.0, 2.0, 3.0, 4.0])
    )
    part = LargestComponent()(graph)
    assert part.edge_index.tolist() == [[0, 1, 0], [1, 2, 2]]
    assert part.edge_weight.tolist() == [2.0, 3.0, 4.0]
    assert part.report["largest_component.left_out"] == 2
    again = LargestComponent(kind="strong")(part)  # a single node
    assert again.kept.tolist() == [2]
