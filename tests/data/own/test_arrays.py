"""Graphs from arrays."""

import numpy as np
import pytest
import scipy.sparse
import torch

from adgn.data import Graph, GraphInputError

X = np.array([[1.0, 0.0], [0.0, 2.0], [0.0, 0.0]])
EDGES = [[0, 1], [1, 2]]


@pytest.mark.parametrize(
    "x", [X, X.tolist(), torch.from_numpy(X), X.astype(int)], ids=["numpy", "list", "torch", "int"]
)
def test_dense_features(x):
    graph = Graph.from_arrays(x, np.array(EDGES))
    assert graph.x.dtype == torch.float32
    assert graph.x.tolist() == X.tolist()
    assert graph.directed


@pytest.mark.parametrize(
    "x",
    [scipy.sparse.coo_matrix(X), scipy.sparse.csr_array(X), torch.from_numpy(X).to_sparse()],
    ids=["coo", "csr", "torch"],
)
def test_sparse_features_stay_sparse(x):
    graph = Graph.from_arrays(x, EDGES)
    assert graph.x.layout == torch.sparse_csr
    assert graph.x.to_dense().tolist() == X.tolist()


def test_the_graph_keeps_its_own_features():
    x = X.astype(np.float32)
    graph = Graph.from_arrays(x, EDGES)
    x[:] = 9
    assert graph.x.tolist() == X.tolist()


def test_targets():
    graph = Graph.from_arrays(X, EDGES, [0, -1, 2])
    assert graph.target.to_pydict() == {"y": [0, None, 2]}
    assert any("1 value(s) of -1 are taken as unknown" in note for note in graph.notes)
    quantity = Graph.from_arrays(X, EDGES, np.array([-3, -1, 2]))
    assert quantity.target.to_pydict() == {"y": [-3, -1, 2]}
    several = Graph.from_arrays(X, EDGES, torch.tensor([[1.0, 2], [3, torch.nan], [5, 6]]))
    assert several.target.to_pydict() == {"y0": [1, 3, 5], "y1": [2, None, 6]}
    assert several.labelled.tolist() == [0, 2]


def test_many_graphs():
    graph = Graph.from_arrays(X, [[0], [1]], [0.5, 1.5], graph_of_node=[0, 0, 1])
    assert graph.level == "graph"
    assert graph.num_graphs == 2
    assert graph.row_ids.to_pylist() == [0, 1]
    with pytest.raises(GraphInputError, match="must count the graphs 0, 1, 2"):
        Graph.from_arrays(X, [[0], [1]], graph_of_node=[0, 1, 0])
    with pytest.raises(GraphInputError, match="the target has 5 rows; there are 3 nodes"):
        Graph.from_arrays(X, EDGES, [1.0] * 5)


def test_edges_of_many_graphs_are_sorted_by_graph():
    x, graphs = np.eye(4), [0, 0, 1, 1]
    edges = [[2, 0], [3, 1]]
    graph = Graph.from_arrays(
        x, edges, edge_weight=[2.0, 1.0], graph_of_node=graphs, directed=False
    )
    assert graph.edge_index.tolist() == [[0, 1, 2, 3], [1, 0, 3, 2]]
    assert graph.edge_weight.tolist() == [1, 1, 2, 2]


def test_ids_and_names():
    graph = Graph.from_arrays(X, EDGES, ids=["a", "b", "c"], feature_names=["u", "v"])
    assert graph.ids.to_pylist() == ["a", "b", "c"]
    assert graph.feature_names == ("u", "v")
    with pytest.raises(GraphInputError, match="feature_names has 1 names; x has 2 columns"):
        Graph.from_arrays(X, EDGES, feature_names=["u"])
    with pytest.raises(GraphInputError, match="ids has 2 entries; x has 3 rows"):
        Graph.from_arrays(X, EDGES, ids=["a", "b"])
    with pytest.raises(GraphInputError, match=r"ids: 1 row.* 'a' at position 0 and position 2"):
        Graph.from_arrays(X, EDGES, ids=["a", "b", "a"])
    with pytest.raises(GraphInputError, match="x and ids are both None"):
        Graph.from_arrays(None, EDGES)


@pytest.mark.parametrize(
    ("x", "message"),
    [
        ([[1.0], [np.nan], [0.0]], r"x has 1 value\(s\) that are NaN or infinite"),
        ([["a"], ["b"], ["c"]], "cannot be read as a matrix of numbers"),
        ([1.0, 2.0, 3.0], r"x has shape \[3\]"),
    ],
)
def test_features_that_are_wrong(x, message):
    with pytest.raises(GraphInputError, match=message):
        Graph.from_arrays(x, EDGES)


def test_edges_that_are_wrong():
    with pytest.raises(ValueError, match=r"edge_index\[1, 1\] = 7 is out of range for 3 nodes"):
        Graph.from_arrays(X, [[0, 1], [1, 7]])
    with pytest.raises(ValueError, match="edge_index has shape"):
        Graph.from_arrays(X, [[0, 1]])
    with pytest.raises(GraphInputError, match=r"edge_weight has shape \[1\]"):
        Graph.from_arrays(X, EDGES, edge_weight=[1.0])
    with pytest.raises(GraphInputError, match=r"edge_weight: 1 weight.s. are missing"):
        Graph.from_arrays(X, EDGES, edge_weight=[1.0, np.nan])
    with pytest.raises(GraphInputError, match=r"edge_weight: 1 weight.s. are negative"):
        Graph.from_arrays(X, EDGES, edge_weight=[1.0, -1.0])
    with pytest.raises(GraphInputError, match=r"1 edge.s. join nodes of two graphs, .*\[1, 2\]"):
        Graph.from_arrays(X, EDGES, graph_of_node=[0, 0, 1])
    assert Graph.from_arrays(X, []).num_edges == 0
