"""The convolutions of graph isomorphism networks, without and with edge features."""

from typing import Literal

import torch
import torch_geometric.nn as pyg
from torch import Tensor, nn

from adgn._util.suggestions import unknown_name
from adgn.graph import Adjacency
from adgn.graph.adjacency import Normalization
from adgn.nn.base import GraphConvolution, scaled

PerceptronName = Literal["linear", "two-layer"]


def perceptron(name: PerceptronName, in_channels: int, out_channels: int) -> nn.Module:
    """GIN's $h$: one linear layer, or two, each followed by batch normalisation and ReLU."""
    if name == "linear":
        return nn.Linear(in_channels, out_channels)
    if name != "two-layer":
        raise unknown_name("mlp", name, ["linear", "two-layer"])
    return nn.Sequential(
        nn.Linear(in_channels, out_channels),
        nn.BatchNorm1d(out_channels),
        nn.ReLU(),
        nn.Linear(out_channels, out_channels),
        nn.BatchNorm1d(out_channels),
        nn.ReLU(),
    )


class GINConv(GraphConvolution, pyg.GINConv):  # type: ignore[misc]
    r"""The layer of [graph isomorphism networks](https://arxiv.org/abs/1810.00826):
    $\mathbf{x}'_u = h\left((1 + \eta) \mathbf{x}_u +
    \sum_{j \in \mathcal{N}_u} w_{uj} \mathbf{x}_j\right)$.

    Parameters, state dict and outputs are those of PyG's layer of the same name, whose `eps` is
    $\eta$ here; PyG's does not take edge weights.

    Args:
        in_channels: Features per node.
        out_channels: Outputs per node.
        mlp: $h$: `"linear"`, or `"two-layer"`: two linear layers, each followed by batch
            normalisation and ReLU.
        train_eps: Whether $\eta$ is learned; it starts at 0.

    Shapes: states `[N, in_channels]`, graph, edge weights `[E]` (optional) → `[N, out_channels]`.

    Example:
        >>> GINConv(3, 4)(torch.randn(2, 3), torch.tensor([[0], [1]])).shape
        torch.Size([2, 4])
    """

    normalization: Normalization = "none"

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        *,
        mlp: PerceptronName = "linear",
        train_eps: bool = True,
    ) -> None:
        super().__init__(perceptron(mlp, in_channels, out_channels), train_eps=train_eps)

    def forward(
        self, x: Tensor, edge_index: Adjacency, edge_weight: Tensor | None = None
    ) -> Tensor:
        """The next states."""
        neighbours = self.operator(x, edge_index, edge_weight) @ x
        out: Tensor = self.nn(neighbours + scaled(1 + self.eps, x))
        return out


class GINEConv(GraphConvolution, pyg.GINEConv):  # type: ignore[misc]
    r"""[GIN with edge features](https://arxiv.org/abs/1905.12265):
    $\mathbf{x}'_u = h\left((1 + \eta) \mathbf{x}_u +
    \sum_{j \in \mathcal{N}_u} \operatorname{ReLU}(\mathbf{x}_j + \mathbf{U} \mathbf{e}_{uj} +
    \mathbf{c})\right)$.

    Parameters, state dict and outputs are those of PyG's layer of the same name.

    Args:
        in_channels: Features per node.
        out_channels: Outputs per node.
        edge_dim: Features per edge.
        mlp: $h$, see `GINConv`.
        train_eps: Whether $\eta$ is learned; it starts at 0.

    Shapes: states `[N, in_channels]`, graph, edge features `[E, edge_dim]` → `[N, out_channels]`.

    Example:
        >>> conv = GINEConv(3, 4, edge_dim=2)
        >>> conv(torch.randn(2, 3), torch.tensor([[0], [1]]), edge_attr=torch.randn(1, 2)).shape
        torch.Size([2, 4])
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        *,
        edge_dim: int,
        mlp: PerceptronName = "linear",
        train_eps: bool = True,
    ) -> None:
        h = perceptron(mlp, in_channels, out_channels)
        super().__init__(h, train_eps=train_eps, edge_dim=edge_dim)
        self.edge_dim = edge_dim

    def forward(
        self,
        x: Tensor,
        edge_index: Adjacency,
        edge_weight: Tensor | None = None,
        edge_attr: Tensor | None = None,
    ) -> Tensor:
        """The next states."""
        edges, features = self.edges(x, edge_index, edge_weight, edge_attr)
        source, target = edges.unbind()
        # index_select: the gradient of plain indexing depends on the number of threads.
        messages = torch.relu(x.index_select(0, source) + self.lin(features))
        mask = self.edge_mask()
        if mask is not None:
            messages = messages * mask.unsqueeze(-1)
        neighbours = torch.zeros_like(x).index_add(0, target, messages)
        out: Tensor = self.nn(neighbours + scaled(1 + self.eps, x))
        return out
