"""Layers in a row, which many models share."""

from collections.abc import Iterable
from typing import Any

from pydantic import Field
from torch import Tensor, nn

from adgn.graph import Adjacency, NeededNodes, needed_nodes
from adgn.nn.base import Activation, has_hooks, resolve_activation
from adgn.nn.conv import BothDirections, GATConv, GCN2Conv, GCNConv, GINConv, SAGEConv
from adgn.nn.models.options import AnyDirection
from adgn.nn.norms import NORMS, NormName, PairNorm, apply_norm, build_norm
from adgn.nn.registry import ModelOptions

# Layers whose next state of a node depends on the node and on what one edge leads from, and on
# nothing else.
_HEAR_ONE_EDGE = (GCNConv, GCN2Conv, GATConv, GINConv, SAGEConv)


class StackOptions(ModelOptions):
    """The options of models that are layers in a row."""

    act: str | Activation | None = Field("tanh", description="activation after each layer")
    norm: NormName = Field("none", description=f"normalisation after each layer: {NORMS}")
    residual: bool = Field(False, description="whether a layer adds to its input")


class GraphStackOptions(StackOptions):
    """The options of those whose layers see the graph."""

    direction: AnyDirection = "in"


class Stack(nn.Module):
    r"""Layers in a row: $\mathbf{X} \leftarrow \operatorname{norm}(
    [\mathbf{X} +]\ \sigma(\operatorname{layer}(\mathbf{X}, \mathcal{G})))$.

    The layers are `GraphConvolution`s that keep the size of a state, or linear layers, which are
    told nothing of the graph. With `first_states` they are also given the first ones, as `first`.
    With `act_first` those are activated too. With `norm_first` the normalisation comes before the
    activation; `norm_scale` is PairNorm's.
    """

    def __init__(
        self,
        layers: Iterable[nn.Module],
        channels: int,
        options: StackOptions,
        first_states: bool = False,
        *,
        act_first: bool = False,
        norm_first: bool = False,
        norm_scale: float = 1.0,
    ) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.edge_dim: int | None = getattr(self.layers[0], "edge_dim", None)
        self.act = resolve_activation(options.act)
        self.residual = options.residual
        self.first_states = first_states
        self.act_first = act_first
        self.norm_first = norm_first
        built = [build_norm(options.norm, channels, scale=norm_scale) for _ in self.layers]
        norms = [norm for norm in built if norm is not None]
        self.norms = nn.ModuleList(norms) if norms else None
        self.reads_batch = isinstance(built[0], PairNorm)

    def needed(
        self, like: Tensor, edge_index: Adjacency, edge_weight: Tensor | None, nodes: Tensor
    ) -> NeededNodes | None:
        """What the last states of `nodes` need, for `forward`; see `GraphNetwork.forward`."""
        if self.edge_dim is not None or any(map(_sees_more, self.modules())):
            return None
        first = self.layers[0]
        if not all(map(_hears_one_edge, self.layers)):
            return None
        operator = first.prepared(like, edge_index, edge_weight)  # type: ignore[operator]
        return needed_nodes(operator, nodes, len(self.layers))

    def forward(
        self,
        x: Tensor,
        edge_index: Adjacency | NeededNodes,
        edge_weight: Tensor | None = None,
        edge_attr: Tensor | None = None,
        batch: Tensor | None = None,
        batch_size: int | None = None,
    ) -> Tensor:
        """The states after all layers; `batch` is for PairNorm, whose means are those of graphs."""
        graph: dict[str, Any] = {}
        needed = edge_index if isinstance(edge_index, NeededNodes) else None
        if needed is not None:
            pass  # each layer has an operator of its own
        elif self.edge_dim is not None:
            graph = {"edge_index": edge_index, "edge_weight": edge_weight, "edge_attr": edge_attr}
        elif not isinstance(self.layers[0], nn.Linear):  # one operator for all layers
            graph = {"edge_index": self.layers[0].prepared(x, edge_index, edge_weight)}  # type: ignore[operator]
        if self.act_first and self.act is not None:
            x = self.act(x)
        if self.first_states:
            graph["first"] = x
        for number, layer in enumerate(self.layers):
            norm = None if self.norms is None else self.norms[number]
            if needed is not None:
                graph["edge_index"] = needed.layer(number)
            h = layer(x, **graph)
            if needed is not None:
                count = needed.counts[number + 1]
                x, h = x[:count], h[:count]
                if self.first_states:
                    graph["first"] = graph["first"][:count]
            if self.norm_first:
                h = apply_norm(norm, h, batch, batch_size)
            if self.act is not None:
                h = self.act(h)
            x = x + h if self.residual else h
            if not self.norm_first:
                x = apply_norm(norm, x, batch, batch_size)
        return x


def _hears_one_edge(layer: nn.Module) -> bool:
    if type(layer) is BothDirections:
        return type(layer.inward) in _HEAR_ONE_EDGE
    return type(layer) in _HEAR_ONE_EDGE


def _sees_more(part: nn.Module) -> bool:
    """Whether a part looks at all nodes at once, draws a number for each, or is looked at."""
    if isinstance(part, nn.BatchNorm1d | PairNorm) or has_hooks(part):
        return True
    draws = getattr(part, "dropout", 0.0) if isinstance(part, GATConv) else 0.0
    return part.training and draws > 0
