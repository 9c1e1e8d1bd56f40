"""GRAND: graph diffusion by attention, integrated with a Runge-Kutta method."""

from typing import Any

import torch
from pydantic import Field
from torch import Tensor, nn

from adgn.graph import Adjacency, Direction, GraphOperator
from adgn.graph.two_way import operators_of
from adgn.nn.base import Activation, resolve_activation, scaled
from adgn.nn.conv import GATConv, directed
from adgn.nn.integrators import solvers
from adgn.nn.models.options import StepSize
from adgn.nn.network import Model
from adgn.nn.registry import ModelOptions, register_model


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

    @torch.compiler.disable(reason="torchdiffeq looks at times")  # type: ignore[no-untyped-call, untyped-decorator]
    def forward(
        self, x: Tensor, edge_index: Adjacency, edge_weight: Tensor | None = None
    ) -> Tensor:
        """The states at time `num_layers * epsilon`."""
        odeint, odeint_adjoint = solvers()

        operator = self.rate.attention.prepared(x, edge_index, edge_weight)

        def rate(_: Tensor, states: Tensor) -> Tensor:
            change: Tensor = self.rate(states, operator)
            return change

        # The method steps from one of these times to the next.
        times = self.epsilon * torch.arange(self.num_layers + 1, dtype=x.dtype, device=x.device)
        if self.adjoint:
            values = [one.value for one in operators_of(operator)]
            moving = [p for p in (*self.rate.parameters(), *values) if p.requires_grad]
            path = odeint_adjoint(rate, x, times, method="rk4", adjoint_params=moving)
        else:
            path = odeint(rate, x, times, method="rk4")
        last: Tensor = path[-1]
        return last if self.act is None else self.act(last)

    def trajectory(
        self, x: Tensor, edge_index: Adjacency, edge_weight: Tensor | None = None
    ) -> list[Tensor]:
        """`x` and the states after each step, the last as `forward`; gradients go through them."""
        odeint, _ = solvers()

        operator = self.rate.attention.prepared(x, edge_index, edge_weight)
        times = torch.tensor([0.0, self.epsilon], dtype=x.dtype, device=x.device)
        states = [x]
        for _ in range(self.num_layers):
            step = odeint(lambda _, s: self.rate(s, operator), states[-1], times, method="rk4")
            states.append(step[-1])
        last = states.pop()
        return [*states, last if self.act is None else self.act(last)]

    def extra_repr(self) -> str:
        """The settings, for `repr`."""
        return f"num_layers={self.num_layers}, epsilon={self.epsilon}, adjoint={self.adjoint}"


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
