"""Graph transfer: a number put on one node must be reported at another, a given distance away."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data

from adgn._util.environment import check_memory
from adgn._util.suggestions import unknown_name
from adgn.data.packed import PackedDataset, PackedGraphs
from adgn.data.root import check_integer

_SPLITS = ("train", "val", "test")


def _ring(distance: int) -> list[tuple[int, int]]:
    nodes = 2 * distance
    return [(node, (node + 1) % nodes) for node in range(nodes)]


def _crossed_ring(distance: int) -> list[tuple[int, int]]:
    """A ring whose two sides are joined crosswise, step by step, without any shortcut."""
    nodes = 2 * distance
    crosses = []
    for step in range(1, distance - 1):
        # Step i from the source is node i on one side and node -i (mod nodes) on the other.
        crosses += [(step, nodes - step - 1), (step + 1, nodes - step)]
    return _ring(distance) + crosses


# Edges for a distance, and the smallest distance at which the topology is what its name says.
# The source is node 0, the target is node `distance`.
_BUILDERS: dict[str, tuple[Callable[[int], list[tuple[int, int]]], int]] = {
    "line": (lambda distance: [(node, node + 1) for node in range(distance)], 1),
    "ring": (_ring, 2),
    "crossed_ring": (_crossed_ring, 3),
}
TOPOLOGIES: tuple[str, ...] = tuple(_BUILDERS)
DEFAULT_SIZES: Mapping[str, int] = MappingProxyType({"train": 1000, "val": 100, "test": 100})


def transfer_size(topology: str, distance: int, num_graphs: int) -> tuple[int, int, int]:
    """Nodes and edges of a graph, and about how many bytes making `num_graphs` of them takes."""
    nodes = distance + 1 if topology == "line" else 2 * distance
    crosses = 2 * (distance - 2) if topology == "crossed_ring" else 0
    edges = 2 * (nodes - (topology == "line") + crosses)
    # As pairs in lists an edge takes 200 bytes for a while; a node has one number.
    return nodes, edges, 200 * edges + 4 * nodes * num_graphs


class GraphTransfer(PackedDataset):
    """A number at the source must be reported at the target, `distance` edges away.

    All graphs have one topology; only the number differs, drawn uniformly from [-1, 1). Predicting
    0, its mean, gives a mean squared error of 1/3: more than that means nothing arrived.

    - `line`: `distance + 1` nodes, source and target at its ends.
    - `ring`: `2 * distance` nodes, source and target opposite each other.
    - `crossed_ring`: the ring with its two sides joined crosswise at every step: many more paths,
      the same distance (Di Giovanni et al. 2023, https://arxiv.org/abs/2302.02941).

    Args:
        topology: `"line"`, `"ring"` or `"crossed_ring"`.
        distance: from source to target; at least 1, 2 and 3.
        split: `"train"` (1000 graphs), `"val"` (100) or `"test"` (100).
        num_graphs: how many graphs to make instead.
        seed: of the numbers; splits differ for one seed.
        transform: applied to each graph on access.

    Shapes:
        `x` [N, 1]: the number at the source and 0 elsewhere.
        `edge_index`: both directions of every edge. `y` [1, 1]. `mask` [N]: true at the
        target, where the answer is read.

    Example:
        >>> graph = GraphTransfer("line", 3)[0]
        >>> graph.edge_index
        tensor([[0, 1, 1, 2, 2, 3],
                [1, 0, 2, 1, 3, 2]])
        >>> graph.x[0, 0] == graph.y[0, 0], graph.mask
        (tensor(True), tensor([False, False, False,  True]))
    """

    def __init__(
        self,
        topology: str,
        distance: int,
        split: str = "train",
        *,
        num_graphs: int | None = None,
        seed: int = 0,
        transform: Callable[[Data], Any] | None = None,
    ) -> None:
        if topology not in _BUILDERS:
            raise unknown_name("topology", topology, TOPOLOGIES)
        if split not in _SPLITS:
            raise unknown_name("split", split, _SPLITS)
        build, smallest = _BUILDERS[topology]
        check_integer("distance", distance, smallest, why=f"the topology is {topology}")
        count = DEFAULT_SIZES[split] if num_graphs is None else num_graphs
        check_integer("num_graphs", count, 1)
        check_integer("seed", seed, 0)
        check_memory(
            transfer_size(topology, distance, count)[2],
            f"GraphTransfer with distance={distance} and num_graphs={count}",
        )
        self.topology, self.distance, self.split = topology, distance, split
        stream = np.random.default_rng([seed, _SPLITS.index(split)])
        numbers = torch.from_numpy(stream.uniform(-1, 1, count).astype(np.float32))
        super().__init__(_pack(build(distance), distance, numbers), transform)


def _pack(edges: list[tuple[int, int]], target: int, numbers: torch.Tensor) -> PackedGraphs:
    nodes = max(max(edge) for edge in edges) + 1
    both_ways = sorted(edges + [(end, start) for start, end in edges])
    count = numbers.numel()
    x = torch.zeros(count, nodes, 1)
    x[:, 0, 0] = numbers
    return PackedGraphs(
        x=x.view(-1, 1),
        edge_index=torch.tensor(both_ways).t().contiguous(),
        node_ptr=torch.arange(count + 1) * nodes,
        edge_start=torch.zeros(count, dtype=torch.long),
        edge_count=torch.full((count,), len(both_ways)),
        y=numbers.view(-1, 1).clone(),
        y_level="graph",
        readout=torch.full((count,), target),
    )
