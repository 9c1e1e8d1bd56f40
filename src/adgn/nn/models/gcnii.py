"""GCNII: graph convolutions with initial residual and identity mapping."""

from typing import Any

from pydantic import Field
from torch import Tensor, nn

from adgn.nn.conv import GCN2Conv
from adgn.nn.models.baseline import Stack, StackOptions
from adgn.nn.network import Model
from adgn.nn.registry import register_model


class GCNIIOptions(StackOptions):
    """The options of GCNII."""

    alpha: float = Field(0.1, ge=0, le=1, description="how much of the first states comes back")
    theta: float | None = Field(
        None, gt=0, description="β = log(θ / ℓ + 1) in layer ℓ; `None`: β = 1 in all layers"
    )
    shared_weights: bool = Field(
        True, description="`False`: a matrix of its own for the first states (GCNII*)"
    )


class GCNIIPropagation(Stack):
    """Layers that are given the first states too."""

    def apply_layer(
        self, layer: nn.Module, x: Tensor, first: Tensor, graph: dict[str, Any]
    ) -> Tensor:
        """One layer, without activation."""
        h: Tensor = layer(x, first, **graph)
        return h


@register_model(
    "gcnii",
    title="GCNII",
    paper="https://arxiv.org/abs/2007.02133",
    rule=r"\mathbf{X}^\ell = \sigma\big(((1 - \alpha) \hat{\mathbf{A}} \mathbf{X}^{\ell-1} + "
    r"\alpha \mathbf{X}^0) ((1 - \beta_\ell) \mathbf{I} + \beta_\ell \mathbf{W}_\ell)\big),\quad "
    r"\beta_\ell = \log(\theta / \ell + 1)",
    hops_per_layer=1,
    memory="nd",
    time="nd^2 + md",
    options=GCNIIOptions,
    note="The paper's experiments use $\\beta_\\ell = 1$ and tanh; usual are `theta=0.5` and "
    "`act='relu'`. With `alpha=1` no neighbour is heard.",
)
class GCNII(Model):
    """Graph convolutional network with initial residual and identity mapping."""

    @staticmethod
    def build_propagation(channels: int, num_layers: int, options: GCNIIOptions) -> nn.Module:
        """The layers in a row."""
        layers: list[nn.Module] = [
            GCN2Conv(
                channels,
                options.alpha,
                theta=options.theta,
                layer=None if options.theta is None else number,
                shared_weights=options.shared_weights,
            )
            for number in range(1, num_layers + 1)
        ]
        return GCNIIPropagation(layers, channels, options)
