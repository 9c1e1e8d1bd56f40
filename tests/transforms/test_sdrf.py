"""SDRF: gains by recomputation, what it never does, directions, seeds."""

import networkx
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from adgn.transforms import SDRF, EdgeGraph, balanced_forman_curvature
from adgn.transforms.sdrf import RicciFlow, _drawn
from tests.transforms.graphs import as_code, by_counting, edges_of, simple_graphs

VALUE = {"definition": by_counting, "released": as_code}
BARBELL = networkx.barbell_graph(5, 0)


def graph_of(graph):
    return EdgeGraph(edges_of(graph), len(graph))


def lowest(graph):
    found = balanced_forman_curvature(graph.edge_index, graph.num_nodes)
    return float(found[~found.isnan()].min())


@given(simple_graphs(8), st.data(), st.sampled_from(["definition", "released"]))
def test_gains_are_the_differences_of_curvatures(graph, data, kind):
    if not graph.number_of_edges():
        return
    i, j = data.draw(st.sampled_from(sorted(graph.edges())))
    pairs_k, pairs_l, gains = RicciFlow(graph_of(graph), kind).candidates(i, j)
    expected = {}
    for k in {*graph[i], i}:
        for other in {*graph[j], j}:
            if k != other and not graph.has_edge(k, other):
                joined = graph.copy()
                joined.add_edge(k, other)
                gain = VALUE[kind](joined, i, j) - VALUE[kind](graph, i, j)
                expected[frozenset((k, other))] = gain
    found = {
        frozenset((int(a), int(b))): g for a, b, g in zip(pairs_k, pairs_l, gains, strict=True)
    }
    assert len(found) == len(gains)  # each pair once
    assert found == pytest.approx(expected)


@given(
    simple_graphs(),
    st.integers(1, 12),
    st.sampled_from([0.0, 20.0, None]),
    st.sampled_from([None, -1.0, 0.0, 0.5]),
    st.integers(0, 5),
)
def test_the_lowest_curvature_is_never_worse(graph, iterations, temperature, above, seed):
    if not graph.number_of_edges():
        return
    given_graph = graph_of(graph)
    transform = SDRF(iterations=iterations, temperature=temperature, remove_above=above, seed=seed)
    result = transform(given_graph)
    assert lowest(result) >= lowest(given_graph) - 1e-12
    assert result.report["sdrf.minimum_before"] == pytest.approx(lowest(given_graph))
    assert result.report["sdrf.minimum_after"] == pytest.approx(lowest(result))
    before = {frozenset(edge) for edge in given_graph.edge_index.t().tolist()}
    after = {frozenset(edge) for edge in result.edge_index.t().tolist()}
    assert result.report["sdrf.added"] == len(after - before)
    assert result.report["sdrf.removed"] == len(before - after)


def test_a_bottleneck_gets_edges_across():
    result = SDRF(iterations=3, temperature=None)(graph_of(BARBELL))
    new = result.edge_index.t().tolist()[BARBELL.number_of_edges() :]
    assert len(new) == 3
    assert all((a < 5) != (b < 5) for a, b in new)
    assert lowest(result) > lowest(graph_of(BARBELL))


def test_removal_takes_the_most_curved_edge():
    # Two triangles that share 0–1, whose curvature is 4/3; their other edges have 5/6. The lone
    # edge 4–5 has the lowest, 0: no pair can be joined around it, and without 0–1 it is the lowest
    # still, so that the removal is not undone.
    given_graph = EdgeGraph(torch.tensor([[0, 0, 0, 1, 1, 4], [2, 1, 3, 2, 3, 5]]), 6)
    values = balanced_forman_curvature(given_graph.edge_index, 6)
    torch.testing.assert_close(values, torch.tensor([5, 8, 5, 5, 5, 0], dtype=values.dtype) / 6)
    result = SDRF(iterations=1, remove_above=0.5)(given_graph)
    assert result.edge_index.t().tolist() == [[0, 2], [0, 3], [1, 2], [1, 3], [4, 5]]
    assert (result.report["sdrf.added"], result.report["sdrf.removed"]) == (0, 1)
    # The square that is left has a curvature of 1, which is not above the threshold.
    until_the_end = SDRF(iterations=5, remove_above=1.0)(given_graph)
    assert torch.equal(until_the_end.edge_index, result.edge_index)
    assert until_the_end.report["sdrf.iterations"] == 1
    kept = SDRF(iterations=1, remove_above=1.5)(given_graph)
    assert torch.equal(kept.edge_index, given_graph.edge_index)
    assert kept.report["sdrf.iterations"] == 0  # it ended: nothing was added or removed


@pytest.mark.parametrize("curvature", ["definition", "released"])
def test_the_last_edge_is_never_removed(curvature):
    pair = EdgeGraph(torch.tensor([[0], [1]]), 2)
    result = SDRF(iterations=3, remove_above=-1.0, curvature=curvature)(pair)
    assert torch.equal(result.edge_index, pair.edge_index)
    assert result.report["sdrf.removed"] == 0
    assert result.report["sdrf.minimum_after"] == result.report["sdrf.minimum_before"]


def test_one_seed_one_graph_and_the_global_state_is_left_alone():
    state = np.random.get_state()[1].tolist(), torch.get_rng_state()
    graph = graph_of(networkx.karate_club_graph())
    first = SDRF(iterations=8, temperature=5.0, seed=3)(graph)
    again = SDRF(iterations=8, temperature=5.0, seed=3)(graph)
    other = SDRF(iterations=8, temperature=5.0, seed=4)(graph)
    assert torch.equal(first.edge_index, again.edge_index)
    assert not torch.equal(first.edge_index, other.edge_index)
    assert np.random.get_state()[1].tolist() == state[0]
    assert torch.equal(torch.get_rng_state(), state[1])


def test_draws_follow_the_softmax():
    random, gains = np.random.default_rng(0), np.array([0.0, 0.1, 0.3])
    drawn = np.bincount([_drawn(gains, 10.0, random) for _ in range(4000)], minlength=3) / 4000
    expected = np.exp(10 * gains) / np.exp(10 * gains).sum()
    assert np.abs(drawn - expected).max() < 0.03
    assert _drawn(gains, None, random) == 2


def test_new_edges_have_the_directions_of_the_edge_they_relieve():
    cliques = [(a, b) for c in (0, 5) for a in range(c, c + 5) for b in range(c, c + 5) if a != b]
    one_way = EdgeGraph(torch.tensor([*cliques, (4, 5)]).t(), 10)
    result = SDRF(iterations=2, temperature=None)(one_way)
    new = result.edge_index[:, one_way.num_edges :].t().tolist()
    assert len(new) == 2
    assert all(a < 5 <= b for a, b in new)
    back = SDRF(iterations=2, temperature=None)(EdgeGraph(torch.tensor([*cliques, (5, 4)]).t(), 10))
    new = back.edge_index[:, one_way.num_edges :].t().tolist()
    assert len(new) == 2
    assert all(b < 5 <= a for a, b in new)


def test_undirected_results_are_symmetric_and_self_loops_stay():
    edges = torch.cat([edges_of(BARBELL), torch.tensor([[2], [2]])], dim=1)
    graph = EdgeGraph(edges, 10)
    result = SDRF(iterations=2, undirected=True)(graph)
    assert result.is_symmetric
    assert [2, 2] in result.edge_index.t().tolist()
    kept = SDRF(iterations=2)(graph)
    assert torch.equal(kept.edge_index[:, : edges.size(1)], edges)  # the given ones, in order


def test_a_graph_without_edges_stays():
    empty = EdgeGraph(torch.tensor([[1], [1]]), 3)
    result = SDRF()(empty)
    assert torch.equal(result.edge_index, empty.edge_index)
    assert result.report["sdrf.added"] == 0


def test_weights_are_refused():
    with pytest.raises(ValueError, match="sdrf was given a graph with edge weights"):
        SDRF()(EdgeGraph(torch.tensor([[0], [1]]), 2, torch.ones(1)))
