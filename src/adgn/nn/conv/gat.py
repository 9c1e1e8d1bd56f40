"""The attention layer of graph attention networks."""

import math

import torch
import torch_geometric.nn as pyg
from torch import Tensor
from torch.nn import functional

from adgn.graph import Adjacency, Operator, edges_with_loops
from adgn.graph.adjacency import Normalization
from adgn.graph.checks import check_count, is_traced
from adgn.nn.base import GraphConvolution


class GATConv(GraphConvolution, pyg.GATConv):  # type: ignore[misc]
    r"""The layer of [graph attention networks](https://arxiv.org/abs/1710.10903):
    $\mathbf{x}'_u = \sum_{j \in \mathcal{N}_u \cup \{u\}} \alpha_{uj} \mathbf{W} \mathbf{x}_j +
    \mathbf{b}$ with
    $\alpha_{uj} \propto w_{uj} \exp \operatorname{LeakyReLU}(
    \mathbf{a}_1^\top \mathbf{W} \mathbf{x}_u + \mathbf{a}_2^\top \mathbf{W} \mathbf{x}_j)$,
    $\sum_j \alpha_{uj} = 1$.

    Parameters, state dict and outputs are those of PyG's layer of the same name. Edge weights,
    which PyG's does not take, count an edge $w_{uj}$ times: a weight of 2 is the same as
    the edge twice, and a weight of 0 as no edge. Without edge features only one number per edge
    and head is kept for the backward pass, and not a state per edge.

    Args:
        in_channels: Features per node.
        out_channels: Outputs per node; with `concat` the heads have `out_channels / heads` each.
        heads: How many attention heads.
        concat: Whether the heads' outputs stand next to each other; `False`: their mean.
        negative_slope: Of LeakyReLU.
        attention_dropout: The share of $\alpha_{uj}$ dropped while training.
        edge_dim: Features per edge, which enter LeakyReLU as
            $\mathbf{a}_3^\top \mathbf{U} \mathbf{e}_{uj}$; `None` for a graph without.
        bias: Whether there is a $\mathbf{b}$.

    Shapes: states `[N, in_channels]`, graph, edge weights `[E]` (optional) or edge features `[E,
    edge_dim]` → `[N, out_channels]`.

    Example:
        >>> GATConv(3, 4, heads=2)(torch.randn(2, 3), torch.tensor([[0], [1]])).shape
        torch.Size([2, 4])
    """

    normalization: Normalization = "loops"

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        *,
        heads: int = 1,
        concat: bool = True,
        negative_slope: float = 0.2,
        attention_dropout: float = 0.0,
        edge_dim: int | None = None,
        bias: bool = True,
    ) -> None:
        check_count("heads", heads)
        if concat and out_channels % heads:
            raise ValueError(
                f"heads={heads} does not divide out_channels={out_channels}; the heads' outputs "
                "stand next to each other, so choose a divisor, or concat=False for their mean"
            )
        sizes = (in_channels, out_channels // heads if concat else out_channels)
        attention = (heads, concat, negative_slope, attention_dropout)
        # Self loops are in the graph once and for all.
        super().__init__(*sizes, *attention, add_self_loops=False, edge_dim=edge_dim, bias=bias)

    def forward(
        self,
        x: Tensor,
        edge_index: Adjacency,
        edge_weight: Tensor | None = None,
        edge_attr: Tensor | None = None,
    ) -> Tensor:
        """The next states."""
        sent = self.lin(x).view(-1, self.heads, self.out_channels)
        if self.edge_dim is None:
            heads = self._along_slots(sent, self.operator(x, edge_index, edge_weight))
        else:
            heads = self._along_edges(sent, *self.edges(x, edge_index, edge_weight, edge_attr))
        out = heads.flatten(1) if self.concat else heads.mean(1)
        return out if self.bias is None else out + self.bias

    def _along_slots(self, sent: Tensor, operator: Operator) -> Tensor:
        """Attention without edge features: one sparse product per head."""
        if operator.has_negative_values:
            raise ValueError(
                "edge_weight has negative entries; attention counts an edge as often as its weight "
                "says, which must be at least 0"
            )
        weight = operator.value.unsqueeze(-1)
        mask = weight == 0 if operator.has_zero_values else None
        attention = self._attention(sent, *operator.places, weight, mask=mask)
        return _per_head(operator, attention, sent)

    def _along_edges(self, sent: Tensor, edges: Tensor, features: Tensor) -> Tensor:
        """Attention with edge features: repeated edges may differ, so each has its own."""
        if is_traced(sent) or self.explain:
            return self._along_all_edges(sent, edges, features)
        (source, target), features = edges_with_loops(edges, features, sent.size(0))
        attention = self._attention(sent, target, source, edge_alpha=self._edge_logits(features))
        messages = attention.unsqueeze(-1) * sent.index_select(0, source)
        return torch.zeros_like(sent).index_add(0, target, messages)

    def _along_all_edges(self, sent: Tensor, edges: Tensor, features: Tensor) -> Tensor:
        """The same without leaving edges out: self loops that are replaced have weight 0."""
        operator = self.operator(sent.flatten(1), edges)
        weight = operator.value.unsqueeze(-1)
        kept, target = weight[: edges.size(1)], edges[1]
        total = features.new_zeros(sent.size(0), features.size(1))
        total = total.index_add(0, target, kept * features)
        count = total.new_zeros(sent.size(0), 1).index_add(0, target, kept)
        features = torch.cat([features, total / count.clamp(min=1)])
        attention = self._attention(
            sent, *operator.places, weight, self._edge_logits(features), mask=weight == 0
        )
        return _per_head(operator, attention, sent)

    def _edge_logits(self, features: Tensor) -> Tensor:
        linked = self.lin_edge(features).view(-1, self.heads, self.out_channels)
        logits: Tensor = (linked * self.att_edge).sum(-1)
        return logits

    def _attention(
        self,
        sent: Tensor,
        target: Tensor,
        source: Tensor,
        weight: Tensor | None = None,
        edge_alpha: Tensor | None = None,
        mask: Tensor | None = None,
    ) -> Tensor:
        r"""$\alpha$ for each pair of target and source and each head, `[pairs, heads]`.

        `sent` is `[N, heads, channels]`; `weight` says how often a pair counts and `mask` which
        ones have weight 0, `[pairs, 1]`; `edge_alpha` is added to the logits, `[pairs, heads]`.
        """
        alpha_src = (sent * self.att_src).sum(-1)
        alpha_dst = (sent * self.att_dst).sum(-1)
        # index_select throughout: the gradient of plain indexing depends on the number of threads.
        logits = alpha_src.index_select(0, source) + alpha_dst.index_select(0, target)
        if edge_alpha is not None:
            logits = logits + edge_alpha
        logits = functional.leaky_relu(logits, self.negative_slope)
        # The largest logit of a target is taken off all of them, so that exp cannot overflow.
        index = target.unsqueeze(-1).expand_as(logits)
        counted = logits.detach()
        if mask is not None:
            counted = counted.masked_fill(mask, -torch.inf)
        top = torch.full_like(alpha_dst, -torch.inf).scatter_reduce(0, index, counted, "amax")
        alpha = logits - top.index_select(0, target)
        if mask is not None:
            # The logit of a pair of weight 0 may exceed the largest one by any amount, or by ∞
            # where a target has no other pairs; alpha must be finite before the weight makes it 0.
            alpha = alpha.masked_fill(alpha == torch.inf, 0.0)
            alpha = alpha.clamp(max=math.log(torch.finfo(alpha.dtype).max) / 2)
        alpha = alpha.exp()
        if weight is not None:
            alpha = alpha * weight
        total = torch.zeros_like(alpha_dst).index_add(0, target, alpha)
        total = torch.where(total == 0, 1.0, total)  # a node without neighbours
        alpha = alpha / total.index_select(0, target)
        return functional.dropout(alpha, self.dropout, self.training)

    def __repr__(self) -> str:
        channels = self.heads * self.out_channels if self.concat else self.out_channels
        edge = "" if self.edge_dim is None else f", edge_dim={self.edge_dim}"
        return f"{type(self).__name__}({self.in_channels}, {channels}, heads={self.heads}{edge})"


def _per_head(operator: Operator, attention: Tensor, sent: Tensor) -> Tensor:
    """One sparse product per head, with the weights `[entries, heads]` as values."""
    heads = [
        operator.with_values(alpha.contiguous()) @ states
        for alpha, states in zip(attention.unbind(1), sent.unbind(1), strict=True)
    ]
    return torch.stack(heads, 1)
