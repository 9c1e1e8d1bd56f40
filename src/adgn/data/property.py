"""Graph property prediction: the paper's synthetic data set, and larger or smaller ones like it."""

import itertools
import math
import os
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, TypeAlias

import networkx as nx
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from adgn._util.environment import check_memory
from adgn._util.progress import ProgressCallback
from adgn.data.files import cache_path, load_or_build
from adgn.data.packed import PackedDataset, PackedGraphs, offsets
from adgn.data.property_targets import (
    PAPER_NOISE,
    SPLITS,
    TARGETS,
    ConstantScore,
    PropertySettings,
    find_target,
)
from adgn.data.root import cache_folder, data_root

PAPER_BATCH_SIZE = 512


def distances(adjacency: NDArray[np.uint8]) -> NDArray[np.int16]:
    """Hops between all pairs of nodes of G graphs [G, N, N]; -1 where there is no path."""
    steps = adjacency.astype(np.float32)
    reached = np.broadcast_to(np.eye(steps.shape[1], dtype=bool), steps.shape)
    hops = np.where(reached, 0, -1).astype(np.int16)
    for length in range(1, steps.shape[1]):
        new = (reached.astype(np.float32) @ steps > 0) & ~reached
        if not new.any():
            break
        hops[new] = length
        reached = reached | new
    return hops


def compute_targets(
    adjacency: NDArray[np.uint8], values: NDArray[np.float64], source: NDArray[np.int64]
) -> dict[str, NDArray[np.float64]]:
    """All targets of G undirected graphs with N nodes each.

    Args:
        adjacency: 0/1 matrices [G, N, N], symmetric, diagonal empty.
        values: node values [G, N].
        source: the source node of each graph [G].

    Returns:
        name -> [G, N] for node targets, [G] for graph targets.

    Example:
        >>> line = np.array([[[0, 1, 0], [1, 0, 1], [0, 1, 0]]], dtype=np.uint8)
        >>> targets = compute_targets(line, np.array([[1.0, 3.0, 5.0]]), np.array([0]))
        >>> targets["sssp"].tolist(), targets["laplacian"].tolist(), targets["diameter"].tolist()
        ([[0.0, 1.0, 2.0]], [[-2.0, 0.0, 2.0]], [2.0])
    """
    hops = distances(adjacency)
    finite = np.maximum(hops, 0).astype(np.float64)
    eccentricity = finite.max(axis=2)
    differences = values[:, :, None] - values[:, None, :]
    return {
        "sssp": finite[np.arange(len(source)), source],
        "eccentricity": eccentricity,
        # A sum instead of a matrix product: its rounding does not depend on the BLAS in use.
        "laplacian": (adjacency * differences).sum(axis=2),
        "diameter": eccentricity.max(axis=1),
        "connected": (hops >= 0).all(axis=(1, 2)).astype(np.float64),
        "spectral_radius": np.abs(np.linalg.eigvalsh(adjacency.astype(np.float64))).max(axis=1),
    }


def _mean_per_graph(values: Tensor, graphs: PackedGraphs) -> Tensor:
    """The mean of each graph's rows of `values`, which has a row per node or per graph: [G]."""
    rows = values.reshape(values.shape[0], -1).mean(dim=1)
    if graphs.y_level == "graph":
        return rows
    counts = graphs.node_ptr.diff()
    owner = torch.arange(len(graphs), device=rows.device).repeat_interleave(counts)
    return rows.new_zeros(len(graphs)).index_add_(0, owner, rows) / counts


def constant_predictor_score(train: PackedGraphs, test: PackedGraphs) -> ConstantScore:
    """The score of predicting, everywhere on `test`, the mean over `train`'s graphs.

    The constant is the mean over graphs of the mean over nodes, the one that minimises the loss of
    the task on the train split.

    Example:
        >>> from adgn.data import GraphTransfer
        >>> train, test = (GraphTransfer("line", 3, split).packed for split in ("train", "test"))
        >>> score = constant_predictor_score(train, test)
        >>> round(10**score.per_graph, 1)  # the numbers are uniform in [-1, 1): 1/3 is expected
        0.3
    """
    constant = _mean_per_graph(train.y.double(), train).mean()
    errors = _mean_per_graph((test.y.double() - constant).square(), test)
    batches = torch.stack([batch.mean() for batch in torch.split(errors, PAPER_BATCH_SIZE)])
    return ConstantScore(_log10(errors.mean()), _log10(batches.mean()))


def _log10(value: Tensor) -> float:
    return math.log10(value) if value > 0 else -math.inf


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


# Raised when the meaning of the cached tensors changes, so that old files are not read as new.
FORMAT = 1


class GraphPropertyDataset(PackedDataset):
    """Graphs of 25 to 34 nodes of ten random types with a property to predict from node values.

    The data set of the A-DGN paper (https://openreview.net/forum?id=J3Y7cgZOOS), made by the
    generator of Corso et al. (https://arxiv.org/abs/2004.05718). The first use prepares it (all
    splits and targets, about 15 s) and keeps it under the data root.

    Args:
        root: the data root; see [`data_root`][adgn.data.data_root].
        split: `"train"` (5120 graphs), `"val"` (640) or `"test"` (1280).
        target: one of `TARGETS`. Published column names differ: see `PUBLISHED_COLUMNS`.
        transform: applied to each graph on access.
        progress: called with (graphs made, all graphs) while the data set is being prepared.
        **settings: `seed`, `min_nodes`, `train`, `val`, `test` and `edge_noise` of
            [`PropertySettings`][adgn.data.PropertySettings]; the defaults are the paper's.

    Shapes:
        `x` [N, 2]: 1 at the source node else 0, and the node value in [0, 1);
        `edge_index` [2, E], both directions of every edge, sorted;
        `y` [N, 1] for node targets, [1, 1] for graph targets, raw (not normalised).

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as root:
        ...     dataset = GraphPropertyDataset(
        ...         root, "train", "diameter", min_nodes=6, train=(2, 4), val=(1, 1), test=(1, 1)
        ...     )
        >>> len(dataset), dataset[7].x.shape, dataset[7].y.shape
        (8, torch.Size([7, 2]), torch.Size([1, 1]))
    """

    def __init__(
        self,
        root: str | os.PathLike[str] | None = None,
        split: str = "train",
        target: str = "sssp",
        *,
        transform: Callable[[Data], Any] | None = None,
        progress: ProgressCallback | None = None,
        **settings: Any,
    ) -> None:
        self.target = find_target(target)
        self.settings = PropertySettings(**settings)
        self.settings.shape(split)
        self.split = split
        self._tensors = prepare_property(self.settings, root, progress)
        super().__init__(self._pack(split), transform)

    def _pack(self, split: str) -> PackedGraphs:
        tensors = {
            name.removeprefix(f"{split}."): tensor
            for name, tensor in self._tensors.items()
            if name.startswith(f"{split}.")
        }
        edge_ptr = offsets(tensors["edge_count"].long())
        return PackedGraphs(
            x=tensors["x"],
            edge_index=tensors["edge_index"].long(),
            node_ptr=offsets(tensors["node_count"].long()),
            edge_start=edge_ptr[:-1],
            edge_count=edge_ptr.diff(),
            y=tensors[f"y.{self.target.name}"],
            y_level=self.target.level,
        )

    def constant_score(self) -> ConstantScore:
        """What predicting the train mean scores on the test split of this very data set."""
        return constant_predictor_score(self._pack("train"), self._pack("test"))


def prepare_property(
    settings: PropertySettings,
    root: str | os.PathLike[str] | None = None,
    progress: ProgressCallback | None = None,
) -> dict[str, Tensor]:
    """All splits and targets of a data set, read from the data root or made and kept there."""
    check_memory(
        property_size(settings)[2],
        f"GraphPropertyDataset with min_nodes={settings.min_nodes}, train={settings.train}, "
        f"val={settings.val}, test={settings.test}",
    )
    what = {"format": FORMAT, **asdict(settings)}
    path = cache_path(cache_folder(data_root(root)), "graph-property", what)
    return load_or_build(path, lambda: generate(settings, progress))


def property_size(settings: PropertySettings) -> tuple[int, int, float]:
    """Nodes and edges of the largest graph, and about how many bytes making all of them takes.

    Of all pairs of nodes a quarter are edges, on average over graphs of the paper's size. The
    generator works with a handful of dense matrices per graph.

    Example:
        >>> nodes, edges, _ = property_size(PropertySettings())
        >>> nodes, edges
        (34, 289)
    """
    nodes = settings.min_nodes + max(settings.shape(split)[0] for split in SPLITS) - 1
    edges = nodes**2 // 4
    graphs = sum(settings.num_graphs(split) for split in SPLITS)
    # Twice what the tensors take: pieces are put together, and edges read as longer integers.
    kept = graphs * (40.0 * nodes + 32.0 * edges)
    return nodes, edges, kept + 60.0 * nodes**2


def generate(
    settings: PropertySettings, progress: ProgressCallback | None = None
) -> dict[str, Tensor]:
    """Make the tensors of all splits: inputs, edges, counts per graph and all targets."""
    blocks = list(settings.blocks())
    total = sum(graphs for _, _, graphs in blocks)
    chain = graph_chain(
        settings.seed,
        itertools.chain.from_iterable(
            itertools.repeat(nodes, graphs) for _, nodes, graphs in blocks
        ),
        settings.edge_noise,
    )
    pieces: dict[str, list[Tensor]] = {}
    done = 0
    for split, nodes, graphs in blocks:
        for size in _chunks(graphs, nodes):
            chunk = list(itertools.islice(chain, size))
            for name, array in _tensors_of(chunk).items():
                pieces.setdefault(f"{split}.{name}", []).append(torch.from_numpy(array))
            done += size
            if progress is not None:
                progress(done, total)
    return {
        name: torch.cat(parts, dim=1 if name.endswith("edge_index") else 0)
        for name, parts in pieces.items()
    }


def _chunks(graphs: int, nodes: int) -> Iterator[int]:
    """Numbers of graphs whose dense matrices stay below some 16 MB each, at most 128."""
    limit = max(1, min(128, 2_000_000 // nodes**2))
    while graphs > 0:
        yield min(graphs, limit)
        graphs -= limit


def _tensors_of(graphs: list[RandomGraph]) -> Mapping[str, NDArray[Any]]:
    """The arrays of several graphs with the same number of nodes."""
    adjacency = np.stack([graph.adjacency for graph in graphs])
    values = np.stack([graph.values for graph in graphs])
    source = np.array([graph.source for graph in graphs])
    count, nodes = values.shape
    is_source = np.arange(nodes) == source[:, None]
    owner, row, column = adjacency.nonzero()
    targets = compute_targets(adjacency, values, source)
    return {
        "x": np.stack([is_source, values], axis=2).reshape(-1, 2).astype(np.float32),
        "edge_index": np.stack([row, column]).astype(np.int32),
        "edge_count": np.bincount(owner, minlength=count).astype(np.int32),
        "node_count": np.full(count, nodes, dtype=np.int32),
        **{f"y.{name}": targets[name].reshape(-1, 1).astype(np.float32) for name in TARGETS},
    }
