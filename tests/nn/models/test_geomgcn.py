"""Geom-GCN against a dense definition of it, which shares no code with the layers."""

import networkx as nx
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from adgn.graph import graph_operator
from adgn.graph.geometry import PlaneGeometry
from adgn.nn import build_model
from tests.graphs import CORNER_CASES, Example, both_ways, edges, graphs

CHANNELS = 2


def geomgcn(num_layers, **options):
    torch.manual_seed(num_layers)
    settings = {"encoder": "none", "readout": "none", **options}
    return build_model("geomgcn", CHANNELS, CHANNELS, CHANNELS, num_layers, **settings).double()


def geometry_of(example):
    return PlaneGeometry.of(graph_operator(example.edge_index, num_nodes=example.num_nodes).pattern)


def dense_geomgcn(model, x, example):
    """Nine matrices filled pair by pair; only places and near pairs are the package's."""
    n, found = example.num_nodes, geometry_of(example)
    plane = found.plane.tolist()
    divisions = torch.zeros(9, n, n, dtype=torch.float64)

    def quadrant(receiver, sender):
        (x0, y0), (x1, y1) = plane[receiver], plane[sender]
        return 2 * int(x1 > x0) + int(y1 > y0)

    for node in range(n):
        for source, weight in example.neighbours(node):
            if source != node:
                divisions[quadrant(node, source), node, source] += weight
        divisions[8, node, node] = 1
    for node, source in found.near.t().tolist():
        divisions[4 + quadrant(node, source), node, source] = 1
    degree = divisions.sum((0, 2))
    divisions = divisions / torch.outer(degree, degree).sqrt()
    h, weights = x, list(model.propagation.weights)
    for layer in weights[:-1]:
        h = torch.cat([a @ h @ w for a, w in zip(divisions, layer, strict=True)], 1).clamp(min=0)
    return sum(a @ h @ w for a, w in zip(divisions, weights[-1], strict=True)) / 9


def assert_equal_to_dense(model, example):
    x = example.features(CHANNELS).requires_grad_()
    ours = model(x, example.edge_index, example.weight(torch.float64))
    theirs = dense_geomgcn(model, x, example)
    torch.testing.assert_close(ours, theirs)
    pull = torch.linspace(-1, 2, ours.numel(), dtype=torch.float64).view_as(ours)
    leaves = [x, *model.parameters()]
    gradients = [torch.autograd.grad(out, leaves, pull) for out in (ours, theirs)]
    for mine, other in zip(*gradients, strict=True):
        torch.testing.assert_close(mine, other)


@settings(max_examples=25)
@given(graphs(max_nodes=8), st.integers(1, 3))
def test_values_and_gradients_are_the_dense_ones(example, num_layers):
    assert_equal_to_dense(geomgcn(num_layers), example)


@pytest.mark.parametrize("example", CORNER_CASES.values(), ids=CORNER_CASES.keys())
def test_corner_cases(example):
    assert_equal_to_dense(geomgcn(2), example)


def test_a_larger_directed_graph_with_self_loops_and_a_node_alone():
    generator = torch.Generator().manual_seed(0)
    edge_index = torch.randint(0, 49, (2, 120), generator=generator)
    loops = torch.arange(0, 40, 5).repeat(2, 1)
    assert_equal_to_dense(geomgcn(2), Example(50, torch.cat([edge_index, loops], 1)))


def test_a_graph_without_mirror_images_may_be_numbered_in_any_way():
    tree = nx.Graph([(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (2, 6), (3, 7), (7, 8)])
    graph = both_ways(*tree.edges)
    model, x = geomgcn(3), Example(9, graph).features(CHANNELS)
    order = torch.randperm(9, generator=torch.Generator().manual_seed(1))
    moved = model(x[order], torch.argsort(order)[graph])
    torch.testing.assert_close(moved, model(x, graph)[order])


def test_the_plane_is_found_once_per_graph(monkeypatch):
    calls = []
    whole = PlaneGeometry.of.__func__
    monkeypatch.setattr(
        PlaneGeometry, "of", classmethod(lambda cls, p: calls.append(p) or whole(cls, p))
    )
    graph, x = both_ways((0, 1), (1, 2)), torch.ones(3, CHANNELS, dtype=torch.float64)
    model = geomgcn(3)
    for _ in range(3):
        model(x, graph)
        model(x, graph, torch.ones(4, dtype=torch.float64))
    assert len(calls) == 1


def test_dropout_acts_between_layers_while_training():
    graph, x = both_ways((0, 1), (1, 2)), torch.ones(3, CHANNELS, dtype=torch.float64)
    model = geomgcn(2, dropout=0.5)
    assert not torch.equal(*(model.propagation(x, graph) for _ in range(2)))
    model.eval()
    torch.testing.assert_close(model(x, graph), geomgcn(2)(x, graph))


def test_negative_weights():
    weight = torch.tensor([1.0, -1.0], dtype=torch.float64)
    with pytest.raises(ValueError, match="edge_weight has negative entries; Geom-GCN"):
        geomgcn(2)(torch.ones(3, CHANNELS).double(), edges((0, 1), (1, 2)), weight)
