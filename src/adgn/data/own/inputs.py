"""What a fitted model reads of a graph: features, and edges in the direction that it listens."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import torch
from torch import Tensor

from adgn.data import Graph, Preprocessing
from adgn.data.rewiring import apply_transforms
from adgn.graph import Adjacency, GraphBlocks, OperatorDirection, turned
from adgn.graph.direction import check_operator_direction
from adgn.nn.network import Level
from adgn.transforms import EdgeGraph, Transform


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
        notes: What was found when features were made, and what transforms did.
        normalized: Whether the weights are an operator already, which layers take as it is.
        fully_adjacent: Whether the last layer of networks is to be on the complete graph.
    """

    x: Tensor
    edge_index: Tensor
    edge_weight: Tensor | None = None
    directed: bool = True
    node_ptr: Tensor | None = None
    notes: tuple[str, ...] = ()
    normalized: bool = False
    fully_adjacent: bool = False
    _turned: dict[OperatorDirection, tuple[Tensor, Tensor | None]] = field(
        default_factory=dict, init=False
    )
    _blocks: dict[OperatorDirection, GraphBlocks] = field(default_factory=dict, init=False)

    @classmethod
    def of(
        cls, graph: Graph, preprocessing: Preprocessing, transforms: Sequence[Transform] = ()
    ) -> "Inputs":
        """The inputs of a graph, by what was decided about its columns, after transforms.

        Features that are made from the edges, such as degrees, are those of the graph as it came.
        """
        features = preprocessing.transform(graph)
        node_ptr = None
        if graph.level == "graph":
            nodes = torch.zeros(graph.num_nodes, dtype=torch.long)
            owner = nodes if graph.graph_of_node is None else graph.graph_of_node
            count = torch.bincount(owner, minlength=graph.num_graphs)
            node_ptr = torch.cat([count.new_zeros(1), count.cumsum(0)])
        plain = cls(
            features.x,
            graph.edge_index,
            features.edge_weight,
            graph.directed,
            node_ptr,
            features.notes,
        )
        if not transforms:
            return plain
        pointer = node_ptr
        if pointer is None and graph.graph_of_node is not None:
            count = torch.bincount(graph.graph_of_node, minlength=graph.num_graphs)
            pointer = torch.cat([count.new_zeros(1), count.cumsum(0)])
        edges = EdgeGraph(graph.edge_index, graph.num_nodes, features.edge_weight)
        found, notes = apply_transforms(edges, transforms, node_ptr=pointer)
        if found.kept is not None:
            raise ValueError("a transform left nodes out, but a model predicts all of them")
        return replace(
            plain,
            edge_index=found.edge_index,
            edge_weight=found.edge_weight,
            directed=graph.directed if not found.num_edges else not found.is_symmetric,
            notes=(*features.notes, *notes),
            normalized=found.normalized,
            fully_adjacent=found.fully_adjacent,
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

    def graph(self, direction: OperatorDirection) -> tuple[Adjacency, Tensor | None]:
        """The graph and its weights as layers take them, for a direction; made once.

        Weights that are an operator already belong to the graph, and no layer normalises them.
        """
        edges, weight = self.edges(direction)
        if not self.normalized:
            return edges, weight
        if direction not in self._blocks:
            pointer = torch.tensor([0, self.num_nodes])
            self._blocks[direction] = GraphBlocks(edges, pointer, weight, normalized=True)
        return self._blocks[direction].select(torch.tensor([0])), None

    def edges(self, direction: OperatorDirection) -> tuple[Tensor, Tensor | None]:
        """Edges and weights for a direction; made once, so that their operators are shared."""
        if not self.directed and direction != "in":
            direction = "in"  # both directions of each edge are there
        if direction not in self._turned:
            self._turned[direction] = turned(
                self.edge_index, self.edge_weight, self.num_nodes, direction
            )
        return self._turned[direction]
