"""What all convolutions have in common: which operator of a graph they apply."""

from torch import Tensor

from adgn.graph import Adjacency, EdgeOperator, Operator, edge_list, edge_operator, graph_operator
from adgn.graph.adjacency import Normalization
from adgn.graph.checks import check_edge_attr, is_traced


def scaled(number: Tensor, x: Tensor) -> Tensor:
    """`number * x`, for one learned number.

    Its gradient is summed channel by channel, which torch does alike on any number of threads; a
    sum of all numbers at once would depend on it.

    Example:
        >>> import torch
        >>> scaled(torch.tensor(2.0), torch.ones(1, 3))
        tensor([[2., 2., 2.]])
    """
    return number.expand(x.size(-1)) * x


class GraphConvolution:
    """A layer that applies one operator of the graph, or passes messages with edge features.

    Attributes:
        normalization: The operator that it applies, see `adgn.graph.graph_operator`.
        edge_dim: How many features each edge must have; `None` for a layer without edge features.
    """

    normalization: Normalization
    edge_dim: int | None = None

    def operator(
        self, x: Tensor, edge_index: Adjacency, edge_weight: Tensor | None = None
    ) -> Operator:
        """The graph as this layer sees it, for states like `x`.

        An `EdgeOperator` while tracing, and where PyG's `Explainer` has put a mask on the edges.
        """
        mask = self.edge_mask()
        if mask is not None or is_traced(x) or isinstance(edge_index, EdgeOperator):
            return edge_operator(
                edge_index, edge_weight, normalization=self.normalization, like=x, mask=mask
            )
        nodes, kind = x.size(-2), self.normalization
        return graph_operator(edge_index, edge_weight, num_nodes=nodes, normalization=kind, like=x)

    def edge_mask(self) -> Tensor | None:
        """What PyG's `Explainer` multiplies the messages of the edges with, `[E]`, if it does."""
        if not getattr(self, "explain", None):
            return None
        mask: Tensor = self._edge_mask  # type: ignore[attr-defined]
        return mask.sigmoid() if self._apply_sigmoid else mask  # type: ignore[attr-defined]

    def edges(
        self, x: Tensor, edge_index: Adjacency, edge_weight: Tensor | None, edge_attr: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Edge list and edge features, checked, for a layer with `edge_dim` features per edge."""
        layer = type(self).__name__
        if edge_weight is not None:
            raise ValueError(
                f"edge_weight was given to {layer} with edge_dim={self.edge_dim}, which reads edge "
                "features only; append the weight to edge_attr as one more feature"
            )
        if edge_attr is None or self.edge_dim is None:
            raise ValueError(
                f"edge_attr=None, but {layer} has edge_dim={self.edge_dim}; pass edge_attr of "
                f"shape [num_edges, {self.edge_dim}]"
            )
        edges = edge_list(edge_index, x.size(-2), x)
        check_edge_attr(edge_attr, edges.size(1), self.edge_dim, x)
        return edges, edge_attr
