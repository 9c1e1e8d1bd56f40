"""Layers and graphs whose spectra and sensitivities are known in closed form."""

import pytest
import torch

from adgn.nn import AntiSymmetricConv


def linear_layer(W, V, *, phi="sum", epsilon=0.1, gamma=0.0, num_iters=1):
    """x + ε((W − Wᵀ − γI)x + Φ(x)) with these weights: everything about it is a matrix."""
    conv = AntiSymmetricConv(
        len(W), phi=phi, num_iters=num_iters, epsilon=epsilon, gamma=gamma, act=None, bias=False
    ).double()
    with torch.no_grad():
        conv.W.copy_(torch.as_tensor(W))
        conv.phi.lin.weight.copy_(torch.as_tensor(V))
    return conv


def path(num_nodes):
    ends = torch.arange(num_nodes - 1)
    return torch.stack([torch.cat([ends, ends + 1]), torch.cat([ends + 1, ends])])


def rate_matrix(conv, edge_index, num_nodes):
    """J of the linear right-hand side for the states of all nodes, node by node."""
    operator = conv.phi.operator(torch.zeros(num_nodes, 1).double(), edge_index).to_dense()
    own = torch.kron(torch.eye(num_nodes).double(), conv.w_self())
    return (own + torch.kron(operator, conv.phi.lin.weight)).detach()


@pytest.fixture
def make_linear_layer():
    return linear_layer


@pytest.fixture
def make_path():
    return path


@pytest.fixture
def make_rate_matrix():
    return rate_matrix
