"""Places in the plane: known shapes, the best approximation of distances, and near pairs."""

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given

from adgn.graph import SparsePattern, geometry
from adgn.graph.geometry import PlaneGeometry
from tests.graphs import both_ways, edges, graphs


def pattern_of(edge_index, nodes):
    return SparsePattern.from_entries(edge_index[1], edge_index[0], (nodes, nodes))[0]


def of_networkx(graph):
    pairs = torch.tensor(list(graph.edges)).t()
    return pattern_of(torch.cat([pairs, pairs.flip(0)], 1), len(graph))


def test_a_path_is_a_line():
    plane = PlaneGeometry.of(of_networkx(nx.path_graph(6))).plane
    line = torch.arange(6).double() - 2.5
    assert torch.equal(plane[:, 1], torch.zeros(6).double())
    torch.testing.assert_close(plane[:, 0].abs(), line.abs(), rtol=0, atol=1e-8)
    assert plane[0, 0] == -plane[5, 0] != 0


def test_a_ring_is_a_circle():
    plane = PlaneGeometry.of(of_networkx(nx.cycle_graph(9))).plane
    radius = plane.norm(dim=1)
    torch.testing.assert_close(radius, radius[:1].expand(9), rtol=0, atol=1e-8)
    steps = (plane - plane.roll(1, 0)).norm(dim=1)
    torch.testing.assert_close(steps, steps[:1].expand(9), rtol=0, atol=1e-8)


@pytest.mark.parametrize("nodes", [12, 260])  # solved directly, and by iteration
def test_it_is_the_best_approximation_by_two_dimensions(nodes):
    """Its Gram matrix has the two largest eigenvalues of the doubly centred squared distances."""
    tree = nx.random_labeled_tree(nodes, seed=3)
    plane = PlaneGeometry.of(of_networkx(tree)).plane.numpy()
    distance = np.zeros((nodes, nodes))
    for node, reached in nx.all_pairs_shortest_path_length(tree):
        for other, steps in reached.items():
            distance[node, other] = steps
    centre = np.eye(nodes) - 1 / nodes
    values, vectors = np.linalg.eigh(-0.5 * centre @ distance**2 @ centre)
    best = (vectors[:, -2:] * values[-2:]) @ vectors[:, -2:].T
    np.testing.assert_allclose(plane @ plane.T, best, atol=1e-6)
    assert (plane**3).sum(0).min() > 0


@given(graphs(max_nodes=8, weighted=False))
def test_near_pairs_are_those_within_the_smallest_radius_that_gives_enough(example):
    pattern = pattern_of(example.edge_index, example.num_nodes)
    found = PlaneGeometry.of(pattern)
    distinct = {tuple(pair) for pair in example.edge_index.t().tolist() if pair[0] != pair[1]}
    graph = nx.Graph(list(distinct))
    graph.add_nodes_from(range(example.num_nodes))
    expected = set()
    for component in nx.connected_components(graph):
        count = sum(one in component for one, _ in distinct)
        far = sorted(
            (round(float((found.plane[a] - found.plane[b]).norm()), 7), a, b)
            for a in component
            for b in component
            if a != b
        )
        if count:
            radius = far[min(count, len(far)) - 1][0]
            expected |= {(a, b) for distance, a, b in far if distance <= radius}
    assert {tuple(pair) for pair in found.near.t().tolist()} == expected
    assert found.near.size(1) == len(expected)


def test_components_do_not_see_each_other():
    alone = PlaneGeometry.of(pattern_of(both_ways((0, 1), (1, 2), (1, 3)), 4))
    beside = PlaneGeometry.of(pattern_of(both_ways((3, 4), (4, 5), (4, 6), (0, 1)), 8))
    assert torch.equal(beside.plane[3:7], alone.plane)
    near = beside.near[:, (beside.near >= 3).all(0)]
    assert torch.equal(near - 3, alone.near)
    assert beside.plane[2].tolist() == beside.plane[7].tolist() == [0, 0]


def test_a_graph_without_edges():
    found = PlaneGeometry.of(pattern_of(edges(), 3))
    assert found.plane.tolist() == [[0, 0]] * 3 and found.near.shape == (2, 0)


def test_what_would_not_fit_is_refused(monkeypatch):
    monkeypatch.setattr(geometry, "MAX_COMPONENT", 4)
    pattern = of_networkx(nx.path_graph(5))
    with pytest.raises(ValueError, match=r"component of 5 nodes.*up to 4.*such as 'ggcn'"):
        PlaneGeometry.of(pattern)
    PlaneGeometry.of(pattern_of(both_ways((0, 1), (1, 2), (2, 3), (4, 5)), 9))


def test_small_components_are_remembered_within_bounds():
    kept = geometry._small_component
    path = of_networkx(nx.path_graph(geometry._SMALL_COMPONENT))
    first = PlaneGeometry.of(path)
    before = kept.cache_info()
    again = PlaneGeometry.of(path)
    assert torch.equal(again.plane, first.plane) and torch.equal(again.near, first.near)
    assert kept.cache_info().hits == before.hits + 1
    PlaneGeometry.of(of_networkx(nx.path_graph(geometry._SMALL_COMPONENT + 1)))
    assert kept.cache_info() == before._replace(hits=before.hits + 1)  # not looked up, not kept
    # The most that one can take: all pairs are adjacent, and all are near.
    nodes = geometry._SMALL_COMPONENT
    ends = np.array(list(nx.complete_graph(nodes).edges), dtype=np.int32).T.tobytes()
    plane, pairs = geometry._component(nodes, ends, nodes * (nodes - 1))
    assert pairs.shape[1] == nodes * (nodes - 1)
    assert (len(ends) + plane.nbytes + pairs.nbytes) * before.maxsize < 0.42e9


def test_numpys_random_state_stays():
    before = np.random.get_state()[1].tolist()
    PlaneGeometry.of(of_networkx(nx.random_labeled_tree(250, seed=1)))
    assert np.random.get_state()[1].tolist() == before
