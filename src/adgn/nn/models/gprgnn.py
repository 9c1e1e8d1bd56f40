"""GPRGNN: predict, then propagate with learned weights for each number of hops."""

from collections.abc import Iterator
from typing import ClassVar, Literal

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from adgn.graph import GraphOperator
from adgn.nn.base import scaled
from adgn.nn.models.diffusion import Diffusion, PropagationOptions
from adgn.nn.network import Model
from adgn.nn.registry import register_model

Start = Literal["ppr", "nppr", "sgc", "random"]


class GPRGNNOptions(PropagationOptions):
    """The options of GPRGNN."""

    start: Start = Field(
        "ppr",
        description="how γ begins: `ppr` α(1−α)^k, the last one (1−α)^K; `nppr` α^k, `random` "
        "uniform, both divided by the sum of sizes; `sgc` 1 for the last one, else 0",
    )
    alpha: float = Field(
        0.1,
        ge=-1,
        le=1,
        description="α of `ppr` (0 to 1) and `nppr` (−1 to 1); the other starts have none",
    )
    propagation_dropout: float = Field(
        0.0, ge=0, lt=1, description="share of what is propagated that is dropped while training"
    )

    @model_validator(mode="after")
    def _alpha_is_a_probability(self) -> "GPRGNNOptions":
        if self.start == "ppr" and self.alpha < 0:
            raise ValueError(
                f"alpha={self.alpha} with start='ppr' is not valid: it is a probability; give 0 to "
                "1, or start='nppr'."
            )
        return self


def starting_weights(start: Start, steps: int, alpha: float) -> Tensor:
    r"""$\gamma_0, \dots, \gamma_K$ as training begins, for $K$ steps; `"random"` ones are drawn.

    Example:
        >>> starting_weights("ppr", 2, alpha=0.5).tolist()
        [0.5, 0.25, 0.25]
        >>> starting_weights("ppr", 2, alpha=1.0).tolist()
        [1.0, 0.0, 0.0]
        >>> starting_weights("nppr", 1, alpha=-1.0).tolist()
        [0.5, -0.5]
        >>> starting_weights("sgc", 2, alpha=0.1).tolist()
        [0.0, 0.0, 1.0]
    """
    if start == "ppr":
        weights = [alpha * (1 - alpha) ** k for k in range(steps)]
        return torch.tensor([*weights, (1 - alpha) ** steps])
    if start == "sgc":
        return torch.tensor([0.0] * steps + [1.0])
    if start == "nppr":
        gamma = torch.tensor([alpha**k for k in range(steps + 1)])
    else:
        bound = (3 / (steps + 1)) ** 0.5
        gamma = torch.empty(steps + 1).uniform_(-bound, bound)
    return gamma / gamma.abs().sum()


class GPRPropagation(Diffusion):
    """The activation, the hops, and how much of each is kept.

    Attributes:
        gamma: `[num_layers + 1]`; the weight of each number of hops.
    """

    undecayed: ClassVar = ("gamma",)

    def __init__(self, channels: int, num_layers: int, options: GPRGNNOptions) -> None:
        super().__init__(num_layers, "gcn", options.act, options.direction)
        self.start: Start = options.start
        self.alpha = options.alpha
        self.dropout = nn.Dropout(options.propagation_dropout)
        self.gamma = nn.Parameter(torch.empty(num_layers + 1))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """The weights of hops as they begin."""
        with torch.no_grad():
            self.gamma.copy_(starting_weights(self.start, self.num_layers, self.alpha))

    def steps(self, x: Tensor, operator: GraphOperator) -> Iterator[Tensor]:
        """The states after each hop; the last step gives all of them, weighed."""
        weights = self.gamma.unbind()
        x = self.dropout(self.activate(x))
        kept = scaled(weights[0], x)
        for step, weight in enumerate(weights[1:], start=1):
            x = operator @ x
            kept = kept + scaled(weight, x)
            yield x if step < self.num_layers else kept

    def extra_repr(self) -> str:
        """The settings, for `repr`."""
        return f"{super().extra_repr()}, start={self.start!r}, alpha={self.alpha}"


@register_model(
    "gprgnn",
    title="GPRGNN",
    paper="https://arxiv.org/abs/2006.07988",
    rule=r"\mathbf{X}^L = \sum_{k=0}^{L} \gamma_k\, \hat{\mathbf{A}}^k \sigma(\mathbf{X}^0)",
    memory="nd",
    time="md",
    options=GPRGNNOptions,
    note="γ is learned without weight decay. The authors propagate class predictions for 10 steps "
    "and drop a share of them, `propagation_dropout` (their `dprate`). Here hidden states are "
    "propagated and the readout follows, which but for its bias and for what is dropped is the "
    "same. On α: 1 begins with the features alone, 0 with the last hop alone.",
)
class GPRGNN(Model):
    r"""[Generalised PageRank](https://arxiv.org/abs/2006.07988), with learned weights of hops.

    $$
    \mathbf{X}^L = \sum_{k=0}^{L} \gamma_k\, \hat{\mathbf{A}}^k \sigma(\mathbf{X}^0)
    $$

    Example:
        >>> import torch
        >>> from adgn.nn import build_model
        >>> model = build_model("gprgnn", 3, 16, 2, num_layers=10, alpha=0.9)
        >>> model.propagation.gamma[:2]
        tensor([0.9000, 0.0900], grad_fn=<...>)
        >>> model(torch.randn(2, 3), torch.tensor([[0, 1], [1, 0]])).shape
        torch.Size([2, 2])
    """

    build_propagation = GPRPropagation
