"""Direction, duplicates and self loops."""

import numpy as np
import pytest

from adgn.data.own.edges import tidy_edges


def tidy(pairs, weight=None, nodes=4, directed=None):
    ends = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    weights = None if weight is None else np.array(weight, dtype=float)
    return tidy_edges(ends, weights, nodes, directed, "edges.csv")


def pairs_of(edges):
    return [tuple(pair) for pair in edges.index.T.tolist()]


def test_a_list_in_both_directions_is_undirected():
    edges = tidy([(0, 1), (1, 0), (2, 1), (1, 2)])
    assert not edges.directed
    assert pairs_of(edges) == [(0, 1), (1, 0), (2, 1), (1, 2)]
    assert edges.notes == (
        "edges.csv: each edge is listed in both directions; taken as undirected",
    )


def test_a_list_without_a_hint_is_directed_and_says_so():
    edges = tidy([(0, 1), (1, 0), (1, 2), (3, 3)])
    assert edges.directed
    assert pairs_of(edges) == [(0, 1), (1, 0), (1, 2), (3, 3)]
    assert any("1 pair of nodes is in both; taken as directed" in note for note in edges.notes)
    assert any("1 self loop is kept" in note for note in edges.notes)
    assert any("no pair of nodes is listed in both" in note for note in tidy([(0, 1)]).notes)


def test_loops_are_no_pairs_in_both_directions():
    notes = tidy([(3, 3), (3, 3), (2, 2), (0, 1), (1, 0), (1, 2)]).notes
    assert any("3 self loops are kept" in note for note in notes)
    assert any("1 pair of nodes is in both" in note for note in notes)


def test_what_the_user_says_needs_no_note():
    assert tidy([(0, 1), (1, 2)], directed=True).notes == ()
    edges = tidy([(0, 1), (1, 2)], directed=False)
    assert edges.notes == ()
    assert pairs_of(edges) == [(0, 1), (1, 2), (1, 0), (2, 1)]


def test_duplicates_are_merged_and_their_weights_added():
    edges = tidy([(0, 1), (2, 3), (0, 1), (0, 1)], [1, 5, 2, 4], directed=True)
    assert pairs_of(edges) == [(0, 1), (2, 3)]
    assert edges.weight.tolist() == [7, 5]
    assert edges.notes == (
        "edges.csv: 2 edges are listed more than once and were merged, the weights added up",
    )


def test_undirected_weights():
    once = tidy([(0, 1), (1, 2), (2, 2)], [3, 4, 5], directed=False)
    found = dict(zip(pairs_of(once), once.weight.tolist(), strict=True))
    assert found == {(0, 1): 3, (1, 0): 3, (1, 2): 4, (2, 1): 4, (2, 2): 5}
    both = tidy([(0, 1), (1, 0)], [3, 5], directed=False)
    assert both.weight.tolist() == [4, 4]
    assert "their mean is taken" in both.notes[0]


def test_weights_of_the_two_directions_that_differ_are_a_hint():
    assert tidy([(0, 1), (1, 0)], [3, 5]).directed
    assert not tidy([(0, 1), (1, 0)], [3, 3]).directed


def test_no_edges():
    edges = tidy([])
    assert edges.index.shape == (2, 0)
    assert edges.notes == ()


@pytest.mark.parametrize("seed", range(5))
def test_weights_are_the_sums_of_a_dictionary(seed):
    generator = np.random.default_rng(seed)
    pairs, weights = generator.integers(0, 6, (60, 2)), generator.integers(1, 9, 60)
    expected = {}
    for pair, weight in zip(map(tuple, pairs.tolist()), weights.tolist(), strict=True):
        expected[pair] = expected.get(pair, 0) + weight
    edges = tidy(pairs, weights, nodes=6, directed=True)
    assert pairs_of(edges) == list(expected)  # in the order of their first appearance
    assert edges.weight.tolist() == list(expected.values())
    both = tidy(pairs, weights, nodes=6, directed=False)
    for (a, b), weight in zip(pairs_of(both), both.weight.tolist(), strict=True):
        listed = [expected[pair] for pair in {(a, b), (b, a)} if pair in expected]
        assert weight == pytest.approx(sum(listed) / len(listed))


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("seed", range(5))
def test_edges_are_the_set_of_pairs(seed, directed):
    pairs = np.random.default_rng(seed).integers(0, 12, (60, 2))
    edges = tidy(pairs, nodes=12, directed=directed)
    expected = {tuple(pair) for pair in pairs.tolist()}
    if not directed:
        expected |= {(b, a) for a, b in expected}
    assert set(pairs_of(edges)) == expected
    assert edges.index.shape[1] == len(expected)


@pytest.mark.parametrize("more", [[], [(2, 3)]])
def test_pairs_with_different_weights_are_counted(more):
    edges = tidy(
        [(0, 1), (1, 0), (1, 2), (2, 1), *more], [1, 3, 2, 2, *[5] * len(more)], directed=False
    )
    assert (
        sum("1 pair of nodes is listed in both directions with different" in n for n in edges.notes)
        == 1
    )
    found = dict(zip(pairs_of(edges), edges.weight.tolist(), strict=True))
    assert found[(0, 1)] == found[(1, 0)] == 2
