"""GRAND: graph diffusion by attention, integrated with a Runge-Kutta method."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from adgn.graph import Adjacency, Direction, GraphOperator, SparseOperator, attend
from adgn.graph.two_way import operators_of
from adgn.nn.base import Activation, has_hooks, resolve_activation, scaled
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
            field: _Field = _AnyField(rate, learned)
            if _is_plain(self.rate.attention, operator):
                field, learned = _PlainField.of(self.rate, operator)
            settings = (field, self.epsilon, self.num_layers)
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


class _Field(Protocol):
    r"""A right-hand side $s\, U(\mathbf{X})$ that can be taken back.

    `pull` returns $U$, what a gradient in it is in the states, and in all that is learned that of
    $s\, U$.
    """

    scale: float

    def rate(self, x: Tensor) -> Tensor: ...
    def pull(self, x: Tensor, grad: Tensor) -> tuple[Tensor, Tensor, Sequence[Tensor | None]]: ...


@dataclass(frozen=True)
class _AnyField(_Field):
    """Any function of the states, by autograd."""

    function: Callable[[Tensor], Tensor]
    learned: list[Tensor]
    scale: float = 1.0

    def rate(self, x: Tensor) -> Tensor:
        return self.function(x)

    def pull(self, x: Tensor, grad: Tensor) -> tuple[Tensor, Tensor, Sequence[Tensor | None]]:
        at = x.detach().requires_grad_()
        with torch.enable_grad():
            change = self.function(at)
        found = torch.autograd.grad(change, [at, *self.learned], grad, allow_unused=True)
        return change.detach(), found[0], found[1:]


@dataclass(frozen=True)
class _PlainField(_Field):
    r"""$\operatorname{GAT}(\mathbf{X}) - \mathbf{X}$ with few passes over the states.

    What is made of the weights alone is made once, and not for each rate: the function is given
    the result, and autograd goes back from there.
    """

    operator: SparseOperator
    heads: int
    slope: float
    weights: Tensor
    bias: Tensor
    scale: float

    @classmethod
    def of(
        cls, rate: DiffusionByAttention, operator: GraphOperator
    ) -> tuple["_PlainField", list[Tensor]]:
        """The field, and what is learned of it."""
        attention, scale = rate.attention, torch.sigmoid(rate.alpha)
        weights, bias = attention.state_weights(), attention.bias
        assert isinstance(operator, SparseOperator)
        settings = (operator, attention.heads, attention.negative_slope)
        field = cls(*settings, weights.detach(), bias.detach(), float(scale.detach()))
        return field, [scale, weights, bias]

    def rate(self, x: Tensor) -> Tensor:
        heard = self._heard(x @ self.weights.t())
        return heard.sub_(x).add_(self.bias)

    def pull(self, x: Tensor, grad: Tensor) -> tuple[Tensor, Tensor, Sequence[Tensor | None]]:
        states = (x @ self.weights.t()).requires_grad_()
        with torch.enable_grad():
            heard = self._heard(states)
        (back,) = torch.autograd.grad(heard, states, grad)
        change = torch.sub(heard.detach(), x).add_(self.bias)
        # Sums channel by channel first: they are then alike on any number of threads.
        in_scale = (grad * change).sum(0).sum()
        in_weights = self.scale * (back.t() @ x)
        found = (in_scale, in_weights, self.scale * grad.sum(0))
        return change, torch.addmm(grad, back, self.weights, beta=-1), found

    def _heard(self, states: Tensor) -> Tensor:
        return attend(self.operator, states, heads=self.heads, negative_slope=self.slope)


def _is_plain(attention: nn.Module, operator: GraphOperator) -> bool:
    """Whether a call of the attention does nothing else than `_PlainField` does."""
    return (
        type(attention) is GATConv
        and isinstance(operator, SparseOperator)
        and not operator.value.requires_grad
        and attention.bias is not None
        and not has_hooks(attention)
        and not has_hooks(attention.lin)
    )


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
        field: _Field,
        epsilon: float,
        count: int,
        *learned: Tensor,
    ) -> Tensor:
        after = []
        for _ in range(count):
            x = THREE_EIGHTHS.step(field.rate, x, epsilon * field.scale)[0]
            after.append(x)
        ctx.field, ctx.epsilon, ctx.count = field, epsilon, count
        ctx.save_for_backward(*after, *learned)
        return x

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        after, learned = ctx.saved_tensors[: ctx.count], ctx.saved_tensors[ctx.count :]
        totals = [torch.zeros_like(weight) for weight in learned]
        field, step = ctx.field, ctx.epsilon * ctx.field.scale
        for x in reversed(after):
            rates: list[Tensor] = []
            pulls: list[Tensor] = []
            for row, weight in zip(THREE_EIGHTHS.a, THREE_EIGHTHS.b, strict=True):
                change, pull, found = field.pull(
                    moved(x, -step, row, rates), moved(grad, step, row, pulls)
                )
                rates.append(change)
                pulls.append(pull)
                for total, part in zip(totals, found, strict=True):
                    if part is not None:
                        total.add_(part, alpha=ctx.epsilon * weight)
            grad = moved(grad, step, THREE_EIGHTHS.b, pulls)
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
