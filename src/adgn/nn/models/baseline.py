"""Layers in a row, which many models share."""

from typing import Any, Literal

from pydantic import Field
from torch import Tensor, nn

from adgn.graph import Adjacency
from adgn.nn.registry import ModelOptions
from adgn.nn.resolve import Activation, resolve_activation


class StackOptions(ModelOptions):
    """The options of models that are layers in a row."""

    act: str | Activation | None = Field("tanh", description="activation after each layer")
    norm: Literal["none", "layer", "batch"] = Field(
        "none", description="normalisation after each layer: `none`, `layer` or `batch`"
    )
    residual: bool = Field(False, description="whether a layer adds to its input")


class Stack(nn.Module):
    r"""Layers in a row: $\mathbf{X} \leftarrow \operatorname{norm}(
    [\mathbf{X} +]\ \sigma(\operatorname{layer}(\mathbf{X}, \mathcal{G})))$.

    Args:
        layers: The layers, `GraphConvolution`s that keep the size of a state.
        channels: The size of a node's state.
        options: Activation, normalisation and residual.
    """

    def __init__(self, layers: list[nn.Module], channels: int, options: StackOptions) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.edge_dim: int | None = getattr(layers[0], "edge_dim", None)
        self.act = resolve_activation(options.act)
        self.residual = options.residual
        kinds: dict[str, type[nn.Module]] = {"layer": nn.LayerNorm, "batch": nn.BatchNorm1d}
        kind = kinds.get(options.norm)
        self.norms = nn.ModuleList(kind(channels) for _ in layers) if kind else None

    def forward(
        self,
        x: Tensor,
        edge_index: Adjacency,
        edge_weight: Tensor | None = None,
        edge_attr: Tensor | None = None,
    ) -> Tensor:
        """The states after all layers."""
        graph = self.prepare(x, edge_index, edge_weight, edge_attr)
        first = x
        for number, layer in enumerate(self.layers):
            h = self.apply_layer(layer, x, first, graph)
            if self.act is not None:
                h = self.act(h)
            x = x + h if self.residual else h
            if self.norms is not None:
                x = self.norms[number](x)
        return x

    def prepare(
        self,
        x: Tensor,
        edge_index: Adjacency,
        edge_weight: Tensor | None,
        edge_attr: Tensor | None,
    ) -> dict[str, Any]:
        """What each layer is told about the graph: one operator for all of them."""
        if self.edge_dim is None:
            return {"edge_index": self.layers[0].operator(x, edge_index, edge_weight)}  # type: ignore[operator]
        return {"edge_index": edge_index, "edge_weight": edge_weight, "edge_attr": edge_attr}

    def apply_layer(
        self, layer: nn.Module, x: Tensor, first: Tensor, graph: dict[str, Any]
    ) -> Tensor:
        """One layer, without activation; `first` are the states before the first layer."""
        h: Tensor = layer(x, **graph)
        return h
