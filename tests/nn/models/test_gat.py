import pytest
import torch
import torch_geometric.nn as pyg

from adgn.nn import build_model


@pytest.mark.parametrize(("heads", "concat"), [(1, True), (2, True), (2, False)])
def test_equals_a_pyg_network(assert_same_as_pyg, heads, concat):
    model = build_model("gat", 3, 4, 2, 3, heads=heads, concat=concat)
    size = 4 // heads if concat else 4
    convs = [pyg.GATConv(4, size, heads=heads, concat=concat) for _ in range(3)]
    assert_same_as_pyg(model, convs)


def test_the_usual_activation_is_an_option(assert_same_as_pyg):
    model = build_model("gat", 3, 4, 2, 2, act="elu")
    assert_same_as_pyg(model, [pyg.GATConv(4, 4) for _ in range(2)], act=torch.nn.ELU())


def test_heads_that_do_not_divide_the_channels():
    with pytest.raises(ValueError, match=r"heads=3 does not divide out_channels=4"):
        build_model("gat", 3, 4, 2, 3, heads=3)
