"""The example graphs, against networkx."""

import networkx as nx
import pytest

from adgn.analysis.graphs import EXAMPLE_GRAPHS, example_graph


def as_networkx(edges, num_nodes):
    graph = nx.DiGraph()
    graph.add_nodes_from(range(num_nodes))
    graph.add_edges_from(edges.t().tolist())
    assert graph.number_of_edges() == edges.size(1)  # none twice
    return graph


@pytest.mark.parametrize("name", EXAMPLE_GRAPHS)
@pytest.mark.parametrize("num_nodes", [1, 2, 3, 12, 25])
def test_they_are_undirected_connected_and_without_loops(name, num_nodes):
    graph = as_networkx(example_graph(name, num_nodes), num_nodes)
    assert graph.number_of_nodes() == num_nodes
    assert nx.is_strongly_connected(graph)
    assert all(graph.has_edge(v, u) and u != v for u, v in graph.edges)


def test_they_have_their_shape():
    line = as_networkx(example_graph("line", 6), 6).to_undirected()
    assert nx.diameter(line) == 5
    ring = as_networkx(example_graph("ring", 6), 6).to_undirected()
    assert set(dict(ring.degree).values()) == {2}
    grid = as_networkx(example_graph("grid", 12), 12).to_undirected()
    assert nx.is_isomorphic(grid, nx.grid_2d_graph(3, 4))
    assert example_graph("random", 20, 1).tolist() == example_graph("random", 20, 1).tolist()
    assert example_graph("random", 20, 1).tolist() != example_graph("random", 20, 2).tolist()


def test_wrong_inputs_are_refused():
    with pytest.raises(ValueError, match=r"graph='rng' is not known\. Did you mean 'ring'"):
        example_graph("rng", 4)
    with pytest.raises(ValueError, match="num_nodes=0"):
        example_graph("ring", 0)
