"""The random graphs of the property-prediction task, drawn call by call as the paper's were.

The graphs are those of Corso et al. (PNA, NeurIPS 2020, https://arxiv.org/abs/2004.05718) at the
sizes of the A-DGN paper. Every graph is determined by its own seed; which seeds are used depends on
how many earlier graphs had to be drawn again, so generation is one sequential chain.

The paper's generator draws from the global generators of `random` and `numpy.random`. Private
generators with the same seed give the same streams, so the caller's global state is never touched.
"""

import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from adgn.data.property_settings import PAPER_NOISE

Graph: TypeAlias = Any  # networkx does not say what its generators return

# A graph that still has an isolated node (or a tree that networkx cannot find) after this many
# draws is a request that will not end; the default data set needs a few draws at most.
MAX_DRAWS = 10_000


@dataclass(frozen=True)
class RandomGraph:
    """One undirected graph: adjacency [N, N] of 0/1, node values [N], source node, its type."""

    adjacency: NDArray[np.uint8]
    values: NDArray[np.float64]
    source: int
    kind: str


class _Streams:
    """The two generators of one graph, with the seed networkx is handed."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.python = random.Random(seed)
        self.restart_numpy()

    def restart_numpy(self) -> None:
        self.numpy = np.random.RandomState(self.seed)


def _erdos_renyi(n: int, streams: _Streams) -> Graph:
    degree = streams.python.random() * n
    return nx.fast_gnp_random_graph(n, degree / n, seed=streams.seed)


def _barabasi_albert(n: int, streams: _Streams) -> Graph:
    degree = int(streams.python.random() * (n - 1)) + 1
    return nx.barabasi_albert_graph(n, degree, seed=streams.seed)


def _sides(n: int) -> tuple[int, int]:
    """The sides of the rectangle of `n` nodes that is nearest to a square, the shorter first."""
    shorter = max(m for m in range(1, math.isqrt(n) + 1) if n % m == 0)
    return shorter, n // shorter


def _ladder(n: int, streams: _Streams) -> Graph:
    graph = nx.ladder_graph(n // 2)
    if n % 2 == 1:
        graph.add_edge(0, n - 1)
    return graph


def _caterpillar(n: int, streams: _Streams, *, lobster: bool = False) -> Graph:
    """A line with legs; a lobster's legs have legs of their own."""
    streams.restart_numpy()
    length = streams.numpy.randint(1, n)
    legs_end = streams.numpy.randint(length + 1, n + 1) if lobster else n
    graph = nx.empty_graph(n)
    nx.add_path(graph, range(length))
    for node in range(length, legs_end):
        graph.add_edge(node, streams.numpy.randint(length))
    for node in range(legs_end, n):
        graph.add_edge(node, streams.numpy.randint(length, legs_end))
    return graph


_Builder = Callable[[int, _Streams], Graph]

# In the order in which the type is drawn, with its probability.
_TYPES: dict[str, tuple[float, _Builder]] = {
    "erdos_renyi": (0.2, _erdos_renyi),
    "barabasi_albert": (0.2, _barabasi_albert),
    "grid": (0.05, lambda n, streams: nx.grid_2d_graph(*_sides(n))),
    "caveman": (0.05, lambda n, streams: nx.caveman_graph(*_sides(n))),
    "tree": (0.15, lambda n, streams: nx.random_powerlaw_tree(n, seed=streams.seed, tries=10_000)),
    "ladder": (0.05, _ladder),
    "line": (0.05, lambda n, streams: nx.path_graph(n)),
    "star": (0.05, lambda n, streams: nx.star_graph(n - 1)),
    "caterpillar": (0.1, _caterpillar),
    "lobster": (0.1, partial(_caterpillar, lobster=True)),
}
GRAPH_TYPES: tuple[str, ...] = tuple(_TYPES)
_PROBABILITIES = [probability for probability, _ in _TYPES.values()]


def _with_noise(
    adjacency: NDArray[np.float64], noise: float, stream: np.random.RandomState
) -> NDArray[np.uint8]:
    """Remove and add edges at random so that their expected number stays the same."""
    n = len(adjacency)
    edges = adjacency.sum() / 2
    missing = n * (n - 1) / 2 - edges
    if edges <= missing:
        stay, appear = 1 - noise, noise * edges / missing
    else:
        stay, appear = 1 - noise + noise * (edges - missing) / edges, noise
    draws = stream.uniform(size=(n, n), low=0, high=0.5)
    draws = draws + draws.T
    noisy = draws < np.where(adjacency > 0, stay, appear)
    np.fill_diagonal(noisy, False)
    return noisy.astype(np.uint8)


def draw_graph(
    num_nodes: int, seed: int, kind: str | None = None, noise: float = PAPER_NOISE
) -> tuple[NDArray[np.uint8], NDArray[np.float64], str, np.random.RandomState]:
    """Draw one graph: adjacency, node values, type, and the NumPy stream as it was left.

    `kind` is one of `GRAPH_TYPES`, or `None` to draw it; `noise` the chance that an edge of a
    sparse graph is removed. Raises `NetworkXError` where a seed gives no power-law tree.
    """
    streams = _Streams(seed)
    if kind is None:
        kind = GRAPH_TYPES[int(streams.numpy.choice(len(GRAPH_TYPES), 1, p=_PROBABILITIES)[0])]
    graph = _TYPES[kind][1](num_nodes, streams)
    order = list(graph)
    streams.python.shuffle(order)
    adjacency = nx.to_numpy_array(graph, nodelist=order)
    values = streams.numpy.uniform(0, 1, num_nodes)
    return _with_noise(adjacency, noise, streams.numpy), values, kind, streams.numpy


def graph_chain(
    seed: int, sizes: Iterator[int], noise: float = PAPER_NOISE
) -> Iterator[RandomGraph]:
    """Draw graphs of the given sizes one after another, none with an isolated node.

    A counter starts at `seed`. For each graph it goes up by one and seeds the graph; while a node
    of the graph has no edge it goes up again and the graph is drawn anew with the type it had. The
    source node is drawn last, from the stream that the graph left behind. The same happens where
    networkx finds no power-law tree for a seed (never for the sizes of the paper).
    """
    counter = seed
    for num_nodes in sizes:
        kind: str | None = None
        for _ in range(MAX_DRAWS):
            counter += 1
            try:
                adjacency, values, kind, stream = draw_graph(num_nodes, counter, kind, noise)
            except nx.NetworkXError:
                kind = "tree"
                continue
            if adjacency.any(axis=1).all():
                yield RandomGraph(adjacency, values, int(stream.randint(0, num_nodes)), kind)
                break
        else:
            raise RuntimeError(
                f"no {kind} graph of {num_nodes} nodes without isolated nodes in {MAX_DRAWS} draws "
                f"(seed {seed}); choose smaller graphs, a smaller edge_noise or another seed"
            )
