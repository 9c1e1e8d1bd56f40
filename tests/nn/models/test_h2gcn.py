"""H2GCN against a dense network, with its two-hop pairs from dense matrices."""

import pytest
import torch

from adgn.nn import build_model
from tests.graphs import edges

# Directed, with a self loop, a repeated edge, a hub and a node without edges (7).
GRAPH = edges((0, 1), (1, 2), (2, 3), (3, 3), (0, 4), (0, 5), (6, 0), (0, 1), (4, 5))
X = torch.randn(8, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(4))


def dense_hops(direction):
    """N₁, N₂ = ((A + I)² > 0) − ((A + I) > 0), each over the square roots of its own row sums."""
    one = torch.zeros(8, 8, dtype=torch.float64)
    source, target = GRAPH.flip(0) if direction == "out" else GRAPH
    one[target, source] = 1
    if direction == "undirected":
        one = torch.maximum(one, one.T)
    one.fill_diagonal_(0)
    looped = one + torch.eye(8)
    two = ((looped @ looped) > 0).double() - (looped > 0).double()
    for matrix in (one, two):
        degree = matrix.sum(1)
        scale = torch.where(degree > 0, degree.clamp(min=1).rsqrt(), 0.0)
        yield scale[:, None] * matrix * scale


@pytest.mark.parametrize("direction", ["undirected", "in", "out"])
@pytest.mark.parametrize("rounds", [1, 2])
def test_it_is_the_dense_network(rounds, direction):
    torch.manual_seed(0)
    options = {"encoder": "linear_no_bias", "readout": "linear_no_bias", "direction": direction}
    model = build_model("h2gcn", 3, 4, 2, rounds, **options).double()
    near, far = dense_hops(direction)
    states = [(X @ model.encoder.weight.T).clamp(min=0)]
    for _ in range(rounds):
        states.append(torch.cat([near @ states[-1], far @ states[-1]], 1))
    read = torch.cat(states, 1)
    assert read.size(1) == model.state_channels == (12 if rounds == 1 else 28)
    torch.testing.assert_close(model(X, GRAPH), read @ model.readout.weight.T)


def test_the_authors_settings_have_their_widths():
    """64 + 128 and, with the second round, 256 more."""
    assert build_model("h2gcn", 3, 64, 2, 1).readout.in_features == 192
    assert build_model("h2gcn", 3, 64, 2, 2).readout.in_features == 448
    graph_level = build_model("h2gcn", 3, 64, 2, 2, level="graph", readout="mlp")
    assert next(graph_level.readout.parameters()).size(1) == 3 * 448


def test_nodes_without_a_pair_hear_zeros():
    model = build_model("h2gcn", 3, 4, 28, 2, readout="none").double()
    states = model(X, GRAPH)
    assert (states[7, 4:] == 0).all()
    assert (states[7, :4] > 0).any()


def test_edges_are_there_or_not():
    model = build_model("h2gcn", 3, 4, 2, 2).double()
    out = model(X, GRAPH)
    unique = torch.cat([GRAPH[:, :7], GRAPH[:, 8:]], 1)
    torch.testing.assert_close(model(X, unique), out)
    torch.testing.assert_close(model(X, GRAPH.flip(0)), out)
    torch.testing.assert_close(model(X, GRAPH, torch.linspace(0.1, 2, 9).double()), out)
    with pytest.raises(ValueError, match=r"edge_weight has shape \[3\]; expected \[9\]"):
        model(X, GRAPH, torch.ones(3).double())


def test_without_an_activation_it_is_linear():
    model = build_model("h2gcn", 3, 4, 2, 2, act=None, encoder="linear_no_bias").double()
    torch.nn.init.zeros_(model.readout.bias)
    torch.testing.assert_close(model(-2 * X, GRAPH), -2 * model(X, GRAPH))


def test_rounds_are_few():
    with pytest.raises(ValueError, match=r"num_layers=20 is not valid for h2gcn: states double"):
        build_model("h2gcn", 3, 4, 2, 20)
