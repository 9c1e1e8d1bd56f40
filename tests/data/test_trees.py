from collections import Counter
from itertools import permutations

import networkx as nx
import numpy as np
import pytest
import torch

from adgn._util.environment import NotEnoughMemoryError
from adgn.data import TreeNeighborsMatch
from adgn.data.trees import default_permutations, tree_size


@pytest.mark.parametrize("radius", [2, 3, 5])
def test_topology(radius):
    graph = TreeNeighborsMatch(radius, num_permutations=5)[0]
    n = 2 ** (radius + 1) - 1
    assert graph.num_nodes == n
    edges = graph.edge_index.t().tolist()
    assert [[v, v] for v in range(n)] == sorted(e for e in edges if e[0] == e[1])
    to_parent = [e for e in edges if e[0] != e[1]]
    assert len(to_parent) == n - 1
    tree = nx.DiGraph([(parent, child) for child, parent in to_parent])
    assert nx.is_arborescence(tree)
    assert set(dict(tree.out_degree()).values()) == {0, 2}
    # Depth-first order: walking the tree, the child with the smaller number first, counts up.
    tree_in_order = nx.DiGraph()
    for node in range(n):
        tree_in_order.add_edges_from((node, child) for child in sorted(tree.successors(node)))
    assert list(nx.dfs_preorder_nodes(tree_in_order, 0)) == list(range(n))
    depths = nx.single_source_shortest_path_length(tree, 0)
    assert {depths[v] for v in tree if tree.out_degree(v) == 0} == {radius}
    assert graph.mask.nonzero().tolist() == [[0]]


@pytest.mark.parametrize("radius", [2, 3, 4])
@pytest.mark.parametrize("split", ["train", "test"])
def test_the_label_is_the_value_of_the_queried_leaf(radius, split):
    leaves = 2**radius
    dataset = TreeNeighborsMatch(radius, split)
    for graph in dataset[:200]:
        x = graph.x
        pairs = x[x[:, 1] > 0].tolist()
        assert [key for key, _ in pairs] == list(range(1, leaves + 1))
        assert sorted(value for _, value in pairs) == list(range(1, leaves + 1))
        assert x[0, 1] == 0
        assert dict(pairs)[int(x[0, 0])] == int(graph.y)
        assert int((x != 0).any(dim=1).sum()) == leaves + 1
    assert dataset.num_classes == leaves + 1


def queries(dataset):
    """Every graph as (values of its leaves in order, query key)."""
    found = []
    for graph in dataset:
        values = graph.x[graph.x[:, 1] > 0][:, 1].tolist()
        found.append((tuple(values), int(graph.x[0, 0])))
    return found


def test_radius_2_asks_every_permutation_for_every_key():
    both = queries(TreeNeighborsMatch(2)) + queries(TreeNeighborsMatch(2, "test"))
    expected = [(p, key) for p in permutations(range(1, 5)) for key in range(1, 5)]
    assert sorted(both) == sorted(expected)


def test_radius_3_takes_distinct_permutations():
    both = queries(TreeNeighborsMatch(3)) + queries(TreeNeighborsMatch(3, "test"))
    assert len({values for values, _ in both}) == 1000
    assert len(set(both)) == len(both) == 8000


@pytest.mark.parametrize(
    ("radius", "graphs"),
    [(2, 96), (3, 8000), (4, 16000), (5, 32000), (6, 32000), (7, 32000), (8, 32000)],
)
def test_numbers_of_graphs(radius, graphs):
    assert default_permutations(radius) * 2**radius == graphs


@pytest.mark.parametrize("radius", [2, 3, 4])
def test_split_is_stratified_80_to_20(radius):
    train, test = TreeNeighborsMatch(radius), TreeNeighborsMatch(radius, "test")
    total = len(train) + len(test)
    assert len(train) == int(0.8 * total)
    in_train, in_test = Counter(train.packed.y.tolist()), Counter(test.packed.y.tolist())
    assert set(in_train) == set(range(1, 2**radius + 1))
    for label in in_train:
        share = in_train[label] / (in_train[label] + in_test[label])
        assert abs(share - 0.8) <= 1 / (in_train[label] + in_test[label])


def test_deterministic_for_a_seed():
    first, again = TreeNeighborsMatch(4).packed, TreeNeighborsMatch(4).packed
    assert torch.equal(first.x, again.x)
    assert torch.equal(first.y, again.y)
    assert not torch.equal(first.x, TreeNeighborsMatch(4, seed=12).packed.x)


def test_global_generator_is_left_alone():
    before = np.random.get_state()[1].tolist()
    TreeNeighborsMatch(3)
    assert np.random.get_state()[1].tolist() == before


def test_features_fit_an_embedding():
    batch = TreeNeighborsMatch(3).packed.batch([0, 1])
    embedding = torch.nn.Embedding(9, 4)
    assert embedding(batch.x[:, 0]).shape == (30, 4)
    assert batch.x[batch.mask].shape == (2, 2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"radius": 1}, "radius=1 is too small.*at least 2"),
        ({"radius": 2.5}, "radius=2.5 is not an integer"),
        ({"radius": 2, "num_permutations": 2.5}, "num_permutations=2.5 is not an integer"),
        ({"radius": 2, "num_permutations": True}, "num_permutations=True is not an integer"),
        ({"radius": 2, "seed": -1}, "seed=-1 is too small"),
        ({"radius": 2, "seed": 2**32}, "seed=4294967296 is too large"),
        ({"radius": 2, "seed": 1.5}, "seed=1.5 is not an integer"),
        ({"radius": 2, "num_permutations": 25}, "num_permutations=25.*24 distinct"),
        ({"radius": 4, "num_permutations": 0}, "num_permutations=0"),
        ({"radius": 4, "num_permutations": 2}, "num_permutations=2 .*stratified"),
        ({"radius": 15}, "radius=15 has no default.*num_permutations"),
        ({"radius": 2, "split": "val"}, "split='val'"),
    ],
)
def test_impossible_arguments_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        TreeNeighborsMatch(**arguments)


@pytest.mark.parametrize("size", [{"radius": 10**9}, {"radius": 30, "num_permutations": 5}])
def test_trees_that_cannot_fit_are_refused_before_they_are_made(size):
    with pytest.raises(NotEnoughMemoryError, match=r"radius=.* GB are free"):
        TreeNeighborsMatch(**size)


def test_the_number_of_trees_is_known_before():
    trees = [TreeNeighborsMatch(3, split, num_permutations=10) for split in ("train", "test")]
    assert tree_size(3, 10)[0] == sum(len(part) for part in trees)
