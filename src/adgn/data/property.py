"""Graph property prediction: the paper's synthetic data set, and larger or smaller ones like it."""

import itertools
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from adgn._util.environment import check_memory
from adgn.data.files import cache_path, load_or_build
from adgn.data.packed import PackedDataset, PackedGraphs, offsets
from adgn.data.property_generator import RandomGraph, graph_chain
from adgn.data.property_settings import SPLITS, PropertySettings
from adgn.data.property_targets import TARGETS, ConstantScore, find_target
from adgn.data.property_values import compute_targets, constant_predictor_score
from adgn.data.root import cache_folder, data_root

# Raised when the meaning of the cached tensors changes, so that old files are not read as new.
FORMAT = 1

Progress = Callable[[int, int], None]


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
        progress: Progress | None = None,
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
    progress: Progress | None = None,
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


def generate(settings: PropertySettings, progress: Progress | None = None) -> dict[str, Tensor]:
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
