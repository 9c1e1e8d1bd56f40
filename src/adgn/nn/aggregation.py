"""The aggregations Φ: what a node receives from its neighbours."""

import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch_geometric.nn import MessagePassing

from adgn._util.registry import Registry
from adgn.graph import Adjacency, Direction
from adgn.graph.adjacency import Normalization
from adgn.graph.checks import check_count, check_flag, records_sizes
from adgn.graph.direction import check_direction
from adgn.nn import conv
from adgn.nn.base import has_hooks
from adgn.nn.conv import BothDirections, GCN2Conv, GraphConvolution, directed


def reset_linear(weight: Tensor) -> None:
    """Initialises `[out, in]` weights as `torch.nn.Linear` does."""
    nn.init.kaiming_uniform_(weight, a=math.sqrt(5))


def reset_bias(bias: Tensor, fan_in: int) -> None:
    r"""Initialises a bias from $U(-1/\sqrt{d}, 1/\sqrt{d})$."""
    bound = 1 / math.sqrt(fan_in)
    nn.init.uniform_(bias, -bound, bound)


class LinearAggregation(GraphConvolution, MessagePassing):  # type: ignore[misc]
    r"""An aggregation linear in the states: $\Phi = \mathbf{A} \mathbf{X} \mathbf{V}^\top$.

    Args:
        channels: The size $d$ of a node's state.

    Shapes: states `[..., N, d]`, graph (see `adgn.graph.graph_operator`), edge weights `[E]`
    (optional) → `[..., N, d]`.

    Example:
        >>> class MeanAggregation(LinearAggregation):  # an operator makes an aggregation
        ...     normalization = "mean"
        >>> phi = MeanAggregation(1)
        >>> _ = torch.nn.init.ones_(phi.lin.weight)
        >>> phi(torch.tensor([[2.0], [4.0], [0.0]]), torch.tensor([[0, 1], [2, 2]]))[2].item()
        3.0
    """

    def __init__(self, channels: int) -> None:
        super().__init__(aggr="sum")
        self.channels = channels
        self.lin = nn.Linear(channels, channels, bias=False)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws new weights."""
        reset_linear(self.lin.weight)

    def forward(
        self, x: Tensor, edge_index: Adjacency, edge_weight: Tensor | None = None
    ) -> Tensor:
        r"""$\Phi(\mathbf{X}, \mathcal{N}_u)$ for every node."""
        messages: Tensor = self.lin(x)
        return self.operator(x, edge_index, edge_weight) @ messages


class SumAggregation(LinearAggregation):
    r"""The simple aggregation of the [A-DGN paper](https://openreview.net/forum?id=J3Y7cgZOOS).

    $$
    \Phi(\mathbf{X}, \mathcal{N}_u) = \sum_{j \in \mathcal{N}_u} w_{uj} \mathbf{V} \mathbf{x}_j
    $$

    A repeated edge counts as often as it is there. A node's own state enters only through a self
    loop of the graph, so without self loops the Jacobian of the update has purely imaginary
    eigenvalues for $\gamma = 0$.

    Example:
        >>> phi = SumAggregation(2)
        >>> _ = torch.nn.init.eye_(phi.lin.weight)
        >>> phi(torch.eye(2), torch.tensor([[0], [1]])).tolist()  # one edge, 0 → 1
        [[0.0, 0.0], [1.0, 0.0]]
    """

    normalization: Normalization = "none"


class GCNAggregation(LinearAggregation):
    r"""The aggregation of [graph convolutional networks](https://arxiv.org/abs/1609.02907).

    $$
    \Phi(\mathbf{X}, \mathcal{N}_u) = \mathbf{V} \sum_{j \in \mathcal{N}_u \cup \{u\}}
        \frac{w_{uj}}{\sqrt{\hat{d}_j \hat{d}_u}} \mathbf{x}_j, \qquad
    \hat{d}_u = \sum_{j \in \mathcal{N}_u \cup \{u\}} w_{uj}
    $$

    A node without a self loop gets one of weight 1; a self loop that is there keeps its weight.

    Example:
        >>> phi = GCNAggregation(1)
        >>> _ = torch.nn.init.ones_(phi.lin.weight)
        >>> phi(torch.tensor([[1.0], [3.0]]), torch.tensor([[0, 1], [1, 0]]))  # both of degree 2
        tensor([[2.0000],
                [2.0000]], grad_fn=<...>)
    """

    normalization: Normalization = "gcn"


class GCNIIAggregation(GraphConvolution, nn.Module):
    r"""The layer of [GCNII](https://arxiv.org/abs/2007.02133) as an aggregation.

    $$
    \Phi(\mathbf{X}, \mathcal{N}) = ((1 - \alpha) \hat{\mathbf{A}} \mathbf{X} + \alpha \mathbf{X})
        \mathbf{W}
    $$

    The residual is taken from the current states: A-DGN's own update carries the first ones on.
    `alpha` is the share of a node's own state; `shared_weights=False`: a second matrix for it.
    """

    normalization: Normalization = "gcn"

    def __init__(self, channels: int, *, alpha: float = 0.1, shared_weights: bool = True) -> None:
        super().__init__()
        if not 0 <= alpha <= 1:
            raise ValueError(f"alpha={alpha!r} is not valid; it must be in [0, 1]")
        self.conv = GCN2Conv(channels, alpha, shared_weights=shared_weights)

    def reset_parameters(self) -> None:
        """Draws new weights."""
        self.conv.reset_parameters()

    def edge_mask(self) -> Tensor | None:
        """See `GraphConvolution`; PyG puts it on the layer."""
        return self.conv.edge_mask()

    def forward(
        self, x: Tensor, edge_index: Adjacency, edge_weight: Tensor | None = None
    ) -> Tensor:
        r"""$\Phi(\mathbf{X}, \mathcal{N}_u)$ for every node."""
        h: Tensor = self.conv(x, x, edge_index, edge_weight)
        return h


class ChebAggregation(GraphConvolution, MessagePassing):  # type: ignore[misc]
    r"""Chebyshev polynomials of the [graph's Laplacian](https://arxiv.org/abs/1606.09375).

    $$
    \Phi(\mathbf{X}, \mathcal{N}) = \sum_{k=1}^{K} T_k(\tilde{\mathbf{L}})\, \mathbf{X}
        \mathbf{V}_k^\top, \qquad T_{k+1}(\tilde{\mathbf{L}}) = 2 \tilde{\mathbf{L}}
        T_k(\tilde{\mathbf{L}}) - T_{k-1}(\tilde{\mathbf{L}})
    $$

    with $T_0 = \mathbf{I}$, $T_1 = \tilde{\mathbf{L}} = -\mathbf{D}^{-1/2} \mathbf{A}
    \mathbf{D}^{-1/2}$: the normalised Laplacian, scaled for a largest eigenvalue of 2. It is PyG's
    `ChebConv(d, d, K + 1)` without the term of $T_0$, for A-DGN has weights for a node's own state.

    Args:
        channels: The size $d$ of a node's state.
        degree: The highest degree $K$: how many hops away a node listens.
        antisymmetric: $\mathbf{V}_k - \mathbf{V}_k^\top$ in place of $\mathbf{V}_k$. On an
            undirected graph the Jacobian of all of A-DGN's states before the activation is then
            antisymmetric for $\gamma = 0$.

    Shapes: states `[..., N, d]`, graph, edge weights `[E]` (optional) → `[..., N, d]`.

    Example:
        >>> phi = ChebAggregation(1, degree=2)
        >>> _ = torch.nn.init.ones_(phi.weight)
        >>> pair = torch.tensor([[0, 1], [1, 0]])
        >>> phi(torch.tensor([[1.0], [3.0]]), pair).flatten().tolist()  # −3 + 1, −1 + 3
        [-2.0, 2.0]
    """

    normalization: Normalization = "sym"

    def __init__(self, channels: int, *, degree: int = 2, antisymmetric: bool = False) -> None:
        super().__init__(aggr="sum")
        check_count("degree", degree)
        check_flag("antisymmetric", antisymmetric)
        self.channels = channels
        self.degree = degree
        self.antisymmetric = antisymmetric
        self.weight = nn.Parameter(torch.empty(degree, channels, channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws new weights."""
        for weight in self.weight.unbind():
            reset_linear(weight)

    def forward(
        self, x: Tensor, edge_index: Adjacency, edge_weight: Tensor | None = None
    ) -> Tensor:
        r"""$\Phi(\mathbf{X}, \mathcal{N}_u)$ for every node."""
        operator = self.operator(x, edge_index, edge_weight)
        weight = self.weight - self.weight.mT if self.antisymmetric else self.weight
        terms = conv.chebyshev_terms(operator, x, self.degree)[1:]
        return torch.cat(terms, dim=-1) @ torch.cat(weight.unbind(), dim=-1).t()

    def __repr__(self) -> str:
        kind = ", antisymmetric=True" if self.antisymmetric else ""
        return f"{type(self).__name__}({self.channels}, degree={self.degree}{kind})"


class GatedAggregation(conv.GatedGraphConv):
    """One step of a [gated graph network](https://arxiv.org/abs/1511.05493) as an aggregation."""

    def __init__(self, channels: int, *, bias: bool = True) -> None:
        super().__init__(channels, num_layers=1, bias=bias)


def is_plain_linear(phi: nn.Module) -> bool:
    r"""Whether calling `phi` does nothing but $\mathbf{A} \mathbf{X} \mathbf{V}^\top$.

    So it is also where $\mathbf{A}$ and $\mathbf{V}$ are those of both directions. Subclasses,
    hooks, parametrisations (such as a spectral norm) and explanations may do more, and
    `torch.jit.trace` can follow calls only.
    """
    if type(phi) is BothDirections:
        parts = (phi.inward, phi.outward)
        return phi.scale == 1 and not has_hooks(phi) and all(map(is_plain_linear, parts))
    return (
        type(phi) in (SumAggregation, GCNAggregation)
        and type(phi.lin) is nn.Linear
        and not has_hooks(phi)
        and not has_hooks(phi.lin)
        and not phi.explain
        and not records_sizes()
    )


def linear_weight(phi: nn.Module) -> Tensor:
    r"""The $\mathbf{V}$ of a plain linear `phi`, `[d, d]`; of both directions `[2 d, d]`."""
    if isinstance(phi, BothDirections):
        return torch.cat([phi.inward.lin.weight, phi.outward.lin.weight])
    assert isinstance(phi, LinearAggregation)
    weight: Tensor = phi.lin.weight
    return weight


AGGREGATIONS: Registry[type[nn.Module]] = Registry("aggregation", "phi")
Aggregation = TypeVar("Aggregation", bound=type[nn.Module])


def register_aggregation(name: str) -> Callable[[Aggregation], Aggregation]:
    """Decorator: makes a class of aggregations known as `phi=name`.

    It is made with the size of a state for each of its arguments that ends in `channels`, and with
    `phi_kwargs` for those that are given by keyword alone. It is called as `phi(x, edge_index)`,
    with `edge_weight` and `edge_attr` where they are given, and returns states of the shape of `x`.

    Example:
        >>> from adgn.nn import ADGN, LinearAggregation, register_aggregation
        >>> @register_aggregation("mean")
        ... class MeanAggregation(LinearAggregation):
        ...     normalization = "mean"
        >>> type(ADGN(3, 16, 2, num_layers=4, phi="mean").propagation.layers[0].phi).__name__
        'MeanAggregation'
        >>> unregister_aggregation("mean")
    """

    def register(aggregation: Aggregation) -> Aggregation:
        AGGREGATIONS.add(name, aggregation)
        return aggregation

    return register


def unregister_aggregation(name: str) -> None:
    """Forgets an aggregation, so that its name is free: for cells that are run again."""
    AGGREGATIONS.remove(name)


def available_aggregations() -> list[str]:
    """The names that `phi` takes, sorted.

    Example:
        >>> available_aggregations()[:3]
        ['cheb', 'gat', 'gcn']
    """
    return sorted(AGGREGATIONS)


for _name, _class in {
    **{"sum": SumAggregation, "gcn": GCNAggregation, "gcnii": GCNIIAggregation},
    **{"ggnn": GatedAggregation, "gat": conv.GATConv, "graphsage": conv.SAGEConv},
    **{"gin": conv.GINConv, "gine": conv.GINEConv, "cheb": ChebAggregation},
}.items():
    register_aggregation(_name)(_class)


def resolve_aggregation(
    phi: str | nn.Module | None,
    channels: int,
    phi_kwargs: Mapping[str, Any] | None = None,
    direction: Direction = "in",
) -> nn.Module:
    """The module for `phi`: a name, a module as it is, or `None` for `"gcn"` as in PyG.

    A named one listens in `direction`; for `"both"` it is two of them, see `BothDirections`.

    Example:
        >>> resolve_aggregation("gat", 16, {"heads": 4})
        GATConv(16, 16, heads=4)
    """
    if isinstance(phi, nn.Module):
        if phi_kwargs:
            raise ValueError(
                f"phi_kwargs={dict(phi_kwargs)!r} was given together with the module "
                f"phi={type(phi).__name__}(...), which has its settings already"
            )
        if direction != "in":
            check_direction(direction)
            raise ValueError(
                f"direction={direction!r} was given together with the module "
                f"phi={type(phi).__name__}(...), which is called with the edges as they are; name "
                "an aggregation, or make the module with adgn.nn.conv.directed"
            )
        return phi
    if phi is None:
        phi = "gcn"
    if not isinstance(phi, str):
        raise TypeError(
            f"phi is a {type(phi).__name__}; expected one of {', '.join(sorted(AGGREGATIONS))}, or "
            "a torch.nn.Module called as phi(x, edge_index, ...)"
        )
    aggregation = AGGREGATIONS.find(phi)
    given = dict(phi_kwargs or {})
    _check_phi_kwargs(phi, aggregation, given)
    sizes = [name for name in _parameters(aggregation) if name.endswith("channels")]
    return directed(lambda: aggregation(*[channels] * len(sizes), **given), direction)


def _parameters(aggregation: type[nn.Module]) -> dict[str, inspect.Parameter]:
    return dict(inspect.signature(aggregation).parameters)


def _check_phi_kwargs(phi: str, aggregation: type[nn.Module], given: Mapping[str, Any]) -> None:
    options = {
        name: parameter
        for name, parameter in _parameters(aggregation).items()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    }
    takes = ", ".join(options) or "no options"
    for name in given:
        if name not in options:
            hint = f"; aggregations with edge features are {', '.join(_with_edge_features())}"
            hint = hint if name == "edge_dim" else ""
            raise ValueError(f"phi={phi!r} does not take {name}; it takes {takes}{hint}")
    for name, parameter in options.items():
        if parameter.default is inspect.Parameter.empty and name not in given:
            raise ValueError(f"phi={phi!r} needs {name} in phi_kwargs; it takes {takes}")


def _with_edge_features() -> list[str]:
    return [name for name, phi in AGGREGATIONS.items() if "edge_dim" in _parameters(phi)]


def check_edge_features(phi: nn.Module, edge_attr: Tensor | None) -> None:
    """Raises where edge features are given to one of our aggregations that reads none."""
    if edge_attr is not None and isinstance(phi, GraphConvolution) and phi.edge_dim is None:
        raise ValueError(
            f"edge_attr was given, but phi={type(phi).__name__} reads no edge features; use phi="
            f"{' or '.join(map(repr, _with_edge_features()))} with edge_dim={edge_attr.size(-1)}"
        )


def check_taken(phi: nn.Module, given: Mapping[str, Any]) -> None:
    """Raises where a user's Φ is called with something that it does not take."""
    if not given or isinstance(phi, GraphConvolution):
        return
    try:
        parameters = inspect.signature(phi.forward).parameters
    except (TypeError, ValueError):  # not all callables tell
        return
    if any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values()):
        return
    for name in given:
        if name not in parameters:
            other = {"edge_weight": "edge weights, such as phi='gcn'"}
            other["edge_attr"] = "edge features, such as phi='gine'"
            fitting = f" or use a phi that reads {other[name]}" if name in other else ""
            raise ValueError(
                f"{name} was given, but phi={type(phi).__name__} does not take it (it takes "
                f"{', '.join(parameters)}); leave {name} out{fitting}"
            )


def check_aggregated(phi: nn.Module, h: Tensor, x: Tensor) -> None:
    """Raises unless a user's Φ returned one state per node, of the size of `x`."""
    if records_sizes():
        return
    if not isinstance(h, torch.Tensor) or h.shape != x.shape:
        got = list(h.shape) if isinstance(h, torch.Tensor) else type(h).__name__
        raise ValueError(
            f"phi={type(phi).__name__} returned {got} for x of shape {list(x.shape)}; an "
            "aggregation must return states of the same shape, so give it "
            f"{x.size(-1)} input and output channels"
        )
