"""APPNP: predict, then propagate by personalised PageRank."""

from collections.abc import Iterator

from pydantic import Field
from torch import Tensor

from adgn.graph import GraphOperator
from adgn.nn.models.diffusion import Diffusion, PropagationOptions
from adgn.nn.network import Model
from adgn.nn.registry import register_model


class APPNPOptions(PropagationOptions):
    """The options of APPNP."""

    alpha: float = Field(0.1, ge=0, le=1, description="the teleport probability α")


class APPNPPropagation(Diffusion):
    """The activation, then PageRank."""

    def __init__(self, channels: int, num_layers: int, options: APPNPOptions) -> None:
        super().__init__(num_layers, "gcn", options.act, options.direction)
        self.alpha = options.alpha

    def steps(self, x: Tensor, operator: GraphOperator) -> Iterator[Tensor]:
        """The states after each step."""
        first = x = self.activate(x)
        for _ in range(self.num_layers):
            x = (1 - self.alpha) * (operator @ x) + self.alpha * first
            yield x

    def extra_repr(self) -> str:
        """The settings, for `repr`."""
        return f"{super().extra_repr()}, alpha={self.alpha}"


@register_model(
    "appnp",
    title="APPNP",
    paper="https://arxiv.org/abs/1810.05997",
    rule=r"\mathbf{X}^\ell = (1 - \alpha) \hat{\mathbf{A}} \mathbf{X}^{\ell-1} + "
    r"\alpha\, \sigma(\mathbf{X}^0)",
    memory="1",
    time="md",
    options=APPNPOptions,
    note="α as in the APPNP paper (0.1, and 0.2 for one data set). The readout follows the "
    "propagation; both are linear, so this is prediction by a two-layer perceptron before it.",
)
class APPNP(Model):
    """Approximate personalised propagation of neural predictions."""

    build_propagation = APPNPPropagation
