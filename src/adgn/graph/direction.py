"""The direction in which a node listens: along its edges, against them, or both."""

from typing import Literal, get_args

import torch
from torch import Tensor
from torch_geometric.utils import to_undirected

from adgn._util.suggestions import unknown_name

Direction = Literal["in", "out", "both", "undirected"]
DIRECTIONS: tuple[Direction, ...] = get_args(Direction)
# Those that one operator has; "both" has two, each with weights of its own.
OperatorDirection = Literal["in", "out", "undirected"]
OPERATOR_DIRECTIONS: tuple[OperatorDirection, ...] = get_args(OperatorDirection)


def check_direction(direction: object) -> None:
    """Raises unless `direction` is one of `DIRECTIONS`."""
    if direction not in DIRECTIONS:
        raise unknown_name("direction", direction, DIRECTIONS)


def check_operator_direction(direction: object) -> None:
    """Raises unless `direction` is one that a single operator has."""
    check_direction(direction)
    if direction == "both":
        raise ValueError(
            "direction='both' is two operators, 'in' and 'out', each with weights of its own; "
            "build both and make a TwoWayOperator of them, or use 'undirected' for the union"
        )


def turned(
    edge_index: Tensor, edge_weight: Tensor | None, num_nodes: int, direction: OperatorDirection
) -> tuple[Tensor, Tensor | None]:
    """The edges along which messages go, where a node listens in a direction.

    Args:
        edge_index: `[2, E]`, sources and targets.
        edge_weight: `[E]`, or `None`; also features `[E, F]`.
        num_nodes: The number of nodes.
        direction: `"in"`: a node hears the sources of its incoming edges, as the edges are;
            `"out"`: the targets of its outgoing edges, so that edges are reversed; `"undirected"`:
            all of them, each once. Edges that become one have the mean of their weights.

    Example:
        >>> edges = torch.tensor([[0, 1], [1, 2]])
        >>> turned(edges, None, 3, "out")[0].tolist()
        [[1, 2], [0, 1]]
        >>> turned(edges, None, 3, "undirected")[0].tolist()
        [[0, 1, 1, 2], [1, 0, 2, 1]]
    """
    check_operator_direction(direction)
    if direction == "in":
        return edge_index, edge_weight
    if direction == "out":
        return edge_index.flip(0).contiguous(), edge_weight
    if edge_weight is None:
        return to_undirected(edge_index, num_nodes=num_nodes), None
    union, weight = to_undirected(edge_index, edge_weight, num_nodes=num_nodes, reduce="mean")
    return union, weight


def union_entries(source: Tensor, target: Tensor, num_nodes: int) -> tuple[Tensor, Tensor, Tensor]:
    """Edges and their reverses, `[2 E]` each, and how many of them have the same ends.

    Divided by this number, the weights of entries with the same ends add up to their mean. Its
    size does not depend on what the edges are, as tracing needs.

    Example:
        >>> union_entries(torch.tensor([0, 1, 1]), torch.tensor([1, 0, 2]), 3)[2].tolist()
        [2, 2, 1, 2, 2, 1]
    """
    sources, targets = torch.cat([source, target]), torch.cat([target, source])
    key = targets * num_nodes + sources
    ordered = key.sort().values
    last = torch.searchsorted(ordered, key, right=True)
    return sources, targets, last - torch.searchsorted(ordered, key)
