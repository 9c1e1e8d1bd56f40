import pytest
import torch
import torch_geometric.nn as pyg

from adgn.nn.conv import GCN2Conv


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shared_weights", [True, False])
@pytest.mark.parametrize("depth", [{}, {"theta": 0.5, "layer": 3}])
def test_equals_pyg(
    assert_same_as_pyg, x, edge_index, edge_weight, depth, shared_weights, weighted
):
    weights = (edge_weight,) if weighted else ()
    ours = GCN2Conv(4, 0.2, **depth, shared_weights=shared_weights)
    theirs = pyg.GCN2Conv(4, 0.2, **depth, shared_weights=shared_weights)
    assert_same_as_pyg(ours, theirs, x, x.flip(0), edge_index, *weights)


def test_alpha_one_sees_only_the_first_states(x, edge_index):
    conv = GCN2Conv(4, 1.0).double()
    torch.testing.assert_close(conv(x, x.flip(0), edge_index), x.flip(0) @ conv.weight1)


@pytest.mark.parametrize("given", [{"theta": 0.5}, {"layer": 2}])
def test_theta_and_layer_come_together(given):
    with pytest.raises(ValueError, match=r"theta=.* and layer=.*: give both or neither"):
        GCN2Conv(4, 0.1, **given)
