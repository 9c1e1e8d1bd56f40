"""The attention layer of graph attention networks."""

import torch
import torch_geometric.nn as pyg
from torch import Tensor
from torch.nn import functional

from adgn.graph import Adjacency, attend, edge_softmax, edges_with_loops
from adgn.graph.adjacency import Normalization
from adgn.graph.checks import check_count, is_traced
from adgn.nn.base import GraphConvolution, has_hooks


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
        if self.edge_dim is None:
            operator = self.operator(x, edge_index, edge_weight)
            heads = attend(
                operator,
                self._states(x),
                heads=self.heads,
                negative_slope=self.negative_slope,
                keep=self._keep(operator.value),
            )
            heads = heads.view(-1, self.heads, self.out_channels)
        else:
            sent = self.lin(x).view(-1, self.heads, self.out_channels)
            heads = self._along_edges(sent, *self.edges(x, edge_index, edge_weight, edge_attr))
        out = heads.flatten(1) if self.concat else heads.mean(1)
        return out if self.bias is None else out + self.bias

    def _keep(self, entries: Tensor) -> Tensor | None:
        """What the shares are multiplied with, `[heads, entries]`, while training with dropout."""
        if not (self.training and self.dropout > 0):
            return None
        return functional.dropout(entries.new_ones(self.heads, entries.numel()), self.dropout)

    def _states(self, x: Tensor) -> Tensor:
        """What the nodes send, and their parts of the logits: one product with the weights."""
        if has_hooks(self.lin):
            scores = torch.cat([self.att_src, self.att_dst]).unsqueeze(-1)
            sent = self.lin(x).view(-1, 1, self.heads, 1, self.out_channels)
            logits = (sent @ scores).flatten(1)
            return torch.cat([sent.flatten(1), logits], -1)
        return functional.linear(x, self.state_weights())

    def state_weights(self) -> Tensor:
        """What makes `attend`'s states of `x` in one product, `[heads * (channels + 2), in]`."""
        scores = torch.cat([self.att_src, self.att_dst]).unsqueeze(-1)  # [2, heads, channels, 1]
        weight = self.lin.weight.view(self.heads, self.out_channels, -1)
        return torch.cat([weight.flatten(0, 1), (scores * weight).sum(2).flatten(0, 1)])

    def _along_edges(self, sent: Tensor, edges: Tensor, features: Tensor) -> Tensor:
        """Attention with edge features: repeated edges may differ, so each has its own."""
        if is_traced(sent) or self.explain:
            return self._along_all_edges(sent, edges, features)
        (source, target), features = edges_with_loops(edges, features, sent.size(0))
        share = self._shares(sent, target, source, features)
        messages = share.unsqueeze(-1) * sent.index_select(0, source)
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
        share = self._shares(sent, *operator.places, features, weight, weight == 0)
        heads = [
            operator.with_values(alpha.contiguous()) @ states
            for alpha, states in zip(share.unbind(1), sent.unbind(1), strict=True)
        ]
        return torch.stack(heads, 1)

    def _shares(
        self,
        sent: Tensor,
        target: Tensor,
        source: Tensor,
        features: Tensor,
        weight: Tensor | None = None,
        silent: Tensor | None = None,
    ) -> Tensor:
        r"""$\alpha$ for each edge with features and each head, `[edges, heads]`.

        `sent` is `[N, heads, channels]`; for the others see `adgn.graph.edge_softmax`.
        """
        linked = self.lin_edge(features).view(-1, self.heads, self.out_channels)
        of_source, of_target = (sent * self.att_src).sum(-1), (sent * self.att_dst).sum(-1)
        # index_select throughout: the gradient of plain indexing depends on the number of threads.
        logits = of_source.index_select(0, source) + of_target.index_select(0, target)
        logits = logits + (linked * self.att_edge).sum(-1)
        logits = functional.leaky_relu(logits, self.negative_slope)
        share = edge_softmax(logits, target, sent.size(0), weight, silent)
        return functional.dropout(share, self.dropout, self.training)

    def __repr__(self) -> str:
        channels = self.heads * self.out_channels if self.concat else self.out_channels
        edge = "" if self.edge_dim is None else f", edge_dim={self.edge_dim}"
        return f"{type(self).__name__}({self.in_channels}, {channels}, heads={self.heads}{edge})"
