import random
from itertools import islice

import networkx as nx
import numpy as np
import pytest

from adgn.data import property_generator
from adgn.data.property_generator import GRAPH_TYPES, draw_graph, graph_chain

PROBABILITIES = [0.2, 0.2, 0.05, 0.05, 0.15, 0.05, 0.05, 0.05, 0.1, 0.1]


def draw_from_global_generators(n, seed, kind):
    """The generation of one graph with the global generators, as the protocol tells it."""
    random.seed(seed)
    np.random.seed(seed)
    if kind is None:
        kind = str(np.random.choice(GRAPH_TYPES, 1, p=PROBABILITIES)[0])
    side = next(m for m in range(int(n**0.5), 0, -1) if n % m == 0)
    graph = nx.empty_graph(n)
    match kind:
        case "erdos_renyi":
            graph = nx.fast_gnp_random_graph(n, random.random() * n / n, seed=seed)
        case "barabasi_albert":
            graph = nx.barabasi_albert_graph(n, int(random.random() * (n - 1)) + 1, seed=seed)
        case "grid":
            graph = nx.grid_2d_graph(side, n // side)
        case "caveman":
            graph = nx.caveman_graph(side, n // side)
        case "tree":
            graph = nx.random_powerlaw_tree(n, seed=seed, tries=10000)
        case "ladder":
            graph = nx.ladder_graph(n // 2)
            if n % 2:
                graph.add_node(n - 1)
                graph.add_edge(0, n - 1)
        case "line":
            graph = nx.path_graph(n)
        case "star":
            graph = nx.star_graph(n - 1)
        case "caterpillar":
            np.random.seed(seed)
            b = np.random.randint(1, n)
            graph.add_edges_from((i, i + 1) for i in range(b - 1))
            for i in range(b, n):
                graph.add_edge(i, np.random.randint(b))
        case "lobster":
            np.random.seed(seed)
            b = np.random.randint(1, n)
            f = np.random.randint(b + 1, n + 1)
            graph.add_edges_from((i, i + 1) for i in range(b - 1))
            for i in range(b, f):
                graph.add_edge(i, np.random.randint(b))
            for i in range(f, n):
                graph.add_edge(i, np.random.randint(b, f))
    nodes = list(graph.nodes)
    random.shuffle(nodes)
    a = nx.to_numpy_array(graph, nodes)
    values = np.random.uniform(0, 1, n)
    e = a.sum() / 2
    r = n * (n - 1) / 2 - e
    if e <= r:
        stay, appear = 0.9, 0.1 * e / r
    else:
        stay, appear = 0.9 + 0.1 * (e - r) / e, 0.1
    u = np.random.uniform(size=(n, n), low=0, high=0.5)
    u = u + u.T
    noisy = np.where(a == 1, u < stay, u < appear) & ~np.eye(n, dtype=bool)
    return noisy, values, kind, np.random.randint(0, n)


@pytest.fixture
def global_state():
    python, numpy = random.getstate(), np.random.get_state()
    yield
    random.setstate(python)
    np.random.set_state(numpy)


@pytest.mark.usefixtures("global_state")
@pytest.mark.parametrize("kind", [None, *GRAPH_TYPES])
def test_every_type_follows_the_protocol(kind):
    for seed in range(40):
        n = 25 + seed % 10
        adjacency, values, drawn, stream = draw_graph(n, seed, kind)
        expected = draw_from_global_generators(n, seed, kind)
        np.testing.assert_array_equal(adjacency, expected[0])
        np.testing.assert_array_equal(values, expected[1])
        assert (drawn, stream.randint(0, n)) == expected[2:]


@pytest.mark.usefixtures("global_state")
def test_chain_counts_seeds_and_keeps_the_type_of_a_graph_drawn_again():
    counter, redrawn = 1234, 0
    for graph, n in zip(graph_chain(1234, iter([25, 26] * 60)), [25, 26] * 60, strict=True):
        counter += 1
        a, values, kind, source = draw_from_global_generators(n, counter, None)
        while not a.any(axis=0).all():
            counter += 1
            redrawn += 1
            a, values, kind, source = draw_from_global_generators(n, counter, kind)
        np.testing.assert_array_equal(graph.adjacency, a)
        np.testing.assert_array_equal(graph.values, values)
        assert (graph.kind, graph.source) == (kind, source)
    assert redrawn > 0


def test_graphs_are_simple_and_undirected():
    for graph in graph_chain(7, iter([4, 9, 30] * 10)):
        np.testing.assert_array_equal(graph.adjacency, graph.adjacency.T)
        assert not graph.adjacency.diagonal().any()
        assert graph.adjacency.any(axis=1).all()


def test_without_noise_the_structure_stays():
    adjacency, *_ = draw_graph(200, 3, "line", noise=0.0)
    graph = nx.from_numpy_array(adjacency)
    assert nx.is_isomorphic(graph, nx.path_graph(200))


def test_global_generators_are_left_alone():
    random.seed(5)
    np.random.seed(5)
    python, numpy = random.getstate(), np.random.get_state()[1].tolist()
    list(islice(graph_chain(1234, iter([25] * 30)), 30))
    assert random.getstate() == python
    assert np.random.get_state()[1].tolist() == numpy


def test_a_tree_that_cannot_be_found_is_drawn_with_the_next_seed(monkeypatch):
    real = nx.random_powerlaw_tree
    refused = []

    def refuse_once(n, seed, tries):
        if not refused:
            refused.append(seed)
            raise nx.NetworkXError("no tree")
        return real(n, seed=seed, tries=tries)

    monkeypatch.setattr(property_generator.nx, "random_powerlaw_tree", refuse_once)
    graphs = list(graph_chain(0, iter([12] * 30)))
    assert refused
    assert any(graph.kind == "tree" for graph in graphs)


def test_graphs_that_always_have_an_isolated_node_end_with_an_error(monkeypatch):
    monkeypatch.setattr(property_generator, "MAX_DRAWS", 3)
    with pytest.raises(RuntimeError, match=r"400 nodes .* 3 draws .*edge_noise"):
        list(graph_chain(0, iter([400] * 50), noise=0.5))
