"""ChebNet against dense polynomials and PyG's layer."""

import numpy as np
import pytest
import torch
import torch_geometric.nn as pyg
from hypothesis import given
from hypothesis import strategies as st
from numpy.polynomial import chebyshev

from adgn.nn import build_model
from adgn.nn.conv import ChebConv
from tests.graphs import both_ways, graphs

GRAPH = both_ways((0, 1), (1, 2), (2, 3), (3, 0), (0, 2), (4, 2))
X = torch.randn(5, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(4))


def dense_laplacian(example):
    """−D^-1/2 A D^-1/2, with degrees that count what a node hears; zero where one is zero."""
    matrix = np.zeros((example.num_nodes, example.num_nodes))
    for node in range(example.num_nodes):
        for source, weight in example.neighbours(node):
            matrix[node, source] += weight
    degree = matrix.sum(1)
    scale = np.where(degree > 0, 1 / np.sqrt(np.where(degree > 0, degree, 1)), 0)
    return -scale[:, None] * matrix * scale


def dense_chebyshev(matrix, k):
    """T_k of a matrix, from the coefficients of T_k as a plain polynomial."""
    coefficients = chebyshev.cheb2poly([0] * k + [1])
    powers = (np.linalg.matrix_power(matrix, p) for p in range(k + 1))
    return torch.tensor(sum(c * p for c, p in zip(coefficients, powers, strict=False)))


@given(graphs(), st.integers(1, 5))
def test_a_layer_is_the_sum_of_dense_polynomials(example, terms):
    torch.manual_seed(0)
    layer = ChebConv(3, 2, terms).double()
    x, laplacian = example.features(3), dense_laplacian(example)
    expected = layer.bias + sum(
        dense_chebyshev(laplacian, k) @ x @ lin.weight.T for k, lin in enumerate(layer.lins)
    )
    assert len(layer.lins) == terms
    torch.testing.assert_close(layer(x, example.edge_index, example.edge_weight), expected)


@pytest.mark.parametrize("terms", [1, 2, 4])
def test_the_layer_is_pygs(terms):
    ours, theirs = ChebConv(3, 2, terms).double(), pyg.ChebConv(3, 2, terms).double()
    theirs.load_state_dict(ours.state_dict())
    weight = torch.linspace(0.5, 1.5, 6, dtype=torch.float64).repeat(2)
    for given_weight in ((), (weight,)):
        torch.testing.assert_close(ours(X, GRAPH, *given_weight), theirs(X, GRAPH, *given_weight))


def test_the_network_is_layers_in_a_row():
    torch.manual_seed(0)
    model = build_model("cheb", 3, 4, 2, 2, degree=3).double()
    x = model.encoder(X)
    for layer in model.propagation.layers:
        theirs = pyg.ChebConv(4, 4, 4).double()  # K counts terms: one more than the degree
        theirs.load_state_dict(layer.state_dict())
        x = torch.relu(theirs(x, GRAPH))
    torch.testing.assert_close(model(X, GRAPH), model.readout(x))


def test_degree_zero_does_not_hear_the_graph():
    model = build_model("cheb", 3, 4, 2, 2, degree=0).double()
    torch.testing.assert_close(model(X, GRAPH), model(X, GRAPH[:, :0]))


def test_terms_are_counted_from_one():
    with pytest.raises(ValueError, match="K=0 is not valid"):
        ChebConv(3, 2, 0)
    with pytest.raises(ValueError, match="degree=-1 is not valid for cheb"):
        build_model("cheb", 3, 4, 2, 2, degree=-1)
