import pytest
import torch

from adgn.nn import AntiSymmetricConv

PATH = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("act", ["tanh", "gelu", None])
@pytest.mark.parametrize("phi", ["sum", "gcn", "gat", "gin"])
def test_the_update_adds_epsilon_times_the_rate(phi, act, bias):
    torch.manual_seed(0)
    layer = AntiSymmetricConv(4, phi=phi, act=act, bias=bias, epsilon=0.3).double()
    x = torch.randn(3, 4, dtype=torch.float64)
    rate = layer.rate(x, PATH)
    torch.testing.assert_close(layer(x, PATH), x + 0.3 * rate)
    antisymmetric = layer.W - layer.W.t() - layer.gamma * torch.eye(4, dtype=torch.float64)
    h = x @ antisymmetric.t() + layer.phi(x, PATH)
    h = h if layer.bias is None else h + layer.bias
    torch.testing.assert_close(rate, h if layer.act is None else layer.act(h))


def test_a_field_is_the_rate_on_one_graph():
    layer = AntiSymmetricConv(4, phi="gcn")
    x = torch.randn(3, 4)
    weight = torch.tensor([1.0, 2.0, 3.0, 4.0])
    field = layer.field(x, PATH, weight)
    assert torch.equal(field(2 * x), layer.rate(2 * x, PATH, weight))
    torch.testing.assert_close(field(x), field.pre_activation(x).tanh())


def test_the_rate_checks_its_arguments():
    with pytest.raises(ValueError, match="in_channels=4"):
        AntiSymmetricConv(4).rate(torch.ones(3, 5), PATH)
