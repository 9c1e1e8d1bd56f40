"""Graphs as edge lists, for layers that pass a message along each edge."""

import torch
from torch import Tensor
from torch_geometric.utils import add_self_loops, remove_self_loops

from adgn.graph.adjacency import SPARSE_LAYOUTS, Adjacency, entries, plain_edges
from adgn.graph.blocks import SelectedGraphs
from adgn.graph.cache import cached
from adgn.graph.checks import check_edge_index, check_same_place, is_traced
from adgn.graph.direction import OperatorDirection, turned


def edge_list(edge_index: Adjacency, num_nodes: int, like: Tensor) -> Tensor:
    """The edges `[2, E]` of a graph in any form that has edges, validated once per graph.

    While tracing nothing is looked at.

    Args:
        edge_index: See [`graph_operator`][adgn.graph.graph_operator]. The edges of a sparse
            matrix come in the order of its entries; those of a batch of prepared graphs in the
            order of `SelectedGraphs.edge_number`.
        num_nodes: The number of nodes.
        like: A tensor on the device where the edges must be.

    Example:
        >>> matrix = torch.tensor([[0.0, 0.0], [1.0, 0.0]]).to_sparse_csr()  # 0 → 1
        >>> edge_list(matrix, 2, like=torch.zeros(2, 1)).tolist()
        [[0], [1]]
    """
    if isinstance(edge_index, SelectedGraphs):
        edges = edge_index.edge_index
        check_same_place("edge_index", edges, "x", like)
        return edges
    if not isinstance(edge_index, Tensor):
        raise TypeError(
            f"edge_index is a {type(edge_index).__name__}, which has no edges to carry features; "
            "pass a [2, E] tensor, a sparse matrix or a batch of GraphBlocks"
        )
    check_same_place("edge_index", edge_index, "x", like)
    given: Tensor = edge_index
    if is_traced(like) and given.layout not in SPARSE_LAYOUTS:
        return plain_edges(given, num_nodes).long()

    def build() -> Tensor | None:
        if given.layout in SPARSE_LAYOUTS:
            target, source, _ = entries(given)
            edges = torch.stack([source, target])
        else:
            edges = plain_edges(given, num_nodes)
        check_edge_index(edges, num_nodes)
        # What is remembered of a graph lives as long as the graph: were it the graph itself, it
        # would live for ever.
        return None if given.layout == torch.strided and given.dtype == torch.long else edges.long()

    built = cached((given,), ("edge list", num_nodes), build)
    return plain_edges(given, num_nodes) if built is None else built


def weighted_edges(
    edge_index: Adjacency, edge_weight: Tensor | None, num_nodes: int, like: Tensor
) -> tuple[Tensor, Tensor | None, bool]:
    """Edges `[2, E]` and weights of a graph, and whether the weights are an operator already.

    Example:
        >>> matrix = torch.tensor([[0.0, 0.0], [4.0, 0.0]]).to_sparse_csr()  # 0 → 1
        >>> edges, weight, normalized = weighted_edges(matrix, None, 2, like=torch.zeros(2, 1))
        >>> edges.tolist(), weight.tolist(), normalized
        ([[0], [1]], [4.0], False)
    """
    edges = edge_list(edge_index, num_nodes, like)
    if isinstance(edge_index, SelectedGraphs):
        return edges, edge_index.edge_weight, edge_index.blocks.normalized
    if isinstance(edge_index, Tensor) and edge_index.layout in SPARSE_LAYOUTS:
        return edges, entries(edge_index)[2], False
    return edges, edge_weight, False


def turned_edges(
    edges: Tensor, edge_attr: Tensor, num_nodes: int, direction: OperatorDirection
) -> tuple[Tensor, Tensor]:
    """Edges and edge features in a direction (see `adgn.graph.turned`), made once per graph.

    Edges that become one, in `"undirected"`, have the mean of their features.

    Example:
        >>> edges, features = torch.tensor([[0, 1], [1, 0]]), torch.tensor([[4.0], [6.0]])
        >>> union, mean = turned_edges(edges, features, 2, "undirected")
        >>> union.tolist(), mean.flatten().tolist()
        ([[0, 1], [1, 0]], [5.0, 5.0])
    """
    if direction == "in":
        return edges, edge_attr

    def build() -> tuple[Tensor, Tensor]:
        union, features = turned(edges, edge_attr, num_nodes, direction)
        assert features is not None
        return union, features

    if direction == "out":  # without the features: they stay as they are
        reverse = edges.flip(0)
        if not is_traced(edge_attr):
            reverse = cached((edges,), "reversed edges", lambda: edges.flip(0).contiguous())
        return reverse, edge_attr
    if edge_attr.requires_grad:
        return build()  # its autograd history belongs to this step alone
    return cached((edges, edge_attr), ("undirected edges", num_nodes), build)


def edges_with_loops(edges: Tensor, edge_attr: Tensor, num_nodes: int) -> tuple[Tensor, Tensor]:
    """Edges and edge features with exactly one self loop per node, made once per graph.

    A self loop's features are the mean of those of the edges that come into its node, as in PyG's
    `GATConv`; self loops that were there are replaced.

    Example:
        >>> edges, features = torch.tensor([[0, 1], [1, 1]]), torch.tensor([[4.0], [7.0]])
        >>> looped, filled = edges_with_loops(edges, features, num_nodes=2)
        >>> looped.tolist(), filled.flatten().tolist()
        ([[0, 0, 1], [1, 0, 1]], [4.0, 0.0, 4.0])
    """

    def build() -> tuple[Tensor, Tensor]:
        kept, features = remove_self_loops(edges, edge_attr)
        looped, filled = add_self_loops(kept, features, fill_value="mean", num_nodes=num_nodes)
        return looped, filled

    if edge_attr.requires_grad:
        return build()  # its autograd history belongs to this step alone
    return cached((edges, edge_attr), ("edges with loops", num_nodes), build)
