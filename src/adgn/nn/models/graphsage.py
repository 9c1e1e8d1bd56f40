"""GraphSAGE."""

from typing import Literal

from pydantic import Field
from torch import nn

from adgn.nn.conv import SAGEConv, directed
from adgn.nn.models.baseline import GraphStackOptions, Stack
from adgn.nn.network import Model
from adgn.nn.registry import register_model


class GraphSAGEOptions(GraphStackOptions):
    """The options of GraphSAGE."""

    aggr: Literal["mean", "sum"] = Field("mean", description="how messages are put together")
    root_weight: bool = Field(True, description="whether a node's own state has a weight matrix")
    normalize: bool = Field(False, description="divide outputs by their Euclidean norm")


@register_model(
    "graphsage",
    title="GraphSAGE",
    paper="https://arxiv.org/abs/1706.02216",
    rule=r"\mathbf{x}_u^\ell = \sigma\Big(\mathbf{W}_\ell \mathbf{x}_u^{\ell-1} + "
    r"\mathbf{V}_\ell \operatorname*{mean}_{j \in \mathcal{N}_u} \mathbf{x}_j^{\ell-1} + "
    r"\mathbf{b}_\ell\Big)",
    memory="nd",
    time="nd^2 + md",
    options=GraphSAGEOptions,
)
class GraphSAGE(Model):
    """GraphSAGE on whole neighbourhoods."""

    @staticmethod
    def build_propagation(channels: int, num_layers: int, options: GraphSAGEOptions) -> nn.Module:
        """The layers in a row."""
        own = options.beyond(GraphStackOptions)
        layers = [
            directed(lambda: SAGEConv(channels, channels, **own), options.direction)
            for _ in range(num_layers)
        ]
        return Stack(layers, channels, options)
