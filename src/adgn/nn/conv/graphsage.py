"""The convolution of GraphSAGE."""

from typing import Literal

import torch_geometric.nn as pyg
from torch import Tensor
from torch.nn import functional

from adgn.graph import Adjacency
from adgn.graph.adjacency import Normalization
from adgn.nn.base import GraphConvolution


class SAGEConv(GraphConvolution, pyg.SAGEConv):  # type: ignore[misc]
    r"""The layer of [GraphSAGE](https://arxiv.org/abs/1706.02216):
    $\mathbf{x}'_u = \mathbf{W}_1 \mathbf{x}_u +
    \mathbf{W}_2 \operatorname{mean}_{j \in \mathcal{N}_u} \mathbf{x}_j + \mathbf{b}$.

    Parameters, state dict and outputs are those of PyG's layer of the same name. Edge weights,
    which PyG's does not take, make the mean a weighted one.

    Args:
        in_channels: Features per node.
        out_channels: Outputs per node.
        aggr: `"mean"` or `"sum"`.
        root_weight: Whether there is a $\mathbf{W}_1$.
        normalize: Whether outputs are divided by their Euclidean norm.
        bias: Whether there is a $\mathbf{b}$.

    Shapes: states `[..., N, in_channels]`, graph, edge weights `[E]` (optional) → `[..., N,
    out_channels]`.

    Example:
        >>> import torch
        >>> SAGEConv(3, 4)(torch.randn(2, 3), torch.tensor([[0], [1]])).shape
        torch.Size([2, 4])
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        *,
        aggr: Literal["mean", "sum"] = "mean",
        root_weight: bool = True,
        normalize: bool = False,
        bias: bool = True,
    ) -> None:
        super().__init__(in_channels, out_channels, aggr, normalize, root_weight, bias=bias)
        self.normalization: Normalization = "mean" if aggr == "mean" else "none"

    def forward(
        self, x: Tensor, edge_index: Adjacency, edge_weight: Tensor | None = None
    ) -> Tensor:
        """The next states."""
        out: Tensor = self.lin_l(self.operator(x, edge_index, edge_weight) @ x)
        if self.root_weight:
            out = out + self.lin_r(x)
        return functional.normalize(out, dim=-1) if self.normalize else out
