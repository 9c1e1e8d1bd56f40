"""GCNII: graph convolutions with initial residual and identity mapping."""

from functools import partial

from pydantic import Field
from torch import nn

from adgn.nn.conv import GCN2Conv, directed
from adgn.nn.models.baseline import GraphStackOptions, Stack
from adgn.nn.network import Model
from adgn.nn.registry import register_model


class GCNIIOptions(GraphStackOptions):
    """The options of GCNII."""

    alpha: float = Field(0.1, ge=0, le=1, description="how much of the first states comes back")
    theta: float | None = Field(
        None, gt=0, description="β = log(θ / ℓ + 1) in layer ℓ; `None`: β = 1 in all layers"
    )
    shared_weights: bool = Field(
        True, description="`False`: a matrix of its own for the first states (GCNII*)"
    )
    act_first: bool = Field(
        False, description="whether the first states are activated too, as in its authors' code"
    )


@register_model(
    "gcnii",
    title="GCNII",
    paper="https://arxiv.org/abs/2007.02133",
    rule=r"\mathbf{X}^\ell = \sigma\big(((1 - \alpha) \hat{\mathbf{A}} \mathbf{X}^{\ell-1} + "
    r"\alpha \mathbf{X}^0) ((1 - \beta_\ell) \mathbf{I} + \beta_\ell \mathbf{W}_\ell)\big),\quad "
    r"\beta_\ell = \log(\theta / \ell + 1)",
    memory="nd",
    time="nd^2 + md",
    options=GCNIIOptions,
    note="The paper's experiments use $\\beta_\\ell = 1$ and tanh; usual are `theta=0.5` and "
    "`act='relu'`. With `alpha=1` no state depends on other nodes.",
)
class GCNII(Model):
    """Graph convolutional network with initial residual and identity mapping."""

    @staticmethod
    def build_propagation(channels: int, num_layers: int, options: GCNIIOptions) -> nn.Module:
        """The layers in a row."""
        own = options.beyond(GraphStackOptions)
        act_first = own.pop("act_first")
        numbers = [None if options.theta is None else n + 1 for n in range(num_layers)]
        # The mean of both directions: the sum would double what is passed on as it is.
        layers = [
            directed(partial(GCN2Conv, channels, layer=number, **own), options.direction, scale=0.5)
            for number in numbers
        ]
        return Stack(layers, channels, options, first_states=True, act_first=act_first)
