import pytest
import torch
import torch_geometric.nn as pyg
from torch import nn

from adgn.nn import build_model


@pytest.mark.parametrize("train_eps", [True, False])
def test_equals_a_pyg_network(assert_same_as_pyg, train_eps):
    model = build_model("gin", 3, 4, 2, 3, train_eps=train_eps)
    for layer in model.propagation.layers:
        nn.init.constant_(layer.eps, 0.3)
    convs = [pyg.GINConv(nn.Linear(4, 4), train_eps=train_eps) for _ in range(3)]
    assert_same_as_pyg(model, convs)


def test_two_layer_perceptron_equals_a_pyg_network(assert_same_as_pyg):
    model = build_model("gin", 3, 4, 2, 2, mlp="two-layer", act=None)
    convs = [
        pyg.GINConv(
            nn.Sequential(
                nn.Linear(4, 4),
                nn.BatchNorm1d(4),
                nn.ReLU(),
                nn.Linear(4, 4),
                nn.BatchNorm1d(4),
                nn.ReLU(),
            ),
            train_eps=True,
        )
        for _ in range(2)
    ]
    assert_same_as_pyg(model, convs, act=lambda x: x)


def test_edge_features_equal_a_pyg_network(graph):
    model = build_model("gin", 3, 4, 2, 1, edge_dim=2).double()
    conv = pyg.GINEConv(nn.Linear(4, 4), train_eps=True, edge_dim=2).double()
    conv.load_state_dict(model.propagation.layers[0].state_dict())
    edge_attr = torch.randn(10, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    expected = model.readout(torch.tanh(conv(model.encoder(graph.x), graph.edge_index, edge_attr)))
    torch.testing.assert_close(model(graph.x, graph.edge_index, edge_attr=edge_attr), expected)
