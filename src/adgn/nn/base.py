"""What all layers have in common: activations by name, and which operator of a graph they apply."""

from collections.abc import Callable, Mapping
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch_geometric.nn.resolver import activation_resolver

from adgn._util.suggestions import unknown_name
from adgn.graph import (
    Adjacency,
    Direction,
    EdgeOperator,
    GraphOperator,
    Operator,
    OperatorDirection,
    SparseOperator,
    TwoWayOperator,
    edge_list,
    edge_operator,
    graph_operator,
)
from adgn.graph.adjacency import Normalization
from adgn.graph.checks import check_edge_attr, is_traced
from adgn.graph.direction import check_operator_direction
from adgn.graph.edges import turned_edges

Activation = Callable[[Tensor], Tensor]
KnownActivation = Literal["identity", "tanh", "relu"]  # those that the fused integration knows

_ACTIVATIONS: dict[str, type[nn.Module]] = {
    kind.__name__.lower(): kind
    for kind in (
        *(nn.CELU, nn.ELU, nn.GELU, nn.Hardtanh, nn.Identity, nn.LeakyReLU, nn.Mish),
        *(nn.ReLU, nn.ReLU6, nn.SELU, nn.Sigmoid, nn.SiLU, nn.Softplus, nn.Tanh),
    )
}
_KNOWN: dict[Any, KnownActivation] = {
    **dict.fromkeys((None, nn.Identity), "identity"),
    **dict.fromkeys((nn.Tanh, torch.tanh, Tensor.tanh), "tanh"),
    **dict.fromkeys((nn.ReLU, torch.relu, Tensor.relu, nn.functional.relu), "relu"),
}


def resolve_activation(
    act: str | Activation | None, act_kwargs: Mapping[str, Any] | None = None
) -> Activation | None:
    """The activation of a name, a class or a callable; `None` stays `None` (identity).

    Names are those of torch's modules, upper or lower case, with or without underscores.

    Example:
        >>> resolve_activation("leaky_relu", {"negative_slope": 0.2})
        LeakyReLU(negative_slope=0.2)
    """
    if act_kwargs and not isinstance(act, str | type):
        raise ValueError(
            f"act_kwargs={dict(act_kwargs)!r} was given, but act={act!r} is no name or class that "
            "could take it"
        )
    if isinstance(act, str):
        name = act.lower().replace("_", "").replace(" ", "")
        if name in _ACTIVATIONS:
            return _build(_ACTIVATIONS[name], act_kwargs)
        try:
            resolved: nn.Module = activation_resolver(act, **(act_kwargs or {}))
            # The resolver also takes other modules that torch defines beside its activations.
            if resolved.eval()(torch.zeros(1, 4)).shape != (1, 4):
                raise ValueError
        except (ValueError, TypeError, NotImplementedError):
            raise unknown_name("act", act, _ACTIVATIONS) from None
        return resolved.train()
    if isinstance(act, type) and issubclass(act, nn.Module):
        return _build(act, act_kwargs)
    if act is None or (callable(act) and not isinstance(act, type)):
        return act
    raise TypeError(
        f"act is a {type(act).__name__}; expected a name such as 'tanh', a torch.nn.Module, "
        "a callable or None"
    )


def _build(kind: type[nn.Module], act_kwargs: Mapping[str, Any] | None) -> nn.Module:
    try:
        return kind(**(act_kwargs or {}))
    except TypeError as error:
        raise ValueError(
            f"act_kwargs={dict(act_kwargs or {})!r} does not fit {kind.__name__}: {error}"
        ) from None


def known_activation(act: Activation | None) -> KnownActivation | None:
    """The activation's name where its slope is known here; a module with hooks is unknown."""
    if not isinstance(act, nn.Module):
        return _KNOWN.get(act)
    return None if has_hooks(act) else _KNOWN.get(type(act))


def has_hooks(module: nn.Module) -> bool:
    """Whether the module has hooks, which must be called with it."""
    return bool(
        module._forward_hooks
        or module._forward_pre_hooks
        or module._backward_hooks
        or module._backward_pre_hooks
    )


def scaled(number: Tensor, x: Tensor) -> Tensor:
    """`number * x`, for one learned number.

    Its gradient is summed channel by channel, which torch does alike on any number of threads; a
    sum of all numbers at once would depend on it.

    Example:
        >>> scaled(torch.tensor(2.0), torch.ones(1, 3))
        tensor([[2., 2., 2.]])
    """
    return number.expand(x.size(-1)) * x


def softplus(x: Tensor) -> Tensor:
    """`log(1 + exp x)` of finite `x`; torch's own depends, in its last bit, on the threads.

    Example:
        >>> softplus(torch.tensor([0.0]))
        tensor([0.6931])
    """
    size = x.abs()
    return (x + size) / 2 + torch.log1p(torch.exp(-size))


def elu(x: Tensor) -> Tensor:
    """`x`, below zero `exp x - 1`; torch's own depends, in its last bit, on the threads.

    Example:
        >>> elu(torch.tensor([2.0, -1.0]))
        tensor([ 2.0000, -0.6321])
    """
    return x.relu() + torch.expm1(x.clamp(max=0))


def direction_of(module: nn.Module) -> Direction:
    """The direction of the first layer in a module that has one; `"in"` without any.

    Example:
        >>> from adgn.nn import ADGN
        >>> direction_of(ADGN(3, 8, 2, num_layers=4, direction="both"))
        'both'
    """
    found = (part.direction for part in module.modules() if isinstance(part, GraphConvolution))
    return next(found, "in")


class GraphConvolution:
    """A layer that applies one operator of the graph, or passes messages with edge features.

    Attributes:
        normalization: The operator that it applies, see `adgn.graph.graph_operator`.
        edge_dim: How many features each edge must have; `None` for a layer without edge features.
        direction: Where a node listens, see `adgn.graph.graph_operator`; `"both"` for a layer with
            weights for each direction.
    """

    normalization: Normalization
    edge_dim: int | None = None
    direction: Direction = "in"

    def operator(
        self, x: Tensor, edge_index: Adjacency, edge_weight: Tensor | None = None
    ) -> Operator:
        """The graph as this layer sees it, for states like `x`.

        An `EdgeOperator` while tracing, and where PyG's `Explainer` has put a mask on the edges.
        """
        check_operator_direction(self.direction)
        return self._operator(self.direction, x, edge_index, edge_weight)  # type: ignore[arg-type]

    def prepared(
        self, x: Tensor, edge_index: Adjacency, edge_weight: Tensor | None = None
    ) -> GraphOperator:
        """The graph as this layer sees it, in one direction or both: what it takes in its place."""
        if self.direction != "both":
            return self.operator(x, edge_index, edge_weight)
        if isinstance(edge_index, TwoWayOperator):
            return edge_index
        graph = (x, self.one_graph(edge_index), edge_weight)
        return TwoWayOperator(self._operator("in", *graph), self._operator("out", *graph))

    def one_graph(self, edge_index: Adjacency) -> Adjacency:
        """`edge_index`, unless it is an operator of one direction for a layer that needs two."""
        if isinstance(edge_index, SparseOperator | EdgeOperator):
            raise ValueError(
                f"edge_index is a {type(edge_index).__name__}, which has one direction, but the "
                "layer has direction='both'; pass the edges, or a TwoWayOperator"
            )
        return edge_index

    def _operator(
        self,
        direction: OperatorDirection,
        x: Tensor,
        edge_index: Adjacency,
        edge_weight: Tensor | None,
        normalization: Normalization | None = None,
    ) -> Operator:
        """The operator in one direction, of another normalisation where one is given."""
        if isinstance(edge_index, TwoWayOperator):
            raise ValueError(
                "edge_index is a TwoWayOperator, for layers with direction='both', but the layer "
                f"has direction={direction!r}; pass the edges, or one of the two operators"
            )
        mask, kind = self.edge_mask(), normalization or self.normalization
        if mask is not None or is_traced(x) or isinstance(edge_index, EdgeOperator):
            return edge_operator(
                *(edge_index, edge_weight),
                normalization=kind,
                direction=direction,
                like=x,
                mask=mask,
            )
        return graph_operator(
            *(edge_index, edge_weight),
            num_nodes=x.size(-2),
            normalization=kind,
            direction=direction,
            like=x,
        )

    def edge_mask(self) -> Tensor | None:
        """What PyG's `Explainer` multiplies the messages of the edges with, `[E]`, if it does."""
        if not getattr(self, "explain", None):
            return None
        mask: Tensor = self._edge_mask  # type: ignore[attr-defined]
        return mask.sigmoid() if self._apply_sigmoid else mask  # type: ignore[attr-defined]

    def edges(
        self, x: Tensor, edge_index: Adjacency, edge_weight: Tensor | None, edge_attr: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Edge list and edge features, checked, for a layer with `edge_dim` features per edge."""
        layer = type(self).__name__
        if edge_weight is not None:
            raise ValueError(
                f"edge_weight was given to {layer} with edge_dim={self.edge_dim}, which reads edge "
                "features only; append the weight to edge_attr as one more feature"
            )
        if edge_attr is None or self.edge_dim is None:
            raise ValueError(
                f"edge_attr=None, but {layer} has edge_dim={self.edge_dim}; pass edge_attr of "
                f"shape [num_edges, {self.edge_dim}]"
            )
        edges = edge_list(edge_index, x.size(-2), x)
        check_edge_attr(edge_attr, edges.size(1), self.edge_dim, x)
        direction = self.direction
        check_operator_direction(direction)
        if direction == "undirected" and (is_traced(x) or self.edge_mask() is not None):
            raise ValueError(
                f"direction='undirected' of {layer} with edge features, which merges edges, cannot "
                "be traced or explained; use direction='in' and edges from adgn.graph.turned"
            )
        return turned_edges(edges, edge_attr, x.size(-2), direction)  # type: ignore[arg-type]
