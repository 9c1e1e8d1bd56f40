"""What a fitted model reads of a graph: features, and edges in the direction that it listens."""

from dataclasses import dataclass, field
from functools import cached_property

import torch
from torch import Tensor

from adgn.data import Graph, Preprocessing
from adgn.graph import OperatorDirection, turned
from adgn.graph.direction import check_operator_direction
from adgn.nn.network import Level


def direction_read(direction: str) -> OperatorDirection:
    """The direction that a model folder names; those of before say `both` for `undirected`.

    Example:
        >>> direction_read("both"), direction_read("out")
        ('undirected', 'out')
    """
    known: OperatorDirection = "undirected" if direction == "both" else direction  # type: ignore[assignment]
    check_operator_direction(known)
    return known


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
    _turned: dict[OperatorDirection, tuple[Tensor, Tensor | None]] = field(default_factory=dict)

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

    def edges(self, direction: OperatorDirection) -> tuple[Tensor, Tensor | None]:
        """Edges and weights for a direction; made once, so that their operators are shared."""
        if not self.directed and direction != "in":
            direction = "in"  # both directions of each edge are there
        if direction not in self._turned:
            self._turned[direction] = turned(
                self.edge_index, self.edge_weight, self.num_nodes, direction
            )
        return self._turned[direction]
