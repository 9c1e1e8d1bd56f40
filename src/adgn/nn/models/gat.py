"""GAT: graph attention networks."""

from pydantic import Field
from torch import nn

from adgn.nn.conv import GATConv, directed
from adgn.nn.models.baseline import GraphStackOptions, Stack
from adgn.nn.network import Model
from adgn.nn.registry import register_model


class GATOptions(GraphStackOptions):
    """The options of GAT."""

    heads: int = Field(1, ge=1, description="attention heads")
    concat: bool = Field(
        True,
        description="the heads stand next to each other, each with `hidden_channels / heads` "
        "channels; `False`: their mean",
    )
    negative_slope: float = Field(0.2, ge=0, description="slope of the attention's LeakyReLU")
    attention_dropout: float = Field(
        0.0, ge=0, lt=1, description="share of attention weights dropped while training"
    )
    edge_dim: int | None = Field(None, ge=1, description="features per edge, read by the attention")


@register_model(
    "gat",
    title="GAT",
    paper="https://arxiv.org/abs/1710.10903",
    rule=r"\mathbf{x}_u^\ell = \sigma\Big(\sum_{j \in \mathcal{N}_u \cup \{u\}} \alpha_{uj} "
    r"\mathbf{W}_\ell \mathbf{x}_j^{\ell-1} + \mathbf{b}_\ell\Big),\quad "
    r"\alpha_{uj} \propto w_{uj} \exp \mathrm{LeakyReLU}(\mathbf{a}_1^\top \mathbf{W}_\ell "
    r"\mathbf{x}_u^{\ell-1} + \mathbf{a}_2^\top \mathbf{W}_\ell \mathbf{x}_j^{\ell-1})",
    memory="nd + m",
    time="nd^2 + md",
    options=GATOptions,
    note="Edge weights must not be negative: an edge of weight 2 counts as two edges.",
)
class GAT(Model):
    """Graph attention network."""

    @staticmethod
    def build_propagation(channels: int, num_layers: int, options: GATOptions) -> nn.Module:
        """The layers in a row."""
        own = options.beyond(GraphStackOptions)
        layers = [
            directed(lambda: GATConv(channels, channels, **own), options.direction)
            for _ in range(num_layers)
        ]
        return Stack(layers, channels, options)
