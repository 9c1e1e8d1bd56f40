"""GDE: a graph network with two layers as the right-hand side of a differential equation."""

import torch
from pydantic import Field
from torch import Tensor, nn

from adgn.graph import GraphOperator
from adgn.nn.base import softplus
from adgn.nn.integrators import VectorField
from adgn.nn.models.continuous import Continuous, ContinuousOptions
from adgn.nn.network import Model
from adgn.nn.registry import register_model


class GDEOptions(ContinuousOptions):
    """The options of GDE."""

    controlled: bool = Field(
        False, description="`True`: the right-hand side reads the first states too"
    )


class GDEPropagation(Continuous):
    """The equation of GDE, see [`GDE`][adgn.nn.models.GDE]."""

    def __init__(self, channels: int, num_layers: int, options: GDEOptions) -> None:
        super().__init__(num_layers, options)
        self.controlled = options.controlled
        self.inner = nn.Linear(channels * (2 if options.controlled else 1), channels)
        self.outer = nn.Linear(channels, channels)

    def field(self, first: Tensor, operator: GraphOperator) -> VectorField:
        """See `Continuous`."""
        own = torch.zeros_like(self.outer.weight)

        def rate(x: Tensor) -> Tensor:
            read = torch.cat([x, first], dim=-1) if self.controlled else x
            hidden = operator @ nn.functional.linear(read, self.inner.weight)
            hidden = softplus(hidden + self.inner.bias)
            return operator @ nn.functional.linear(hidden, self.outer.weight) + self.outer.bias

        learned = (*self.parameters(), *((first,) if self.controlled else ()))
        return VectorField(own, rate, None, None, learned)


@register_model(
    "gde",
    title="GDE",
    paper="https://arxiv.org/abs/1911.07532",
    rule=r"\mathbf{X}^\ell = \mathrm{RK4}_\epsilon(\mathbf{X}^{\ell-1}) \text{ for } "
    r"\dot{\mathbf{X}} = \hat{\mathbf{A}}\, \mathrm{softplus}(\hat{\mathbf{A}} \mathbf{X} "
    r"\mathbf{W}_1^\top + \mathbf{b}_1)\, \mathbf{W}_2^\top + \mathbf{b}_2",
    hops_per_layer=8,
    memory="nd",
    time="nd^2 + md",
    options=GDEOptions,
    note="A step evaluates the right-hand side four times, each of which looks two hops further. "
    "The authors' dropout inside of it, which makes the equation another one at each evaluation, "
    "is left out.",
)
class GDE(Model):
    r"""[Graph neural ordinary differential equations](https://arxiv.org/abs/1911.07532):
    $\dot{\mathbf{X}} = \hat{\mathbf{A}}\, \mathrm{softplus}(\hat{\mathbf{A}} \mathbf{X}
    \mathbf{W}_1^\top + \mathbf{b}_1)\, \mathbf{W}_2^\top + \mathbf{b}_2$.

    Example:
        >>> import torch
        >>> from adgn.nn import build_model
        >>> model = build_model("gde", 3, 16, 2, num_layers=4, controlled=True)
        >>> model(torch.randn(3, 3), torch.tensor([[0, 1], [1, 2]])).shape
        torch.Size([3, 2])
    """

    build_propagation = GDEPropagation
