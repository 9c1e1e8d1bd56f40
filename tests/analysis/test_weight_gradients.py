import pytest
import torch

from adgn.analysis import WeightGradients, weight_gradients
from adgn.nn import ADGN, build_model
from tests.graphs import both_ways

PATH = both_ways((0, 1), (1, 2))


@pytest.mark.parametrize(
    "model", [ADGN(2, 4, 1, 3, weight_sharing=False), build_model("gcn", 2, 4, 1, 3)]
)
def test_norms_are_those_of_backward(model):
    x = torch.randn(3, 2)
    result = weight_gradients(model, x, PATH, lambda output: output.square().sum())
    assert all(parameter.grad is None for parameter in model.parameters())
    loss = model(x, PATH).square().sum()
    loss.backward()
    expected = [
        torch.cat([p.grad.flatten() for p in layer.parameters()]).norm()
        for layer in model.propagation.layers
    ]
    torch.testing.assert_close(result.norms.float(), torch.stack(expected))
    assert result.loss == pytest.approx(loss.item())
    assert result.ratio == pytest.approx(float(expected[0] / expected[-1]), rel=1e-5)


def test_shared_weights_are_refused():
    with pytest.raises(ValueError, match="weight_sharing=False"):
        weight_gradients(ADGN(2, 4, 1, 3), torch.randn(3, 2), PATH, torch.sum)


def test_layers_without_weights_to_train_are_refused():
    model = ADGN(2, 4, 1, 3, weight_sharing=False, train_recurrent=False)
    with pytest.raises(ValueError, match="no trainable weights"):
        weight_gradients(model, torch.randn(3, 2), PATH, torch.sum)


def test_the_ratio_where_norms_are_zero():
    assert WeightGradients(torch.tensor([0.0, 0.0]), 0.0).ratio == 0
    assert WeightGradients(torch.tensor([0.0, 2.0]), 0.0).ratio == 0
    assert WeightGradients(torch.tensor([2.0, 0.0]), 0.0).ratio == float("inf")
