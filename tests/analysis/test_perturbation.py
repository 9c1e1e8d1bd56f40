"""Growth of perturbations: exact for linear networks, in between the singular values for all."""

import pytest
import torch

from adgn.analysis import perturbation_growth
from adgn.analysis.graphs import example_graph
from adgn.nn import ADGN


def test_a_scaled_identity_grows_by_its_scale(make_linear_layer, make_path):
    # W − Wᵀ = 0 and V = 0 leave x(1 − εγ): each layer multiplies by 0.95.
    conv = make_linear_layer(torch.eye(3), torch.zeros(3, 3), gamma=0.5, num_iters=10)
    result = perturbation_growth(conv, torch.randn(4, 3).double(), make_path(4))
    torch.testing.assert_close(
        result.by_layer, 0.95 ** torch.arange(11).double(), rtol=1e-6, atol=0
    )
    assert result.total == pytest.approx(0.95**10, rel=1e-6)
    assert result.per_layer == pytest.approx(0.95, rel=1e-6)


def test_a_rotation_grows_as_euler_does(make_linear_layer, make_path):
    # B = [[0, 2], [−2, 0]] stretches every vector by |1 ± 2iε| a step.
    conv = make_linear_layer([[0.0, 2.0], [0.0, 0.0]], torch.zeros(2, 2), num_iters=5)
    result = perturbation_growth(conv, torch.randn(4, 2).double(), make_path(4), trials=3)
    assert result.growth.shape == (3, 6)
    torch.testing.assert_close(
        result.growth, (1.04**0.5) ** torch.arange(6).double().expand(3, 6), rtol=1e-6, atol=0
    )


def test_growth_lies_between_the_singular_values():
    torch.manual_seed(0)
    model = ADGN(3, 4, 1, num_layers=6).double()
    x, graph = torch.randn(5, 3).double(), example_graph("ring", 5)
    start = model.encode(x).detach()
    jacobian = torch.autograd.functional.jacobian(lambda s: model.propagation(s, graph), start)
    values = torch.linalg.svdvals(jacobian.reshape(20, 20))
    result = perturbation_growth(model, x, graph)
    assert (result.growth[:, -1] <= values.max() * (1 + 1e-4)).all()
    assert (result.growth[:, -1] >= values.min() * (1 - 1e-4)).all()


def test_one_node_can_be_perturbed(make_path):
    torch.manual_seed(0)
    conv = ADGN(3, 3, 1, num_layers=1, encoder="none")
    from_end = perturbation_growth(conv, torch.randn(3, 3), make_path(3), node=0, trials=2)
    torch.testing.assert_close(from_end.growth[:, 0], torch.ones(2).double())
    other = perturbation_growth(conv, torch.randn(3, 3), make_path(3), node=0, trials=2, seed=1)
    assert not torch.equal(from_end.growth, other.growth)


def test_it_is_reproducible_and_leaves_the_random_state():
    model, x, graph = ADGN(3, 4, 1, num_layers=2), torch.randn(4, 3), example_graph("ring", 4)
    before = torch.get_rng_state()
    first = perturbation_growth(model, x, graph, seed=3)
    assert torch.equal(first.growth, perturbation_growth(model, x, graph, seed=3).growth)
    assert torch.equal(before, torch.get_rng_state())


def test_wrong_inputs_are_refused():
    model, x, graph = ADGN(3, 4, 1, num_layers=2), torch.randn(4, 3), example_graph("ring", 4)
    with pytest.raises(ValueError, match="delta=0"):
        perturbation_growth(model, x, graph, delta=0)
    with pytest.raises(ValueError, match="trials=0"):
        perturbation_growth(model, x, graph, trials=0)
    with pytest.raises(ValueError, match="node=4"):
        perturbation_growth(model, x, graph, node=4)


def test_a_perturbation_that_rounding_loses_did_not_grow():
    net = ADGN(2, 4, 1, num_layers=3).double()
    x = torch.full((3, 2), 1e30, dtype=torch.float64)
    growth = perturbation_growth(net, x, torch.tensor([[0, 1], [1, 2]]), delta=1e-6)
    assert growth.by_layer.tolist() == [0.0] * 4
