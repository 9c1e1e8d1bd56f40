"""The gated graph convolution."""

from collections import deque
from collections.abc import Iterator

import torch
import torch_geometric.nn as pyg
from torch import Tensor, nn

from adgn.graph import Adjacency, Direction, GraphOperator
from adgn.graph.adjacency import Normalization
from adgn.graph.direction import check_direction
from adgn.nn.base import GraphConvolution


class GatedGraphConv(GraphConvolution, pyg.GatedGraphConv):  # type: ignore[misc]
    r"""The layer of [gated graph networks](https://arxiv.org/abs/1511.05493), applied `num_layers`
    times: $\mathbf{x}_u \leftarrow \operatorname{GRU}\left(
    \sum_{j \in \mathcal{N}_u} w_{uj} \mathbf{W}_\ell \mathbf{x}_j,\ \mathbf{x}_u\right)$.

    The GRU is the same in all steps, $\mathbf{W}_\ell$ is not. Parameters, state dict and outputs
    are those of PyG's layer of the same name.

    Args:
        channels: The size of a node's state.
        num_layers: How many steps.
        bias: Whether the GRU has biases.
        direction: Where a node listens; `"both"`: messages of both directions, with weights
            `[num_layers, channels, 2 channels]`, are added before the GRU.

    Shapes: states `[N, channels]`, graph, edge weights `[E]` (optional) → `[N, channels]`.

    Example:
        >>> GatedGraphConv(3, num_layers=2)(torch.randn(2, 3), torch.tensor([[0], [1]])).shape
        torch.Size([2, 3])
    """

    normalization: Normalization = "none"

    def __init__(
        self, channels: int, num_layers: int, *, bias: bool = True, direction: Direction = "in"
    ) -> None:
        super().__init__(channels, num_layers, bias=bias)
        check_direction(direction)
        self.direction = direction
        if direction == "both":
            self.weight = nn.Parameter(torch.empty(num_layers, channels, 2 * channels))
            self.reset_parameters()

    def forward(
        self, x: Tensor, edge_index: Adjacency, edge_weight: Tensor | None = None
    ) -> Tensor:
        """The states after all steps."""
        # A queue of one: only the last states are kept.
        return deque(self.steps(x, self.prepared(x, edge_index, edge_weight)), maxlen=1).pop()

    def steps(self, x: Tensor, operator: GraphOperator) -> Iterator[Tensor]:
        """The states after each step."""
        for weight in self.weight.unbind():
            x = self.rnn(operator @ (x @ weight), x)
            yield x
