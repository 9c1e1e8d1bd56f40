import pytest
import torch
import torch_geometric.nn as pyg

from adgn.nn.conv import GatedGraphConv


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("num_layers", [1, 3])
def test_equals_pyg(assert_same_as_pyg, x, edge_index, edge_weight, num_layers, bias, weighted):
    weights = (edge_weight,) if weighted else ()
    ours = GatedGraphConv(4, num_layers, bias=bias)
    theirs = pyg.GatedGraphConv(4, num_layers, bias=bias)
    assert_same_as_pyg(ours, theirs, x, edge_index, *weights)


def test_steps_lead_to_the_output(x, edge_index):
    conv = GatedGraphConv(4, 3).double()
    states = list(conv.steps(x, conv.operator(x, edge_index)))
    assert len(states) == 3
    assert torch.equal(states[-1], conv(x, edge_index))
