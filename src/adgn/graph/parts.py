"""What a rank has of a graph: its nodes, the edges that touch them, and who owns the other ends.

That is all an operator's rows are made from: the row of an own node needs its edges, and of its
neighbours at most their degrees, which their owners know.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from adgn.graph.checks import check_same_place

_INT32_LIMIT = 2**31 - 1
_CHUNK = 2**22  # edges that are looked at together


@dataclass(frozen=True, eq=False)
class GraphPart:
    """The part of a graph that belongs to one rank.

    Attributes:
        rank, size: Whose it is, and how many ranks there are.
        number: `[n]`; the numbers in the whole graph of own nodes and their neighbours, ascending.
        owner: `[n]`; the rank of each of them.
        edge_index: `[2, e]`; the edges with an own node at one end or both, in the order of the
            whole graph; ends are places in `number`.
        edge_weight: `[e]`, or `None`.
        spread: Whether any edge of the whole graph joins nodes of two ranks; if not, nothing is
            ever exchanged.
        normalized: Whether the weights are an operator already, see
            [`GraphBlocks`][adgn.graph.GraphBlocks].
    """

    rank: int
    size: int
    number: Tensor
    owner: Tensor
    edge_index: Tensor
    edge_weight: Tensor | None
    spread: bool
    normalized: bool = False

    def __post_init__(self) -> None:
        count = self.number.numel()
        if not 0 <= self.rank < self.size:
            raise ValueError(f"rank={self.rank} is not there among {self.size}")
        if self.owner.numel() != count or bool((self.number.diff() <= 0).any()):
            raise ValueError("number and owner must be of the same nodes, in ascending order")
        ends, owner = self.edge_index, self.owner
        for name, values, limit in (("edge_index", ends, count), ("owner", owner, self.size)):
            if values.numel() and not 0 <= int(values.min()) <= int(values.max()) < limit:
                raise ValueError(f"{name} has values outside of 0 to {limit - 1}")
        if self.edge_weight is not None and self.edge_weight.numel() != ends.size(1):
            raise ValueError(
                f"edge_weight has {self.edge_weight.numel()} entries for {ends.size(1)} edges"
            )

    @property
    def own(self) -> Tensor:
        """`[n]`; which of the nodes are this rank's."""
        return self.owner == self.rank


def cut_part(
    edge_index: Tensor,
    edge_weight: Tensor | None,
    owner: Tensor,
    rank: int,
    size: int,
    *,
    normalized: bool = False,
) -> GraphPart:
    """A rank's part of a graph.

    Besides the arguments it takes memory for the part, for a flag and an index of each node of the
    whole graph (5 bytes, or 9 where an index has 64 bits), and for the owners of 4 million edges.

    Args:
        edge_index: `[2, E]`, checked.
        edge_weight: `[E]`, or `None`.
        owner: `[N]`; the rank of each node.
        rank, size: Whose part, and how many ranks there are.
        normalized: Whether the weights are an operator already.

    Example:
        >>> path = torch.tensor([[0, 1, 2], [1, 2, 3]])  # 0 → 1 → 2 → 3
        >>> part = cut_part(path, None, torch.tensor([0, 0, 1, 1]), rank=1, size=2)
        >>> part.number.tolist(), part.edge_index.tolist(), part.spread
        ([1, 2, 3], [[0, 1], [1, 2]], True)
    """
    check_same_place("owner", owner, "edge_index", edge_index)
    found, spread = [], False
    for first in range(0, edge_index.size(1), _CHUNK):
        source, target = (owner[ends] for ends in edge_index[:, first : first + _CHUNK])
        spread = spread or bool((source != target).any())
        found.append(((source == rank) | (target == rank)).nonzero().view(-1) + first)
    kept = torch.cat(found) if found else edge_index.new_empty(0)
    touched = owner == rank
    ends = edge_index.index_select(1, kept)
    touched[ends.reshape(-1)] = True
    number = touched.nonzero().view(-1)
    index = torch.int32 if owner.numel() <= _INT32_LIMIT else torch.int64
    place = torch.empty(owner.numel(), dtype=index, device=owner.device)
    place[number] = torch.arange(number.numel(), dtype=index, device=owner.device)
    return GraphPart(
        rank=rank,
        size=size,
        number=number,
        owner=owner[number].to(torch.int32),
        edge_index=torch.stack([place[end] for end in ends]),
        edge_weight=None if edge_weight is None else edge_weight.index_select(0, kept),
        spread=spread,
        normalized=normalized,
    )
