import pytest
import torch
import torch_geometric.nn as pyg

from adgn.nn import build_model


@pytest.mark.parametrize(("weighted", "improved"), [(False, False), (True, False), (True, True)])
def test_equals_a_pyg_network(assert_same_as_pyg, weighted, improved):
    model = build_model("gcn", 3, 4, 2, 3, improved=improved)
    convs = [pyg.GCNConv(4, 4, improved=improved) for _ in range(3)]
    assert_same_as_pyg(model, convs, weighted=weighted)


def test_improved_holds_without_weights_too(graph):
    """PyG's gcn_norm gives self loops weight 2 only where edge weights are passed."""
    model = build_model("gcn", 3, 4, 2, 1, improved=True).double()
    conv = pyg.GCNConv(4, 4, improved=True).double()
    conv.load_state_dict(model.propagation.layers[0].state_dict())
    ones = torch.ones(10, dtype=torch.float64)
    expected = model.readout(torch.tanh(conv(model.encoder(graph.x), graph.edge_index, ones)))
    torch.testing.assert_close(model(graph.x, graph.edge_index), expected)
