import pytest
import torch
from torch.testing import assert_close

from adgn.bench.rivals import PyGNetwork, adjacency_csr, normalised_csr
from adgn.nn import ADGN

# Directed, with a repeated edge, a self loop and a node without edges.
EDGES = torch.tensor([[0, 1, 2, 2, 3, 3, 3, 5], [1, 2, 0, 0, 1, 3, 4, 4]])
NODES = 7


@pytest.mark.parametrize("normalised", [False, True])
@pytest.mark.parametrize("phi", ["gcn", "sum"])
def test_pyg_computes_what_the_network_does(phi, normalised):
    torch.manual_seed(0)
    ours = ADGN(3, 4, 2, num_layers=5, phi=phi).double()
    theirs = PyGNetwork(ours, normalised=normalised).double()
    x = torch.randn(NODES, 3, dtype=torch.double)
    graph = EDGES
    if normalised:
        graph = (normalised_csr if phi == "gcn" else adjacency_csr)(EDGES, NODES).double()
    expected, output = ours(x, EDGES), theirs(x, graph)
    # The prebuilt weights were computed in float32.
    tolerance = {"rtol": 1e-6, "atol": 1e-6} if normalised else {"rtol": 1e-10, "atol": 1e-12}
    assert_close(output, expected, **tolerance)
    expected.square().sum().backward()
    output.square().sum().backward()
    pairs = [
        (theirs.conv.W, ours.propagation.layers[0].W),
        (theirs.conv.bias, ours.propagation.layers[0].bias),
        (theirs.conv.phi.lin.weight, ours.propagation.layers[0].phi.lin.weight),
        (theirs.encoder.weight, ours.encoder.weight),
        (theirs.readout.bias, ours.readout.bias),
    ]
    for rival, own in pairs:
        assert_close(rival.grad, own.grad, **tolerance)


def test_its_weights_are_copies():
    ours = ADGN(3, 4, 2, num_layers=2, phi="gcn")
    theirs = PyGNetwork(ours, normalised=False)
    with torch.no_grad():
        theirs.encoder.weight.zero_()
        theirs.conv.W.zero_()
    assert ours.encoder.weight.abs().sum() > 0
    assert ours.propagation.layers[0].W.abs().sum() > 0


def test_only_linear_aggregations():
    with pytest.raises(ValueError, match="phi='gcn' or 'sum'"):
        PyGNetwork(ADGN(3, 4, 2, num_layers=2, phi="gat"), normalised=False)
