import pytest
import torch
import torch_geometric.nn as pyg
from torch import nn

from adgn.nn import ADGN
from tests.graphs import both_ways

PATH = both_ways((0, 1), (1, 2), (2, 3))


@pytest.mark.parametrize("phi", ["sum", "gcn"])
def test_shared_weights_equal_layers_given_the_same_tensors(phi: str):
    shared = ADGN(3, 6, 2, 4, phi=phi).double()
    layered = ADGN(3, 6, 2, 4, phi=phi, weight_sharing=False).double()
    layered.encoder.load_state_dict(shared.encoder.state_dict())
    layered.readout.load_state_dict(shared.readout.state_dict())
    (layer,) = shared.propagation.layers
    for other in layered.propagation.layers:
        other.load_state_dict(layer.state_dict())
    x = torch.randn(4, 3, dtype=torch.float64)
    torch.testing.assert_close(layered(x, PATH), shared(x, PATH), rtol=1e-12, atol=1e-12)
    shared(x, PATH).sum().backward()
    layered(x, PATH).sum().backward()
    total = sum(other.W.grad for other in layered.propagation.layers)
    torch.testing.assert_close(total, layer.W.grad, rtol=1e-10, atol=1e-12)


def test_layer_dependent_weights_differ():
    first, second = ADGN(3, 6, 2, 2, weight_sharing=False).propagation.layers
    assert not torch.equal(first.W, second.W)


@pytest.mark.parametrize("weight_sharing", [True, False])
def test_the_randomised_variant_trains_encoder_and_readout_only(weight_sharing: bool):
    net = ADGN(3, 6, 2, 3, train_recurrent=False, weight_sharing=weight_sharing)
    before = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    optimizer = torch.optim.Adam(net.parameters())
    net(torch.randn(4, 3), PATH).square().sum().backward()
    optimizer.step()
    for name, tensor in net.state_dict().items():
        assert torch.equal(tensor, before[name]) == name.startswith("propagation.")
    assert net.parameter_counts()["propagation"] == 0


def test_information_reaches_as_far_as_there_are_layers():
    path = both_ways(*((i, i + 1) for i in range(9)))
    for layers in (3, 6):
        net = ADGN(1, 4, 1, layers).double()
        x = torch.randn(10, 1, dtype=torch.float64, requires_grad=True)
        (grad,) = torch.autograd.grad(net(x, path)[0].sum(), x)
        assert (grad.squeeze() != 0).tolist() == [node <= layers for node in range(10)]


def test_edge_weights_reach_the_layers():
    net, x = ADGN(3, 6, 2, 3), torch.randn(4, 3)
    ones = torch.ones(PATH.size(1))
    torch.testing.assert_close(net(x, PATH, ones), net(x, PATH))
    assert not torch.allclose(net(x, PATH, 2 * ones), net(x, PATH))


def test_phi_may_be_a_module_for_shared_weights_only():
    net = ADGN(3, 6, 2, 3, phi=pyg.GATConv(6, 6))
    assert net(torch.randn(4, 3), PATH).shape == (4, 2)
    with pytest.raises(ValueError, match="weight_sharing=False needs one per layer"):
        ADGN(3, 6, 2, 3, phi=pyg.GATConv(6, 6), weight_sharing=False)


@pytest.mark.parametrize("num_layers", [0, -1, 2.5])
def test_wrong_layer_counts_are_named(num_layers):
    with pytest.raises(ValueError, match="num_layers="):
        ADGN(3, 6, 2, num_layers)


def test_the_network_learns():
    torch.manual_seed(1)
    net = ADGN(2, 16, 1, 4, epsilon=0.5)
    x = torch.randn(4, 2)
    target = x[:, :1].flip(0)  # each node must report the number of the opposite one
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    for _ in range(300):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(net(x, PATH), target)
        loss.backward()
        optimizer.step()
    assert loss < 1e-3
