"""GGNN: gated graph networks."""

from pydantic import Field
from torch import Tensor, nn

from adgn.graph import Adjacency
from adgn.nn.conv import GatedGraphConv
from adgn.nn.network import Model
from adgn.nn.registry import ModelOptions, register_model


class GGNNOptions(ModelOptions):
    """The options of GGNN."""

    shared_gru: bool = Field(True, description="one GRU for all layers, or one per layer")
    bias: bool = Field(True, description="whether the GRU has biases")


class GGNNPropagation(nn.Module):
    """Gated steps, with one GRU for all of them or one for each."""

    edge_dim = None

    def __init__(self, channels: int, num_layers: int, options: GGNNOptions) -> None:
        super().__init__()
        steps = [num_layers] if options.shared_gru else [1] * num_layers
        self.layers = nn.ModuleList(
            GatedGraphConv(channels, count, bias=options.bias) for count in steps
        )

    def forward(
        self, x: Tensor, edge_index: Adjacency, edge_weight: Tensor | None = None
    ) -> Tensor:
        """The states after all steps."""
        operator = self.layers[0].operator(x, edge_index, edge_weight)  # type: ignore[operator]
        for layer in self.layers:
            x = layer(x, operator)
        return x

    def trajectory(
        self, x: Tensor, edge_index: Adjacency, edge_weight: Tensor | None = None
    ) -> list[Tensor]:
        """`x` and the states after each step, the last as `forward`."""
        operator = self.layers[0].operator(x, edge_index, edge_weight)  # type: ignore[operator]
        states = [x]
        for layer in self.layers:
            states.extend(layer.steps(states[-1], operator))  # type: ignore[operator]
        return states


@register_model(
    "ggnn",
    title="GGNN",
    paper="https://arxiv.org/abs/1511.05493",
    rule=r"\mathbf{x}_u^\ell = \mathrm{GRU}\Big(\sum_{j \in \mathcal{N}_u} w_{uj} \mathbf{W}_\ell "
    r"\mathbf{x}_j^{\ell-1},\ \mathbf{x}_u^{\ell-1}\Big)",
    hops_per_layer=1,
    memory="nd",
    time="nd^2 + md",
    options=GGNNOptions,
)
class GGNN(Model):
    """Gated graph network."""

    @staticmethod
    def build_propagation(channels: int, num_layers: int, options: GGNNOptions) -> nn.Module:
        """The gated steps."""
        return GGNNPropagation(channels, num_layers, options)
