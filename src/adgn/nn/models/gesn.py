"""GESN: graph echo state networks, whose states are computed with random weights."""

import math
from collections import deque
from collections.abc import Iterator
from typing import Any, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from adgn.graph import Adjacency, GraphOperator, TwoWayOperator
from adgn.graph.checks import is_traced
from adgn.graph.spectrum import spectral_radius
from adgn.nn.base import Activation
from adgn.nn.models.diffusion import Diffusion, DiffusionOptions
from adgn.nn.models.options import OneDirection
from adgn.nn.network import Model
from adgn.nn.registry import register_model

Matrix = Literal["uniform", "ring", "orthogonal", "symmetric", "antisymmetric", "diagonal"]
# Above, the eigenvalues of a random matrix take minutes, and the laws of large ones hold.
_EXACT_UNITS = 1024


class GESNOptions(DiffusionOptions):
    """The options of GESN."""

    matrix: Matrix = Field(
        "ring",
        description="the recurrent matrix: `ring` (fastest), `uniform`, `orthogonal`, "
        "`symmetric`, `antisymmetric` or `diagonal`",
    )
    radius: float = Field(
        0.9,
        gt=0,
        allow_inf_nan=False,
        description="the spectral radius of the recurrent matrix times that of the graph",
    )
    input_scale: float = Field(
        1.0, gt=0, allow_inf_nan=False, description="what the encoded features are multiplied by"
    )
    leak: float = Field(
        1.0, gt=0, le=1, description="the share of the new state; the rest is the state before"
    )
    tolerance: float = Field(
        0.0,
        ge=0,
        allow_inf_nan=False,
        description="stop where no state changes by more: a fixed point; 0: all layers",
    )
    act: str | Activation | None = Field("tanh", description="the activation")
    direction: OneDirection = "in"
    readout: Literal["linear", "linear_no_bias", "mlp", "ridge", "none"] = Field(
        "ridge",
        description="`ridge`: linear, solved in closed form; or trained: `linear`, "
        "`linear_no_bias`, `mlp` or `none`",
    )
    train_recurrent: Literal[False] = Field(
        False, description="encoder and recurrent matrix are never trained"
    )


class EchoStates(Diffusion):
    """The states of GESN, with a recurrent matrix that is drawn once.

    Attributes:
        weight: `[d, d]`; of a ring or a diagonal matrix the `[d]` entries that it has. Its spectral
            radius is 1.
    """

    reads_batch = True

    def __init__(self, channels: int, num_layers: int, options: GESNOptions) -> None:
        super().__init__(num_layers, "none", options.act, options.direction)
        self.matrix: Matrix = options.matrix
        self.radius = options.radius
        self.input_scale = options.input_scale
        self.leak = options.leak
        self.tolerance = options.tolerance
        vector = self.matrix in ("ring", "diagonal")
        shape = (channels,) if vector else (channels, channels)
        self.weight = nn.Parameter(torch.empty(shape), requires_grad=False)
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Draws a new recurrent matrix."""
        if self.matrix == "ring":
            self.weight.fill_(1.0)
            return
        drawn = torch.empty_like(self.weight).uniform_(-1, 1)
        if self.matrix == "diagonal":
            drawn /= drawn.abs().max()
        elif self.matrix == "orthogonal":
            drawn = nn.init.orthogonal_(drawn)
        elif self.matrix == "uniform":
            drawn /= _radius(drawn)
        else:
            drawn = drawn + drawn.t() if self.matrix == "symmetric" else drawn - drawn.t()
            drawn /= _normal_radius(drawn)
        self.weight.copy_(drawn)

    def dense_matrix(self) -> Tensor:
        """The recurrent matrix of spectral radius 1, `[d, d]`."""
        if self.matrix == "ring":
            return self.weight.diag().roll(1, 0)
        return self.weight.diag() if self.matrix == "diagonal" else self.weight

    def forward(
        self,
        x: Tensor,
        edge_index: Adjacency,
        edge_weight: Tensor | None = None,
        batch: Tensor | None = None,
        batch_size: int | None = None,
    ) -> Tensor:
        """The last states; the radius is relative to that of each graph of the batch."""
        operator = self.prepared(x, edge_index, edge_weight)
        # A queue of one: only the last states are kept.
        return deque(self.steps(x, operator, batch, batch_size), maxlen=1).pop()

    def trajectory(
        self,
        x: Tensor,
        edge_index: Adjacency,
        edge_weight: Tensor | None = None,
        batch: Tensor | None = None,
        batch_size: int | None = None,
    ) -> list[Tensor]:
        """`x` and the states after each step; after a fixed point they stay as they are."""
        operator = self.prepared(x, edge_index, edge_weight)
        states = [x, *self.steps(x, operator, batch, batch_size)]
        return states + states[-1:] * (self.num_layers + 1 - len(states))

    def steps(
        self,
        x: Tensor,
        operator: GraphOperator,
        batch: Tensor | None = None,
        batch_size: int | None = None,
    ) -> Iterator[Tensor]:
        """The states after each step, until all are made or none changes any more."""
        assert not isinstance(operator, TwoWayOperator)  # the options have no such direction
        x = self.input_scale * x
        graph_radius = spectral_radius(operator, batch, batch_size)
        # Without cycles states stop changing whatever the radius: there is nothing to relate to.
        share = self.radius / torch.where(graph_radius > 0, graph_radius, 1.0)
        if batch is not None:
            share = share.index_select(0, batch.long()).unsqueeze(-1)
        state = self.leak * self.activate(x)
        for _ in range(self.num_layers):
            new = self.activate(x + share * (operator @ self._mixed(state)))
            before, state = state, new if self.leak == 1 else torch.lerp(state, new, self.leak)
            yield state
            if self.tolerance and not is_traced(x):
                change = (state - before).abs().max() if state.numel() else 0.0
                if float(change) <= self.tolerance:
                    return

    def _mixed(self, state: Tensor) -> Tensor:
        """The states times the transpose of the recurrent matrix."""
        if self.matrix == "ring":
            return (state * self.weight).roll(1, -1)
        return state * self.weight if self.matrix == "diagonal" else state @ self.weight.t()

    def extra_repr(self) -> str:
        """The settings, for `repr`."""
        return f"{super().extra_repr()}, matrix={self.matrix!r}, radius={self.radius}"


def _radius(matrix: Tensor) -> Tensor | float:
    """The spectral radius; of many units, entries uniform in [-1, 1], by the circular law."""
    units = matrix.size(0)
    if units > _EXACT_UNITS:
        return math.sqrt(units / 3)
    largest: Tensor = torch.linalg.eigvals(matrix).abs().max()
    return largest


def _normal_radius(matrix: Tensor) -> Tensor | float:
    """That of a symmetric or antisymmetric matrix; of many units by the semicircle law."""
    units = matrix.size(0)
    if units > _EXACT_UNITS:
        return 2 * math.sqrt(units * 2 / 3)
    norm: Tensor = torch.linalg.matrix_norm(matrix, 2)
    # An antisymmetric matrix of one unit is zero, and stays so.
    return torch.where(norm > 0, norm, 1.0)


@register_model(
    "gesn",
    title="GESN",
    paper="https://doi.org/10.1109/IJCNN.2010.5596796",
    rule=r"\mathbf{x}_u^\ell = \sigma\Big(\mathbf{x}_u^0 + \frac{r}{\rho(\mathbf{A})} "
    r"\sum_{j \in \mathcal{N}_u} w_{uj} \mathbf{W} \mathbf{x}_j^{\ell-1}\Big), "
    r"\quad \rho(\mathbf{W}) = 1",
    memory="1",
    time="nd^2 + md",
    options=GESNOptions,
    note="A reservoir: encoder and recurrent matrix W are random and stay so, and the readout is "
    "solved in closed form ([how](reservoirs.md)). With `radius` r < 1 and a "
    "matrix that is not `uniform`, on an undirected graph, the states approach a fixed point "
    "whatever they start from; radii far above 1 are often better for classes of nodes. ρ(A) is "
    "that of the whole graph, or of each graph of a batch, by power iteration; a graph without "
    "cycles counts as 1. A `ring` or `diagonal` matrix takes time O(nd + md). The first states are "
    "σ(x⁰), so that `num_layers` layers are `num_layers` + 1 iterations from zero. The spectral "
    "radius of W is exact up to 1024 units, above that it is that of the laws for large random "
    "matrices.",
)
class GESN(Model):
    r"""Graph echo state network, [Gallicchio and Micheli (2010)](https://doi.org/10.1109/IJCNN.2010.5596796).

    $$
    \mathbf{x}_u^\ell = (1 - a)\, \mathbf{x}_u^{\ell-1} + a\, \sigma\Big(s\, \mathbf{x}_u^0 +
    \frac{r}{\rho(\mathbf{A})} \sum_{j \in \mathcal{N}_u} w_{uj} \mathbf{W}
    \mathbf{x}_j^{\ell-1}\Big), \qquad \rho(\mathbf{W}) = 1
    $$

    with the encoded features $\mathbf{x}^0$, the radius $r$, the input scale $s$ and the leak $a$.

    Example:
        >>> from adgn.nn import build_model
        >>> model = build_model("gesn", 3, 100, 2, num_layers=30, radius=0.9, matrix="ring")
        >>> model.parameter_counts()  # the readout alone is learnt
        {'encoder': 0, 'propagation': 0, 'readout': 202, 'total': 202}
    """

    build_propagation = EchoStates

    def __init__(self, *sizes: Any, **options: Any) -> None:
        super().__init__(*sizes, **options)
        if self.encoder is not None:
            self.encoder.requires_grad_(False)
