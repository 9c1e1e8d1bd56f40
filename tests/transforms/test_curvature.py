"""Balanced Forman curvature: known values, the definition by counting, and updates."""

import networkx
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from adgn.graph import set_backend
from adgn.graph.native.library import NativeLibrary, load_library
from adgn.transforms import EdgeGraph, balanced_forman_curvature
from adgn.transforms.curvature import SimpleGraph, count_at_edges, curvature_of
from adgn.transforms.sdrf import RicciFlow
from tests.transforms.graphs import as_code, by_counting, edges_of, numbered, simple_graphs

needs_native = pytest.mark.skipif(
    not isinstance(load_library(), NativeLibrary), reason="the native kernels were not built"
)
BACKENDS = [pytest.param("native", marks=needs_native), "torch"]


def curvature(graph, kind="definition"):
    return balanced_forman_curvature(edges_of(graph), len(graph), curvature=kind)


def value_at(graph, u, v, kind="definition"):
    place = [set(edge) for edge in graph.edges()].index({u, v})
    return curvature(graph, kind)[place].item()


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("graph", "value"),
    [
        (networkx.cycle_graph(3), 3 / 2),
        (networkx.cycle_graph(4), 1),
        *((networkx.cycle_graph(n), 0) for n in (5, 6, 11)),
        *((networkx.complete_graph(n), n / (n - 1)) for n in (3, 4, 5, 8)),
        (numbered(networkx.grid_2d_graph(7, 9, periodic=True)), 0),
    ],
)
def test_graphs_whose_edges_are_alike(graph, value, backend):
    with set_backend(backend):
        found = curvature(graph)
    torch.testing.assert_close(found, torch.full_like(found, value))


@pytest.mark.parametrize("branches", [2, 3, 5])
def test_inner_edges_of_regular_trees(branches):
    tree = networkx.balanced_tree(branches, 3)
    root_child, grandchild = 1, branches + 1  # both of degree branches + 1
    expected = 4 / (branches + 1) - 2
    assert value_at(tree, root_child, grandchild) == pytest.approx(expected)
    leaf = len(tree) - 1
    (parent,) = tree[leaf]
    assert value_at(tree, leaf, parent) == 0


def test_an_inner_edge_of_a_large_grid_is_flat():
    grid = numbered(networkx.grid_2d_graph(8, 8))
    assert value_at(grid, 27, 28) == pytest.approx(0)


@pytest.mark.parametrize(
    ("graph", "edge", "definition", "released"),
    [
        (networkx.cycle_graph(6), (2, 3), 0, 1),
        (networkx.complete_graph(5), (0, 1), 1.25, 1.75),
        (numbered(networkx.grid_2d_graph(4, 4)), (5, 6), 0, -0.5),
        (networkx.path_graph(6), (2, 3), 0, 1),
        (networkx.balanced_tree(2, 3), (3, 7), 0, 1 + 1 / 9),
    ],
)
def test_the_released_code_computes_something_else(graph, edge, definition, released):
    assert value_at(graph, *edge) == pytest.approx(definition)
    assert value_at(graph, *edge, "released") == pytest.approx(released)


@given(simple_graphs())
def test_the_definition_by_counting(graph):
    expected = torch.tensor([by_counting(graph, *edge) for edge in graph.edges()])
    torch.testing.assert_close(curvature(graph), expected.double().view(-1))
    assert bool((curvature(graph) > -2).all())


@given(simple_graphs())
def test_the_released_variant_by_its_matrices(graph):
    expected = torch.tensor([as_code(graph, *edge) for edge in graph.edges()])
    torch.testing.assert_close(curvature(graph, "released"), expected.double().view(-1))


@needs_native
@given(simple_graphs(14))
def test_native_counts_are_those_of_sparse_products(graph):
    source, target = edges_of(graph).numpy()
    simple = SimpleGraph(source, target, len(graph))
    for kind in ("definition", "released"):
        with set_backend("native"):
            native = curvature_of(simple, simple.first, simple.second, kind)
        with set_backend("torch"):
            plain = curvature_of(simple, simple.first, simple.second, kind)
        np.testing.assert_array_equal(native, plain)


@needs_native
def test_counts_do_not_depend_on_the_number_of_threads():
    graph = networkx.gnp_random_graph(80, 0.3, seed=1)  # more edges than one part has
    one = curvature(graph)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(3)
        assert torch.equal(curvature(graph), one)
    finally:
        torch.set_num_threads(before)


def test_a_node_with_many_neighbours_is_counted_in_pieces(monkeypatch):
    graph = networkx.gnp_random_graph(20, 0.4, seed=2)
    simple = SimpleGraph(*edges_of(graph).numpy(), len(graph))
    whole = count_at_edges(simple, simple.first, simple.second)
    monkeypatch.setattr("adgn.transforms.curvature._DENSE_ENTRIES", 8)
    np.testing.assert_array_equal(count_at_edges(simple, simple.first, simple.second), whole)


@given(simple_graphs(), st.data(), st.sampled_from(["definition", "released"]))
def test_after_a_change_only_edges_near_it_are_worked_out(graph, data, kind):
    flow = RicciFlow(EdgeGraph(edges_of(graph), len(graph)), kind)
    for _ in range(4):
        missing = list(networkx.non_edges(graph))
        if missing and data.draw(st.booleans()):
            u, v = data.draw(st.sampled_from(sorted(missing)))
            flow.add(*data.draw(st.permutations([u, v])), 3)
            graph.add_edge(u, v)
        elif graph.number_of_edges():
            u, v = data.draw(st.sampled_from(sorted(graph.edges())))
            flow.remove(flow.graph.place(u, v))
            graph.remove_edge(u, v)
        fresh = RicciFlow(EdgeGraph(edges_of(graph), len(graph)), kind)
        np.testing.assert_array_equal(flow.graph.col, fresh.graph.col)
        np.testing.assert_array_equal(flow.graph.rowptr, fresh.graph.rowptr)
        np.testing.assert_array_equal(flow.values, fresh.values)


def test_few_edges_are_near_a_change():
    ring = RicciFlow(EdgeGraph(edges_of(networkx.cycle_graph(100)), 100))
    assert ring.graph.near(10, 12).sum() == 4  # those at 10 and at 12


def test_directions_repetitions_and_order():
    once = torch.tensor([[0, 0, 1, 2], [1, 2, 2, 3]])
    values = balanced_forman_curvature(once, 4)
    twice = torch.cat([once.flip(0), once, once[:, :1]], dim=1)
    expected = torch.cat([values, values, values[:1]])
    assert torch.equal(balanced_forman_curvature(twice, 4), expected)
    order = torch.tensor([2, 0, 3, 1])
    assert torch.equal(balanced_forman_curvature(once[:, order], 4), values[order])


def test_a_self_loop_is_no_edge():
    edges = torch.tensor([[0, 1, 1], [1, 2, 1]])
    values = balanced_forman_curvature(edges, 3)
    assert torch.equal(values[:2], balanced_forman_curvature(edges[:, :2], 3))
    assert values[2].isnan()


def test_a_graph_without_edges_has_no_values():
    assert balanced_forman_curvature(torch.empty(2, 0, dtype=torch.long), 3).shape == (0,)


@pytest.mark.parametrize(
    ("edges", "nodes", "message"),
    [
        (torch.tensor([[0], [3]]), 3, r"edge_index\[1, 0\] = 3 is out of range for 3 nodes"),
        (torch.tensor([[0], [-1]]), 3, r"edge_index\[1, 0\] = -1"),
        (torch.tensor([0, 1]), 3, r"shape \[2\]; expected \[2, num_edges\]"),
        (torch.tensor([[0], [1]]), 0, "num_nodes=0 is not valid"),
    ],
)
def test_wrong_edges_are_named(edges, nodes, message):
    with pytest.raises(ValueError, match=message):
        balanced_forman_curvature(edges, nodes)


def test_wrong_types_and_names():
    with pytest.raises(TypeError, match="edge_index is a list"):
        balanced_forman_curvature([[0], [1]], 2)
    with pytest.raises(TypeError, match="node indices are integers"):
        balanced_forman_curvature(torch.tensor([[0.0], [1.0]]), 2)
    with pytest.raises(ValueError, match="Did you mean 'released'"):
        balanced_forman_curvature(torch.tensor([[0], [1]]), 2, curvature="relesed")
