"""Tree-NeighborsMatch: the information of all leaves must pass through the root of a tree."""

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch_geometric.data import Data

from adgn._util.environment import check_memory
from adgn._util.suggestions import unknown_name
from adgn.data.packed import PackedDataset, PackedGraphs
from adgn.data.root import check_integer

PAPER_SEED = 11
TRAIN_SHARE = 0.8
MAX_PERMUTATIONS = 1000
MAX_GRAPHS = 32_000
# Up to this radius all permutations of the leaves can be listed, and distinct ones are taken.
LISTED_RADIUS = 3


class TreeNeighborsMatch(PackedDataset):
    """Complete binary trees whose root asks for the value of one leaf.

    From Alon and Yahav, "On the Bottleneck of Graph Neural Networks"
    (https://arxiv.org/abs/2006.05205). Leaf i holds the key i and a value; the root holds a query
    key; the label is the value of the leaf with that key. Keys and values run from 1 to the number
    of leaves. Each of several permutations of the values is asked with every key; an 80/20 split
    stratified by label divides the graphs. All trees share one topology, and making the data set
    takes seconds, so nothing is kept on disk.

    Args:
        radius: depth of the tree, the distance from the leaves to the root; at least 2.
        split: `"train"` or `"test"`.
        seed: of the permutations and of the split; 11 in the paper's protocol.
        num_permutations: how many permutations of the values to use. Default: at most 1000, and
            beyond radius 3 at most as many as make 32000 graphs.
        transform: applied to each graph on access.

    Shapes:
        `x` [2^(radius + 1) - 1, 2] int32: (query key, 0) at the root, (key, value) at leaves,
        (0, 0) elsewhere; nodes in depth-first order, the left child of a node comes next.
        `edge_index`: from child to parent, and a self loop at every node.
        `y` [1] int64. `mask` [N]: true at the root, where the answer is read.

    Example:
        >>> trees = TreeNeighborsMatch(2)
        >>> len(trees), trees.num_classes
        (76, 5)
        >>> graph = trees[0]
        >>> key = graph.x[0, 0]
        >>> graph.x[graph.x[:, 0] == key][-1, 1] == graph.y
        tensor([True])
    """

    def __init__(
        self,
        radius: int,
        split: str = "train",
        *,
        seed: int = PAPER_SEED,
        num_permutations: int | None = None,
        transform: Callable[[Data], Any] | None = None,
    ) -> None:
        if split not in ("train", "test"):
            raise unknown_name("split", split, ("train", "test"))
        check_integer("radius", radius, 2, why="smaller trees are too few for a stratified split")
        check_integer("seed", seed, 0, at_most=2**32 - 1)
        check_memory(
            tree_size(radius, num_permutations)[1],
            f"TreeNeighborsMatch with radius={radius} and num_permutations={num_permutations}",
        )
        self.radius = radius
        self.num_leaves: int = 2**radius
        self.split = split
        if num_permutations is None:
            num_permutations = default_permutations(radius)
            if num_permutations == 0:
                raise ValueError(
                    f"radius={radius} has no default number of permutations: one of them alone "
                    f"makes {self.num_leaves} graphs; give num_permutations (at least 5)"
                )
        check_integer("num_permutations", num_permutations, 1)
        values = _permutations(self.num_leaves, num_permutations, seed)
        keys = np.arange(1, self.num_leaves + 1)
        chosen = _split(values, seed)[split]
        super().__init__(_pack(radius, values, keys, chosen), transform)

    @property
    def num_classes(self) -> int:
        """The number of logits: the values 1 .. leaves, and 0, which never occurs as a label."""
        return self.num_leaves + 1


def tree_size(radius: int, num_permutations: int | None) -> tuple[int, float]:
    """How many trees there are, and about how many bytes making them takes."""
    if radius > 60:  # more nodes than addresses
        return 0, math.inf
    count = default_permutations(radius) if num_permutations is None else num_permutations
    graphs = count * 2**radius
    return graphs, 10.0 * graphs * 2 ** (radius + 1) + 200.0 * 2**radius


def default_permutations(radius: int) -> int:
    """How many permutations of the leaf values the protocol takes at this radius."""
    leaves = 2**radius
    possible = min(MAX_PERMUTATIONS, math.factorial(leaves)) if radius <= 6 else MAX_PERMUTATIONS
    return possible if radius <= LISTED_RADIUS else min(possible, MAX_GRAPHS // leaves)


def _permutations(leaves: int, count: int, seed: int) -> NDArray[np.int32]:
    """`count` permutations of 1 .. leaves [count, leaves]."""
    stream = np.random.default_rng(seed)
    if leaves <= 2**LISTED_RADIUS:
        possible = math.factorial(leaves)
        if count > possible:
            raise ValueError(
                f"num_permutations={count} is too large; {leaves} leaves have {possible} distinct "
                "permutations, give at most as many"
            )
        listed = np.array(list(itertools.permutations(range(1, leaves + 1))), dtype=np.int32)
        return listed[stream.choice(possible, size=count, replace=False)]
    ordered = np.tile(np.arange(1, leaves + 1, dtype=np.int32), (count, 1))
    return stream.permuted(ordered, axis=1)


def _split(values: NDArray[np.int32], seed: int) -> dict[str, NDArray[np.int64]]:
    """The numbers of the train and test graphs; graph p * leaves + k asks permutation p for k."""
    from sklearn.model_selection import train_test_split  # here, for it takes long to import

    labels = values.reshape(-1)
    try:
        train, test = train_test_split(
            np.arange(labels.size), train_size=TRAIN_SHARE, stratify=labels, random_state=seed
        )
    except ValueError as error:
        raise ValueError(
            f"num_permutations={len(values)} is too small for a stratified 80/20 split over "
            f"{values.shape[1]} labels ({error}); give at least 5"
        ) from error
    return {"train": train, "test": test}


def _topology(radius: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Edges [2, E] from child to parent with self loops, and the leaves, in depth-first order."""
    level = np.zeros(1, dtype=np.int64)
    children, parents = [], []
    for depth in range(radius):
        # Below a node at this depth each side is a tree of 2^(radius - depth) - 1 nodes.
        left, right = level + 1, level + 2 ** (radius - depth)
        children += [left, right]
        parents += [level, level]
        level = np.stack([left, right], axis=1).reshape(-1)
    nodes = np.arange(2 ** (radius + 1) - 1)
    edges = np.stack([np.concatenate([*children, nodes]), np.concatenate([*parents, nodes])])
    return edges, level


def _pack(
    radius: int, values: NDArray[np.int32], keys: NDArray[np.int64], chosen: NDArray[np.int64]
) -> PackedGraphs:
    edges, leaves = _topology(radius)
    permutation, query = np.divmod(chosen, len(keys))
    count, nodes = len(chosen), 2 ** (radius + 1) - 1
    x = np.zeros((count, nodes, 2), dtype=np.int32)
    x[:, leaves, 0] = keys
    x[:, leaves, 1] = values[permutation]
    x[:, 0, 0] = keys[query]
    return PackedGraphs(
        x=torch.from_numpy(x.reshape(-1, 2)),
        edge_index=torch.from_numpy(edges),
        node_ptr=torch.arange(count + 1) * nodes,
        edge_start=torch.zeros(count, dtype=torch.long),
        edge_count=torch.full((count,), edges.shape[1], dtype=torch.long),
        y=torch.from_numpy(values[permutation, query].astype(np.int64)),
        y_level="graph",
        readout=torch.zeros(count, dtype=torch.long),
    )
