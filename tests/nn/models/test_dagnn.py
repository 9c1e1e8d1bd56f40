import torch

from adgn.graph import graph_operator
from adgn.nn import build_model


def test_equals_the_sum_over_depths(graph):
    model = build_model("dagnn", 3, 4, 2, 3).double()
    dense = graph_operator(
        graph.edge_index, num_nodes=7, normalization="gcn", like=graph.x
    ).to_dense()
    first = torch.relu(model.encoder(graph.x))
    depths = torch.stack([torch.linalg.matrix_power(dense, k) @ first for k in range(4)])
    scores = torch.sigmoid(model.propagation.score(depths))
    expected = model.readout((scores * depths).sum(0))
    torch.testing.assert_close(model(graph.x, graph.edge_index), expected)
