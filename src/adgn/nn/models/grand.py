"""GRAND: graph diffusion by attention, integrated with a Runge-Kutta method."""

from collections.abc import Callable
from typing import Any

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from adgn.graph import Adjacency, Direction, GraphOperator
from adgn.graph.two_way import operators_of
from adgn.nn.base import Activation, resolve_activation, scaled
from adgn.nn.conv import GATConv, directed
from adgn.nn.integrators import RungeKutta, moved
from adgn.nn.models.options import StepSize
from adgn.nn.network import Model
from adgn.nn.registry import ModelOptions, register_model

# The rule of 3/8, of order 4 as the classical method, and what torchdiffeq calls "rk4".
THREE_EIGHTHS = RungeKutta(
    "three-eighths",
    order=4,
    a=((), (1 / 3,), (-1 / 3, 1.0), (1.0, -1.0, 1.0)),
    b=(1 / 8, 3 / 8, 3 / 8, 1 / 8),
)


class GRANDOptions(ModelOptions):
    """The options of GRAND."""

    epsilon: StepSize = 0.1
    heads: int = Field(1, ge=1, description="attention heads, a divisor of `hidden_channels`")
    adjoint: bool = Field(
        True,
        description="gradients by integrating the adjoint equation back; `False`: through the "
        "steps, exact for the discrete solution",
    )
    act: str | Activation | None = Field("tanh", description="activation after the last step")
    direction: Direction = Field(
        "in",
        description="where a node listens: `in`, `out`, `undirected`, or `both` (the mean of an "
        "attention for each direction)",
    )


class DiffusionByAttention(nn.Module):
    r"""$\dot{\mathbf{X}} = a\, (\operatorname{GAT}(\mathbf{X}) - \mathbf{X})$."""

    def __init__(self, channels: int, heads: int, direction: Direction = "in") -> None:
        super().__init__()
        # The mean of both directions: a diffusion goes to an average of neighbours.
        self.attention: Any = directed(
            lambda: GATConv(channels, channels, heads=heads), direction, scale=0.5
        )
        self.alpha = nn.Parameter(torch.zeros(()))  # a is its sigmoid

    def reset_parameters(self) -> None:
        """Draws new weights."""
        self.attention.reset_parameters()
        nn.init.zeros_(self.alpha)

    def forward(self, x: Tensor, operator: GraphOperator) -> Tensor:
        """The rate of change of the states."""
        return scaled(torch.sigmoid(self.alpha), self.attention(x, operator) - x)


class GRANDPropagation(nn.Module):
    """`num_layers` steps of the Runge-Kutta method of order 4, and the activation at the end."""

    edge_dim = None

    def __init__(self, channels: int, num_layers: int, options: GRANDOptions) -> None:
        super().__init__()
        self.num_layers = num_layers
        self.epsilon = options.epsilon
        self.adjoint = options.adjoint
        self.rate = DiffusionByAttention(channels, options.heads, options.direction)
        self.act = resolve_activation(options.act)

    @torch.compiler.disable(reason="the adjoint looks at what it needs")  # type: ignore[no-untyped-call, untyped-decorator]
    def forward(
        self, x: Tensor, edge_index: Adjacency, edge_weight: Tensor | None = None
    ) -> Tensor:
        """The states at time `num_layers * epsilon`."""
        operator = self.rate.attention.prepared(x, edge_index, edge_weight)

        def rate(states: Tensor) -> Tensor:
            change: Tensor = self.rate(states, operator)
            return change

        values = [one.value for one in operators_of(operator)]
        learned = [p for p in (*self.rate.parameters(), *values) if p.requires_grad]
        needed = torch.is_grad_enabled() and (x.requires_grad or bool(learned))
        if self.adjoint and needed:
            settings = (rate, self.epsilon, self.num_layers)
            last: Tensor = _ByAdjoint.apply(x, *settings, *learned)  # type: ignore[no-untyped-call]
        else:
            last = x
            for _ in range(self.num_layers):
                last = THREE_EIGHTHS.step(rate, last, self.epsilon)[0]
        return last if self.act is None else self.act(last)

    def trajectory(
        self, x: Tensor, edge_index: Adjacency, edge_weight: Tensor | None = None
    ) -> list[Tensor]:
        """`x` and the states after each step, the last as `forward`; gradients go through them."""
        operator = self.rate.attention.prepared(x, edge_index, edge_weight)
        states = [x]
        for _ in range(self.num_layers):
            step = THREE_EIGHTHS.step(lambda s: self.rate(s, operator), states[-1], self.epsilon)
            states.append(step[0])
        last = states.pop()
        return [*states, last if self.act is None else self.act(last)]

    def extra_repr(self) -> str:
        """The settings, for `repr`."""
        return f"num_layers={self.num_layers}, epsilon={self.epsilon}, adjoint={self.adjoint}"


class _ByAdjoint(torch.autograd.Function):
    r"""Steps whose gradients are those of the equation, and not of the steps.

    Back in time $\dot{\mathbf{X}} = F(\mathbf{X})$ goes together with $\dot{\mathbf{A}} =
    -\mathbf{A}^\top \partial F / \partial \mathbf{X}$, by the same method; the integral of
    $\mathbf{A}^\top \partial F / \partial \theta$ is the gradient in the weights. Each step
    begins from the states that the way ahead had there, so that only these are kept.
    """

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        rate: Callable[[Tensor], Tensor],
        epsilon: float,
        count: int,
        *learned: Tensor,
    ) -> Tensor:
        after = []
        for _ in range(count):
            x = THREE_EIGHTHS.step(rate, x, epsilon)[0]
            after.append(x)
        ctx.rate, ctx.epsilon, ctx.count = rate, epsilon, count
        ctx.save_for_backward(*after, *learned)
        return x

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        after, learned = ctx.saved_tensors[: ctx.count], ctx.saved_tensors[ctx.count :]
        totals = [torch.zeros_like(weight) for weight in learned]
        for x in reversed(after):
            rates: list[Tensor] = []
            pulls: list[Tensor] = []
            for row, weight in zip(THREE_EIGHTHS.a, THREE_EIGHTHS.b, strict=True):
                at = moved(x, -ctx.epsilon, row, rates).detach().requires_grad_()
                with torch.enable_grad():
                    change = ctx.rate(at)
                pull, *found = torch.autograd.grad(
                    *(change, [at, *learned], moved(grad, ctx.epsilon, row, pulls)),
                    allow_unused=True,
                )
                rates.append(change.detach())
                pulls.append(pull)
                for total, part in zip(totals, found, strict=True):
                    if part is not None:
                        total.add_(part, alpha=ctx.epsilon * weight)
            grad = moved(grad, ctx.epsilon, THREE_EIGHTHS.b, pulls)
        return grad, None, None, None, *totals


@register_model(
    "grand",
    title="GRAND",
    paper="https://arxiv.org/abs/2106.10934",
    rule=r"\mathbf{X}^\ell = \mathrm{RK4}_\epsilon(\mathbf{X}^{\ell-1}) \text{ for } "
    r"\dot{\mathbf{X}} = a\, (\mathrm{GAT}(\mathbf{X}) - \mathbf{X}),\quad "
    r"\text{then } \sigma(\mathbf{X}^L)",
    hops_per_layer=4,
    memory="nd",
    time="nd^2 + md",
    options=GRANDOptions,
    note="A step evaluates the attention four times, each of which looks one hop further. Memory "
    "is that of `adjoint=True`; `adjoint=False` keeps $O(nd + m)$ per evaluation.",
)
class GRAND(Model):
    """Graph neural diffusion, as configured in the A-DGN paper's experiments."""

    build_propagation = GRANDPropagation
