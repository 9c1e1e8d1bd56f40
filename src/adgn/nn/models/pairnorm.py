"""PairNorm: a GCN whose states keep their distances."""

from pydantic import Field
from torch import nn

from adgn.nn.base import Activation
from adgn.nn.conv import GCNConv, directed
from adgn.nn.models.baseline import GraphStackOptions, Stack
from adgn.nn.network import Model
from adgn.nn.norms import PairMode
from adgn.nn.registry import register_model


class PairNormOptions(GraphStackOptions):
    """The options of a GCN with PairNorm."""

    act: str | Activation | None = Field("relu", description="activation after each normalisation")
    norm: PairMode = Field(
        "pair",
        description="`pair`: one scale for all nodes of a graph; `pair-si`: each node by itself",
    )
    scale: float = Field(
        1.0, gt=0, allow_inf_nan=False, description="the size s of states after normalisation"
    )
    improved: bool = Field(False, description="self loops of weight 2")


@register_model(
    "pairnorm",
    title="PairNorm",
    paper="https://arxiv.org/abs/1909.12223",
    rule=r"\mathbf{X}^\ell = \sigma\big(\mathrm{PN}(\hat{\mathbf{A}} \mathbf{X}^{\ell-1} "
    r"\mathbf{W}_\ell^\top + \mathbf{b}_\ell)\big),\quad \mathrm{PN}(\mathbf{x})_u = s\, "
    r"\mathbf{x}_u^c \big/ \sqrt{10^{-6} + \tfrac{1}{n} \sum_v \lVert \mathbf{x}_v^c \rVert^2},\ "
    r"\mathbf{x}_u^c = \mathbf{x}_u - \tfrac{1}{n} \sum_v \mathbf{x}_v",
    hops_per_layer=None,
    memory="nd",
    time="nd^2 + md",
    options=PairNormOptions,
    note="Means are over all nodes of a graph, so a node hears all others a little; of a batch "
    "each graph has its own. The authors normalise the adjacency by rows; here, as in the "
    "published row of the heterophily table, it is GCN's operator. Their last layer is a graph "
    "convolution without PairNorm, ours the readout; their dropout is before each layer, ours "
    "before the first and after the last. Other stacks of layers have PairNorm after the "
    "activation: `norm='pair'`.",
)
class PairNormGCN(Model):
    """Graph convolutional network with PairNorm before each activation."""

    @staticmethod
    def build_propagation(channels: int, num_layers: int, options: PairNormOptions) -> nn.Module:
        """The layers in a row."""
        layers = [
            directed(
                lambda: GCNConv(channels, channels, improved=options.improved), options.direction
            )
            for _ in range(num_layers)
        ]
        return Stack(layers, channels, options, norm_first=True, norm_scale=options.scale)
