"""The same network built from PyG's layer, as documented and at its best."""

from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.nn import AntiSymmetricConv, GCNConv, MessagePassing
from torch_geometric.nn.conv.gcn_conv import gcn_norm


class SumConv(MessagePassing):
    """`Σ_j V x_j`, as one writes it in PyG; with a sparse adjacency one sparse product."""

    def __init__(self, channels: int) -> None:
        super().__init__(aggr="add")
        self.lin = nn.Linear(channels, channels, bias=False)

    def forward(self, x: Tensor, edge_index: Any) -> Tensor:
        """The sum over the neighbours."""
        return self.propagate(edge_index, x=self.lin(x))

    def message(self, x_j: Tensor) -> Tensor:
        """What a neighbour sends."""
        return x_j

    def message_and_aggregate(self, edge_index: Any, x: Tensor) -> Tensor:
        """All at once, for a sparse adjacency."""
        return edge_index @ x


class PyGNetwork(nn.Module):
    """Linear encoder, PyG's `AntiSymmetricConv`, linear readout."""

    def __init__(
        self, features: int, hidden: int, outputs: int, layers: int, phi: nn.Module | None
    ) -> None:
        super().__init__()
        self.encoder = nn.Linear(features, hidden)
        self.conv = AntiSymmetricConv(hidden, phi, num_iters=layers)
        self.readout = nn.Linear(hidden, outputs)

    def forward(self, x: Tensor, edge_index: Any) -> Tensor:
        """The outputs of all nodes."""
        return self.readout(self.conv(self.encoder(x), edge_index))


def plain_gcn(hidden: int) -> nn.Module:
    """GCN that takes an adjacency normalised beforehand."""
    return GCNConv(hidden, hidden, bias=False, normalize=False)


def normalised_csr(edge_index: Tensor, nodes: int) -> Tensor:
    """The adjacency as GCN normalises it, rows the targets, in CSR."""
    edges, weight = gcn_norm(edge_index, None, nodes, add_self_loops=True)
    return torch.sparse_coo_tensor(edges.flip(0), weight, (nodes, nodes)).to_sparse_csr()


def adjacency_csr(edge_index: Tensor, nodes: int) -> Tensor:
    """The adjacency of ones, rows the targets, in CSR."""
    ones = torch.ones(edge_index.size(1))
    return torch.sparse_coo_tensor(edge_index.flip(0), ones, (nodes, nodes)).to_sparse_csr()
