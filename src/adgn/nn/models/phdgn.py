"""PH-DGN: a port-Hamiltonian graph network."""

import math
from collections import deque
from collections.abc import Iterator
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import softplus

from adgn.graph import Adjacency, Direction, Operator
from adgn.graph.adjacency import Normalization
from adgn.nn.aggregation import reset_bias, reset_linear
from adgn.nn.base import GraphConvolution
from adgn.nn.models.options import KeptMemory, OneDirection, StepSize
from adgn.nn.network import Model
from adgn.nn.registry import ModelOptions, register_model
from adgn.nn.steppers import Memory, checkpointed


class PHDGNOptions(ModelOptions):
    """The options of PH-DGN."""

    phi: Literal["sum", "gcn"] = Field("sum", description="the operator A: `sum` or `gcn`")
    epsilon: StepSize = 0.1
    start: Literal["doubled", "split"] = Field(
        "doubled",
        description="`doubled`: p = q = the first states; `split`: p is the first half of their "
        "channels and q the other",
    )
    read: Literal["p", "q"] = Field(
        "p", description="what is read of `doubled` states; of `split` ones it is both"
    )
    damping: Literal["none", "constant", "mlp", "graph"] = Field(
        "none",
        description="D ≥ 0: `none`, a `constant` per channel, a perceptron of q (`mlp`), or a "
        "`graph` convolution of q",
    )
    forcing: Literal["none", "mlp", "graph"] = Field(
        "none",
        description="F: `none`, a perceptron of q and time with sine (`mlp`), or a `graph` "
        "convolution of q with tanh",
    )
    alpha: float = Field(1.0, ge=0, allow_inf_nan=False, description="the strength α of D")
    beta: float = Field(1.0, allow_inf_nan=False, description="the strength β of F")
    memory: KeptMemory = "full"
    direction: OneDirection = "in"


class Potential(nn.Module):
    r"""One half of the energy, $U(\mathbf{X}) = \sum_u \mathbf{1}^\top \log\cosh(\mathbf{a}_u)$
    with $\mathbf{a} = \mathbf{X} \mathbf{W}^\top + \mathbf{A} \mathbf{X} \mathbf{V}^\top +
    \mathbf{b}$, and its gradient.
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.W = nn.Parameter(torch.empty(channels, channels))
        self.V = nn.Parameter(torch.empty(channels, channels))
        self.bias = nn.Parameter(torch.empty(channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws new weights."""
        reset_linear(self.W)
        reset_linear(self.V)
        reset_bias(self.bias, self.W.size(0))

    def inner(self, x: Tensor, operator: Operator) -> Tensor:
        r"""$\mathbf{a}$, `[N, d]`."""
        return x @ self.W.t() + operator @ (x @ self.V.t()) + self.bias

    def energy(self, x: Tensor, operator: Operator) -> Tensor:
        r"""$\mathbf{1}^\top \log\cosh(\mathbf{a}_u)$ for each node, `[N]`."""
        a = self.inner(x, operator)
        # log cosh a = a + log(1 + exp(−2 a)) − log 2, which overflows nowhere.
        return (a + softplus(-2 * a) - math.log(2)).sum(-1)

    def forward(self, x: Tensor, operator: Operator) -> Tensor:
        r"""$\nabla U = \tanh(\mathbf{a}) \mathbf{W} + \mathbf{A}^\top \tanh(\mathbf{a})
        \mathbf{V}$: a node also moves the energy of those that hear it.
        """
        slope = self.inner(x, operator).tanh()
        return slope @ self.W + operator.transposed_product(slope @ self.V)


class Damping(nn.Module):
    """A number of at least 0 per node and channel, from the positions."""

    def __init__(self, kind: str, channels: int) -> None:
        super().__init__()
        self.kind = kind
        if kind == "constant":
            self.strength = nn.Parameter(torch.empty(channels))
        elif kind == "mlp":
            hidden = [m for _ in range(3) for m in (nn.Linear(channels, channels), nn.ReLU())]
            self.layers = nn.Sequential(*hidden, nn.Linear(channels, channels))
        else:
            self.own = nn.Linear(channels, channels)
            self.neighbours = nn.Linear(channels, channels, bias=False)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws a new constant; the layers of the other kinds draw their weights themselves."""
        if self.kind == "constant":
            nn.init.uniform_(self.strength)

    def forward(self, q: Tensor, operator: Operator) -> Tensor:
        """`[N, d]`, or `[d]` for a constant."""
        if self.kind == "constant":
            return self.strength.relu()
        if self.kind == "mlp":
            values: Tensor = self.layers(q)
            return values.relu()
        heard: Tensor = self.own(q) + operator @ self.neighbours(q)
        return heard.relu()


class Forcing(nn.Module):
    """A push per node and channel, from the positions and the time."""

    def __init__(self, kind: str, channels: int) -> None:
        super().__init__()
        self.kind = kind
        self.own = nn.Linear(channels, channels)
        if kind == "mlp":
            self.time = nn.Linear(1, channels, bias=False)
            self.output = nn.Linear(channels, channels)
        else:
            self.neighbours = nn.Linear(channels, channels, bias=False)

    def forward(self, q: Tensor, time: float, operator: Operator) -> Tensor:
        """`[N, d]`."""
        if self.kind == "mlp":
            push: Tensor = self.output(torch.sin(self.own(q) + time * self.time.weight.squeeze(1)))
            return push
        heard: Tensor = self.own(q) + operator @ self.neighbours(q)
        return heard.tanh()


class PHDGNPropagation(GraphConvolution, nn.Module):
    """Steps of symplectic Euler on the energy of two halves, see [`PHDGN`][adgn.nn.models.PHDGN].

    States are `[N, d]`; inside, momenta and positions are next to each other.
    """

    def __init__(self, channels: int, num_layers: int, options: PHDGNOptions) -> None:
        super().__init__()
        self.split = options.start == "split"
        if self.split and channels % 2:
            raise ValueError(
                f"start='split' needs an even number of channels, but hidden_channels={channels}; "
                "choose another, or start='doubled'"
            )
        size = channels // 2 if self.split else channels
        self.num_layers = num_layers
        self.normalization: Normalization = "none" if options.phi == "sum" else "gcn"
        self.direction: Direction = options.direction
        self.epsilon = options.epsilon
        self.read = options.read
        self.alpha, self.beta = options.alpha, options.beta
        self.memory: Memory = options.memory
        self.kinetic = Potential(size)
        self.potential = Potential(size)
        self.damping = None if options.damping == "none" else Damping(options.damping, size)
        self.forcing = None if options.forcing == "none" else Forcing(options.forcing, size)

    def forward(
        self, x: Tensor, edge_index: Adjacency, edge_weight: Tensor | None = None
    ) -> Tensor:
        """The states after all steps."""
        operator = self.operator(x, edge_index, edge_weight)

        def some_steps(pairs: Tensor, first: int, last: int) -> Tensor:
            return deque(self.steps(pairs, operator, first, last), maxlen=1).pop()

        modules = [self]
        pairs = checkpointed(
            some_steps, self.pairs(x), self.num_layers, self.memory, lambda first, last: modules
        )
        return self._read(pairs)

    def trajectory(
        self, x: Tensor, edge_index: Adjacency, edge_weight: Tensor | None = None
    ) -> list[Tensor]:
        """`x` and the states after each step, the last as `forward`."""
        operator = self.operator(x, edge_index, edge_weight)
        states, pairs = [x], self.pairs(x)
        for number in range(self.num_layers):
            (pairs,) = self.steps(pairs, operator, number, number + 1)
            states.append(self._read(pairs))
            if not self.split:  # the next step starts from what is read here, for its gradient
                p, q = pairs.tensor_split(2, dim=-1)
                halves = [states[-1], q] if self.read == "p" else [p, states[-1]]
                pairs = torch.cat(halves, dim=-1)
        return states

    def energy(
        self, pairs: Tensor, edge_index: Adjacency, edge_weight: Tensor | None = None
    ) -> Tensor:
        """The energy that each node holds, `[N]`, which sum up to H.

        Args:
            pairs: Momenta and positions next to each other, `[N, 2 size]`, as `pairs` and `steps`
                give them.
            edge_index: The graph.
            edge_weight: `[E]`, optional.

        Example:
            >>> from adgn.nn import build_model
            >>> model = build_model("phdgn", 4, 4, 4, 50, encoder="none", readout="none")
            >>> physics, x = model.propagation, torch.randn(3, 4)
            >>> ring = torch.tensor([[0, 1, 2], [1, 2, 0]])
            >>> start, operator = physics.pairs(x), physics.operator(x, ring)
            >>> *_, last = physics.steps(start, operator, 0, 50)
            >>> drift = physics.energy(last, ring).sum() / physics.energy(start, ring).sum() - 1
            >>> bool(drift.abs() < 0.2)
            True
        """
        p, q = pairs.tensor_split(2, dim=-1)
        operator = self.operator(p, edge_index, edge_weight)
        return self.kinetic.energy(p, operator) + self.potential.energy(q, operator)

    def pairs(self, x: Tensor) -> Tensor:
        """The first momenta and positions, next to each other."""
        return x if self.split else torch.cat([x, x], dim=-1)

    def steps(self, pairs: Tensor, operator: Operator, first: int, last: int) -> Iterator[Tensor]:
        """Momenta and positions after each of the steps `first` to `last - 1`."""
        p, q = pairs.tensor_split(2, dim=-1)
        for number in range(first, last):
            velocity = self.kinetic(p, operator)
            q = torch.add(q, velocity, alpha=self.epsilon)
            change = -self.potential(q, operator)
            if self.damping is not None:
                change = change - self.alpha * self.damping(q, operator) * velocity
            if self.forcing is not None:
                push = self.forcing(q, number * self.epsilon, operator)
                change = torch.add(change, push, alpha=self.beta)
            p = torch.add(p, change, alpha=self.epsilon)
            yield torch.cat([p, q], dim=-1)

    @property
    def carries(self) -> str:
        """What is passed on from step to step besides the states."""
        if self.split:
            return ""
        return "positions" if self.read == "p" else "momenta"

    def _read(self, pairs: Tensor) -> Tensor:
        if self.split:
            return pairs
        p, q = pairs.tensor_split(2, dim=-1)
        return p if self.read == "p" else q

    def extra_repr(self) -> str:
        """The settings, for `repr`."""
        kind = "split" if self.split else f"doubled, read {self.read}"
        return f"num_layers={self.num_layers}, epsilon={self.epsilon}, {kind}"


@register_model(
    "phdgn",
    title="PH-DGN",
    paper="https://arxiv.org/abs/2405.17163",
    rule=r"\mathbf{q}^\ell = \mathbf{q}^{\ell-1} + \epsilon \nabla_p H(\mathbf{p}^{\ell-1}),\quad "
    r"\mathbf{p}^\ell = \mathbf{p}^{\ell-1} - \epsilon \big(\nabla_q H(\mathbf{q}^\ell) + \alpha\, "
    r"\mathbf{D}(\mathbf{q}^\ell) \odot \nabla_p H(\mathbf{p}^{\ell-1}) - \beta\, "
    r"\mathbf{F}(\mathbf{q}^\ell, t)\big),\quad H = \sum_u \mathbf{1}^\top "
    r"(\log\cosh \mathbf{a}^p_u + \log\cosh \mathbf{a}^q_u),\ \mathbf{a}^x = \mathbf{x} "
    r"\mathbf{W}_x^\top + \mathbf{A} \mathbf{x} \mathbf{V}_x^\top + \mathbf{b}_x",
    hops_per_layer=4,
    memory="nd",
    time="nd^2 + md",
    options=PHDGNOptions,
    note="The gradient of the energy goes along the edges and back, so that each half of a step "
    "looks two hops far. Without damping and forcing steps are symplectic: the energy is not the "
    "same at each step, but stays near the first one however many there are. D is never negative; "
    "damping takes energy out.",
)
class PHDGN(Model):
    r"""A port-Hamiltonian deep graph network, [PH-DGN](https://arxiv.org/abs/2405.17163).

    $$
    H(\mathbf{p}, \mathbf{q}) = \sum_u \mathbf{1}^\top \log\cosh(\mathbf{a}^p_u) +
        \mathbf{1}^\top \log\cosh(\mathbf{a}^q_u), \qquad
    \mathbf{a}^x = \mathbf{x} \mathbf{W}_x^\top + \mathbf{A} \mathbf{x} \mathbf{V}_x^\top +
        \mathbf{b}_x
    $$

    $$
    \mathbf{q} \leftarrow \mathbf{q} + \epsilon \nabla_p H(\mathbf{p}), \qquad
    \mathbf{p} \leftarrow \mathbf{p} - \epsilon \left(\nabla_q H(\mathbf{q}) +
        \alpha\, \mathbf{D}(\mathbf{q}) \odot \nabla_p H(\mathbf{p}) -
        \beta\, \mathbf{F}(\mathbf{q}, t)\right)
    $$

    with $\nabla_x H = \tanh(\mathbf{a}^x) \mathbf{W}_x + \mathbf{A}^\top \tanh(\mathbf{a}^x)
    \mathbf{V}_x$, on directed graphs too. `propagation.energy` is $H$, node by node. The options
    are those of `model_spec("phdgn")`.

    Example:
        >>> import torch
        >>> from adgn.nn import build_model
        >>> model = build_model("phdgn", 3, 16, 2, num_layers=8, damping="constant")
        >>> model(torch.randn(3, 3), torch.tensor([[0, 1], [1, 2]])).shape
        torch.Size([3, 2])
    """

    build_propagation = PHDGNPropagation
