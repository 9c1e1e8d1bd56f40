"""Gradient norms by layer, against matrix powers and plain autograd."""

import pytest
import torch

from adgn.analysis import GradientNorms, WeightGradients, gradient_norms, weight_gradients
from adgn.analysis.graphs import example_graph
from adgn.nn import ADGN, build_model
from tests.graphs import both_ways

PATH = both_ways((0, 1), (1, 2))


def test_a_linear_network_multiplies_by_its_transpose(
    make_linear_layer, make_path, make_rate_matrix
):
    torch.manual_seed(0)
    conv = make_linear_layer(torch.randn(2, 2), torch.randn(2, 2), epsilon=0.3, num_iters=4)
    graph, x, direction = make_path(3), torch.randn(3, 2).double(), torch.randn(3, 2).double()
    result = gradient_norms(conv, x, graph, lambda output: (output * direction).sum())
    step = torch.eye(6).double() + 0.3 * make_rate_matrix(conv, graph, 3)
    for layer in range(5):
        power = torch.linalg.matrix_power(step.t(), 4 - layer)
        expected = (power @ direction.flatten()).norm()
        torch.testing.assert_close(result.norms[layer], expected)
    assert result.ratio == pytest.approx(float(result.norms[0] / direction.norm()))


@pytest.mark.parametrize("level", ["node", "graph"])
def test_the_first_norm_is_that_of_the_whole_model(level):
    torch.manual_seed(0)
    model = ADGN(3, 4, 2, num_layers=3, level=level, readout="mlp").double()
    x, graph = torch.randn(6, 3).double(), example_graph("ring", 6)
    batch = torch.tensor([0, 0, 0, 1, 1, 1]) if level == "graph" else None
    result = gradient_norms(model, x, graph, lambda out: out.square().sum(), batch=batch)
    states = model.encode(x).detach().requires_grad_()
    loss = model.read(model.propagation(states, graph), batch).square().sum()
    (expected,) = torch.autograd.grad(loss, states)
    assert float(result.norms[0]) == pytest.approx(float(expected.norm()))
    assert result.loss == pytest.approx(loss.item())


def test_the_default_loss_is_half_the_mean_square():
    torch.manual_seed(0)
    model = build_model("gcn", 3, 4, 2, num_layers=3)
    x, graph = torch.randn(6, 3), example_graph("ring", 6)
    assert gradient_norms(model, x, graph).loss == pytest.approx(
        model(x, graph).square().mean().item() / 2, rel=1e-5
    )


def test_wrong_losses_are_refused():
    model, x, graph = ADGN(3, 4, 2, num_layers=1), torch.randn(6, 3), example_graph("ring", 6)
    with pytest.raises(ValueError, match=r"loss returned \[6, 2\]"):
        gradient_norms(model, x, graph, lambda output: output)
    with pytest.raises(ValueError, match="loss returned float"):
        gradient_norms(model, x, graph, lambda output: output.sum().item())
    with pytest.raises(ValueError, match="batch=None"):
        gradient_norms(ADGN(3, 4, 2, num_layers=1, level="graph"), x, graph)


def test_the_ratio_where_norms_are_zero():
    assert GradientNorms(torch.tensor([0.0, 0.0]), 0.0).ratio == 0
    assert GradientNorms(torch.tensor([0.0, 2.0]), 0.0).ratio == 0


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


def test_the_ratio_where_norms_of_weights_are_zero():
    assert WeightGradients(torch.tensor([0.0, 0.0]), 0.0).ratio == 0
    assert WeightGradients(torch.tensor([0.0, 2.0]), 0.0).ratio == 0
    assert WeightGradients(torch.tensor([2.0, 0.0]), 0.0).ratio == float("inf")
