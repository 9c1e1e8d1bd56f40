"""Batches of small graphs with edge weights, sparse features or weighted rows."""

from collections.abc import Iterator
from copy import copy

import torch
from torch import Tensor

from adgn.data.features import select_rows
from adgn.graph import GraphBlocks
from adgn.training.batches import LabelledBatch, balanced_part
from adgn.training.seeding import derived_seed


class BlockBatches:
    """Batches of some of many graphs, each of which has a target.

    Beside `PackedBatches`, which knows neither edge weights nor sparse features nor weights of
    graphs. The operators of all graphs are made once and shared by the splits of a data set.

    Args:
        x: `[N, F]`, the features of all graphs, dense or CSR.
        blocks: The edges of all graphs.
        y: `[G]` or `[G, T]`, a target for each graph.
        graphs: The numbers of those that belong to this split.
        batch_size: Graphs per batch; the last batch may have fewer.
        seed: Shuffles every pass in its own way; `None`: no shuffling, and the batches are made
            once and kept.
        weight: `[G]`; how much each graph counts in the loss. `None`: all alike.

    Example:
        >>> import torch
        >>> from adgn.graph import GraphBlocks
        >>> edges = torch.tensor([[0, 1, 2], [1, 0, 3]])  # graph 0: 0 ↔ 1, graph 1: 2 → 3
        >>> blocks = GraphBlocks(edges, torch.tensor([0, 2, 4]))
        >>> y = torch.tensor([0, 1])
        >>> source = BlockBatches(torch.eye(4), blocks, y, torch.tensor([1]), batch_size=8)
        >>> [batch.y.tolist() for batch in source.batches(0)]
        [[1]]
    """

    def __init__(
        self,
        x: Tensor,
        blocks: GraphBlocks,
        y: Tensor,
        graphs: Tensor,
        batch_size: int,
        *,
        seed: int | None = None,
        weight: Tensor | None = None,
    ) -> None:
        if batch_size < 1:
            raise ValueError(f"batch_size={batch_size} is not valid; give at least 1")
        if graphs.numel() == 0:
            raise ValueError("graphs is empty; there is nothing to make batches of")
        self.x, self.blocks, self.y, self.graphs = x, blocks, y, graphs
        self.batch_size = batch_size
        self.seed = seed
        self.weight = weight
        self._part: tuple[int, int] | None = None
        self._kept: dict[int, LabelledBatch] = {}

    def __len__(self) -> int:
        return -(-self.graphs.numel() // self.batch_size)

    def with_seed(self, seed: int | None) -> "BlockBatches":
        """The same graphs, shuffled in another way."""
        other = copy(self)
        other.seed, other._kept = seed, {}
        return other

    def part_of(self, rank: int, size: int) -> "BlockBatches":
        """The same batches, of each of which one of `size` ranks has its part."""
        other = copy(self)
        other._part, other._kept = (rank, size), {}
        return other

    def tensors(self) -> list[Tensor]:
        """All that the batches are made of."""
        found = [self.x, self.blocks.edge_index, self.blocks.node_ptr, self.y, self.graphs]
        weights = (self.weight, self.blocks.edge_weight)
        return found + [weight for weight in weights if weight is not None]

    def batches(self, number: int, first: int = 0) -> Iterator[LabelledBatch]:
        """The batches of pass `number`, starting with batch `first`."""
        if self.seed is None:
            for place, chosen in enumerate(torch.split(self.graphs, self.batch_size)):
                if place >= first:
                    if place not in self._kept:
                        self._kept[place] = self.batch(chosen)
                    yield self._kept[place]
            return
        generator = torch.Generator().manual_seed(derived_seed(self.seed, "order", number))
        order = torch.randperm(self.graphs.numel(), generator=generator).to(self.graphs.device)
        for chosen in torch.split(self.graphs[order], self.batch_size)[first:]:
            yield self.batch(chosen)

    def batch(self, chosen: Tensor) -> LabelledBatch:
        """The graphs with these numbers as one batch."""
        whole = chosen
        if self._part is not None:
            cost = self.blocks.node_ptr.diff() + self.blocks.edge_count
            chosen = balanced_part(chosen, cost, *self._part)
        selected = self.blocks.select(chosen)
        weight = None
        if self.weight is not None and chosen.numel():
            # A part counts for its graphs, and its shares for those that they have in the whole.
            share = whole.numel() / chosen.numel()
            weight = self.weight[chosen] / self.weight[whole].sum() * share
        return LabelledBatch(
            x=select_rows(self.x, selected.node_index),
            graph=selected,
            y=self.y[chosen],
            size=chosen.numel(),
            batch=selected.batch,
            num_graphs=chosen.numel(),
            weight=weight,
        )
