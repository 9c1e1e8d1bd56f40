"""One operator, applied again and again, which many models share."""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator

from pydantic import Field
from torch import Tensor, nn

from adgn.graph import Adjacency, Direction, GraphOperator, OperatorDirection
from adgn.graph.adjacency import Normalization
from adgn.nn.base import Activation, resolve_activation
from adgn.nn.conv import GraphConvolution
from adgn.nn.registry import ModelOptions


class DiffusionOptions(ModelOptions):
    """The options of models that apply one operator, without weights, again and again."""

    direction: OperatorDirection = Field(
        "in",
        description="where a node listens: `in`, `out` or `undirected`; there are no weights that "
        "could differ for both directions",
    )


class PropagationOptions(DiffusionOptions):
    """The options of models that apply an activation once and then only propagate."""

    act: str | Activation | None = Field("relu", description="activation after the encoder")


class Diffusion(GraphConvolution, nn.Module, ABC):
    """`num_layers` applications of one operator; subclasses say how."""

    def __init__(
        self,
        num_layers: int,
        normalization: Normalization,
        act: str | Activation | None,
        direction: Direction = "in",
    ) -> None:
        super().__init__()
        self.num_layers = num_layers
        self.normalization: Normalization = normalization
        self.direction: Direction = direction
        self.act = resolve_activation(act)

    def forward(
        self, x: Tensor, edge_index: Adjacency, edge_weight: Tensor | None = None
    ) -> Tensor:
        """The last states."""
        # A queue of one: only the last states are kept.
        return deque(self.steps(x, self.prepared(x, edge_index, edge_weight)), maxlen=1).pop()

    def trajectory(
        self, x: Tensor, edge_index: Adjacency, edge_weight: Tensor | None = None
    ) -> list[Tensor]:
        """`x` and the states after each step, the last as `forward`."""
        return [x, *self.steps(x, self.prepared(x, edge_index, edge_weight))]

    @abstractmethod
    def steps(self, x: Tensor, operator: GraphOperator) -> Iterator[Tensor]:
        """The states after each step, the last ones being the output."""

    def activate(self, x: Tensor) -> Tensor:
        """The activation; identity where there is none."""
        return x if self.act is None else self.act(x)

    def extra_repr(self) -> str:
        """Steps and operator, for `repr`."""
        direction = "" if self.direction == "in" else f", direction={self.direction!r}"
        return f"num_layers={self.num_layers}, normalization={self.normalization!r}{direction}"
