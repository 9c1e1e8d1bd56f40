"""The convolution of GCNII."""

import torch
import torch_geometric.nn as pyg
from torch import Tensor

from adgn.graph import Adjacency
from adgn.graph.adjacency import Normalization
from adgn.nn.base import GraphConvolution


class GCN2Conv(GraphConvolution, pyg.GCN2Conv):  # type: ignore[misc]
    r"""The layer of [GCNII](https://arxiv.org/abs/2007.02133):
    $\mathbf{X}' = \mathbf{P} ((1 - \beta) \mathbf{I} + \beta \mathbf{W})$ with
    $\mathbf{P} = (1 - \alpha) \hat{\mathbf{A}} \mathbf{X} + \alpha \mathbf{X}^0$.

    Parameters, state dict and outputs are those of PyG's layer of the same name.

    Args:
        channels: The size of a node's state.
        alpha: How much of the first states $\mathbf{X}^0$ comes back.
        theta: $\beta = \log(\theta / \ell + 1)$; `None` for $\beta = 1$.
        layer: The number $\ell$ of the layer, from 1; needed with `theta`.
        shared_weights: `False`: a second matrix for the part of $\mathbf{X}^0$ (GCNII*).

    Shapes: states `[N, channels]`, first states `[N, channels]`, graph, edge weights `[E]`
    (optional) → `[N, channels]`.

    Example:
        >>> x = torch.randn(2, 3)
        >>> GCN2Conv(3, alpha=0.1)(x, x, torch.tensor([[0], [1]])).shape
        torch.Size([2, 3])
    """

    normalization: Normalization = "gcn"

    def __init__(
        self,
        channels: int,
        alpha: float,
        *,
        theta: float | None = None,
        layer: int | None = None,
        shared_weights: bool = True,
    ) -> None:
        if (theta is None) != (layer is None):
            raise ValueError(f"theta={theta!r} and layer={layer!r}: give both or neither")
        super().__init__(channels, alpha, theta, layer, shared_weights)

    def forward(
        self, x: Tensor, first: Tensor, edge_index: Adjacency, edge_weight: Tensor | None = None
    ) -> Tensor:
        """The next states."""
        smoothed = (1 - self.alpha) * (self.operator(x, edge_index, edge_weight) @ x)
        initial = self.alpha * first
        if self.weight2 is None:
            return self._mapped(smoothed + initial, self.weight1)
        return self._mapped(smoothed, self.weight1) + self._mapped(initial, self.weight2)

    def _mapped(self, x: Tensor, weight: Tensor) -> Tensor:
        if self.beta == 1:  # spares the identity's part
            return x @ weight
        return torch.lerp(x, x @ weight, self.beta)
