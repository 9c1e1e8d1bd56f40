"""EGNN: a graph network whose Dirichlet energy is kept between bounds."""

from collections.abc import Iterator

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from adgn.graph import GraphOperator
from adgn.nn.models.diffusion import Diffusion, DiffusionOptions
from adgn.nn.network import Model
from adgn.nn.registry import register_model


class EGNNOptions(DiffusionOptions):
    """The options of EGNN."""

    c_min: float = Field(
        0.2, ge=0, le=1, description="the share of a node's own and first state, α + β"
    )
    beta: float = Field(0.1, ge=0, le=1, description="the share β of the first states")
    c_max: float = Field(
        1.0, gt=0, le=1, description="the first layer's weights begin as √c_max I, others as I"
    )
    floor: float = Field(
        -10.0,
        allow_inf_nan=False,
        description="the first value of b in the activation max(x, b): the lower, the more linear",
    )

    @model_validator(mode="after")
    def _shares_fit(self) -> "EGNNOptions":
        if self.beta > self.c_min:
            raise ValueError(
                f"beta={self.beta} is more than c_min={self.c_min}, of which it is a part; lower "
                "beta or raise c_min."
            )
        return self


class EGNNPropagation(Diffusion):
    """The layers of EGNN, see [`EGNN`][adgn.nn.models.EGNN]."""

    start: Tensor

    def __init__(self, channels: int, num_layers: int, options: EGNNOptions) -> None:
        super().__init__(num_layers, "gcn", None, options.direction)
        self.c_min, self.beta = options.c_min, options.beta
        self.floor = options.floor
        start = torch.eye(channels).repeat(num_layers, 1, 1)
        start[0] *= options.c_max**0.5
        self.register_buffer("start", start, persistent=False)
        self.weight = nn.Parameter(torch.empty_like(start))
        self.b = nn.Parameter(torch.empty(num_layers, channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Weights as they begin; nothing is drawn."""
        with torch.no_grad():
            self.weight.copy_(self.start)
            self.b.fill_(self.floor)

    def steps(self, x: Tensor, operator: GraphOperator) -> Iterator[Tensor]:
        """The states after each layer."""
        first = x
        for weight, b in zip(self.weight.unbind(), self.b.unbind(), strict=True):
            mixed = (1 - self.c_min) * (operator @ x) + (self.c_min - self.beta) * x
            x = torch.maximum(torch.add(mixed, first, alpha=self.beta) @ weight, b)
            yield x

    def penalty(self) -> Tensor:
        r"""$\sum_k \lVert \mathbf{W}_k - \mathbf{W}_k^{\mathrm{start}} \rVert_F$, to be added to a
        loss (the authors: 20 times, and $10^{-4}$ times on a large graph).

        Example:
            >>> from adgn.nn import build_model
            >>> build_model("egnn", 3, 8, 2, num_layers=4).propagation.penalty().item()
            0.0
        """
        distances: Tensor = torch.linalg.matrix_norm(self.weight - self.start)
        return distances.sum()

    def extra_repr(self) -> str:
        """The settings, for `repr`."""
        return f"{super().extra_repr()}, c_min={self.c_min}, beta={self.beta}"


@register_model(
    "egnn",
    title="EGNN (energetic)",
    paper="https://arxiv.org/abs/2107.02392",
    rule=r"\mathbf{X}^\ell = \max\big(\big[(1 - c_{\min}) \hat{\mathbf{A}} \mathbf{X}^{\ell-1} + "
    r"(c_{\min} - \beta) \mathbf{X}^{\ell-1} + \beta \mathbf{X}^0\big] \mathbf{W}_\ell,\ "
    r"\mathbf{b}_\ell\big)",
    memory="nd",
    time="nd^2 + md",
    options=EGNNOptions,
    note="The weights begin as the identity, and the authors hold them there by a penalty, "
    "`propagation.penalty()`. Training here does not add it; a loop of your own can. Not the "
    "equivariant network of the same name.",
)
class EGNN(Model):
    r"""The [energetic graph neural network](https://arxiv.org/abs/2107.02392).

    $$
    \mathbf{X}^\ell = \max\left(\left[(1 - c_{\min}) \hat{\mathbf{A}} \mathbf{X}^{\ell-1}
        + \alpha \mathbf{X}^{\ell-1} + \beta \mathbf{X}^0\right] \mathbf{W}_\ell,\
        \mathbf{b}_\ell\right), \qquad \alpha + \beta = c_{\min}
    $$

    For $\mathbf{W} = \mathbf{I}$ and low $\mathbf{b}$ the Dirichlet energy of the states never
    exceeds that of the first ones and never vanishes, at any depth.

    Example:
        >>> import torch
        >>> from adgn.nn import build_model
        >>> model = build_model("egnn", 3, 16, 2, num_layers=64)
        >>> model(torch.randn(3, 3), torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])).shape
        torch.Size([3, 2])
    """

    build_propagation = EGNNPropagation
