import pytest
import torch
import torch_geometric.nn as pyg

from adgn.nn.conv import GINConv, GINEConv
from adgn.nn.conv.gin import perceptron


@pytest.mark.parametrize("mlp", ["linear", "two-layer"])
@pytest.mark.parametrize("train_eps", [True, False])
def test_equals_pyg(assert_same_as_pyg, x, edge_index, mlp, train_eps):
    ours = GINConv(4, 5, mlp=mlp, train_eps=train_eps)
    ours.eps.data.fill_(0.3)
    theirs = pyg.GINConv(perceptron(mlp, 4, 5), train_eps=train_eps)
    assert_same_as_pyg(ours, theirs, x, edge_index)


@pytest.mark.parametrize("mlp", ["linear", "two-layer"])
def test_edge_features_equal_pyg(assert_same_as_pyg, x, edge_index, mlp):
    ours = GINEConv(4, 5, edge_dim=3, mlp=mlp)
    ours.eps.data.fill_(0.3)
    theirs = pyg.GINEConv(perceptron(mlp, 4, 5), train_eps=True, edge_dim=3)
    edge_attr = torch.rand(9, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    assert_same_as_pyg(ours, theirs, x, edge_index, edge_attr=edge_attr)


def test_a_weight_of_two_is_an_edge_twice(x, edge_index):
    conv = GINConv(4, 5).double()
    weight = torch.ones(9, dtype=torch.float64)
    weight[3] = 2
    twice = torch.cat([edge_index, edge_index[:, 3:4]], dim=1)
    torch.testing.assert_close(conv(x, edge_index, weight), conv(x, twice))


def test_edge_features_need_edges(x, edge_index):
    conv = GINEConv(4, 4, edge_dim=2).double()
    operator = GINConv(4, 4).operator(x, edge_index)
    with pytest.raises(TypeError, match="SparseOperator, which has no edges to carry features"):
        conv(x, operator, edge_attr=torch.ones(9, 2, dtype=torch.float64))


@pytest.mark.parametrize(
    ("features", "message"),
    [
        ({}, r"edge_attr=None, but GINEConv has edge_dim=2; .*\[num_edges, 2\]"),
        ({"edge_attr": torch.ones(9, 3).double()}, r"shape \[9, 3\]; expected \[9, 2\]"),
        ({"edge_weight": torch.ones(9).double()}, "edge_weight was given to GINEConv"),
    ],
)
def test_wrong_edge_features_are_named(x, edge_index, features, message):
    with pytest.raises(ValueError, match=message):
        GINEConv(4, 4, edge_dim=2).double()(x, edge_index, **features)


def test_unknown_perceptron():
    with pytest.raises(ValueError, match=r"mlp=.two-laye. is not known. Did you mean 'two-layer'"):
        GINConv(4, 4, mlp="two-laye")
