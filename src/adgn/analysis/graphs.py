"""Small graphs to look at a model on, where no data set is at hand."""

from collections.abc import Callable

import networkx as nx
import torch
from torch import Tensor

from adgn._util.suggestions import unknown_name
from adgn.graph.checks import check_count


def _grid(num_nodes: int, seed: int) -> "nx.Graph[int]":
    side = max(m for m in range(1, int(num_nodes**0.5) + 1) if num_nodes % m == 0)
    grid = nx.grid_2d_graph(side, num_nodes // side)
    numbered: nx.Graph[int] = nx.convert_node_labels_to_integers(grid)
    return numbered


def _random(num_nodes: int, seed: int) -> "nx.Graph[int]":
    """Four neighbours on average; a path through all nodes keeps it in one piece."""
    graph: nx.Graph[int] = nx.fast_gnp_random_graph(
        num_nodes, min(1.0, 2 / max(1, num_nodes - 1)), seed=seed
    )
    nx.add_path(graph, range(num_nodes))
    return graph


EXAMPLE_GRAPHS: dict[str, Callable[[int, int], "nx.Graph[int]"]] = {
    "grid": _grid,
    "line": lambda num_nodes, seed: nx.path_graph(num_nodes),
    "random": _random,
    "ring": lambda num_nodes, seed: nx.cycle_graph(num_nodes),
}


def example_graph(name: str, num_nodes: int, seed: int = 0) -> Tensor:
    """The edges `[2, E]`, in both directions, of a line, a ring, a grid or a random graph.

    A grid has the sides nearest to a square that give `num_nodes` exactly.

    Example:
        >>> example_graph("line", 3)
        tensor([[0, 1, 1, 2],
                [1, 0, 2, 1]])
    """
    if name not in EXAMPLE_GRAPHS:
        raise unknown_name("graph", name, EXAMPLE_GRAPHS)
    check_count("num_nodes", num_nodes)
    edges = [pair for pair in EXAMPLE_GRAPHS[name](num_nodes, seed).edges if pair[0] != pair[1]]
    forward = torch.tensor(edges, dtype=torch.long).view(-1, 2).t()
    both = torch.cat([forward, forward.flip(0)], dim=1)
    return both[:, both[0].mul(num_nodes).add(both[1]).argsort()]
