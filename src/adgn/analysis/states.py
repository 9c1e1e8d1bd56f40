"""The states of a model, layer by layer: what all measurements start from."""

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from adgn.graph import Adjacency, GraphBlocks, SelectedGraphs, SparseOperator
from adgn.graph.adjacency import SPARSE_LAYOUTS
from adgn.graph.checks import NonFiniteError, check_features, check_finite
from adgn.nn import GraphNetwork
from adgn.training.errors import DivergedError


@runtime_checkable
class HasTrajectory(Protocol):
    """A propagation that gives its states after each layer.

    `trajectory` takes what `forward` takes and returns a list of `num_layers + 1` tensors `[N, d]`:
    first what enters the first layer (`x` itself, but for A-DGN with `first_hops`), last what
    `forward` returns, and each state computed from the one before it
    by operations that autograd records (the measurements differentiate from one state to another).
    """

    def trajectory(
        self, x: Tensor, edge_index: Adjacency, edge_weight: Tensor | None = None
    ) -> list[Tensor]:
        """What enters the first layer, and the states after each layer."""
        ...


def layer_states(
    model: nn.Module, x: Tensor, edge_index: Adjacency, edge_weight: Tensor | None = None
) -> list[Tensor]:
    r"""$\mathbf{X}(0), \dots, \mathbf{X}(L)$: the encoded states and those after each layer.

    Args:
        model: A `GraphNetwork`, or a propagation or layer on its own (then `x` is $\mathbf{X}(0)$).
            Its states come from `trajectory` ([`HasTrajectory`][adgn.analysis.HasTrajectory]),
            or from the inputs of the modules in `layers`, a `torch.nn.ModuleList`.
        x: Features, `[N, in_channels]`.
        edge_index: The graph.
        edge_weight: `[E]`, optional.

    Example:
        >>> from adgn.nn import ADGN
        >>> path = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
        >>> states = layer_states(ADGN(4, 8, 1, num_layers=5), torch.ones(3, 4), path)
        >>> len(states), states[-1].shape
        (6, torch.Size([3, 8]))
    """
    with measuring(model), torch.no_grad():
        return states_from(propagation_of(model), first_states(model, x), edge_index, edge_weight)


def propagation_of(model: nn.Module) -> nn.Module:
    """The part of `model` between encoder and readout; a bare layer is its own propagation."""
    return model.propagation if isinstance(model, GraphNetwork) else model


def first_states(model: nn.Module, x: Tensor) -> Tensor:
    """The states that enter the propagation, `[N, d]`, without gradient history."""
    if x.dim() != 2:
        raise ValueError(f"x has shape {list(x.shape)}; expected [num_nodes, channels]")
    if isinstance(model, GraphNetwork):
        return model.encode(x).detach()
    check_features(x, like=next(model.parameters(), None))
    return x.detach()


def states_from(
    propagation: nn.Module, x: Tensor, edge_index: Adjacency, edge_weight: Tensor | None = None
) -> list[Tensor]:
    """What enters the first layer, and the states after each, connected by autograd."""
    try:
        states = _raw_states(propagation, x, edge_index, edge_weight)
    except NonFiniteError as error:
        # Layers refuse states that are not finite; here the first ones are, so a layer made them.
        if error.argument == "x":
            raise DivergedError(
                "the states overflow on the way through the layers: the network explodes; use "
                "fewer layers, a smaller step size or smaller weights"
            ) from error
        raise
    for layer, state in enumerate(states):
        if not bool(torch.isfinite(state.detach()).all()):
            raise DivergedError(
                f"the states overflow at layer {layer} of {len(states) - 1}: the network explodes; "
                "use fewer layers, a smaller step size or smaller weights"
            )
    return states


def _raw_states(
    propagation: nn.Module, x: Tensor, edge_index: Adjacency, edge_weight: Tensor | None
) -> list[Tensor]:
    if isinstance(propagation, HasTrajectory):
        if edge_weight is None:
            return propagation.trajectory(x, edge_index)
        return propagation.trajectory(x, edge_index, edge_weight)
    layers = getattr(propagation, "layers", None)
    if isinstance(layers, nn.ModuleList) and len(layers):
        return _hooked_states(propagation, layers, x, edge_index, edge_weight)
    raise TypeError(
        f"{type(propagation).__name__} does not show its states: give it a method "
        "trajectory(x, edge_index, edge_weight) that returns x and the state after each layer, or "
        "keep its layers in a torch.nn.ModuleList named layers"
    )


def _hooked_states(
    propagation: nn.Module,
    layers: nn.ModuleList,
    x: Tensor,
    edge_index: Adjacency,
    edge_weight: Tensor | None,
) -> list[Tensor]:
    # What enters a layer, and not what leaves one, is the state: activations are often applied
    # between the layers, outside of them.
    entered: list[Tensor] = []

    def remember(_: nn.Module, args: tuple[Any, ...]) -> None:
        if not args or not isinstance(args[0], Tensor) or args[0].shape[:-1] != x.shape[:-1]:
            raise TypeError(
                f"a layer of {type(propagation).__name__} was not called with one state per node "
                "as its first argument; give the propagation a method trajectory"
            )
        entered.append(args[0])

    handles = [layer.register_forward_pre_hook(remember) for layer in layers]
    try:
        output: Tensor = propagation(x, edge_index, edge_weight)
    finally:
        for handle in handles:
            handle.remove()
    if not entered:
        raise TypeError(
            f"{type(propagation).__name__} called none of its layers; give it a method trajectory"
        )
    return [x, *entered[1:], output]


@contextmanager
def measuring(model: nn.Module) -> Iterator[None]:
    """Evaluation mode and frozen, finite weights; everything is as before afterwards.

    Frozen weights spare each backward pass the gradients of the weights.
    """
    for name, weight in model.named_parameters():
        check_finite(name, weight)
    training = [(module, module.training) for module in model.modules()]
    trainable = [(weight, weight.requires_grad) for weight in model.parameters()]
    model.eval()
    for weight, _ in trainable:
        weight.requires_grad_(False)
    try:
        yield
    finally:
        for module, mode in training:
            module.training = mode
        for weight, needs in trainable:
            weight.requires_grad_(needs)


def in_double(
    model: nn.Module, x: Tensor, edge_index: Adjacency, edge_weight: Tensor | None
) -> tuple[nn.Module, Tensor, Adjacency, Tensor | None]:
    """In double precision: a copy of the propagation, its first states, graph and edge weights."""
    propagation = copy.deepcopy(propagation_of(model)).double()
    states = first_states(model, x).double()
    if isinstance(edge_index, SparseOperator):
        operator = SparseOperator(edge_index.pattern, edge_index.value.detach().double())
        return propagation, states, operator, None
    edge_index = doubled(edge_index)
    weight = None if edge_weight is None else edge_weight.detach().double()
    return propagation, states, edge_index, weight


def doubled(graph: Adjacency) -> Adjacency:
    """The graph with the weights that it has itself in double precision."""
    if isinstance(graph, Tensor) and graph.layout in SPARSE_LAYOUTS:
        return graph.double()
    if isinstance(graph, SelectedGraphs) and graph.blocks.edge_weight is not None:
        whole = graph.blocks
        weight = whole.edge_weight.double()  # type: ignore[union-attr]
        return GraphBlocks(
            whole.edge_index, whole.node_ptr, weight, normalized=whole.normalized
        ).select(graph.graphs)
    return graph


def check_node(node: int, num_nodes: int) -> None:
    """Raises unless `node` is one of the nodes."""
    if isinstance(node, bool) or not isinstance(node, int) or not 0 <= node < num_nodes:
        raise ValueError(f"node={node!r} is not valid; nodes are 0 to {num_nodes - 1}")


def check_layer(layer: int, num_layers: int) -> None:
    """Raises unless `layer` is one of the layers, counted from 1."""
    if isinstance(layer, bool) or not isinstance(layer, int) or not 1 <= layer <= num_layers:
        raise ValueError(f"layer={layer!r} is not valid; layers are 1 to {num_layers}")
