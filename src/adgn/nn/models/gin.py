"""GIN: graph isomorphism networks, with edge features too (GINE)."""

from pydantic import Field
from torch import nn

from adgn.nn.conv import GINConv, GINEConv, directed
from adgn.nn.conv.gin import PerceptronName
from adgn.nn.models.baseline import GraphStackOptions, Stack
from adgn.nn.network import Model
from adgn.nn.registry import register_model


class GINOptions(GraphStackOptions):
    """The options of GIN."""

    mlp: PerceptronName = Field(
        "linear",
        description="h: `linear`, or `two-layer`: linear layers with batch normalisation and ReLU",
    )
    train_eps: bool = Field(True, description="whether η is learned; it starts at 0")
    edge_dim: int | None = Field(None, ge=1, description="features per edge, added to messages")


@register_model(
    "gin",
    title="GIN",
    paper="https://arxiv.org/abs/1810.00826",
    rule=r"\mathbf{x}_u^\ell = \sigma\Big(h_\ell\Big((1 + \eta_\ell)\, \mathbf{x}_u^{\ell-1} + "
    r"\sum_{j \in \mathcal{N}_u} w_{uj} \mathbf{x}_j^{\ell-1}\Big)\Big)",
    memory="nd",
    time="nd^2 + md",
    options=GINOptions,
    note="With `edge_dim` messages are $\\mathrm{ReLU}(\\mathbf{x}_j + \\mathbf{U}_\\ell "
    "\\mathbf{e}_{uj} + \\mathbf{c}_\\ell)$ ([GINE](https://arxiv.org/abs/1905.12265)) and take "
    "$O(md)$ memory.",
)
class GIN(Model):
    """Graph isomorphism network."""

    @staticmethod
    def build_propagation(channels: int, num_layers: int, options: GINOptions) -> nn.Module:
        """The layers in a row."""
        own = options.beyond(GraphStackOptions)
        kind = GINConv if own["edge_dim"] is None else GINEConv
        if kind is GINConv:
            del own["edge_dim"]
        layers = [
            directed(lambda: kind(channels, channels, **own), options.direction)
            for _ in range(num_layers)
        ]
        return Stack(layers, channels, options)
