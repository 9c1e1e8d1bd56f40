"""GCN: graph convolutional networks."""

from pydantic import Field
from torch import nn

from adgn.nn.conv import GCNConv, directed
from adgn.nn.models.baseline import GraphStackOptions, Stack
from adgn.nn.network import Model
from adgn.nn.registry import register_model


class GCNOptions(GraphStackOptions):
    """The options of GCN."""

    improved: bool = Field(False, description="self loops of weight 2")


@register_model(
    "gcn",
    title="GCN",
    paper="https://arxiv.org/abs/1609.02907",
    rule=r"\mathbf{X}^\ell = \sigma(\hat{\mathbf{A}} \mathbf{X}^{\ell-1} \mathbf{W}_\ell^\top + "
    r"\mathbf{b}_\ell),\quad \hat{\mathbf{A}} = \hat{\mathbf{D}}^{-1/2} (\mathbf{A} + \mathbf{I}) "
    r"\hat{\mathbf{D}}^{-1/2}",
    memory="nd",
    time="nd^2 + md",
    options=GCNOptions,
)
class GCN(Model):
    """Graph convolutional network."""

    @staticmethod
    def build_propagation(channels: int, num_layers: int, options: GCNOptions) -> nn.Module:
        """The layers in a row."""
        own = options.beyond(GraphStackOptions)
        layers = [
            directed(lambda: GCNConv(channels, channels, **own), options.direction)
            for _ in range(num_layers)
        ]
        return Stack(layers, channels, options)
