"""ChebNet: layers of Chebyshev polynomials of the Laplacian."""

from pydantic import Field
from torch import nn

from adgn.nn.base import Activation
from adgn.nn.conv import ChebConv, directed
from adgn.nn.models.baseline import GraphStackOptions, Stack
from adgn.nn.network import Model
from adgn.nn.registry import register_model


class ChebOptions(GraphStackOptions):
    """The options of ChebNet."""

    act: str | Activation | None = Field("relu", description="activation after each layer")
    degree: int = Field(
        2,
        ge=0,
        description="the highest degree of the polynomials, a layer's hops; PyG's K, the number of "
        "terms, is one more",
    )


@register_model(
    "cheb",
    title="ChebNet",
    paper="https://arxiv.org/abs/1606.09375",
    rule=r"\mathbf{X}^\ell = \sigma\Big(\sum_{k=0}^{K-1} T_k(\tilde{\mathbf{L}}) "
    r"\mathbf{X}^{\ell-1} \mathbf{W}_{\ell,k}^\top + \mathbf{b}_\ell\Big),\quad "
    r"\tilde{\mathbf{L}} = -\mathbf{D}^{-1/2} \mathbf{A} \mathbf{D}^{-1/2}",
    hops_per_layer=2,
    memory="Knd",
    time="K (nd^2 + md)",
    options=ChebOptions,
    note="$K$ counts terms, as in PyG: `degree` is $K - 1$, and the receptive field is that of "
    "degree 2. The Laplacian is scaled for a largest eigenvalue of 2. With `direction='both'` "
    "there are weights for the polynomials of each direction. `stable-cheb` is A-DGN with these "
    "polynomials.",
)
class ChebNet(Model):
    """Chebyshev graph network."""

    @staticmethod
    def build_propagation(channels: int, num_layers: int, options: ChebOptions) -> nn.Module:
        """The layers in a row."""
        layers = [
            directed(lambda: ChebConv(channels, channels, options.degree + 1), options.direction)
            for _ in range(num_layers)
        ]
        return Stack(layers, channels, options)
