"""Layers in a row, which many models share."""

from collections.abc import Iterable
from typing import Any

from pydantic import Field
from torch import Tensor, nn

from adgn.graph import Adjacency
from adgn.nn.base import Activation, resolve_activation
from adgn.nn.models.options import AnyDirection
from adgn.nn.norms import NORMS, NormName, PairNorm, apply_norm, build_norm
from adgn.nn.registry import ModelOptions


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
    With `norm_first` the normalisation comes before the activation; `norm_scale` is PairNorm's.
    """

    def __init__(
        self,
        layers: Iterable[nn.Module],
        channels: int,
        options: StackOptions,
        first_states: bool = False,
        *,
        norm_first: bool = False,
        norm_scale: float = 1.0,
    ) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.edge_dim: int | None = getattr(self.layers[0], "edge_dim", None)
        self.act = resolve_activation(options.act)
        self.residual = options.residual
        self.first_states = first_states
        self.norm_first = norm_first
        built = [build_norm(options.norm, channels, scale=norm_scale) for _ in self.layers]
        norms = [norm for norm in built if norm is not None]
        self.norms = nn.ModuleList(norms) if norms else None
        self.reads_batch = isinstance(built[0], PairNorm)

    def forward(
        self,
        x: Tensor,
        edge_index: Adjacency,
        edge_weight: Tensor | None = None,
        edge_attr: Tensor | None = None,
        batch: Tensor | None = None,
        batch_size: int | None = None,
    ) -> Tensor:
        """The states after all layers; `batch` is for PairNorm, whose means are those of graphs."""
        graph: dict[str, Any] = {}
        if self.edge_dim is not None:
            graph = {"edge_index": edge_index, "edge_weight": edge_weight, "edge_attr": edge_attr}
        elif not isinstance(self.layers[0], nn.Linear):  # one operator for all layers
            graph = {"edge_index": self.layers[0].prepared(x, edge_index, edge_weight)}  # type: ignore[operator]
        if self.first_states:
            graph["first"] = x
        for number, layer in enumerate(self.layers):
            norm = None if self.norms is None else self.norms[number]
            h = layer(x, **graph)
            if self.norm_first:
                h = apply_norm(norm, h, batch, batch_size)
            if self.act is not None:
                h = self.act(h)
            x = x + h if self.residual else h
            if not self.norm_first:
                x = apply_norm(norm, x, batch, batch_size)
        return x
