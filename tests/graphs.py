"""Graphs for tests: drawn by hypothesis, and the corner cases by hand."""

from dataclasses import dataclass

import torch
from hypothesis import strategies as st
from torch import Tensor


@dataclass(frozen=True)
class Example:
    """One graph with optional weights."""

    num_nodes: int
    edge_index: Tensor
    edge_weight: Tensor | None = None

    def features(self, channels: int, dtype: torch.dtype = torch.float64, seed: int = 0) -> Tensor:
        generator = torch.Generator().manual_seed(seed)
        return torch.randn(self.num_nodes, channels, dtype=dtype, generator=generator)

    def weight(self, dtype: torch.dtype) -> Tensor | None:
        return None if self.edge_weight is None else self.edge_weight.to(dtype)

    def neighbours(self, node: int) -> list[tuple[int, float]]:
        """Source and weight of each edge into `node`, read off the edge list one by one."""
        weights = [1.0] * self.edge_index.size(1)
        if self.edge_weight is not None:
            weights = self.edge_weight.tolist()
        return [
            (source, weight)
            for (source, target), weight in zip(self.edge_index.t().tolist(), weights, strict=True)
            if target == node
        ]


def edges(*pairs: tuple[int, int]) -> Tensor:
    return torch.tensor(pairs, dtype=torch.long).reshape(-1, 2).t().contiguous()


def both_ways(*pairs: tuple[int, int]) -> Tensor:
    return edges(*pairs, *((target, source) for source, target in pairs))


CORNER_CASES = {
    "directed": Example(4, edges((0, 1), (1, 2), (3, 2), (2, 0))),
    "undirected": Example(4, both_ways((0, 1), (1, 2), (2, 3))),
    "self-loops": Example(3, edges((0, 0), (0, 1), (2, 2), (1, 2))),
    "repeated-edges": Example(3, edges((0, 1), (0, 1), (1, 2), (0, 1), (2, 1), (2, 2), (2, 2))),
    "isolated-nodes": Example(5, both_ways((1, 3))),
    "no-edges": Example(3, torch.empty(2, 0, dtype=torch.long)),
    "one-node": Example(1, torch.empty(2, 0, dtype=torch.long)),
    "one-node-loop": Example(1, edges((0, 0))),
    "weighted": Example(
        4,
        edges((0, 1), (1, 2), (3, 2), (2, 0), (1, 1), (0, 1)),
        torch.tensor([0.5, 2.0, 0.25, 1.5, 0.75, 3.0], dtype=torch.float64),
    ),
    "weighted-undirected": Example(
        3,
        both_ways((0, 1), (1, 2)),
        torch.tensor([0.5, 2.0, 0.5, 2.0], dtype=torch.float64),
    ),
}


@st.composite
def graphs(draw: st.DrawFn, max_nodes: int = 7, weighted: bool | None = None) -> Example:
    """A directed multigraph with self loops, and maybe positive weights."""
    num_nodes = draw(st.integers(1, max_nodes))
    node = st.integers(0, num_nodes - 1)
    pairs = draw(st.lists(st.tuples(node, node), max_size=3 * num_nodes))
    weight = None
    if draw(st.booleans()) if weighted is None else weighted:
        number = st.floats(0.125, 4.0, width=32)
        drawn = draw(st.lists(number, min_size=len(pairs), max_size=len(pairs)))
        weight = torch.tensor(drawn, dtype=torch.float64)
    return Example(num_nodes, edges(*pairs), weight)
