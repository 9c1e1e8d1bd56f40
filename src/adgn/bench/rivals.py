"""The same network built from PyG's layer, as documented and at its best."""

import copy
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.nn import AntiSymmetricConv as PyGAntiSymmetricConv
from torch_geometric.nn import GCNConv, MessagePassing
from torch_geometric.nn.conv.gcn_conv import gcn_norm

from adgn.nn import AntiSymmetricConv, GraphNetwork
from adgn.nn.aggregation import LinearAggregation


class SumConv(MessagePassing):  # type: ignore[misc]  # PyG is untyped
    """`Σ_j V x_j`, as one writes it in PyG; with a sparse adjacency one sparse product."""

    def __init__(self, channels: int) -> None:
        super().__init__(aggr="add")
        self.lin = nn.Linear(channels, channels, bias=False)

    def reset_parameters(self) -> None:
        """Draws new weights."""
        self.lin.reset_parameters()

    def forward(self, x: Tensor, edge_index: Any) -> Tensor:
        """The sum over the neighbours."""
        total: Tensor = self.propagate(edge_index, x=self.lin(x))
        return total

    def message(self, x_j: Tensor) -> Tensor:
        """What a neighbour sends."""
        return x_j

    def message_and_aggregate(self, edge_index: Any, x: Tensor) -> Tensor:
        """All at once, for a sparse adjacency."""
        product: Tensor = edge_index @ x
        return product


class PyGNetwork(nn.Module):
    """A network of ours with PyG's `AntiSymmetricConv` in place of our layer, weights copied.

    Args:
        network: A-DGN with shared weights and `phi="gcn"` or `"sum"`.
        normalised: Whether the graph will be given as an adjacency that is ready to use, so that
            PyG's GCN need not normalise it at every layer.
    """

    def __init__(self, network: GraphNetwork, *, normalised: bool) -> None:
        super().__init__()
        (layer,) = network.propagation.layers  # type: ignore[misc]
        ours = isinstance(layer, AntiSymmetricConv) and isinstance(layer.phi, LinearAggregation)
        if not ours or getattr(network.propagation, "hops", None) is not None:
            raise ValueError(
                "network must have shared weights, phi='gcn' or 'sum' and first_hops=0"
            )
        size = layer.in_channels
        phi: nn.Module = SumConv(size)
        if layer.phi.normalization == "gcn":
            phi = GCNConv(size, size, bias=False, normalize=not normalised)
        self.encoder = copy.deepcopy(network.encoder)
        self.conv = PyGAntiSymmetricConv(
            size, phi, num_iters=layer.num_iters, epsilon=layer.epsilon, gamma=layer.gamma
        )
        self.conv.load_state_dict(layer.state_dict())
        self.readout = copy.deepcopy(network.readout)

    def forward(self, x: Tensor, edge_index: Any, *edge_weight: Tensor) -> Tensor:
        """The outputs of all nodes."""
        states = self.conv(self.encoder(x), edge_index, *edge_weight)  # type: ignore[misc]
        output: Tensor = self.readout(states)
        return output


def normalised_edges(edge_index: Tensor, nodes: int) -> tuple[Tensor, Tensor]:
    """The edges as GCN normalises them, self loops among them, and their weights."""
    edges, weight = gcn_norm(edge_index, None, nodes, add_self_loops=True)
    return edges, weight


def normalised_csr(edge_index: Tensor, nodes: int) -> Tensor:
    """The adjacency as GCN normalises it, rows the targets, in CSR."""
    return _csr(*normalised_edges(edge_index, nodes), nodes)


def adjacency_csr(edge_index: Tensor, nodes: int) -> Tensor:
    """The adjacency of ones, rows the targets, in CSR."""
    return _csr(edge_index, torch.ones(edge_index.size(1)), nodes)


def _csr(edges: Tensor, weight: Tensor, nodes: int) -> Tensor:
    size = (nodes, nodes)
    coo = torch.sparse_coo_tensor(edges.flip(0), weight, size, check_invariants=True)
    return coo.to_sparse_csr()
