"""CGNN: a linear differential equation with the first states as its source."""

import torch
from pydantic import Field
from torch import Tensor, nn

from adgn.graph import GraphOperator
from adgn.nn.aggregation import reset_linear
from adgn.nn.integrators import VectorField
from adgn.nn.models.continuous import Continuous, ContinuousOptions
from adgn.nn.network import Model
from adgn.nn.registry import register_model


class CGNNOptions(ContinuousOptions):
    """The options of CGNN."""

    weighted: bool = Field(True, description="whether channels mix, by X (M − I)")


class CGNNPropagation(Continuous):
    r"""The equation of CGNN, see [`CGNN`][adgn.nn.models.CGNN].

    $\mathbf{U}$ is the exponential of an antisymmetric matrix, hence orthogonal.
    """

    def __init__(self, channels: int, num_layers: int, options: CGNNOptions) -> None:
        super().__init__(num_layers, options)
        self.channels = channels
        self.a = nn.Parameter(torch.empty(channels))
        self.turn = nn.Parameter(torch.empty(channels, channels)) if options.weighted else None
        self.m = nn.Parameter(torch.empty(channels)) if options.weighted else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws new weights."""
        nn.init.zeros_(self.a)
        if self.turn is not None and self.m is not None:
            reset_linear(self.turn)
            nn.init.uniform_(self.m)

    def mixing(self) -> Tensor:
        r"""$\mathbf{M} = \mathbf{U}\, \mathrm{diag}(m)\, \mathbf{U}^\top$ with $m$ in [0, 1]."""
        if self.turn is None or self.m is None:
            return torch.eye(self.channels, dtype=self.a.dtype, device=self.a.device)
        u: Tensor = torch.linalg.matrix_exp(self.turn - self.turn.t())
        return (u * self.m.clamp(0, 1)) @ u.t()

    def field(self, first: Tensor, operator: GraphOperator) -> VectorField:
        """See `Continuous`."""
        half = self.a.sigmoid() / 2
        eye = torch.eye(self.channels, dtype=self.a.dtype, device=self.a.device)

        def heard(x: Tensor) -> Tensor:
            return half * (operator @ x) + first

        own = self.mixing() - eye - torch.diag(half)
        return VectorField(own, heard, None, None, (half, first))


@register_model(
    "cgnn",
    title="CGNN",
    paper="https://arxiv.org/abs/1912.00967",
    rule=r"\mathbf{X}^\ell = \mathrm{RK4}_\epsilon(\mathbf{X}^{\ell-1}) \text{ for } "
    r"\dot{\mathbf{X}} = \tfrac{1}{2} (\hat{\mathbf{A}} \mathbf{X} - \mathbf{X})\, "
    r"\mathrm{diag}(\mathbf{a}) + \mathbf{X} (\mathbf{M} - \mathbf{I}) + \mathbf{X}^0",
    hops_per_layer=4,
    memory="nd",
    time="nd^2 + md",
    options=CGNNOptions,
    note="The strength $\\mathbf{a}$ is learned per channel, between 0 and 1; the authors learn "
    "one per node, which no other graph could use. The gradient flows through the source "
    "$\\mathbf{X}^0$ too.",
)
class CGNN(Model):
    r"""[Continuous graph neural network](https://arxiv.org/abs/1912.00967): $\dot{\mathbf{X}} =
    \frac{1}{2} (\hat{\mathbf{A}} \mathbf{X} - \mathbf{X})\, \mathrm{diag}(\mathbf{a}) + \mathbf{X}
    (\mathbf{M} - \mathbf{I}) + \mathbf{X}^0$, with $\mathbf{M}$ symmetric and its eigenvalues in
    [0, 1].

    Example:
        >>> import torch
        >>> from adgn.nn import build_model
        >>> model = build_model("cgnn", 3, 16, 2, num_layers=12, epsilon=1.0)
        >>> model(torch.randn(3, 3), torch.tensor([[0, 1], [1, 2]])).shape
        torch.Size([3, 2])
    """

    build_propagation = CGNNPropagation
