"""The graphs that are timed: the node benchmarks from their raw files, and random graphs."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from scipy.sparse import csr_array
from torch import Tensor

from adgn.graph import GraphBlocks


@dataclass(frozen=True)
class NodeTask:
    """A graph with features (sparse CSR), classes, and the nodes to train on."""

    features: Tensor
    edge_index: Tensor
    classes: Tensor
    train: Tensor

    @property
    def density(self) -> float:
        """The share of feature entries that are not zero."""
        return self.features.values().numel() / max(1, self.features.numel())

    def dense_features(self) -> Tensor:
        """The features as a dense matrix (by SciPy: torch's conversion takes far more room)."""
        x = self.features
        arrays = (x.values().numpy(), x.col_indices().numpy(), x.crow_indices().numpy())
        return torch.from_numpy(csr_array(arrays, shape=tuple(x.shape)).toarray())

    @property
    def num_classes(self) -> int:
        """How many classes there are."""
        return int(self.classes.max()) + 1


def node_task(path: Path) -> NodeTask:
    """A Coauthor or Amazon graph out of its `.npz`: undirected, binary features, 20 per class."""
    with np.load(path) as raw:
        n = int(raw["adj_shape"][0])
        source = np.repeat(np.arange(n), np.diff(raw["adj_indptr"]))
        edges = np.stack([source, raw["adj_indices"]])
        edges = np.concatenate([edges, edges[::-1]], axis=1).astype(np.int64)
        edges = np.unique(edges[0] * n + edges[1])
        edges = np.stack([edges // n, edges % n])
        edges = edges[:, edges[0] != edges[1]]
        features = torch.sparse_csr_tensor(
            torch.from_numpy(raw["attr_indptr"].astype(np.int64)),
            torch.from_numpy(raw["attr_indices"].astype(np.int64)),
            torch.ones(len(raw["attr_indices"])),
            tuple(int(size) for size in raw["attr_shape"]),
        )
        classes = torch.from_numpy(raw["labels"].astype(np.int64))
    train = torch.cat([(classes == c).nonzero().squeeze(-1)[:20] for c in classes.unique()])
    return NodeTask(features, torch.from_numpy(edges), classes, train)


def web_task(folder: Path) -> NodeTask:
    """A WebKB graph out of its raw text files: directed edges, binary features."""
    lines = (folder / "out1_node_feature_label.txt").read_text().splitlines()[1:]
    rows = sorted((line.split("\t") for line in lines), key=lambda row: int(row[0]))
    features = torch.tensor([[float(v) for v in row[1].split(",")] for row in rows])
    pairs = (folder / "out1_graph_edges.txt").read_text().splitlines()[1:]
    edges = torch.tensor([[int(v) for v in pair.split("\t")] for pair in pairs]).t()
    classes = torch.tensor([int(row[2]) for row in rows])
    with np.load(folder / f"{folder.parent.name}_split_0.6_0.2_0.npz") as split:
        train = torch.from_numpy(split["train_mask"]).nonzero().squeeze(-1)
    return NodeTask(features.to_sparse_csr(), edges.contiguous(), classes, train)


def random_task(nodes: int, edges: int, features: int, classes: int, seed: int = 0) -> NodeTask:
    """A random undirected graph of about `edges` directed edges, with dense-ish features."""
    generator = torch.Generator().manual_seed(seed)
    half = torch.randint(0, nodes, (2, edges // 2), generator=generator)
    x = torch.rand(nodes, features, generator=generator).to_sparse_csr()
    return NodeTask(
        x,
        torch.cat([half, half.flip(0)], dim=1),
        torch.randint(0, classes, (nodes,), generator=generator),
        torch.arange(min(nodes, 1000)),
    )


@dataclass(frozen=True)
class ManyGraphs:
    """Many small graphs with two features and a target per node."""

    features: Tensor
    target: Tensor
    blocks: GraphBlocks


def many_graphs(count: int = 5120, seed: int = 0) -> ManyGraphs:
    """Random graphs of 25 to 34 nodes, as many of each size, about 207 directed edges each."""
    generator = torch.Generator().manual_seed(seed)
    sizes = torch.arange(count) % 10 + 25
    ptr = torch.cat([torch.zeros(1, dtype=torch.long), sizes.cumsum(0)])
    edges = []
    for size, first in zip(sizes.tolist(), ptr.tolist(), strict=False):
        above = torch.rand(size, size, generator=generator) < 207 / (size * (size - 1))
        above = above.triu(1)
        edges.append((above | above.t()).nonzero().t() + first)
    nodes = int(ptr[-1])
    return ManyGraphs(
        torch.rand(nodes, 2, generator=generator),
        torch.rand(nodes, 1, generator=generator),
        GraphBlocks(torch.cat(edges, dim=1), ptr),
    )
