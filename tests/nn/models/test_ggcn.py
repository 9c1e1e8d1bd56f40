"""GGCN against a dense definition of it, which shares no code with the package."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from adgn.nn import build_model
from tests.graphs import CORNER_CASES, Example, both_ways, edges, graphs

CHANNELS = 3


def ggcn(num_layers, sizes=(CHANNELS, CHANNELS, CHANNELS), **options):
    """Without a readout, and by default without an encoder."""
    torch.manual_seed(num_layers)
    settings = {"encoder": "none", "readout": "none", **options}
    model = build_model("ggcn", *sizes, num_layers, **settings).double()
    with torch.no_grad():
        for parameter in model.parameters():  # no two numbers alike
            parameter += 0.3 * torch.randn_like(parameter)
    return model


def dense_adjacency(example):
    """`A[u, v]`: how much node u hears of v, by the edge list read one by one."""
    adjacency = torch.zeros(example.num_nodes, example.num_nodes, dtype=torch.float64)
    for node in range(example.num_nodes):
        for source, weight in example.neighbours(node):
            adjacency[node, source] += weight
    return adjacency


def dense_layer(h, adjacency, weight, bias, lam, signs, kappa):
    n = len(adjacency)
    eye = torch.eye(n, dtype=torch.float64)
    degree = (adjacency + eye).sum(1)
    a = (adjacency + eye) / torch.outer(degree, degree).sqrt()
    z = h @ weight.t() + bias
    lengths = torch.linalg.vector_norm(z, dim=1)
    cosine = (z @ z.t()) / torch.outer(lengths, lengths).clamp(min=1e-9)
    cosine = cosine - torch.diag(torch.diag(cosine))
    linked = a > 0
    ratio = torch.diag(a)[:, None] / torch.where(linked, a, 1.0) - 1
    correction = torch.log1p(torch.exp(lam[0] * ratio + lam[1]))
    p = torch.where(linked, a * correction * cosine, 0.0)
    shares = torch.exp(signs) / torch.exp(signs).sum()
    mixed = shares[0] * p.clamp(min=0) @ z + shares[1] * p.clamp(max=0) @ z + shares[2] * z
    return torch.log1p(torch.exp(kappa)) * mixed


def dense_ggcn(model, x, adjacency, decay=1.0, power=3.0):
    def elu(x):
        return torch.where(x > 0, x, torch.exp(x.clamp(max=0)) - 1)

    maps = [part.lin for part in model.propagation.layers]
    weights = [(lin.weight, lin.bias) for lin in maps if hasattr(lin, "weight")]
    if model.encoder is None:
        first = (model.propagation.first.weight, model.propagation.first.bias)
    else:  # it holds both maps of the features
        size = model.hidden_channels
        first, second = (
            (model.encoder.weight[part], model.encoder.bias[part])
            for part in (slice(size), slice(size, None))
        )
        weights = [second, *weights]
    layers = [
        (*given, part.correction, part.signs, part.scale)
        for given, part in zip(weights, model.propagation.layers, strict=True)
    ]
    collected = elu(x @ first[0].t() + first[1])
    h = dense_layer(x, adjacency, *layers[0])
    for i in range(len(layers) - 1):
        eta = 1.0 if i == 0 else math.log(decay / (i + 2) ** power + 1)
        collected = collected + eta * elu(h)
        h = dense_layer(collected, adjacency, *layers[i + 1])
    return h


def assert_equal_to_dense(model, example, adjacency=None, **settings):
    x = example.features(CHANNELS).requires_grad_()
    weight = example.weight(torch.float64)
    ours = model(x, example.edge_index, weight)
    adjacency = dense_adjacency(example) if adjacency is None else adjacency
    theirs = dense_ggcn(model, x, adjacency, **settings)
    torch.testing.assert_close(ours, theirs)
    pull = torch.linspace(-1, 2, ours.numel(), dtype=torch.float64).view_as(ours)
    leaves = [x, *model.parameters()]
    for mine, other in zip(
        torch.autograd.grad(ours, leaves, pull, allow_unused=True),
        torch.autograd.grad(theirs, leaves, pull, allow_unused=True),
        strict=True,
    ):
        mine, other = (0.0 if g is None else g for g in (mine, other))
        torch.testing.assert_close(
            torch.as_tensor(mine), torch.as_tensor(other), rtol=1e-6, atol=1e-9, check_dtype=False
        )


@settings(max_examples=30)
@given(graphs(max_nodes=9), st.integers(1, 4))
def test_values_and_gradients_are_the_dense_ones(example, num_layers):
    assert_equal_to_dense(ggcn(num_layers), example)


@pytest.mark.parametrize("example", CORNER_CASES.values(), ids=CORNER_CASES.keys())
def test_corner_cases(example):
    assert_equal_to_dense(ggcn(3, decay=0.7, exponent=2.0), example, decay=0.7, power=2.0)


@pytest.mark.parametrize("num_layers", [1, 2, 4])
@pytest.mark.parametrize("example", CORNER_CASES.values(), ids=CORNER_CASES.keys())
def test_layers_from_features_to_classes(example, num_layers):
    """As in the authors' code: features go through one linear map, and no readout follows."""
    model = ggcn(num_layers, sizes=(CHANNELS, 5, 4), encoder="linear")
    shapes = [tuple(part.lin.weight.shape) for part in model.propagation.layers[1:]]
    assert shapes == [(5, 5), (5, 5), (4, 5)][4 - num_layers :]
    assert tuple(model.encoder.weight.shape) == (5 + (4 if num_layers == 1 else 5), CHANNELS)
    assert_equal_to_dense(model, example)


def test_dropped_features_are_dropped_for_both_first_maps():
    """As in the authors' code: the first R and the first layer see the same features."""
    model = ggcn(1, encoder="linear", dropout=0.5, first_dropout="features")
    example = CORNER_CASES["directed"]
    x = example.features(CHANNELS)
    torch.manual_seed(0)
    ours = model(x, example.edge_index, example.weight(torch.float64))
    torch.manual_seed(0)
    dropped = torch.nn.functional.dropout(x, 0.5)
    assert (dropped == 0).any() and (dropped != 0).any()
    torch.testing.assert_close(ours, dense_ggcn(model, dropped, dense_adjacency(example)))


def test_a_larger_directed_graph_with_self_loops_and_a_node_alone():
    generator = torch.Generator().manual_seed(0)
    edge_index = torch.randint(0, 49, (2, 300), generator=generator)
    loops = torch.arange(0, 40, 5).repeat(2, 1)
    assert_equal_to_dense(ggcn(5), Example(50, torch.cat([edge_index, loops], 1)))


def test_directions():
    example = Example(6, edges((0, 1), (1, 2), (2, 0), (0, 2), (3, 3), (4, 3), (1, 0)))
    adjacency = dense_adjacency(example)
    assert_equal_to_dense(ggcn(3, direction="out"), example, adjacency.t())
    union = ((adjacency + adjacency.t()) > 0).double()
    assert_equal_to_dense(ggcn(3, direction="undirected"), example, union)


def test_a_stored_self_loop_counts_beside_the_identity():
    """a_uu is 2 / d for a node with a self loop, which changes what it hears of others."""
    model, x = ggcn(1), torch.eye(3, dtype=torch.float64)
    graph = edges((1, 0), (2, 0))
    looped = torch.cat([graph, edges((0, 0))], 1)
    assert not torch.allclose(model(x, looped)[0], model(x, graph)[0])
    assert_equal_to_dense(model, Example(3, looped))


def test_an_edge_of_weight_zero_is_not_there():
    model, x = ggcn(2), CORNER_CASES["directed"].features(CHANNELS)
    graph = CORNER_CASES["directed"].edge_index
    weight = torch.tensor([1.0, 0.0, 2.0, 1.0], dtype=torch.float64)
    kept = weight > 0
    torch.testing.assert_close(model(x, graph, weight), model(x, graph[:, kept], weight[kept]))


def test_alike_neighbours_add_and_opposite_ones_subtract():
    """With equal numbers for both signs a message points along its receiver's own state."""
    model = build_model("ggcn", 2, 2, 2, 1, encoder="none", readout="none").double()
    layer = model.propagation.layers[0]
    with torch.no_grad():
        layer.lin.weight.copy_(torch.eye(2))
        layer.lin.bias.zero_()
    for other in (1.0, -1.0):
        x = torch.tensor([[1.0, 1.0], [other, other]], dtype=torch.float64)
        heard = model(x, edges((1, 0)))[0] - model(x, edges())[0]
        assert (heard > 0).all()


def test_dropout_acts_between_layers_while_training():
    example = Example(4, both_ways((0, 1), (1, 2), (2, 3)))
    model, x = ggcn(3, dropout=0.5), example.features(CHANNELS)
    propagation = model.propagation
    assert not torch.equal(*(propagation(x, example.edge_index) for _ in range(2)))
    model.eval()
    torch.testing.assert_close(model(x, example.edge_index), ggcn(3)(x, example.edge_index))


def test_scores_of_classes_are_not_dropped():
    """The last layer gives them; a readout would read states of which a part is dropped."""
    torch.manual_seed(0)
    x = torch.randn(200, 3)
    graph = torch.arange(200).repeat(2, 1)
    scores = build_model("ggcn", 3, 8, 4, 2, dropout=0.5, readout="none")(x, graph)
    assert bool((scores != 0).all())


@pytest.mark.parametrize("whole", [{"level": "graph"}, {"fully_adjacent": True}])
def test_states_that_are_pooled_keep_their_size(whole):
    pooled = 3 * CHANNELS if "level" in whole else 2 * CHANNELS
    model = build_model("ggcn", 2, CHANNELS, pooled, 2, readout="none", **whole)
    batch = torch.zeros(4, dtype=torch.long)
    out = model(torch.ones(4, 2), both_ways((0, 1), (2, 3)), batch=batch)
    assert out.size(-1) == pooled


def test_negative_weights():
    weight = torch.tensor([1.0, -1.0], dtype=torch.float64)
    x = torch.ones(3, CHANNELS, dtype=torch.float64)
    with pytest.raises(ValueError, match="edge_weight has negative entries; GGCN"):
        ggcn(2)(x, edges((0, 1), (1, 2)), weight)
