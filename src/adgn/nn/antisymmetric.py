"""The anti-symmetric layer: one update, used by every A-DGN in the package."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from adgn.graph import Adjacency, Direction, GraphOperator, NeededNodes, edge_list
from adgn.graph.checks import check_choice, check_count, check_features, check_flag, check_positive
from adgn.nn import aggregation
from adgn.nn.base import Activation, has_hooks, known_activation, resolve_activation
from adgn.nn.conv import BothDirections, GraphConvolution
from adgn.nn.integration import integrate
from adgn.nn.integrators import Integrator, VectorField, resolve_integrator
from adgn.nn.steppers import MEMORIES, Memory, check_memory, checkpointed


class AntiSymmetricConv(nn.Module):
    r"""The anti-symmetric graph convolution from ["Anti-Symmetric DGN: a stable architecture for
    Deep Graph Networks"](https://openreview.net/forum?id=J3Y7cgZOOS).

    $$
    \mathbf{x}_u \leftarrow \mathbf{x}_u + \epsilon\, \sigma\left(
        (\mathbf{W} - \mathbf{W}^\top - \gamma \mathbf{I})\, \mathbf{x}_u
        + \Phi(\mathbf{X}, \mathcal{N}_u) + \mathbf{b}\right)
    $$

    It takes the arguments of PyG's layer of the same name and shares its state dict. It differs
    in three ways: `phi` may be a name, the graph is validated and normalised once and not at
    each call, and the weights start as the paper's do (PyG: Glorot for $\mathbf{V}$, zero
    for $\mathbf{b}$).

    Args:
        in_channels: The size $d$ of a node's state.
        phi: The aggregation $\Phi$: `"gcn"` (also for `None`, as in PyG), `"sum"`, `"cheb"`,
            `"gat"`, `"gcnii"`, `"ggnn"`, `"gin"`, `"gine"` (reads edge features), `"graphsage"`, or
            a module called as `phi(x, edge_index, *args, **kwargs)`.
        num_iters: How many times the update is applied, with the same weights: the number $L$ of
            layers, which models call `num_layers`.
        epsilon: The step size $\epsilon > 0$.
        gamma: The strength $\gamma \ge 0$ of the diffusion that keeps the discrete
            update stable.
        act: The activation $\sigma$, monotonically non-decreasing for the theory to hold.
        act_kwargs: Arguments for an `act` given by name.
        bias: Whether there is a $\mathbf{b}$.
        phi_kwargs: Options for a `phi` given by name, such as `{"heads": 2}` for `"gat"`.
        memory: What is kept for the gradient: `"full"`: one number per entry of the states and
            iteration (for a `phi` other than `"sum"` and `"gcn"` all that autograd keeps of it);
            `"checkpoint"`: far less for many iterations, for about a third more time: steps are
            computed a second time, with the random numbers and buffers of the first.
        integrator: How the differential equation is stepped: `"euler"` (the update above),
            `"heun"`, `"rk3"`, `"rk4"`, `"ab2"`, `"ab3"`, `"implicit-midpoint"`, `"etd1"`, `"etd2"`,
            `"bosh3"`, `"dopri5"`, or an integrator, see `adgn.nn.integrators`.
        integrator_options: Options for an `integrator` given by name, such as `{"rtol": 1e-6}`.
        direction: Where a node listens, for a `phi` given by name: `"in"`: to the sources of its
            incoming edges, as in PyG; `"out"`: to the targets of its outgoing edges;
            `"undirected"`: to all of them, each once; `"both"`: the sum of a $\Phi$ for each
            direction, with weights of its own. What the paper shows of the Jacobian of a node's own
            state holds in all of them.

    Shapes: states `[N, d]` (for `sum` and `gcn` also `[..., N, d]`, several states on one graph),
    graph as `[2, E]` tensor, `EdgeIndex`, sparse `[N, N]` matrix or operator, edge weights `[E]`
    (optional) → states of the input's shape.

    Example:
        >>> import torch
        >>> from adgn.nn import AntiSymmetricConv
        >>> conv = AntiSymmetricConv(16, phi="sum", num_iters=8)
        >>> x, edge_index = torch.randn(3, 16), torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
        >>> conv(x, edge_index).shape
        torch.Size([3, 16])
    """

    eye: Tensor
    bias: nn.Parameter | None

    def __init__(
        self,
        in_channels: int,
        phi: str | nn.Module | None = None,
        num_iters: int = 1,
        epsilon: float = 0.1,
        gamma: float = 0.1,
        act: str | Activation | None = "tanh",
        act_kwargs: Mapping[str, Any] | None = None,
        bias: bool = True,
        *,
        phi_kwargs: Mapping[str, Any] | None = None,
        memory: Memory = "full",
        integrator: str | Integrator = "euler",
        integrator_options: Mapping[str, Any] | None = None,
        direction: Direction = "in",
    ) -> None:
        super().__init__()
        check_choice("memory", memory, MEMORIES)
        check_count("in_channels", in_channels)
        check_count("num_iters", num_iters)
        check_positive("epsilon", epsilon)
        check_gamma(gamma)
        check_flag("bias", bias)
        self.in_channels = in_channels
        self.num_iters = num_iters
        self.epsilon = epsilon
        self.gamma = gamma
        self.memory = memory
        self.integrator = resolve_integrator(integrator, integrator_options)
        check_memory(memory, self.integrator)
        self.act = resolve_activation(act, act_kwargs)
        self.W = nn.Parameter(torch.empty(in_channels, in_channels))
        self.register_buffer("eye", torch.eye(in_channels))
        if isinstance(phi, aggregation.LinearAggregation) and phi.channels != in_channels:
            raise ValueError(
                f"phi={type(phi).__name__}({phi.channels}) aggregates states of size "
                f"{phi.channels}, but in_channels={in_channels}"
            )
        self.phi = aggregation.resolve_aggregation(phi, in_channels, phi_kwargs, direction)
        if bias:
            self.bias = nn.Parameter(torch.empty(in_channels))
        else:
            self.register_parameter("bias", None)
        self._reset_own_parameters()

    def reset_parameters(self) -> None:
        """Draws new weights for the layer and, where it can do so, for `phi`."""
        self._reset_own_parameters()
        if hasattr(self.phi, "reset_parameters"):
            self.phi.reset_parameters()  # type: ignore[operator]

    def _reset_own_parameters(self) -> None:
        aggregation.reset_linear(self.W)
        if self.bias is not None:
            aggregation.reset_bias(self.bias, self.in_channels)

    def w_self(self) -> Tensor:
        r"""$\mathbf{W} - \mathbf{W}^\top - \gamma \mathbf{I}$, what multiplies a node's state."""
        return torch.sub(self.W - self.W.t(), self.eye, alpha=self.gamma)

    def forward(self, x: Tensor, edge_index: Adjacency, *args: Any, **kwargs: Any) -> Tensor:
        """Applies the update `num_iters` times.

        Args:
            x: States, `[..., N, d]`.
            edge_index: The graph.
            *args: Passed to `phi`; for one given by name the edge weights `[E]`.
            **kwargs: Passed to `phi`; for one given by name `edge_weight` or, where it reads
                edge features, `edge_attr`.
        """
        return self._integrate(self.num_iters, x, edge_index, *args, **kwargs)

    def trajectory(
        self, x: Tensor, edge_index: Adjacency, *args: Any, **kwargs: Any
    ) -> list[Tensor]:
        """`x` and the states after each update: `num_iters + 1` of them, the last as `forward`."""
        states = [x]
        if not self.integrator.one_step:
            field = self.field(x, edge_index, *args, **kwargs)
            path = self.integrator.states(lambda _: field, x, self.epsilon, 0, self.num_iters)
            return [*states, *path]
        for _ in range(self.num_iters):
            states.append(self._integrate(1, states[-1], edge_index, *args, **kwargs))
        return states

    def rate(self, x: Tensor, edge_index: Adjacency, *args: Any, **kwargs: Any) -> Tensor:
        r"""$\sigma((\mathbf{W} - \mathbf{W}^\top - \gamma \mathbf{I})\, \mathbf{x}_u +
        \Phi(\mathbf{X}, \mathcal{N}_u) + \mathbf{b})$: the right-hand side of the differential
        equation, which the update multiplies with $\epsilon$.

        Example:
            >>> import torch
            >>> from adgn.nn import AntiSymmetricConv
            >>> conv = AntiSymmetricConv(16, phi="sum", epsilon=0.5)
            >>> x, edge_index = torch.randn(3, 16), torch.tensor([[0, 1], [1, 2]])
            >>> torch.allclose(conv(x, edge_index), x + 0.5 * conv.rate(x, edge_index), atol=1e-6)
            True
        """
        return self.field(x, edge_index, *args, **kwargs)(x)

    def field(self, x: Tensor, edge_index: Adjacency, *args: Any, **kwargs: Any) -> VectorField:
        """`rate` as a function of the states alone, for states like `x` on one graph."""
        check_features(x, self.in_channels, like=self.W)
        if isinstance(self.phi, GraphConvolution) and self.phi.edge_dim is None:
            edge_index, args, kwargs = self.phi.prepared(x, edge_index, *args, **kwargs), (), {}
        if isinstance(edge_index, Tensor):
            edge_list(edge_index, x.size(-2), x)  # validated once per graph
        aggregation.check_taken(self.phi, kwargs)

        def phi(x: Tensor) -> Tensor:
            h: Tensor = self.phi(x, edge_index, *args, **kwargs)
            aggregation.check_aggregated(self.phi, h, x)
            return h

        learned = tuple(self.phi.parameters())
        return VectorField(self.w_self(), phi, self.bias, self.act, learned)

    def _integrate(
        self, num_steps: int, x: Tensor, edge_index: Adjacency, *args: Any, **kwargs: Any
    ) -> Tensor:
        aggregation.check_edge_features(self.phi, kwargs.get("edge_attr"))
        if aggregation.is_plain_linear(self.phi):
            return integrate_layers([self], num_steps, x, edge_index, *args, **kwargs)
        field = self.field(x, edge_index, *args, **kwargs)

        def some_steps(x: Tensor, first: int, last: int) -> Tensor:
            return self.integrator.advance(lambda _: field, x, self.epsilon, first, last)

        modules = [self.phi, self.act]
        return checkpointed(some_steps, x, num_steps, self.memory, lambda first, last: modules)

    def __repr__(self) -> str:
        phi = " ".join(str(self.phi).split())  # on one line
        return (
            f"{type(self).__name__}({self.in_channels}, phi={phi}, "
            f"num_iters={self.num_iters}, epsilon={self.epsilon}, gamma={self.gamma})"
        )


def integrate_layers(
    layers: Sequence[AntiSymmetricConv],
    num_steps: int,
    x: Tensor,
    edge_index: Adjacency | NeededNodes,
    *args: Any,
    **kwargs: Any,
) -> Tensor:
    """Applies layers that differ in nothing but their weights, as one integration.

    They are one layer with a linear aggregation and any number of updates, or some that passed
    `as_one_integration` with one update each. The rest goes to the aggregation.
    """
    first = layers[0]
    phi = first.phi
    assert isinstance(phi, GraphConvolution)
    biases: list[Tensor] = [layer.bias for layer in layers if layer.bias is not None]
    check_features(x, first.in_channels, like=first.W)
    w_self = _stacked([layer.w_self() for layer in layers])
    w_neigh = _stacked([aggregation.linear_weight(layer.phi) for layer in layers])
    bias = _stacked(biases) if biases else None
    operator: GraphOperator | NeededNodes
    if isinstance(edge_index, NeededNodes):
        operator = edge_index
    else:
        operator = phi.prepared(x, edge_index, *args, **kwargs)
    return integrate(
        *(x, operator, w_self, w_neigh, bias),
        epsilon=first.epsilon,
        act=first.act,
        num_steps=num_steps,
        memory=first.memory,
        integrator=first.integrator,
    )


def _stacked(tensors: Sequence[Tensor]) -> Tensor:
    """As `torch.stack`, without a copy where there is one."""
    return tensors[0].unsqueeze(0) if len(tensors) == 1 else torch.stack(list(tensors))


def as_one_integration(layers: Iterable[nn.Module]) -> list[AntiSymmetricConv] | None:
    """The layers, if one integration with stacked weights is all that they do; else `None`.

    They must be of one kind with a linear aggregation, and have no hooks.
    """
    alike, kinds = [], set()
    for layer in layers:
        if type(layer) is not AntiSymmetricConv or has_hooks(layer):
            return None
        activation = known_activation(layer.act)
        if activation is None or not aggregation.is_plain_linear(layer.phi):
            return None
        alike.append(layer)
        kind = (*_kind(layer.phi), layer.in_channels, layer.bias is None, activation)
        kinds.add((*kind, layer.epsilon, layer.memory, layer.integrator))
    several = any(layer.num_iters != 1 or not layer.integrator.one_step for layer in alike)
    if len(alike) > 1 and (len(kinds) > 1 or several):
        return None
    return alike or None


def _kind(phi: nn.Module) -> tuple[type[nn.Module], str]:
    """Class and direction of a linear aggregation."""
    if isinstance(phi, BothDirections):
        return type(phi.inward), phi.direction
    assert isinstance(phi, GraphConvolution)
    return type(phi), phi.direction


def check_gamma(gamma: float) -> None:
    """Raises unless `gamma` is a finite number that is not negative."""
    number = isinstance(gamma, int | float) and not isinstance(gamma, bool)
    if not number or not 0 <= gamma < float("inf"):
        raise ValueError(
            f"gamma={gamma!r} is not valid; it must be a finite number of at least 0 "
            "(a negative one would make the update unstable)"
        )
