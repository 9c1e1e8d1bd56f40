"""Graphs of PyG."""

import pytest
import torch
from torch_geometric.data import Batch, Data, HeteroData, InMemoryDataset

from adgn.data import Graph, GraphInputError, Preprocessing

EDGE = torch.tensor([[0, 1], [1, 0]])


def test_one_graph():
    data = Data(
        x=torch.rand(3, 2),
        edge_index=torch.tensor([[0, 1], [1, 2]]),
        y=torch.tensor([0, -1, 1]),
        edge_weight=torch.tensor([1.0, 2.0]),
        edge_attr=torch.tensor([[1.0, 5.0], [2.0, 6.0]]),
        train_mask=torch.tensor([True, False, False]),
        val_mask=torch.tensor([False, True, False]),
        test_mask=torch.tensor([False, False, False]),
        pos=torch.rand(3, 2),
    )
    graph = Graph.from_pyg(data)
    assert torch.equal(graph.x, data.x)
    assert torch.equal(graph.edge_index, data.edge_index)
    assert graph.edge_weight.tolist() == [1, 2]
    assert graph.target.to_pydict() == {"y": [0, None, 1]}
    assert graph.split.to_pylist() == ["train", "valid", None]
    assert graph.edge_columns.to_pydict() == {"edge_attr0": [1, 2], "edge_attr1": [5, 6]}
    assert "data: 1 attribute(s) are not used: pos" in graph.notes
    assert graph.graph_ids is None


def test_a_list_of_graphs():
    graphs = [
        Data(x=torch.full((2, 1), 1.0 * n), edge_index=EDGE[:, :1], y=torch.tensor([[n, 2.0 * n]]))
        for n in range(3)
    ]
    graph = Graph.from_pyg(graphs, directed=False, target_name="size")
    assert graph.num_graphs == 3
    assert graph.level == "graph"
    assert graph.graph_of_node.tolist() == [0, 0, 1, 1, 2, 2]
    assert graph.edge_index.tolist() == [[0, 1, 2, 3, 4, 5], [1, 0, 3, 2, 5, 4]]
    assert graph.target.to_pydict() == {"size0": [0, 1, 2], "size1": [0, 2, 4]}
    assert graph.x[:, 0].tolist() == [0, 0, 1, 1, 2, 2]
    assert graph.ids.to_pylist() == [0, 1] * 3


def test_nodes_of_many_graphs():
    graphs = [Data(x=torch.rand(2, 1), edge_index=EDGE, y=torch.tensor([0, n])) for n in range(3)]
    graph = Graph.from_pyg(graphs)
    assert graph.level == "node"
    assert graph.target.to_pydict() == {"y": [0, 0, 0, 1, 0, 2]}
    with pytest.raises(GraphInputError, match="level='graph', but y has one row per node"):
        Graph.from_pyg(graphs, level="graph")


def test_sparse_features():
    graphs = [Data(x=torch.eye(2).to_sparse_csr(), edge_index=EDGE) for _ in range(2)]
    graph = Graph.from_pyg(graphs)
    assert graph.x.layout == torch.sparse_csr
    assert torch.equal(graph.x.to_dense(), torch.eye(2).repeat(2, 1))
    assert graph.target is None


def test_features_follow():
    data = Data(x=torch.rand(3, 2), edge_index=EDGE, edge_attr=torch.tensor([1.0, 3.0]))
    names = Preprocessing.fit(Graph.from_pyg(data)).names
    assert names == ("x0", "x1", "edge_attr0 (edges)")


def test_several_splits_are_not_chosen_from():
    data = Data(x=torch.rand(2, 1), edge_index=EDGE, train_mask=torch.ones(2, 10).bool())
    graph = Graph.from_pyg(data)
    assert graph.split is None
    assert any("train_mask has 10 splits and is not used" in note for note in graph.notes)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (5, "data is of the type int"),
        ([], "data is empty"),
        ([HeteroData()], "of the type HeteroData"),
        (Data(x=torch.rand(2, 1)), "data has no edge_index"),
        (
            [Data(x=torch.rand(2, 1), edge_index=EDGE), Data(num_nodes=2, edge_index=EDGE)],
            r"data\[1\] and data\[0\] differ: one has x",
        ),
        ([Data(x=torch.rand(2, w), edge_index=EDGE) for w in (1, 2)], "x of different widths"),
        (Data(x=torch.rand(3, 1), edge_index=EDGE, y=torch.rand(2)), "y has 2 rows"),
    ],
)
def test_data_that_is_wrong(data, message):
    with pytest.raises(GraphInputError, match=message):
        Graph.from_pyg(data)


class Stored(InMemoryDataset):
    def __init__(self, graphs):
        super().__init__()
        self.data, self.slices = self.collate(graphs)


def test_data_sets_and_batches():
    edge = torch.tensor([[0, 1], [1, 2]])
    nodes = Data(x=torch.rand(3, 2), edge_index=edge, y=torch.tensor([0, 1, 0]))
    one = Graph.from_pyg(Stored([nodes]))
    assert (one.level, one.num_rows, one.graph_ids) == ("node", 3, None)
    graphs = [Data(x=torch.rand(3, 2), edge_index=edge, y=float(n)) for n in range(4)]
    for many in (Stored(graphs), Batch.from_data_list(graphs)):
        graph = Graph.from_pyg(many)
        assert (graph.level, graph.num_rows, graph.num_nodes) == ("graph", 4, 12)
        assert graph.target["y"].to_pylist() == [0.0, 1.0, 2.0, 3.0]
