"""PDE-GCN: networks as discretised heat and wave equations on graphs."""

from collections.abc import Iterator
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from adgn.graph import GraphOperator
from adgn.graph.two_way import operators_of
from adgn.nn.base import Activation
from adgn.nn.models.diffusion import Diffusion, DiffusionOptions
from adgn.nn.network import Model
from adgn.nn.registry import register_model


class PDEGCNOptions(DiffusionOptions):
    """The options of PDE-GCN."""

    equation: Literal["parabolic", "hyperbolic", "mixed"] = Field(
        "hyperbolic", description="heat (`parabolic`), waves (`hyperbolic`), or a learned mixture"
    )
    epsilon: float = Field(0.1, gt=0, allow_inf_nan=False, description="the step size h")
    act: str | Activation | None = Field("tanh", description="the activation σ of the fluxes")


class PDEGCNPropagation(Diffusion):
    """The steps of PDE-GCN, see [`PDEGCN`][adgn.nn.models.PDEGCN]."""

    def __init__(self, channels: int, num_layers: int, options: PDEGCNOptions) -> None:
        super().__init__(num_layers, "sym", options.act, options.direction)
        self.equation = options.equation
        # Besides the states, from step to step.
        self.carries = "" if options.equation == "parabolic" else "the states before"
        self.epsilon = options.epsilon
        self.weight = nn.Parameter(torch.empty(num_layers, channels, channels))
        self.mixture = nn.Parameter(torch.empty(())) if self.equation == "mixed" else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """All weights become the identity; nothing is drawn."""
        with torch.no_grad():
            self.weight.copy_(torch.eye(self.weight.size(-1)))
            if self.mixture is not None:
                self.mixture.zero_()

    def steps(self, x: Tensor, operator: GraphOperator) -> Iterator[Tensor]:
        """The states after each step."""
        h, before = self.epsilon, x
        for weight in self.weight.unbind():
            change = self.divergence(x, operator, weight)
            if self.equation == "parabolic":
                after = torch.sub(x, change, alpha=h)
            elif self.mixture is None:
                after = 2 * x - before - h**2 * change
            else:
                wave = self.mixture.sigmoid().expand(x.size(-1))
                second, first = wave / h**2, (1 - wave) / h
                after = ((2 * second + first) * x - second * before - change) / (first + second)
            before, x = x, after
            yield x

    def divergence(self, x: Tensor, operator: GraphOperator, weight: Tensor) -> Tensor:
        r"""$\mathbf{G}^\top \mathbf{K}^\top \sigma(\mathbf{K} \mathbf{G} \mathbf{X})$.

        An edge that is there in both directions counts half each time.
        """
        (edges,) = operators_of(operator)
        row, col = edges.places
        scaled = x @ weight.t()
        flux = self.activate(scaled.index_select(-2, row) - scaled.index_select(-2, col))
        flux = (0.5 * edges.value).unsqueeze(-1) * flux
        total = torch.zeros_like(scaled, dtype=flux.dtype).index_add(-2, row, flux)
        divergence: Tensor = total.index_add(-2, col, -flux) @ weight
        return divergence

    def extra_repr(self) -> str:
        """The settings, for `repr`."""
        return f"{super().extra_repr()}, equation={self.equation!r}, epsilon={self.epsilon}"


@register_model(
    "pdegcn",
    title="PDE-GCN",
    paper="https://arxiv.org/abs/2108.01938",
    rule=r"\mathbf{X}^\ell = \mathbf{X}^{\ell-1} - h\, \mathbf{Q}_\ell \text{ (parabolic)},\quad "
    r"2 \mathbf{X}^{\ell-1} - \mathbf{X}^{\ell-2} - h^2 \mathbf{Q}_\ell \text{ (hyperbolic)},\quad "
    r"\mathbf{Q}_\ell = \mathbf{G}^\top \mathbf{K}_\ell^\top \sigma(\mathbf{K}_\ell \mathbf{G} "
    r"\mathbf{X}^{\ell-1})",
    memory="md",
    time="nd^2 + md",
    options=PDEGCNOptions,
    note="$\\mathbf{G}$ takes the differences along the edges, and a flux counts with the weight "
    "$w_{uj} / \\sqrt{d_u d_j}$ of its edge. An edge that is there in both directions counts half "
    "each time, so that what one node loses another gains, for every σ. $\\mathbf{K}$ begins as "
    "the identity.",
)
class PDEGCN(Model):
    r"""[PDE-GCN](https://arxiv.org/abs/2108.01938): heat and wave equations with learned fluxes.

    $$
    \mathbf{X}^{\ell+1} = \mathbf{X}^\ell - h\, \mathbf{Q}(\mathbf{X}^\ell)
    \quad \text{or} \quad
    \mathbf{X}^{\ell+1} = 2 \mathbf{X}^\ell - \mathbf{X}^{\ell-1} - h^2\,
    \mathbf{Q}(\mathbf{X}^\ell),
    \qquad \mathbf{Q}(\mathbf{X}) = \mathbf{G}^\top \mathbf{K}^\top
    \sigma(\mathbf{K} \mathbf{G} \mathbf{X})
    $$

    The second starts at rest, $\mathbf{X}^{-1} = \mathbf{X}^0$. The mixture solves $\beta
    (\mathbf{X}^{\ell+1} - 2 \mathbf{X}^\ell + \mathbf{X}^{\ell-1}) + \alpha (\mathbf{X}^{\ell+1} -
    \mathbf{X}^\ell) = -\mathbf{Q}$ with $\beta = s / h^2$, $\alpha = (1 - s) / h$ and a learned
    share $s$.

    Example:
        >>> import torch
        >>> from adgn.nn import build_model
        >>> model = build_model("pdegcn", 3, 16, 2, num_layers=8, equation="mixed")
        >>> model(torch.randn(3, 3), torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])).shape
        torch.Size([3, 2])
    """

    build_propagation = PDEGCNPropagation
