"""The aggregations Φ: how a node hears its neighbours."""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from adgn.choices import unknown_name
from adgn.graph import Adjacency, SparseOperator, graph_operator
from adgn.graph.layout import Normalization


def reset_linear(weight: Tensor) -> None:
    """Initialises `[out, in]` weights as `torch.nn.Linear` does."""
    nn.init.kaiming_uniform_(weight, a=math.sqrt(5))


def reset_bias(bias: Tensor, fan_in: int) -> None:
    r"""Initialises a bias from $U(-1/\sqrt{d}, 1/\sqrt{d})$."""
    bound = 1 / math.sqrt(fan_in)
    nn.init.uniform_(bias, -bound, bound)


class LinearAggregation(nn.Module):
    r"""An aggregation linear in the states: $\Phi = \mathbf{A} \mathbf{X} \mathbf{V}^\top$.

    Args:
        channels: The size $d$ of a node's state.

    Shapes:
        - **input:** states `[..., N, d]`, graph (see `adgn.graph.graph_operator`), edge
          weights `[E]` (optional)
        - **output:** `[..., N, d]`
    """

    normalization: Normalization

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.channels = channels
        self.lin = nn.Linear(channels, channels, bias=False)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws new weights."""
        reset_linear(self.lin.weight)

    def operator(
        self, x: Tensor, edge_index: Adjacency, edge_weight: Tensor | None = None
    ) -> SparseOperator:
        """The graph as this aggregation sees it, for states like `x`."""
        return graph_operator(
            edge_index,
            edge_weight,
            num_nodes=x.size(-2),
            normalization=self.normalization,
            like=x,
        )

    def forward(
        self, x: Tensor, edge_index: Adjacency, edge_weight: Tensor | None = None
    ) -> Tensor:
        r"""$\Phi(\mathbf{X}, \mathcal{N}_u)$ for every node."""
        messages: Tensor = self.lin(x)
        return self.operator(x, edge_index, edge_weight) @ messages

    def extra_repr(self) -> str:
        """The size, for `repr`."""
        return str(self.channels)


class SumAggregation(LinearAggregation):
    r"""The simple aggregation of the [A-DGN paper](https://openreview.net/forum?id=J3Y7cgZOOS).

    $$
    \Phi(\mathbf{X}, \mathcal{N}_u) = \sum_{j \in \mathcal{N}_u} w_{uj} \mathbf{V} \mathbf{x}_j
    $$

    A repeated edge counts as often as it is there. A node's own state enters only through a self
    loop of the graph, so without self loops the Jacobian of the update has purely imaginary
    eigenvalues for $\gamma = 0$.

    Example:
        >>> import torch
        >>> phi = SumAggregation(2)
        >>> _ = torch.nn.init.eye_(phi.lin.weight)
        >>> phi(torch.eye(2), torch.tensor([[0], [1]])).tolist()  # one edge, 0 → 1
        [[0.0, 0.0], [1.0, 0.0]]
    """

    normalization: Normalization = "none"


class GCNAggregation(LinearAggregation):
    r"""The aggregation of [graph convolutional networks](https://arxiv.org/abs/1609.02907).

    $$
    \Phi(\mathbf{X}, \mathcal{N}_u) = \mathbf{V} \sum_{j \in \mathcal{N}_u \cup \{u\}}
        \frac{w_{uj}}{\sqrt{\hat{d}_j \hat{d}_u}} \mathbf{x}_j, \qquad
    \hat{d}_u = \sum_{j \in \mathcal{N}_u \cup \{u\}} w_{uj}
    $$

    A node without a self loop gets one of weight 1; a self loop that is there keeps its weight.

    Example:
        >>> import torch
        >>> phi = GCNAggregation(1)
        >>> _ = torch.nn.init.ones_(phi.lin.weight)
        >>> phi(torch.tensor([[1.0], [3.0]]), torch.tensor([[0, 1], [1, 0]]))  # both of degree 2
        tensor([[2.0000],
                [2.0000]], grad_fn=<...>)
    """

    normalization: Normalization = "gcn"


AGGREGATIONS: dict[str, Callable[[int], nn.Module]] = {
    "gcn": GCNAggregation,
    "sum": SumAggregation,
}


def resolve_aggregation(phi: str | nn.Module | None, channels: int) -> nn.Module:
    """The module for `phi`: a name, a module as it is, or `None` for `"gcn"` as in PyG."""
    if isinstance(phi, nn.Module):
        return phi
    if phi is None:
        phi = "gcn"
    if not isinstance(phi, str):
        raise TypeError(
            f"phi is a {type(phi).__name__}; expected one of {', '.join(sorted(AGGREGATIONS))}, or "
            "a torch.nn.Module called as phi(x, edge_index, ...)"
        )
    if phi not in AGGREGATIONS:
        raise unknown_name("phi", phi, AGGREGATIONS)
    return AGGREGATIONS[phi](channels)


def check_aggregated(phi: nn.Module, h: Tensor, x: Tensor) -> None:
    """Raises unless a user's Φ returned one state per node, of the size of `x`."""
    if not isinstance(h, torch.Tensor) or h.shape != x.shape:
        got = list(h.shape) if isinstance(h, torch.Tensor) else type(h).__name__
        raise ValueError(
            f"phi={type(phi).__name__} returned {got} for x of shape {list(x.shape)}; an "
            "aggregation must return states of the same shape, so give it "
            f"{x.size(-1)} input and output channels"
        )
