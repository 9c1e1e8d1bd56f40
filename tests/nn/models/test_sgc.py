"""SGC: a power of a dense matrix, and worked out once where it can be."""

import pytest
import torch
import torch_geometric.nn as pyg
from hypothesis import given
from hypothesis import strategies as st

from adgn.graph import cache_info
from adgn.nn import build_model
from tests.graphs import graphs


def dense_gcn(example):
    """Row u: what u hears. A node without a self loop gets one; of several the last counts."""
    matrix = torch.zeros(example.num_nodes, example.num_nodes, dtype=torch.float64)
    loops = torch.ones(example.num_nodes, dtype=torch.float64)
    weights = [1.0] * example.edge_index.size(1)
    if example.edge_weight is not None:
        weights = example.edge_weight.tolist()
    for (source, target), weight in zip(example.edge_index.t().tolist(), weights, strict=True):
        if source == target:
            loops[source] = weight
        else:
            matrix[target, source] += weight
    matrix = matrix + loops.diag()
    scale = matrix.sum(1).rsqrt()
    return scale[:, None] * matrix * scale


@given(graphs(), st.integers(1, 4))
def test_it_is_a_power_of_the_dense_operator(example, steps):
    x = example.features(3)
    model = build_model("sgc", 3, 3, 2, steps, encoder="none").double()
    power = torch.linalg.matrix_power(dense_gcn(example), steps)
    expected = power @ x @ model.readout.weight.T + model.readout.bias
    torch.testing.assert_close(model(x, example.edge_index, example.edge_weight), expected)


def test_it_is_pygs_layer(graph):
    model = build_model("sgc", 3, 3, 2, 2, encoder="none").double()
    theirs = pyg.SGConv(3, 2, K=2).double()
    theirs.lin.load_state_dict(model.readout.state_dict())
    torch.testing.assert_close(
        model(graph.x, graph.edge_index, graph.edge_weight),
        theirs(graph.x, graph.edge_index, graph.edge_weight),
    )


def test_constant_features_are_propagated_once(graph):
    model = build_model("sgc", 3, 3, 2, 2, encoder="none").double()
    first = model(graph.x, graph.edge_index)
    misses = cache_info()["misses"]
    model(graph.x, graph.edge_index).sum().backward()
    assert cache_info()["misses"] == misses
    graph.x[0] += 1  # other features
    changed = model(graph.x, graph.edge_index)
    assert cache_info()["misses"] > misses
    assert not torch.allclose(changed, first)
    torch.testing.assert_close(changed, model(graph.x.clone().requires_grad_(), graph.edge_index))
    assert not torch.allclose(changed, model(graph.x, graph.edge_index, graph.edge_weight))


def test_other_depths_of_the_same_features_are_not_mixed_up(graph):
    outs = []
    for depth in (1, 2, 1):
        torch.manual_seed(0)
        outs.append(
            build_model("sgc", 3, 3, 2, depth, encoder="none").double()(graph.x, graph.edge_index)
        )
    assert torch.equal(outs[0], outs[2])
    assert not torch.allclose(outs[0], outs[1])


def test_nothing_but_encoder_and_readout_is_learned():
    model = build_model("sgc", 5, 4, 2, 3)
    assert model.parameter_counts() == {
        "encoder": 24,
        "propagation": 0,
        "readout": 10,
        "total": 34,
    }
    with pytest.raises(ValueError, match="direction='both' is not valid for sgc"):
        build_model("sgc", 5, 4, 2, 3, direction="both")
