"""Layers in a row, which many models share."""

from collections.abc import Iterable
from typing import Any, Literal

from pydantic import Field
from torch import Tensor, nn

from adgn.graph import Adjacency
from adgn.nn.base import Activation, resolve_activation
from adgn.nn.models.options import AnyDirection
from adgn.nn.registry import ModelOptions


class StackOptions(ModelOptions):
    """The options of models that are layers in a row."""

    act: str | Activation | None = Field("tanh", description="activation after each layer")
    norm: Literal["none", "layer", "batch"] = Field(
        "none", description="normalisation after each layer: `none`, `layer` or `batch`"
    )
    residual: bool = Field(False, description="whether a layer adds to its input")


class GraphStackOptions(StackOptions):
    """The options of those whose layers see the graph."""

    direction: AnyDirection = "in"


class Stack(nn.Module):
    r"""Layers in a row: $\mathbf{X} \leftarrow \operatorname{norm}(
    [\mathbf{X} +]\ \sigma(\operatorname{layer}(\mathbf{X}, \mathcal{G})))$.

    The layers are `GraphConvolution`s that keep the size of a state, or linear layers, which are
    told nothing of the graph. With `first_states` they are also given the first ones, as `first`.
    """

    def __init__(
        self,
        layers: Iterable[nn.Module],
        channels: int,
        options: StackOptions,
        first_states: bool = False,
    ) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.edge_dim: int | None = getattr(self.layers[0], "edge_dim", None)
        self.act = resolve_activation(options.act)
        self.residual = options.residual
        self.first_states = first_states
        kinds: dict[str, type[nn.Module]] = {"layer": nn.LayerNorm, "batch": nn.BatchNorm1d}
        kind = kinds.get(options.norm)
        self.norms = nn.ModuleList(kind(channels) for _ in self.layers) if kind else None

    def forward(
        self,
        x: Tensor,
        edge_index: Adjacency,
        edge_weight: Tensor | None = None,
        edge_attr: Tensor | None = None,
    ) -> Tensor:
        """The states after all layers."""
        graph: dict[str, Any] = {}
        if self.edge_dim is not None:
            graph = {"edge_index": edge_index, "edge_weight": edge_weight, "edge_attr": edge_attr}
        elif not isinstance(self.layers[0], nn.Linear):  # one operator for all layers
            graph = {"edge_index": self.layers[0].prepared(x, edge_index, edge_weight)}  # type: ignore[operator]
        if self.first_states:
            graph["first"] = x
        for number, layer in enumerate(self.layers):
            h = layer(x, **graph)
            if self.act is not None:
                h = self.act(h)
            x = x + h if self.residual else h
            if self.norms is not None:
                x = self.norms[number](x)
        return x
