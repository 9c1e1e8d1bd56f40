"""The Chebyshev convolution of Defferrard, Bresson and Vandergheynst."""

import torch
import torch_geometric.nn as pyg
from torch import Tensor

from adgn.graph import Adjacency, Operator
from adgn.graph.adjacency import Normalization
from adgn.graph.checks import check_count
from adgn.nn.base import GraphConvolution


def chebyshev_terms(operator: Operator, x: Tensor, degree: int) -> list[Tensor]:
    r"""$T_0(\tilde{\mathbf{L}}) \mathbf{X}, \dots, T_K(\tilde{\mathbf{L}}) \mathbf{X}$ for
    $\tilde{\mathbf{L}} = -\mathbf{S}$.

    $T_{k+1}(\tilde{\mathbf{L}}) = 2 \tilde{\mathbf{L}} T_k(\tilde{\mathbf{L}}) -
    T_{k-1}(\tilde{\mathbf{L}})$. Of a graph $\mathbf{S} = \mathbf{D}^{-1/2} \mathbf{A}
    \mathbf{D}^{-1/2}$, so that $\tilde{\mathbf{L}}$ is the normalised Laplacian, scaled for a
    largest eigenvalue of 2.

    Args:
        operator: $\mathbf{S}$.
        x: $\mathbf{X}$, `[..., N, d]`.
        degree: The highest degree $K$.

    Example:
        >>> from adgn.graph import graph_operator
        >>> pair = graph_operator(torch.tensor([[0, 1], [1, 0]]), num_nodes=2, normalization="sym")
        >>> [t.flatten().tolist() for t in chebyshev_terms(pair, torch.tensor([[1.0], [3.0]]), 2)]
        [[1.0, 3.0], [-3.0, -1.0], [1.0, 3.0]]
    """
    terms = [x]
    if degree > 0:
        terms.append(-(operator @ x))
    for _ in range(degree - 1):
        terms.append(torch.add(terms[-2], operator @ terms[-1], alpha=2).neg())
    return terms


class ChebConv(GraphConvolution, pyg.ChebConv):  # type: ignore[misc]
    r"""[Chebyshev convolution](https://arxiv.org/abs/1606.09375):
    $\mathbf{X}' = \sum_{k=0}^{K-1} T_k(\tilde{\mathbf{L}})\, \mathbf{X} \mathbf{W}_k^\top +
    \mathbf{b}$.

    $\tilde{\mathbf{L}} = -\mathbf{D}^{-1/2} \mathbf{A} \mathbf{D}^{-1/2}$, see `chebyshev_terms`.
    Parameters and state dict are those of PyG's layer of the same name. So are the outputs on
    undirected graphs in which every node has an edge to another and none to itself: PyG leaves
    self loops out, has $-1$ on the diagonal for a node without edges, where this has 0, and counts
    outgoing edges as degrees, where this counts those that a node hears.

    Args:
        in_channels: Features per node.
        out_channels: Outputs per node.
        K: How many terms there are, as in PyG: the degrees are 0 to $K - 1$, and a node hears
            $K - 1$ hops far.
        bias: Whether there is a $\mathbf{b}$.

    Shapes: states `[..., N, in_channels]`, graph, edge weights `[E]` (optional) → `[..., N,
    out_channels]`.

    Example:
        >>> ChebConv(3, 4, K=3)(torch.randn(2, 3), torch.tensor([[0, 1], [1, 0]])).shape
        torch.Size([2, 4])
    """

    normalization: Normalization = "sym"

    def __init__(self, in_channels: int, out_channels: int, K: int, *, bias: bool = True) -> None:
        check_count("K", K)
        super().__init__(in_channels, out_channels, K, bias=bias)

    def forward(
        self, x: Tensor, edge_index: Adjacency, edge_weight: Tensor | None = None
    ) -> Tensor:
        """The next states."""
        operator = self.operator(x, edge_index, edge_weight)
        terms = chebyshev_terms(operator, x, len(self.lins) - 1)
        weight = torch.cat([lin.weight for lin in self.lins], dim=-1)
        return torch.nn.functional.linear(torch.cat(terms, dim=-1), weight, self.bias)
