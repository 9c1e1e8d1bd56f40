"""GGNN: gated graph networks."""

from collections.abc import Iterator

from pydantic import Field
from torch import Tensor, nn

from adgn.graph import GraphOperator
from adgn.nn.conv import GatedGraphConv
from adgn.nn.models.diffusion import Diffusion
from adgn.nn.models.options import AnyDirection
from adgn.nn.network import Model
from adgn.nn.registry import ModelOptions, register_model


class GGNNOptions(ModelOptions):
    """The options of GGNN."""

    shared_gru: bool = Field(True, description="one GRU for all layers, or one per layer")
    bias: bool = Field(True, description="whether the GRU has biases")
    direction: AnyDirection = "in"


class GGNNPropagation(Diffusion):
    """Gated steps, with one GRU for all of them or one for each."""

    def __init__(self, channels: int, num_layers: int, options: GGNNOptions) -> None:
        super().__init__(num_layers, "none", act=None, direction=options.direction)
        steps = [num_layers] if options.shared_gru else [1] * num_layers
        self.layers = nn.ModuleList(
            GatedGraphConv(channels, count, bias=options.bias, direction=options.direction)
            for count in steps
        )

    def edge_mask(self) -> Tensor | None:
        """See `GraphConvolution`; PyG puts it on the layers."""
        mask: Tensor | None = self.layers[0].edge_mask()  # type: ignore[operator]
        return mask

    def steps(self, x: Tensor, operator: GraphOperator) -> Iterator[Tensor]:
        """The states after each step."""
        for layer in self.layers:
            for state in layer.steps(x, operator):  # type: ignore[operator]
                x = state
                yield x


@register_model(
    "ggnn",
    title="GGNN",
    paper="https://arxiv.org/abs/1511.05493",
    rule=r"\mathbf{x}_u^\ell = \mathrm{GRU}\Big(\sum_{j \in \mathcal{N}_u} w_{uj} \mathbf{W}_\ell "
    r"\mathbf{x}_j^{\ell-1},\ \mathbf{x}_u^{\ell-1}\Big)",
    memory="nd",
    time="nd^2 + md",
    options=GGNNOptions,
)
class GGNN(Model):
    """Gated graph network."""

    build_propagation = GGNNPropagation
