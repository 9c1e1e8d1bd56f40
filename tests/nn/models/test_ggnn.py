import pytest
import torch_geometric.nn as pyg

from adgn.nn import build_model


@pytest.mark.parametrize("weighted", [False, True])
def test_equals_a_pyg_network(assert_same_as_pyg, weighted):
    model = build_model("ggnn", 3, 4, 2, 3)
    assert_same_as_pyg(model, [pyg.GatedGraphConv(4, 3)], act=lambda x: x, weighted=weighted)


def test_a_gru_per_layer_equals_a_pyg_network(assert_same_as_pyg):
    model = build_model("ggnn", 3, 4, 2, 3, shared_gru=False)
    assert_same_as_pyg(model, [pyg.GatedGraphConv(4, 1) for _ in range(3)], act=lambda x: x)
