"""A GCN with PairNorm: against dense matrices, and what it keeps apart at depth."""

import pytest
import torch

from adgn.nn import build_model
from tests.graphs import both_ways

GRAPH = both_ways((0, 1), (1, 2), (2, 3), (3, 0), (0, 2), (4, 2))
X = torch.randn(6, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(4))  # 5 is alone


def dense_gcn():
    """(D + I)^-1/2 (A + I) (D + I)^-1/2, written out."""
    looped = torch.eye(6, dtype=torch.float64)
    looped[GRAPH[1], GRAPH[0]] = 1
    scale = looped.sum(1).rsqrt()
    return scale[:, None] * looped * scale


@pytest.mark.parametrize("norm", ["pair", "pair-si"])
def test_layers_are_the_equation(norm):
    torch.manual_seed(0)
    model = build_model("pairnorm", 3, 4, 2, 3, norm=norm, scale=1.5).double()
    x = X @ model.encoder.weight.T + model.encoder.bias
    for layer in model.propagation.layers:
        torch.nn.init.normal_(layer.bias)
        x = dense_gcn() @ x @ layer.lin.weight.T + layer.bias
        x = x - x.mean(0)
        size = x.square().sum(1, keepdim=True)
        x = (1.5 * x / (1e-6 + (size.mean() if norm == "pair" else size)).sqrt()).clamp(min=0)
    expected = x @ model.readout.weight.T + model.readout.bias
    torch.testing.assert_close(model(X, GRAPH), expected)


@torch.no_grad()
def test_distances_stay_where_those_of_a_gcn_vanish():
    """40 layers on a connected graph, both with the identity as weights and without activation."""

    def distances(name):
        model = build_model(name, 3, 3, 3, 40, act=None, encoder="none", readout="none").double()
        for layer in model.propagation.layers:
            torch.nn.init.eye_(layer.lin.weight)
        regular = both_ways((0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 0), (0, 2), (1, 4), (3, 5))
        states = model(X, regular)
        return float(torch.cdist(states, states).square().sum())

    assert distances("pairnorm") == pytest.approx(2 * 6**2, rel=1e-3)
    assert distances("gcn") < 1e-6  # all nodes have as many neighbours: their states become one


def test_only_pair_norms_and_a_scale_above_zero():
    with pytest.raises(ValueError, match="norm='layer' is not valid for pairnorm"):
        build_model("pairnorm", 3, 4, 2, 2, norm="layer")
    with pytest.raises(ValueError, match=r"scale=0.0 is not valid for pairnorm"):
        build_model("pairnorm", 3, 4, 2, 2, scale=0.0)
