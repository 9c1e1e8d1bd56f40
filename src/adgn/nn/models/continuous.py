"""Models whose layers are steps of one differential equation, which some models share."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import Field
from torch import Tensor

from adgn.graph import Adjacency, GraphOperator
from adgn.nn.integrators import VectorField, resolve_integrator
from adgn.nn.models.diffusion import Diffusion, DiffusionOptions
from adgn.nn.models.options import AnyIntegrator, KeptMemory
from adgn.nn.steppers import Memory, check_memory, checkpointed


class ContinuousOptions(DiffusionOptions):
    """The options of models that integrate a differential equation."""

    epsilon: float = Field(
        0.1, gt=0, allow_inf_nan=False, description="the step size ε; the time is T = Lε"
    )
    integrator: AnyIntegrator = "rk4"
    integrator_options: Mapping[str, Any] | None = Field(
        None, description="options of a named integrator, such as `{'adjoint': True}` for `dopri5`"
    )
    memory: KeptMemory = "full"


class Continuous(Diffusion, ABC):
    """`num_layers` steps of an integrator; subclasses say what the right-hand side is."""

    def __init__(self, num_layers: int, options: ContinuousOptions) -> None:
        super().__init__(num_layers, "gcn", None, options.direction)
        self.epsilon = options.epsilon
        self.memory: Memory = options.memory
        self.integrator = resolve_integrator(options.integrator, options.integrator_options)
        check_memory(self.memory, self.integrator)

    @abstractmethod
    def field(self, first: Tensor, operator: GraphOperator) -> VectorField:
        """The right-hand side, for these first states on this graph."""

    def forward(
        self, x: Tensor, edge_index: Adjacency, edge_weight: Tensor | None = None
    ) -> Tensor:
        """The states at time `num_layers * epsilon`."""
        field = self.field(x, self.prepared(x, edge_index, edge_weight))

        def some_steps(x: Tensor, first: int, last: int) -> Tensor:
            return self.integrator.advance(lambda step: field, x, self.epsilon, first, last)

        return checkpointed(some_steps, x, self.num_layers, self.memory, lambda first, last: [])

    def steps(self, x: Tensor, operator: GraphOperator) -> Iterator[Tensor]:
        """The states after each step."""
        field = self.field(x, operator)
        return self.integrator.states(lambda step: field, x, self.epsilon, 0, self.num_layers)

    def extra_repr(self) -> str:
        """The settings, for `repr`."""
        return f"{super().extra_repr()}, epsilon={self.epsilon}, {self.integrator.name}"
