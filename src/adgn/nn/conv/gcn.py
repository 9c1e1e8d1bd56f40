"""The graph convolution of Kipf and Welling."""

import torch_geometric.nn as pyg
from torch import Tensor

from adgn.graph import Adjacency
from adgn.graph.adjacency import Normalization
from adgn.nn.base import GraphConvolution


class GCNConv(GraphConvolution, pyg.GCNConv):  # type: ignore[misc]
    r"""[Graph convolution](https://arxiv.org/abs/1609.02907):
    $\mathbf{X}' = \hat{\mathbf{A}} \mathbf{X} \mathbf{W}^\top + \mathbf{b}$.

    $\hat{\mathbf{A}} = \hat{\mathbf{D}}^{-1/2} (\mathbf{A} + \mathbf{I}) \hat{\mathbf{D}}^{-1/2}$.
    Parameters, state dict and outputs are those of PyG's layer of the same name, except that
    `improved` also holds where no edge weights are given.

    Args:
        in_channels: Features per node.
        out_channels: Outputs per node.
        improved: Self loops of weight 2.
        bias: Whether there is a $\mathbf{b}$.

    Shapes: states `[..., N, in_channels]`, graph, edge weights `[E]` (optional) → `[..., N,
    out_channels]`.

    Example:
        >>> import torch
        >>> GCNConv(3, 4)(torch.randn(2, 3), torch.tensor([[0], [1]])).shape
        torch.Size([2, 4])
    """

    def __init__(
        self, in_channels: int, out_channels: int, *, improved: bool = False, bias: bool = True
    ) -> None:
        super().__init__(in_channels, out_channels, improved=improved, bias=bias)
        self.normalization: Normalization = "gcn-improved" if improved else "gcn"

    def forward(
        self, x: Tensor, edge_index: Adjacency, edge_weight: Tensor | None = None
    ) -> Tensor:
        """The next states."""
        out: Tensor = self.operator(x, edge_index, edge_weight) @ self.lin(x)
        return out if self.bias is None else out + self.bias
