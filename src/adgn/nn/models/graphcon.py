"""GraphCON: nodes as oscillators, coupled along the edges."""

from typing import Any, Literal

from pydantic import Field
from torch import Tensor, nn

from adgn.graph import Adjacency
from adgn.nn.base import Activation, resolve_activation
from adgn.nn.conv import GATConv, GCNConv, directed
from adgn.nn.models.options import AnyDirection, KeptMemory, StepSize
from adgn.nn.network import Model
from adgn.nn.registry import ModelOptions, register_model
from adgn.nn.steppers import Memory
from adgn.nn.wave import Acceleration, wave_states, wave_steps


class GraphCONOptions(ModelOptions):
    """The options of GraphCON."""

    coupling: Literal["gcn", "gat"] = Field(
        "gcn", description="the coupling F: `gcn` or `gat`, one for all steps"
    )
    epsilon: StepSize = 1.0
    stiffness: float = Field(
        1.0, ge=0, allow_inf_nan=False, description="γ, which pulls states back to zero"
    )
    damping: float = Field(
        1.0, ge=0, allow_inf_nan=False, description="α, which slows the velocity down"
    )
    act: str | Activation | None = Field("relu", description="the activation σ of the coupling")
    heads: int = Field(
        1, ge=1, description="attention heads of `gat`, a divisor of `hidden_channels`"
    )
    memory: KeptMemory = "full"
    direction: AnyDirection = "in"


class OscillatorPropagation(nn.Module):
    r"""`num_layers` steps of coupled oscillators, which begin with the states as velocity.

    $$
    \mathbf{Y} \leftarrow \mathbf{Y} + \epsilon (\sigma(F(\mathbf{X}, \mathcal{G})) - \gamma
        \mathbf{X} - \alpha \mathbf{Y}), \qquad \mathbf{X} \leftarrow \mathbf{X} + \epsilon
        \mathbf{Y}
    $$

    The arguments are those of the model `graphcon`.
    """

    edge_dim = None

    carries = "a velocity"  # besides the states, from step to step

    def __init__(self, channels: int, num_layers: int, options: GraphCONOptions) -> None:
        super().__init__()
        self.num_layers = num_layers
        self.epsilon = options.epsilon
        self.stiffness = options.stiffness
        self.damping = options.damping
        self.memory: Memory = options.memory
        self.act = resolve_activation(options.act)

        def make() -> nn.Module:
            if options.coupling == "gcn":
                return GCNConv(channels, channels)
            return GATConv(channels, channels, heads=options.heads)

        self.coupling: Any = directed(make, options.direction)

    def forward(
        self, x: Tensor, edge_index: Adjacency, edge_weight: Tensor | None = None
    ) -> Tensor:
        """The states after all steps."""
        run = self._acceleration(x, edge_index, edge_weight)
        modules = [self.coupling, self.act]
        return wave_steps(run, x, x, self.epsilon, self.num_layers, self.memory, modules)[0]

    def trajectory(
        self, x: Tensor, edge_index: Adjacency, edge_weight: Tensor | None = None
    ) -> list[Tensor]:
        """`x` and the states after each step, the last as `forward`."""
        run = self._acceleration(x, edge_index, edge_weight)
        return [x, *(states for states, _ in wave_states(run, x, x, self.epsilon, self.num_layers))]

    def _acceleration(
        self, x: Tensor, edge_index: Adjacency, edge_weight: Tensor | None
    ) -> Acceleration:
        operator = self.coupling.prepared(x, edge_index, edge_weight)

        def acceleration(x: Tensor, y: Tensor) -> Tensor:
            force: Tensor = self.coupling(x, operator)
            if self.act is not None:
                force = self.act(force)
            return force - self.stiffness * x - self.damping * y

        return acceleration

    def extra_repr(self) -> str:
        """The settings, for `repr`."""
        return (
            f"num_layers={self.num_layers}, epsilon={self.epsilon}, stiffness={self.stiffness}, "
            f"damping={self.damping}"
        )


@register_model(
    "graphcon",
    title="GraphCON",
    paper="https://arxiv.org/abs/2202.02296",
    rule=r"\mathbf{Y} \leftarrow \mathbf{Y} + \epsilon (\sigma(F(\mathbf{X}, \mathcal{G})) - "
    r"\gamma \mathbf{X} - \alpha \mathbf{Y}),\quad \mathbf{X} \leftarrow \mathbf{X} + \epsilon "
    r"\mathbf{Y}",
    memory="nd",
    time="nd^2 + md",
    options=GraphCONOptions,
    note="$\\mathbf{Y}$ begins as the encoded states, as $\\mathbf{X}$ does. Without coupling the "
    "steps are stable for $\\alpha = 0$ and $\\epsilon^2 \\gamma < 4$. The settings published for "
    "heterophilic graphs have $\\alpha = \\gamma = 0$ and $\\epsilon = 1$: nothing pulls "
    "states back.",
)
class GraphCON(Model):
    """Graph-coupled oscillator network (Rusch et al., ICML 2022)."""

    build_propagation = OscillatorPropagation
