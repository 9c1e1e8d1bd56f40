"""Directions of all edges, and the fully adjacent last layer."""

from dataclasses import replace

from adgn.graph import turned
from adgn.transforms.base import EdgeGraph, Transform, register_transform


@register_transform
class Undirected(Transform):
    r"""Each edge in both directions: $\mathbf{A} \leftarrow \mathbf{A} \lor \mathbf{A}^\top$.

    Edges that become one have the mean of their weights. Applied twice it is as applied once.

    Example:
        >>> import torch
        >>> from adgn.transforms import EdgeGraph
        >>> Undirected()(EdgeGraph(torch.tensor([[0], [1]]), 2)).edge_index.tolist()
        [[0, 1], [1, 0]]
    """

    name = "undirected"
    title = "both directions of each edge"
    separable = True

    def apply(self, graph: EdgeGraph) -> EdgeGraph:
        """The graph with all edges in both directions."""
        edges, weight = turned(graph.edge_index, graph.edge_weight, graph.num_nodes, "undirected")
        return replace(graph, edge_index=edges, edge_weight=weight)

    def expected_edges(self, nodes: int, edges: int) -> int:
        """Twice as many at most."""
        return 2 * edges


@register_transform
class Reverse(Transform):
    r"""All edges the other way round: $\mathbf{A} \leftarrow \mathbf{A}^\top$.

    Applied twice it changes nothing.

    Example:
        >>> import torch
        >>> from adgn.transforms import EdgeGraph
        >>> Reverse()(EdgeGraph(torch.tensor([[0], [1]]), 2)).edge_index.tolist()
        [[1], [0]]
    """

    name = "reverse"
    title = "all edges reversed"
    separable = True

    def apply(self, graph: EdgeGraph) -> EdgeGraph:
        """The graph with all edges reversed, in the same order."""
        edges, weight = turned(graph.edge_index, graph.edge_weight, graph.num_nodes, "out")
        return replace(graph, edge_index=edges, edge_weight=weight)


@register_transform
class FullyAdjacent(Transform):
    r"""The last layer on the complete graph ([Alon & Yahav](https://arxiv.org/abs/2006.05205)).

    $$
    \hat{\mathbf{Y}} = \mathbf{X}^L \mathbf{W}_{\mathrm{self}}^\top + \tfrac{1}{n}
        \mathbf{1}\mathbf{1}^\top \mathbf{X}^L \mathbf{W}^\top + \mathbf{1}\mathbf{b}^\top
    $$

    The edges stay as they are: all layers of the method before the last one see them. The last
    layer, in this package the readout, is told by a mark on the graph; it is the model's option
    `fully_adjacent`. The $n \times n$ matrix is of rank one and never made.

    Example:
        >>> import torch
        >>> from adgn.transforms import EdgeGraph
        >>> FullyAdjacent()(EdgeGraph(torch.tensor([[0], [1]]), 2)).fully_adjacent
        True
    """

    name = "fa"
    title = "a last layer on the complete graph"
    paper = "https://arxiv.org/abs/2006.05205"
    separable = True

    def apply(self, graph: EdgeGraph) -> EdgeGraph:
        """The same edges, marked."""
        return replace(graph, fully_adjacent=True)
