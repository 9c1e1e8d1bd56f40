"""SWAN: antisymmetric in space as well as in the weights."""

from collections.abc import Callable
from functools import partial
from itertools import cycle
from typing import Any, Literal

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import leaky_relu

from adgn.graph import (
    Adjacency,
    Direction,
    OperatorDirection,
    TwoWayOperator,
    edge_list,
)
from adgn.graph.adjacency import SPARSE_LAYOUTS, Normalization, entries
from adgn.graph.blocks import SelectedGraphs
from adgn.graph.checks import records_sizes
from adgn.nn.aggregation import reset_bias, reset_linear
from adgn.nn.base import Activation, GraphConvolution, resolve_activation
from adgn.nn.integration import integrate
from adgn.nn.integrators import VectorField, resolve_integrator
from adgn.nn.models.options import AnyIntegrator, KeptMemory, StepSize
from adgn.nn.network import Model
from adgn.nn.registry import ModelOptions, register_model
from adgn.nn.steppers import Memory, check_memory


class SWANOptions(ModelOptions):
    """The options of SWAN."""

    space: Literal["fixed", "learned"] = Field(
        "fixed",
        description="the operators over the edges: `fixed` by degrees, or `learned` from the first "
        "states of both ends",
    )
    bounded: bool = Field(
        False, description="`True`: a free V in place of V − Vᵀ, the bounded variant"
    )
    beta: float = Field(
        0.1, allow_inf_nan=False, description="the strength β of the antisymmetric operator"
    )
    weight_sharing: bool = Field(
        True, description="one (W, V, Z, b) for all layers, or one per layer"
    )
    epsilon: StepSize = 0.1
    gamma: float = Field(0.1, ge=0, allow_inf_nan=False, description="the diffusion γ")
    act: str | Activation | None = Field("tanh", description="the activation σ")
    bias: bool = Field(True, description="whether there is a b")
    edge_norm: Literal["batch", "none"] = Field(
        "batch", description="`learned`: batch normalisation inside the network over the edges"
    )
    memory: KeptMemory = "full"
    integrator: AnyIntegrator = "euler"
    direction: OperatorDirection = Field(
        "in",
        description="where a node listens: `in`, `out` or `undirected`; Â is symmetric for "
        "`undirected`, or where the graph is",
    )


class EdgeStrength(nn.Module):
    r"""A weight per edge from the states of its ends:
    $e_{uj} = \mathrm{relu}(\mathbf{k}_2^\top\, \mathrm{leakyrelu}(\mathrm{norm}(\mathbf{K}_1
    [\mathbf{x}_u \| \mathbf{x}_j])) + c)$.
    """

    def __init__(self, channels: int, *, batch_norm: bool) -> None:
        super().__init__()
        self.target = nn.Linear(channels, channels)  # K₁ in two parts: products per node, not edge
        self.source = nn.Linear(channels, channels, bias=False)
        self.norm = nn.BatchNorm1d(channels) if batch_norm else nn.Identity()
        self.score = nn.Linear(channels, 1)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws new weights; all edges begin alive, for relu passes no gradient to dead ones."""
        for layer in (self.target, self.source, self.score):
            layer.reset_parameters()
        nn.init.ones_(self.score.bias)

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        """The weights `[E]` of the edges `[2, E]`."""
        source, target = edges
        hidden = self.target(x).index_select(0, target) + self.source(x).index_select(0, source)
        strength: Tensor = self.score(leaky_relu(self.norm(hidden))).squeeze(-1)
        return strength.relu()


class SWANPropagation(GraphConvolution, nn.Module):
    r"""The updates of SWAN, see [`SWAN`][adgn.nn.models.SWAN]; all layers are one integration.

    The weights of all layers lie in one tensor each, `[K, d, d]` with K = 1 for shared ones.
    """

    normalization: Normalization = "sym"

    def __init__(self, channels: int, num_layers: int, options: SWANOptions) -> None:
        super().__init__()
        self.num_layers = num_layers
        self.bounded = options.bounded
        self.beta = options.beta
        self.epsilon = options.epsilon
        self.gamma = options.gamma
        self.memory: Memory = options.memory
        self.direction: Direction = options.direction
        self.integrator = resolve_integrator(options.integrator)
        check_memory(self.memory, self.integrator)
        if not options.weight_sharing and not self.integrator.one_step:
            raise ValueError(
                f"integrator={self.integrator.name!r} uses the rates of earlier layers, which have "
                "other weights with weight_sharing=False; set weight_sharing=True, or take a "
                "one-step integrator such as 'rk4'"
            )
        self.act = resolve_activation(options.act)
        sets = 1 if options.weight_sharing else num_layers
        self.W, self.V, self.Z = (
            nn.Parameter(torch.empty(sets, channels, channels)) for _ in range(3)
        )
        self.bias = nn.Parameter(torch.empty(sets, channels)) if options.bias else None
        self.strength: EdgeStrength | None = None
        if options.space == "learned":
            self.strength = EdgeStrength(channels, batch_norm=options.edge_norm == "batch")
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws new weights, as A-DGN does."""
        for weights in (self.W, self.V, self.Z):
            for weight in weights:
                reset_linear(weight)
        if self.bias is not None:
            reset_bias(self.bias, self.W.size(-1))

    def w_self(self) -> Tensor:
        r"""$\mathbf{W} - \mathbf{W}^\top - \gamma \mathbf{I}$, `[K, d, d]`."""
        eye = torch.eye(self.W.size(-1), dtype=self.W.dtype, device=self.W.device)
        return torch.sub(self.W - self.W.mT, eye, alpha=self.gamma)

    def w_neigh(self) -> Tensor:
        r"""$\mathbf{V} - \mathbf{V}^\top$ above $\beta (\mathbf{Z} + \mathbf{Z}^\top)$."""
        first = self.V if self.bounded else self.V - self.V.mT
        return torch.cat([first, self.beta * (self.Z + self.Z.mT)], dim=-2)

    def prepared(
        self, x: Tensor, edge_index: Adjacency, edge_weight: Tensor | None = None
    ) -> TwoWayOperator:
        r"""$\hat{\mathbf{A}}$ and $\tilde{\mathbf{A}} - \tilde{\mathbf{A}}^\top$ for states like
        `x`; learned ones depend on `x`.
        """
        if isinstance(edge_index, TwoWayOperator):
            return edge_index
        graph = self.one_graph(edge_index)
        symmetric: Any = self.direction
        if self.strength is not None:
            graph, edge_weight = _with_weights(x, graph, edge_weight)
            learned = self.strength(x, graph)
            edge_weight = learned if edge_weight is None else learned * edge_weight
            symmetric = "undirected"  # both directions of an edge have weights of their own
        skew: Any = self.direction
        return TwoWayOperator(
            self._operator(symmetric, x, graph, edge_weight, "sym"),
            self._operator(skew, x, graph, edge_weight, "skew"),
        )

    def forward(
        self, x: Tensor, edge_index: Adjacency, edge_weight: Tensor | None = None
    ) -> Tensor:
        """The states after all layers."""
        operator = self.prepared(x, edge_index, edge_weight)
        if records_sizes():  # the checks of one integration would compare sizes
            return self.integrator.advance(
                self._fields(operator), x, self.epsilon, 0, self.num_layers
            )
        return integrate(
            *(x, operator, self.w_self(), self.w_neigh(), self.bias),
            epsilon=self.epsilon,
            act=self.act,
            num_steps=self.num_layers,
            memory=self.memory,
            integrator=self.integrator,
        )

    def trajectory(
        self, x: Tensor, edge_index: Adjacency, edge_weight: Tensor | None = None
    ) -> list[Tensor]:
        """`x` and the states after each layer, the last as `forward`."""
        fields = self._fields(self.prepared(x, edge_index, edge_weight))
        return [x, *self.integrator.states(fields, x, self.epsilon, 0, self.num_layers)]

    def _fields(self, operator: TwoWayOperator) -> Callable[[int], VectorField]:
        """The right-hand side of each step."""
        parts = (self.w_self(), *self.w_neigh().tensor_split(2, dim=-2))
        biases = [None] if self.bias is None else self.bias.unbind()
        fields = [
            VectorField(w_self, partial(_aggregated, operator, v, z), bias, self.act, (v, z))
            for w_self, v, z, bias in zip(
                *(part.unbind() for part in parts), cycle(biases), strict=False
            )
        ]
        return lambda step: fields[step % len(fields)]

    def extra_repr(self) -> str:
        """The settings, for `repr`."""
        space = "fixed" if self.strength is None else "learned"
        settings = f"num_layers={self.num_layers}, space={space!r}, bounded={self.bounded}"
        return f"{settings}, epsilon={self.epsilon}, gamma={self.gamma}, beta={self.beta}"


def _aggregated(pair: TwoWayOperator, v: Tensor, z: Tensor, x: Tensor) -> Tensor:
    return pair.inward @ (x @ v.t()) + pair.outward @ (x @ z.t())


def _with_weights(
    x: Tensor, graph: Adjacency, edge_weight: Tensor | None
) -> tuple[Tensor, Tensor | None]:
    """The edges `[2, E]` of a graph, and their weights where it has some."""
    edges = edge_list(graph, x.size(-2), x)
    if isinstance(graph, SelectedGraphs):
        edge_weight = graph.edge_weight
    elif isinstance(graph, Tensor) and graph.layout in SPARSE_LAYOUTS:
        edge_weight = entries(graph)[2]
    return edges, edge_weight


@register_model(
    "swan",
    title="SWAN",
    paper="https://arxiv.org/abs/2405.01009",
    rule=r"\mathbf{X}^\ell = \mathbf{X}^{\ell-1} + \epsilon\, \sigma\big(\mathbf{X}^{\ell-1} "
    r"(\mathbf{W} - \mathbf{W}^\top - \gamma \mathbf{I})^\top + \mathbf{S} \mathbf{X}^{\ell-1} "
    r"(\mathbf{V} - \mathbf{V}^\top)^\top + \beta (\tilde{\mathbf{A}} - "
    r"\tilde{\mathbf{A}}^\top) \mathbf{X}^{\ell-1} (\mathbf{Z} + \mathbf{Z}^\top)^\top + "
    r"\mathbf{b}\big),\quad \mathbf{S} = \mathbf{D}^{-1/2} \mathbf{A} \mathbf{D}^{-1/2},\ "
    r"\tilde{\mathbf{A}} = \mathbf{D}^{-1} \mathbf{A}",
    memory="nd",
    time="nd^2 + md",
    options=SWANOptions,
    note="On an undirected graph the whole Jacobian before the activation, not only that of a "
    "node's own state, is antisymmetric for γ = 0; with `direction='undirected'` on every graph. "
    "The learned operators are those of weights that a small network gives each edge once, from "
    "the first states; $\\mathbf{S}$ is then that of the mean of both directions.",
)
class SWAN(Model):
    r"""Stable and non-dissipative in space and time: [SWAN](https://arxiv.org/abs/2405.01009).

    $$
    \mathbf{X} \leftarrow \mathbf{X} + \epsilon\, \sigma\left(
        \mathbf{X} (\mathbf{W} - \mathbf{W}^\top - \gamma \mathbf{I})^\top
        + \mathbf{S} \mathbf{X} (\mathbf{V} - \mathbf{V}^\top)^\top
        + \beta (\tilde{\mathbf{A}} - \tilde{\mathbf{A}}^\top) \mathbf{X}
        (\mathbf{Z} + \mathbf{Z}^\top)^\top + \mathbf{b}\right)
    $$

    with $\mathbf{S} = \mathbf{D}^{-1/2} \mathbf{A} \mathbf{D}^{-1/2}$ and $\tilde{\mathbf{A}} =
    \mathbf{D}^{-1} \mathbf{A}$. As an operator on all states at once the right-hand side is
    $\mathbf{I} \otimes (\mathbf{W} - \mathbf{W}^\top) + \mathbf{S} \otimes (\mathbf{V} -
    \mathbf{V}^\top) + \beta (\tilde{\mathbf{A}} - \tilde{\mathbf{A}}^\top) \otimes (\mathbf{Z} +
    \mathbf{Z}^\top)$ for $\gamma = 0$: antisymmetric where $\mathbf{S}$ is symmetric, so that no
    direction in the space of all states decays or grows.

    Its options are those of `model_spec("swan")`.

    Example:
        >>> import torch
        >>> from adgn.nn import build_model
        >>> ring = torch.tensor([[0, 1, 2, 1, 2, 0], [1, 2, 0, 0, 1, 2]])
        >>> model = build_model("swan", 3, 16, 2, num_layers=8, space="learned")
        >>> model(torch.randn(3, 3), ring).shape
        torch.Size([3, 2])
    """

    build_propagation = SWANPropagation
