import pytest
import torch
import torch_geometric.nn as pyg

from adgn.nn.conv import GCNConv


@pytest.mark.parametrize(
    ("options", "weighted"),
    [({}, False), ({}, True), ({"bias": False}, False), ({"improved": True}, True)],
)
def test_equals_pyg(assert_same_as_pyg, x, edge_index, edge_weight, options, weighted):
    weights = (edge_weight,) if weighted else ()
    ours, theirs = GCNConv(4, 5, **options), pyg.GCNConv(4, 5, **options)
    assert_same_as_pyg(ours, theirs, x, edge_index, *weights)


def test_improved_holds_without_weights_too(x, edge_index):
    """PyG forgets it there."""
    ours = GCNConv(4, 5, improved=True).double()
    theirs = pyg.GCNConv(4, 5, improved=True).double()
    theirs.load_state_dict(ours.state_dict())
    ones = torch.ones(9, dtype=torch.float64)
    torch.testing.assert_close(ours(x, edge_index), theirs(x, edge_index, ones))


def test_a_regular_graph_averages():
    """Where all degrees are equal, the operator is the mean over neighbours and node."""
    conv = GCNConv(1, 1, bias=False)
    torch.nn.init.ones_(conv.lin.weight)
    triangle = torch.tensor([[0, 1, 2, 1, 2, 0], [1, 2, 0, 0, 1, 2]])
    out = conv(torch.tensor([[1.0], [2.0], [6.0]]), triangle)
    torch.testing.assert_close(out, torch.full((3, 1), 3.0))
