"""Layers that listen along the edges, against them, or in both directions."""

from collections.abc import Callable
from typing import Any

from torch import Tensor, nn

from adgn.graph import Adjacency, Direction, GraphOperator, TwoWayOperator
from adgn.graph.direction import check_direction
from adgn.nn.base import GraphConvolution


class BothDirections(GraphConvolution, nn.Module):
    r"""Two layers alike, one for each direction, with weights of their own:
    $\mathbf{X}' = s\, (f_{\mathrm{in}}(\mathbf{X}, \mathcal{G}) +
    f_{\mathrm{out}}(\mathbf{X}, \mathcal{G}^\top))$,

    where $\mathcal{G}^\top$ is the graph with all edges reversed. With $s = 1/2$ it is the layer of
    [directed graph networks](https://arxiv.org/abs/2305.10498) with $\alpha = 1/2$, PyG's
    `DirGNNConv`, without the weights for a node's own state that come there besides.

    Args:
        inward: $f_{\mathrm{in}}$, a layer of this package.
        outward: $f_{\mathrm{out}}$, of the same kind.
        scale: $s$; 1/2 for layers that pass states on as they are, which would else be doubled.

    Shapes: those of the layers.

    Example:
        >>> import torch
        >>> from adgn.nn.conv import BothDirections, GCNConv
        >>> conv = BothDirections(GCNConv(3, 4), GCNConv(3, 4))
        >>> conv(torch.randn(2, 3), torch.tensor([[0], [1]])).shape
        torch.Size([2, 4])
    """

    direction: Direction = "both"

    def __init__(
        self, inward: GraphConvolution, outward: GraphConvolution, *, scale: float = 1.0
    ) -> None:
        super().__init__()
        if not isinstance(inward, nn.Module) or type(inward) is not type(outward):
            raise TypeError(
                f"inward is a {type(inward).__name__} and outward a {type(outward).__name__}; both "
                "directions need a layer of the same kind"
            )
        for layer, direction in ((inward, "in"), (outward, "out")):
            set_direction(layer, direction)  # type: ignore[arg-type]
        self.inward: Any = inward
        self.outward: Any = outward
        self.scale = scale
        self.edge_dim = inward.edge_dim

    def reset_parameters(self) -> None:
        """Draws new weights for both directions."""
        self.inward.reset_parameters()
        self.outward.reset_parameters()

    def prepared(
        self, x: Tensor, edge_index: Adjacency, edge_weight: Tensor | None = None
    ) -> GraphOperator:
        """The operators of both directions, for states like `x`."""
        if isinstance(edge_index, TwoWayOperator):
            return edge_index
        graph = (self.one_graph(edge_index), edge_weight)
        return TwoWayOperator(self.inward.operator(x, *graph), self.outward.operator(x, *graph))

    def forward(
        self, x: Tensor, edge_index: Adjacency, edge_weight: Tensor | None = None, **kwargs: Any
    ) -> Tensor:
        """The sum of what both layers make of the states."""
        if self.edge_dim is None:
            pair = self.prepared(x, edge_index, edge_weight)
            assert isinstance(pair, TwoWayOperator)
            graphs: list[dict[str, Any]] = [
                {"edge_index": pair.inward},
                {"edge_index": pair.outward},
            ]
        else:
            graphs = [{"edge_index": edge_index, "edge_weight": edge_weight}] * 2
        layers = (self.inward, self.outward)
        first, second = (
            layer(x, **graph, **kwargs) for layer, graph in zip(layers, graphs, strict=True)
        )
        total: Tensor = first + second
        return total if self.scale == 1 else self.scale * total


def directed(
    make: Callable[[], nn.Module], direction: Direction, *, scale: float = 1.0
) -> nn.Module:
    """The layer that `make` builds, listening in a direction; for `"both"` two of them.

    Args:
        make: Builds a `GraphConvolution`.
        direction: See [`AntiSymmetricConv`][adgn.nn.AntiSymmetricConv].
        scale: See `BothDirections`.

    Example:
        >>> from adgn.nn.conv import GCNConv
        >>> directed(lambda: GCNConv(3, 4), "out").direction
        'out'
    """
    check_direction(direction)
    layer = make()
    if direction == "in":
        return layer
    if not isinstance(layer, GraphConvolution):
        raise TypeError(
            f"direction={direction!r} was given for a {type(layer).__name__}, which is no "
            "GraphConvolution whose graph could be turned; turn the edges with "
            "adgn.graph.turned, or use direction='in'"
        )
    if direction == "both":
        return BothDirections(layer, make(), scale=scale)  # type: ignore[arg-type]
    set_direction(layer, direction)
    return layer


def set_direction(layer: GraphConvolution, direction: Direction) -> None:
    """Makes a layer, and the layers that it consists of, listen in a direction."""
    assert isinstance(layer, nn.Module)
    for part in layer.modules():
        if isinstance(part, GraphConvolution):
            part.direction = direction
