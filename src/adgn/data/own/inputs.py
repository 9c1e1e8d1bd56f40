"""What a fitted model reads of a graph: features, and edges in the direction that it listens."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, get_args

import torch
from torch import Tensor
from torch_geometric.utils import to_undirected

from adgn._util.suggestions import unknown_name
from adgn.data import Graph, Preprocessing
from adgn.nn.network import Level

Direction = Literal["in", "out", "both", "undirected"]
DIRECTIONS: tuple[Direction, ...] = get_args(Direction)
# Those that are one list of edges; `both` is two.
SINGLE_DIRECTIONS: tuple[Direction, ...] = ("in", "out", "undirected")


def turned(
    edge_index: Tensor, edge_weight: Tensor | None, num_nodes: int, direction: Direction
) -> tuple[Tensor, Tensor | None]:
    """The edges along which messages go, where a node listens in a direction.

    Args:
        edge_index: `[2, E]`, sources and targets.
        edge_weight: `[E]`, or `None`.
        num_nodes: The number of nodes.
        direction: `"in"`: a node hears the sources of its incoming edges, as the edges are;
            `"out"`: the targets of its outgoing edges, so that edges are reversed;
            `"undirected"`: all of them. Edges that become one have the mean of their weights.

    Example:
        >>> edges = torch.tensor([[0, 1], [1, 2]])
        >>> turned(edges, None, 3, "out")[0].tolist()
        [[1, 2], [0, 1]]
        >>> turned(edges, None, 3, "undirected")[0].tolist()
        [[0, 1, 1, 2], [1, 0, 2, 1]]
    """
    if direction == "in":
        return edge_index, edge_weight
    if direction == "out":
        return edge_index.flip(0).contiguous(), edge_weight
    if direction != "undirected":
        raise unknown_name("direction", direction, SINGLE_DIRECTIONS)
    if edge_weight is None:
        return to_undirected(edge_index, num_nodes=num_nodes), None
    both, weight = to_undirected(edge_index, edge_weight, num_nodes=num_nodes, reduce="mean")
    return both, weight


@dataclass(eq=False)
class Inputs:
    """Features and edges of a graph, or of many.

    Attributes:
        x: `[N, F]`, dense or CSR.
        edge_index: `[2, E]`.
        edge_weight: `[E]`, or `None`.
        directed: Whether the direction of edges means something.
        node_ptr: `[G + 1]`; where whole graphs are predicted, where the nodes of each begin.
        notes: What was found when features were made.
    """

    x: Tensor
    edge_index: Tensor
    edge_weight: Tensor | None = None
    directed: bool = True
    node_ptr: Tensor | None = None
    notes: tuple[str, ...] = ()
    _turned: dict[Direction, tuple[Tensor, Tensor | None]] = field(default_factory=dict)

    @classmethod
    def of(cls, graph: Graph, preprocessing: Preprocessing) -> "Inputs":
        """The inputs of a graph, by what was decided about its columns."""
        features = preprocessing.transform(graph)
        node_ptr = None
        if graph.level == "graph":
            nodes = torch.zeros(graph.num_nodes, dtype=torch.long)
            owner = nodes if graph.graph_of_node is None else graph.graph_of_node
            count = torch.bincount(owner, minlength=graph.num_graphs)
            node_ptr = torch.cat([count.new_zeros(1), count.cumsum(0)])
        return cls(
            features.x,
            graph.edge_index,
            features.edge_weight,
            graph.directed,
            node_ptr,
            features.notes,
        )

    @property
    def num_nodes(self) -> int:
        """The number of nodes."""
        return self.x.size(0)

    @property
    def level(self) -> Level:
        """What is predicted."""
        return "node" if self.node_ptr is None else "graph"

    @property
    def num_rows(self) -> int:
        """How many nodes or graphs are predicted."""
        return self.num_nodes if self.node_ptr is None else self.node_ptr.numel() - 1

    @cached_property
    def graph_of_node(self) -> Tensor:
        """`[N]`; the number of each node's graph."""
        if self.node_ptr is None:
            return torch.zeros(self.num_nodes, dtype=torch.long)
        return torch.repeat_interleave(self.node_ptr.diff())

    def edges(self, direction: Direction) -> tuple[Tensor, Tensor | None]:
        """Edges and weights for a direction; made once, so that their operators are shared."""
        if not self.directed and direction != "in":
            direction = "in"  # both directions of each edge are there
        if direction not in self._turned:
            self._turned[direction] = turned(
                self.edge_index, self.edge_weight, self.num_nodes, direction
            )
        return self._turned[direction]
