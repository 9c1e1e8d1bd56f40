"""Dirichlet energy, against sums written out."""

import pytest
import torch

from adgn.analysis import dirichlet_energy, energy_by_layer, layer_states
from adgn.analysis.graphs import example_graph
from adgn.nn import ADGN, build_model


@pytest.mark.parametrize("scaling", ["none", "degree"])
def test_it_is_the_sum_over_edges(scaling):
    torch.manual_seed(0)
    graph, x = example_graph("random", 7), torch.randn(7, 3).double()
    degree = torch.bincount(graph[1], minlength=7)
    y = x if scaling == "none" else x / (1 + degree).sqrt().unsqueeze(-1)
    edges = [(y[u] - y[v]).square().sum() for u, v in graph.t().tolist() if u < v]
    expected = float(torch.stack(edges).sum()) / 7
    assert dirichlet_energy(x, graph, scaling=scaling) == pytest.approx(expected)


def test_equal_states_have_none():
    graph = example_graph("grid", 6)
    assert dirichlet_energy(torch.full((6, 2), 1e6), graph) == 0
    degree = torch.bincount(graph[1], minlength=6).double()
    smooth = (1 + degree).sqrt().unsqueeze(-1)
    assert dirichlet_energy(smooth, graph, scaling="degree") == pytest.approx(0, abs=1e-30)


def test_nearly_equal_states_keep_their_digits():
    # ‖x‖² ~ 1e12 and differences of 1e-3: the expanded form of the square would give noise.
    x = torch.tensor([[1e6], [1e6 + 1e-3]], dtype=torch.float64)
    assert dirichlet_energy(x, torch.tensor([[0, 1], [1, 0]])) == pytest.approx(5e-7, rel=1e-6)


def test_weights_count():
    edge = torch.tensor([[0, 1], [1, 0]])
    x = torch.tensor([[0.0], [1.0]])
    assert dirichlet_energy(x, edge, torch.tensor([3.0, 3.0])) == pytest.approx(1.5)


def test_layers_are_measured_each_and_relative_energy_ignores_scale():
    torch.manual_seed(0)
    model, x = ADGN(3, 4, 1, num_layers=3), torch.randn(5, 3)
    graph = example_graph("ring", 5)
    result = energy_by_layer(model, x, graph)
    for state, energy, relative in zip(
        layer_states(model, x, graph), result.energy, result.relative, strict=True
    ):
        assert float(energy) == pytest.approx(dirichlet_energy(state, graph))
        scaled = 100 * state
        again = dirichlet_energy(scaled, graph) / scaled.double().square().sum(-1).mean()
        assert float(relative) == pytest.approx(float(again), rel=1e-5)


def test_averaging_smooths_and_the_anti_symmetric_network_does_not():
    torch.manual_seed(0)
    x, graph = torch.randn(20, 8), example_graph("random", 20)
    gcn = energy_by_layer(build_model("gcn", 8, 16, 1, num_layers=20), x, graph).relative
    adgn = energy_by_layer(ADGN(8, 16, 1, num_layers=20), x, graph).relative
    assert gcn[-1] < 0.1 * gcn[0]
    assert adgn[-1] > 0.3 * adgn[0]


def test_zero_states_are_no_error(make_linear_layer):
    conv = make_linear_layer(torch.eye(2), torch.eye(2))
    result = energy_by_layer(conv, torch.zeros(3, 2).double(), example_graph("ring", 3))
    assert result.relative.tolist() == [0.0, 0.0]


def test_wrong_inputs_are_refused():
    graph = example_graph("ring", 3)
    with pytest.raises(ValueError, match="scaling='degre' is not known"):
        dirichlet_energy(torch.ones(3, 1), graph, scaling="degre")
    with pytest.raises(ValueError, match="degrees above -1"):
        dirichlet_energy(torch.ones(3, 1), graph, -torch.ones(6), scaling="degree")
    with pytest.raises(TypeError, match="floating point"):
        dirichlet_energy(torch.ones(3, 1).long(), graph)
