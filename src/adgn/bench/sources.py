"""What is trained on: a graph whose nodes are classified, or many small graphs."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import torch
from torch import Tensor

from adgn.data import (
    PAPER_DATA_SEEDS,
    GraphPropertyDataset,
    fixed_split,
    load,
    num_fixed_splits,
    split_per_class,
)
from adgn.training.batches import PackedBatches

# As in the large graph that must train inside 20 GB: 2.4 million nodes, 6·10⁷ directed edges.
RANDOM_DEGREE = 25
RANDOM_FEATURES = 32
RANDOM_CLASSES = 10
BATCH_SIZE = 512


@dataclass(frozen=True)
class NodeTask:
    """A graph with features (dense or CSR), classes, and the nodes to train on."""

    features: Tensor
    edge_index: Tensor
    classes: Tensor
    train: Tensor

    @property
    def num_classes(self) -> int:
        """How many classes there are."""
        return int(self.classes.max()) + 1

    @property
    def is_sparse(self) -> bool:
        """Whether the features are CSR."""
        return self.features.layout == torch.sparse_csr

    @cached_property
    def dense_features(self) -> Tensor:
        """The features as PyG's data sets give them."""
        return self.features.to_dense() if self.is_sparse else self.features

    def sizes(self) -> dict[str, int]:
        """Nodes, directed edges and features per node."""
        nodes, features = self.features.shape
        return {"nodes": nodes, "edges": self.edge_index.size(1), "features": features}


def dataset_task(name: str, root: Path | None) -> NodeTask:
    """A node data set with its first split."""
    data = load(name, root)
    fixed = num_fixed_splits(data) > 0
    split = fixed_split(data) if fixed else split_per_class(data.y, PAPER_DATA_SEEDS[0])
    return NodeTask(data.x, data.edge_index, data.y, split.train.nonzero().squeeze(-1))


def random_task(edges: int) -> NodeTask:
    """A random undirected graph of `edges` directed edges, 25 per node, without any locality.

    Example:
        >>> random_task(1000).sizes()
        {'nodes': 40, 'edges': 1000, 'features': 32}
    """
    if edges < RANDOM_DEGREE or edges % 2:
        raise ValueError(f"edges={edges} is not valid; give an even number of at least 26")
    nodes = edges // RANDOM_DEGREE
    generator = torch.Generator().manual_seed(0)
    edge_index = torch.empty(2, edges, dtype=torch.long)
    half = edges // 2
    torch.randint(0, nodes, (2, half), generator=generator, out=edge_index[:, :half])
    edge_index[:, half:] = edge_index[:, :half].flip(0)
    return NodeTask(
        torch.rand(nodes, RANDOM_FEATURES, generator=generator),
        edge_index,
        torch.randint(0, RANDOM_CLASSES, (nodes,), generator=generator),
        torch.arange(0, nodes, 10),
    )


@dataclass(frozen=True)
class ManyGraphs:
    """Small graphs with a target per node, in batches of a fixed order."""

    batches: PackedBatches
    order: tuple[Tensor, ...]

    def sizes(self) -> dict[str, int]:
        """Graphs, nodes and directed edges in all, features per node."""
        graphs = self.batches.graphs
        nodes, features = graphs.x.shape
        edges = int(graphs.edge_count.sum())
        return {"graphs": len(graphs), "nodes": nodes, "edges": edges, "features": features}


def property_graphs(count: int, root: Path | None) -> ManyGraphs:
    """Some graphs of the train split of property prediction, each size as often as the others."""
    graphs = GraphPropertyDataset(root, "train", "sssp").packed
    if not 0 < count <= len(graphs):
        raise ValueError(f"count={count} is not valid; there are {len(graphs)} graphs")
    chosen = torch.arange(count) * len(graphs) // count
    generator = torch.Generator().manual_seed(0)
    order = torch.split(torch.randperm(count, generator=generator), BATCH_SIZE)
    return ManyGraphs(PackedBatches(graphs.select(chosen), BATCH_SIZE, seed=0), order)
