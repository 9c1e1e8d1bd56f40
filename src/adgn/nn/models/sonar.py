"""SONAR: waves on a graph, with damping, forcing and learned resistance of the edges."""

from typing import Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from adgn.graph import Adjacency, Direction, GraphOperator, Operator
from adgn.graph.adjacency import Normalization, normalized
from adgn.graph.two_way import operators_of
from adgn.nn.aggregation import reset_bias, reset_linear
from adgn.nn.conv import GraphConvolution
from adgn.nn.models.blocks import BlockOptions, in_blocks
from adgn.nn.models.options import AnyDirection, BlockMLP, KeptMemory, StepSize
from adgn.nn.network import Model
from adgn.nn.registry import register_model
from adgn.nn.steppers import Memory
from adgn.nn.wave import integrate_wave, linear_acceleration, wave_energy, wave_states, wave_steps

Laplacian = Literal["none", "sym", "rw"]
WeightKind = Literal["free", "symmetric", "positive"]
# The operator of each Laplacian. Those of "sym" and "rw" come as I − operator.
_OPERATOR: dict[Laplacian, Normalization] = {"none": "laplacian", "sym": "sym", "rw": "mean"}
# The normalisation of learned weights of edges.
_WEIGHED: dict[Laplacian, Normalization] = {"none": "none", "sym": "sym", "rw": "mean"}


class SONAROptions(BlockOptions):
    """The options of SONAR."""

    epsilon: StepSize = 0.5
    laplacian: Laplacian = Field(
        "sym", description="L: `sym`: I − D^(−½) A D^(−½), `rw`: I − D⁻¹ A, or `none`: D − A"
    )
    weight: WeightKind = Field(
        "positive",
        description="W: `positive`: K Kᵀ; `symmetric`: (K + Kᵀ) / 2; `free`: K, as published",
    )
    velocity: Literal["zero", "linear"] = Field(
        "zero", description="the first velocity of a block: zero, or linear in its states"
    )
    damping: bool = Field(False, description="whether there is a D(X), relu of a linear map")
    forcing: bool = Field(
        False, description="whether there is an F(X), two linear maps with relu between them"
    )
    resistance: Literal["none", "block", "step"] = Field(
        "none",
        description="weights of the edges from the states at both ends: `none`, worked out once "
        "per `block`, or at each `step`",
    )
    memory: KeptMemory = "full"
    direction: AnyDirection = "in"
    block_mlp: BlockMLP = "tanh"


class Resistance(nn.Module):
    r"""Weights of edges from the states at their ends, the same in both directions:
    $a_{uj} = \tfrac12 (|m(\mathbf{x}_u, \mathbf{x}_j)| + |m(\mathbf{x}_j, \mathbf{x}_u)|)$, with
    $m$ an MLP of two linear layers and relu.

    Shapes: states `[N, d]`, ends `[E]` twice → `[E]`.

    Example:
        >>> ends = torch.tensor([0, 1]), torch.tensor([1, 0])
        >>> there, back = Resistance(4)(torch.randn(2, 4), *ends)
        >>> bool(there == back), bool(there >= 0)
        (True, True)
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.one = nn.Linear(channels, channels)
        self.other = nn.Linear(channels, channels, bias=False)
        self.out = nn.Parameter(torch.empty(channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws new weights."""
        for part in (self.one, self.other):
            part.reset_parameters()
        reset_bias(self.out, self.out.numel())

    def forward(self, x: Tensor, row: Tensor, col: Tensor) -> Tensor:
        """The weight of each edge."""
        if x.dim() != 2:
            raise ValueError(f"x has shape {list(x.shape)}; learned resistances need states [N, d]")
        one, other = self.one(x), self.other(x)  # per node, before the edges
        there, back = self._message(one, row, other, col), self._message(one, col, other, row)
        return (there.abs() + back.abs()) / 2

    def _message(self, one: Tensor, row: Tensor, other: Tensor, col: Tensor) -> Tensor:
        hidden = torch.relu(one.index_select(0, row) + other.index_select(0, col))
        # Not a matrix product: the gradient of this sum is the same on any number of threads.
        return (hidden * self.out).sum(-1)


class WavePropagation(GraphConvolution, nn.Module):
    r"""`num_layers` steps of a wave on a graph, of which the states are passed on.

    $$
    \mathbf{V} \leftarrow \mathbf{V} - \epsilon (\mathbf{L} \mathbf{X} \mathbf{W}^\top +
        D(\mathbf{X}) \odot \mathbf{V} - F(\mathbf{X})), \qquad
    \mathbf{X} \leftarrow \mathbf{X} + \epsilon \mathbf{V}
    $$

    The arguments are those of the model `sonar`.
    """

    carries = "a velocity"  # besides the states, from step to step

    def __init__(self, channels: int, num_layers: int, options: SONAROptions) -> None:
        super().__init__()
        self.channels = channels
        self.num_layers = num_layers
        self.epsilon = options.epsilon
        self.laplacian: Laplacian = options.laplacian
        self.kind: WeightKind = options.weight
        self.memory: Memory = options.memory
        self.direction: Direction = options.direction
        learned = options.resistance != "none"
        self.normalization: Normalization = "none" if learned else _OPERATOR[options.laplacian]
        # One matrix per direction, side by side.
        count = 2 if options.direction == "both" else 1
        self.weight = nn.Parameter(torch.empty(count, channels, channels))
        self.velocity = self.damping = self.forcing = self.resistance = None
        if options.velocity == "linear":
            self.velocity = nn.Linear(channels, channels, bias=False)
        if options.damping:
            self.damping = nn.Linear(channels, channels)
        if options.forcing:
            ends = [nn.Linear(channels, channels) for _ in range(2)]
            self.forcing = nn.Sequential(ends[0], nn.ReLU(), ends[1])
        if learned:
            self.resistance = Resistance(channels)
        self.each_step = options.resistance == "step"
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws a new W; the other parts draw their own."""
        for one in self.weight:
            reset_linear(one)

    def speeds(self) -> Tensor:
        r"""$\mathbf{W}$, `[1, d, d]`, for both directions `[2, d, d]`: squares of speeds."""
        if self.kind == "free":
            return self.weight
        turned = self.weight.mT
        return self.weight @ turned if self.kind == "positive" else (self.weight + turned) / 2

    @property
    def conservative(self) -> bool:
        """Whether there is nothing but the linear wave."""
        return self.damping is None and self.forcing is None and self.resistance is None

    def linear_weights(self) -> tuple[Tensor, Tensor]:
        """`w_self` and `w_neigh` of `integrate_wave`, for the operator that this module applies."""
        speeds = self.speeds()
        if self.laplacian == "none":
            zero = speeds.new_zeros(self.channels, self.channels)
            return zero, -speeds.flatten(0, 1)
        return -speeds.sum(0), speeds.flatten(0, 1)

    def forward(
        self, x: Tensor, edge_index: Adjacency, edge_weight: Tensor | None = None
    ) -> Tensor:
        """The states after all steps."""
        operator = self.prepared(x, edge_index, edge_weight)
        v = self.first_velocity(x)
        settings = {"epsilon": self.epsilon, "num_steps": self.num_layers}
        if self.conservative:
            weights = self.linear_weights()
            return integrate_wave(x, v, operator, *weights, **settings, memory=self.memory)[0]  # type: ignore[arg-type]
        run = _Dynamics(self, x, operator)
        return wave_steps(run, x, v, **settings, memory=self.memory)[0]  # type: ignore[arg-type]

    def trajectory(
        self, x: Tensor, edge_index: Adjacency, edge_weight: Tensor | None = None
    ) -> list[Tensor]:
        """`x` and the states after each step, the last as `forward`."""
        return [x, *(states for states, _ in self.waves(x, edge_index, edge_weight))]

    def waves(
        self, x: Tensor, edge_index: Adjacency, edge_weight: Tensor | None = None
    ) -> list[tuple[Tensor, Tensor]]:
        """States and velocity after each step, by the plain loop."""
        run = _Dynamics(self, x, self.prepared(x, edge_index, edge_weight))
        v = self.first_velocity(x)
        return list(wave_states(run, x, v, self.epsilon, self.num_layers))

    def first_velocity(self, x: Tensor) -> Tensor:
        """Zero, or linear in the first states."""
        return torch.zeros_like(x) if self.velocity is None else self.velocity(x)

    def energy(
        self,
        x: Tensor,
        v: Tensor,
        edge_index: Adjacency,
        edge_weight: Tensor | None = None,
        *,
        discrete: bool = False,
    ) -> Tensor:
        r"""$\tfrac12 \|\mathbf{V}\|^2 + \tfrac12 \langle \mathbf{X}, \mathbf{L} \mathbf{X}
        \mathbf{W}^\top \rangle$; `discrete`: with the term by which the steps keep it exactly.

        It is kept on undirected graphs, by a symmetric W and the Laplacians `sym` and `none`,
        without damping and forcing. See `adgn.nn.wave.wave_energy`.
        """
        run = _Dynamics(self, x, self.prepared(x, edge_index, edge_weight))
        return wave_energy(x, v, run.spring(x), self.epsilon if discrete else 0.0)

    def extra_repr(self) -> str:
        """The settings, for `repr`."""
        direction = "" if self.direction == "in" else f", direction={self.direction!r}"
        return (
            f"{self.channels}, num_layers={self.num_layers}, epsilon={self.epsilon}, "
            f"laplacian={self.laplacian!r}, weight={self.kind!r}{direction}"
        )


class _Dynamics:
    """The acceleration of a wave on one graph, from states and velocity."""

    def __init__(self, wave: WavePropagation, x: Tensor, operator: GraphOperator) -> None:
        self.wave = wave
        self.operator = operator
        self.speeds = wave.speeds()
        self.linear = wave.linear_weights()
        self.weighed = None if wave.resistance is None or wave.each_step else self._weigh(x)

    def __call__(self, x: Tensor, v: Tensor) -> Tensor:
        total = self.spring(x)
        if self.wave.damping is not None:
            total = total - torch.relu(self.wave.damping(x)) * v
        if self.wave.forcing is not None:
            total = total + self.wave.forcing(x)
        return total

    def spring(self, x: Tensor) -> Tensor:
        r"""$-\mathbf{L} \mathbf{X} \mathbf{W}^\top$."""
        if self.wave.resistance is None:
            return linear_acceleration(x, self.operator, *self.linear)
        total = torch.zeros_like(x)
        weighed = self._weigh(x) if self.weighed is None else self.weighed
        for (degree, operator), speeds in zip(weighed, self.speeds, strict=True):
            y = x @ speeds.t()
            total = total - (y if degree is None else degree.unsqueeze(-1) * y) + operator @ y
        return total

    def _weigh(self, x: Tensor) -> list[tuple[Tensor | None, Operator]]:
        """With learned weights: degrees, where they are not normalised away, and operators."""
        assert self.wave.resistance is not None
        found: list[tuple[Tensor | None, Operator]] = []
        for operator in operators_of(self.operator):
            row, col = operator.places
            value = operator.value * self.wave.resistance(x, row, col)
            kind, nodes = self.wave.laplacian, x.size(-2)
            value = normalized(value, row, col, nodes, _WEIGHED[kind], check=False)
            degree = value.new_zeros(nodes).index_add(0, row, value) if kind == "none" else None
            found.append((degree, operator.with_values(value)))
        return found


@register_model(
    "sonar",
    title="SONAR",
    paper="https://arpi.unipi.it/handle/11568/1358362",
    rule=r"\mathbf{V} \leftarrow \mathbf{V} - \epsilon (\mathbf{L} \mathbf{X} \mathbf{W}^\top + "
    r"D(\mathbf{X}) \odot \mathbf{V} - F(\mathbf{X})),\quad \mathbf{X} \leftarrow \mathbf{X} + "
    r"\epsilon \mathbf{V};\quad \text{after } L \text{ steps } \mathbf{X} \leftarrow "
    r"\mathrm{MLP}(\mathbf{X})",
    memory="nd",
    time="nd^2 + md",
    options=SONAROptions,
    note="A block is $L$ steps from rest and an MLP; $B$ blocks hear $BL$ hops. Without damping, "
    "forcing and resistance the steps are linear. They are stable for $\\epsilon^2 \\lambda_{\\max}"
    "(\\mathbf{L}) \\lambda_{\\max}(\\mathbf{W}) < 4$, where $\\lambda_{\\max}(\\mathbf{L})$ is at "
    "most 2 for `sym` and `rw`, and keep an energy, on undirected graphs with `weight` `positive` "
    "(or `symmetric`, which may grow). On a directed graph $\\mathbf{L}$ is not symmetric; "
    "`direction='undirected'` makes it so, and with `sym` a node that hears nobody is not heard. "
    "The weights of edges that `resistance` learns are made equal in both directions, for the same "
    "reason; with `sym` they count in the degrees of neighbours too, and a step hears one "
    "hop further.",
)
class SONAR(Model):
    """Waves on a graph, block by block (Trenta et al., NeurIPS 2025)."""

    @staticmethod
    def build_propagation(channels: int, num_layers: int, options: SONAROptions) -> nn.Module:
        """The blocks."""
        return in_blocks(lambda: WavePropagation(channels, num_layers, options), channels, options)
