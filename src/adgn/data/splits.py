"""Which nodes train, which validate, which test."""

import random
from dataclasses import dataclass

import torch
from torch import Tensor
from torch_geometric.data import Data

from adgn.data.root import check_integer

# The five random splits of the paper's node data sets.
PAPER_DATA_SEEDS = (211825665, 1150414678, 1974351832, 3696089080, 4123778651)


@dataclass(frozen=True)
class NodeSplit:
    """Three disjoint boolean masks over the nodes [N].

    Example:
        >>> nodes = torch.arange(6)
        >>> split = NodeSplit(train=nodes < 2, val=nodes == 2, test=nodes > 3)
        >>> split.sizes, split.unused.tolist()
        ((2, 1, 2), [False, False, False, True, False, False])
    """

    train: Tensor
    val: Tensor
    test: Tensor

    @property
    def unused(self) -> Tensor:
        """The nodes in none of the three: those of classes too small to be split [N]."""
        return ~(self.train | self.val | self.test)

    @property
    def sizes(self) -> tuple[int, int, int]:
        """How many nodes train, validate and test."""
        return int(self.train.sum()), int(self.val.sum()), int(self.test.sum())


def split_per_class(y: Tensor, seed: int, *, num_train: int = 20, num_val: int = 30) -> NodeSplit:
    """The paper's random split: a few nodes of every class train and validate, the rest test.

    Classes are taken in the order in which they first appear. The nodes of each class, ascending,
    are shuffled by one `random.Random(seed)`; the first `num_train` train, the next `num_val`
    validate, the rest test. Classes of `num_train + num_val` nodes or fewer are dropped: their
    nodes are in no mask (`NodeSplit.unused`); take them out of the graph if they should not pass
    messages either. The paper's five data seeds are `PAPER_DATA_SEEDS`.

    Args:
        y: class of each node [N], integers.
        seed: the data seed.
        num_train: train nodes per class.
        num_val: validation nodes per class.

    Example:
        >>> split = split_per_class(torch.tensor([0, 0, 0, 1, 1, 1]), 0, num_train=1, num_val=1)
        >>> split.sizes
        (2, 2, 2)
    """
    if y.ndim != 1 or y.is_floating_point() or y.is_complex():
        raise ValueError(f"y must be integers of shape [N], not {y.dtype} of {tuple(y.shape)}")
    check_integer("num_train", num_train, 1)
    check_integer("num_val", num_val, 1)
    check_integer("seed", seed, 0)
    members: dict[int, list[int]] = {}
    for node, label in enumerate(y.tolist()):
        members.setdefault(label, []).append(node)
    used = num_train + num_val
    if all(len(nodes) <= used for nodes in members.values()):
        largest = max((len(nodes) for nodes in members.values()), default=0)
        raise ValueError(
            f"num_train={num_train} and num_val={num_val} leave no test nodes: the largest class "
            f"has {largest} nodes; give smaller numbers"
        )
    stream = random.Random(seed)
    masks = torch.zeros(3, y.numel(), dtype=torch.bool)
    for nodes in members.values():
        stream.shuffle(nodes)
        if len(nodes) > used:
            masks[0, nodes[:num_train]] = True
            masks[1, nodes[num_train:used]] = True
            masks[2, nodes[used:]] = True
    return NodeSplit(*masks.to(y.device))


def num_fixed_splits(data: Data) -> int:
    """How many published splits a loaded data set brings: 10 (Geom-GCN), 1 (Planetoid) or 0.

    Example:
        >>> num_fixed_splits(Data(train_mask=torch.zeros(5, 10, dtype=torch.bool)))
        10
        >>> num_fixed_splits(Data())
        0
    """
    if "train_mask" not in data:
        return 0
    return 1 if data.train_mask.ndim == 1 else int(data.train_mask.shape[1])


def fixed_split(data: Data, number: int = 0) -> NodeSplit:
    """One of the published splits that a loaded data set brings.

    Args:
        data: as from [`load`][adgn.data.load].
        number: 0 to 9 for Geom-GCN's ten splits, 0 for Planetoid's public one.

    Example:
        >>> nodes = torch.arange(6)
        >>> data = Data(train_mask=nodes < 3, val_mask=nodes == 3, test_mask=nodes > 3)
        >>> fixed_split(data).sizes
        (3, 1, 2)
        >>> fixed_split(data, 1)
        Traceback (most recent call last):
        ValueError: number=1 is too large; give an integer from 0 to 0: data has 1 split(s)
    """
    count = num_fixed_splits(data)
    if count == 0:
        raise ValueError("data has no published split; make one with split_per_class")
    check_integer("number", number, 0, at_most=count - 1, why=f"data has {count} split(s)")
    masks = (data.train_mask, data.val_mask, data.test_mask)
    return NodeSplit(*(mask if mask.ndim == 1 else mask[:, number] for mask in masks))
