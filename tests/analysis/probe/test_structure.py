"""Structure of graphs against networkx and closed forms."""

import networkx as nx
import numpy as np
import pytest
import torch

from adgn.analysis.probe import structure
from adgn.analysis.probe.shells import neighbour_matrix, shell_features
from adgn.analysis.probe.structure import agreement, distances_from, extent, label_distances
from adgn.data.own.inputs import Inputs


def inputs_of(graph, directed=False):
    edges = torch.tensor(list(graph.edges)).t().view(2, -1)
    both = edges if directed else torch.cat([edges, edges.flip(0)], dim=1)
    return Inputs(torch.eye(graph.number_of_nodes()), both, directed=directed)


@pytest.mark.parametrize("seed", range(3))
def test_distances_are_those_of_networkx(seed):
    graph = nx.gnp_random_graph(60, 0.03, seed=seed)
    found = distances_from(neighbour_matrix(inputs_of(graph), "in"), np.array([0, 7]))
    expected = nx.multi_source_dijkstra_path_length(graph, {0, 7})
    assert found.tolist() == [expected.get(node, -1) for node in range(60)]


@pytest.mark.parametrize("dense", [0.0, 2.0])
@pytest.mark.parametrize("direction", ["in", "out"])
def test_shells_are_means_over_nodes_at_a_distance(direction, dense, monkeypatch):
    monkeypatch.setattr("adgn.analysis.probe.shells._DENSE", dense)
    graph = nx.gnp_random_graph(40, 0.05, seed=1, directed=True)
    inputs = inputs_of(graph, directed=True)
    heard = graph.reverse() if direction == "in" else graph
    shells = shell_features(inputs, direction, inputs.x, 4)
    for node, distances in nx.all_pairs_shortest_path_length(heard):
        for hop, shell in enumerate(shells, 1):
            members = [other for other, d in distances.items() if d == hop]
            expected = torch.zeros(40)
            expected[members] = 1 / max(len(members), 1)
            torch.testing.assert_close(shell[node], expected)


def test_shells_do_not_depend_on_blocks_of_rows(monkeypatch):
    inputs = inputs_of(nx.grid_2d_graph(1, 1))  # without edges
    assert shell_features(inputs, "in", inputs.x, 2)[0].tolist() == [[0.0]]
    grid = inputs_of(nx.convert_node_labels_to_integers(nx.grid_2d_graph(6, 7)))
    whole = shell_features(grid, "undirected", grid.x, 5)
    monkeypatch.setattr("adgn.analysis.probe.shells._PAIRS", 100)
    for left, right in zip(whole, shell_features(grid, "undirected", grid.x, 5), strict=True):
        assert left.equal(right)


def test_a_path_and_a_ring_have_their_closed_forms():
    """Resistance of a path is the distance; of a ring d (n − d) / n."""
    found = extent(inputs_of(nx.path_graph(20)))
    assert (found.diameter, found.exact, found.components) == (19, True, 1)
    assert found.mean_resistance == pytest.approx(21 / 3)
    assert found.largest_resistance == pytest.approx(19)
    ring = extent(inputs_of(nx.cycle_graph(20)))
    assert ring.diameter == 10
    assert ring.largest_resistance == pytest.approx(10 * 10 / 20)


def test_large_graphs_are_estimated(monkeypatch):
    graph = nx.convert_node_labels_to_integers(nx.grid_2d_graph(12, 12))
    exact = extent(inputs_of(graph))
    monkeypatch.setattr(structure, "EXACT", 10)
    found = extent(inputs_of(graph))
    assert not found.exact
    assert found.diameter == exact.diameter == 22  # the sweeps end in corners
    assert found.mean_resistance == pytest.approx(exact.mean_resistance, rel=0.15)
    assert found.largest_resistance <= exact.largest_resistance + 1e-6


def test_parts_and_isolated_nodes_are_counted():
    graph = nx.Graph([(0, 1), (1, 2), (3, 4), (5, 5)])
    found = extent(inputs_of(graph))
    assert (found.components, found.largest, found.isolated) == (3, 3, 1)


def test_adjusted_homophily_of_a_complete_bipartite_graph():
    """No edge agrees; with degrees alike the chance is one half, and the adjusted value −1."""
    inputs = inputs_of(nx.complete_bipartite_graph(4, 4))
    y = torch.tensor([0] * 4 + [1] * 4)
    found = agreement(inputs, y, torch.ones(8, dtype=torch.bool), 2)
    assert (found.edges, found.homophily) == (16, 0.0)
    assert found.adjusted == pytest.approx(-1.0)
    assert found.informativeness == pytest.approx(1.0)
    values = agreement(inputs, y.view(-1, 1).float(), torch.ones(8, dtype=torch.bool), 0)
    assert values.adjusted == pytest.approx(-1.0)


def test_distances_between_labels():
    inputs = inputs_of(nx.disjoint_union(nx.path_graph(5), nx.path_graph(2)))
    found = label_distances(inputs, torch.tensor([0]), torch.tensor([1, 2, 3, 5]))
    assert found.shares == (0.0, 0.25, 0.25, 0.25)
    assert (found.unreachable, found.median) == (0.25, 2.0)
