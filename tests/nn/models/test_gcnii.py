import math

import pytest
import torch
import torch_geometric.nn as pyg

from adgn.nn import build_model


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("alpha", [1.0, 0.1, 0.0])
def test_the_papers_setting_equals_a_pyg_network(assert_same_as_pyg, alpha, weighted):
    model = build_model("gcnii", 3, 4, 2, 3, alpha=alpha)
    convs = [pyg.GCN2Conv(4, alpha) for _ in range(3)]
    assert_same_as_pyg(model, convs, initial=True, weighted=weighted)


@pytest.mark.parametrize("shared_weights", [True, False])
def test_the_usual_setting_equals_a_pyg_network(assert_same_as_pyg, shared_weights):
    model = build_model("gcnii", 3, 4, 2, 3, theta=0.5, shared_weights=shared_weights, act="relu")
    convs = [pyg.GCN2Conv(4, 0.1, 0.5, layer, shared_weights) for layer in (1, 2, 3)]
    assert_same_as_pyg(model, convs, act=lambda x: x.relu(), initial=True)


@pytest.mark.parametrize("alpha", [-0.1, 1.1, float("nan")])
def test_alpha_outside_the_unit_interval(alpha):
    with pytest.raises(ValueError, match=r"alpha=.* is not valid for gcnii.* gcnii takes: .*theta"):
        build_model("gcnii", 3, 4, 2, 3, alpha=alpha)


def test_the_network_of_its_authors(graph):
    """Dense, after their paper: the first states are σ(F W + b), and come back in each layer."""
    options = {"theta": 1.5, "alpha": 0.5, "act": "relu", "act_first": True}
    model = build_model("gcnii", 3, 4, 2, 3, direction="out", **options).double()
    size = graph.x.size(0)
    matrix = torch.zeros(size, size, dtype=torch.float64)
    for source, target in graph.edge_index.t().tolist():
        matrix[source, target] += source != target
    matrix += torch.eye(size)
    scale = matrix.sum(1).rsqrt()
    matrix = scale[:, None] * matrix * scale
    first = states = torch.relu(graph.x @ model.encoder.weight.t() + model.encoder.bias)
    for number, layer in enumerate(model.propagation.layers, 1):
        beta = math.log(1.5 / number + 1)
        mixed = 0.5 * matrix @ states + 0.5 * first
        states = torch.relu((1 - beta) * mixed + beta * mixed @ layer.weight1)
    expected = model.readout(states)
    torch.testing.assert_close(model(graph.x, graph.edge_index), expected)
    plain = build_model("gcnii", 3, 4, 2, 3, direction="out", **options | {"act_first": False})
    plain.load_state_dict(model.state_dict())
    assert not torch.allclose(plain.double()(graph.x, graph.edge_index), expected)
