"""A task over data in memory: what a user's graph is to the training loop."""

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from adgn._util.progress import ProgressCallback
from adgn.training.tasks import TaskData, TaskSize, register_task, unregister_task

if TYPE_CHECKING:  # what brings torch is imported where it is used: listing the tasks is quick
    import torch
    from torch import Tensor

    from adgn.nn.network import Level
    from adgn.training.batches import BatchSource, Split
    from adgn.training.config import TrainConfig

_BATCH_NODES = 20_000  # of the graphs of a batch, where a configuration does not say its size


@dataclass(frozen=True, eq=False)
class OwnData:
    """Features, edges and targets of one graph or of many.

    Attributes:
        x: `[N, F]`, dense or CSR.
        edge_index: `[2, E]`.
        y: Classes `[rows]`, −1 where unknown, or values `[rows, T]`; rows are nodes or graphs.
        parts: For `"train"`, `"val"` and, where there is one, `"test"`: the rows.
        out_channels: Classes, or columns of values.
        level: What has a target.
        edge_weight: `[E]`.
        node_ptr: `[G + 1]`; at level `"graph"`, where each graph's nodes begin.
        weight: `[rows]`; how much each row counts in the loss.
        normalized: Whether the edge weights are an operator already, which layers take as it is.
        fully_adjacent: Whether the last layer is to be on the complete graph.
    """

    x: "Tensor"
    edge_index: "Tensor"
    y: "Tensor"
    parts: "Mapping[Split, Tensor]"
    out_channels: int
    level: "Level" = "node"
    edge_weight: "Tensor | None" = None
    node_ptr: "Tensor | None" = None
    weight: "Tensor | None" = None
    normalized: bool = False
    fully_adjacent: bool = False

    @cached_property
    def digest(self) -> str:
        """A name that other data do not have, so that a run never goes on with them."""
        import torch

        state = hashlib.blake2b(digest_size=8)
        if self.normalized or self.fully_adjacent:  # others have the names of before
            state.update(f"{self.normalized}{self.fully_adjacent}".encode())
        sparse = self.x.layout == torch.sparse_csr
        x = (self.x.crow_indices(), self.x.col_indices(), self.x.values()) if sparse else (self.x,)
        for tensor in (
            *x,
            self.edge_index,
            self.y,
            self.edge_weight,
            self.node_ptr,
            self.weight,
            *self.parts.values(),
        ):
            state.update(b"-")
            if tensor is not None:
                state.update(f"{list(tensor.shape)}{tensor.dtype}".encode())
                state.update(tensor.detach().cpu().contiguous().numpy().data)
        return state.hexdigest()

    def task_data(self, config: "TrainConfig", device: "torch.device") -> TaskData:
        """The batches of all parts."""
        sources = self._sources(config, device)
        return TaskData(
            in_channels=self.x.size(1),
            out_channels=self.out_channels,
            level=self.level,
            train=sources["train"],
            sources=sources,
            constant={},
            fully_adjacent=self.fully_adjacent,
        )

    def _sources(self, config: "TrainConfig", device: "torch.device") -> "dict[Split, BatchSource]":
        from adgn.graph import GraphBlocks
        from adgn.graph.blocks import graph_as_given
        from adgn.training.batches import FullGraph
        from adgn.training.block_batches import BlockBatches

        def moved(tensor: "Tensor | None") -> "Tensor | None":
            return None if tensor is None else tensor.to(device)

        x, edges, y = self.x.to(device), self.edge_index.to(device), self.y.to(device)
        edge_weight, weight = moved(self.edge_weight), moved(self.weight)
        parts = {split: rows.to(device) for split, rows in self.parts.items()}
        if self.node_ptr is None:
            graph, kept = graph_as_given(edges, edge_weight, x.size(0), normalized=self.normalized)
            return {
                split: FullGraph(x, graph, y, rows, edge_weight=kept, weight=weight)
                for split, rows in parts.items()
            }
        pointer = self.node_ptr.to(device)
        blocks = GraphBlocks(edges, pointer, edge_weight, normalized=self.normalized)
        size = config.loop.batch_size or self.batch_size
        seed = config.seed
        return {
            split: BlockBatches(
                x, blocks, y, rows, size, seed=seed if split == "train" else None, weight=weight
            )
            for split, rows in parts.items()
        }

    @property
    def batch_size(self) -> int:
        """Graphs per batch, where a configuration does not say it."""
        if self.node_ptr is None:
            return 1
        graphs = self.node_ptr.numel() - 1
        nodes = max(1, self.x.size(0) // graphs)
        return max(1, min(64, _BATCH_NODES // nodes, -(-self.parts["train"].numel() // 4)))

    def size(self, config: "TrainConfig") -> TaskSize:
        """How large the data are, and the largest batch, by which memory is estimated."""
        import torch

        sparse = self.x.layout == torch.sparse_csr
        entries = 3.0 * self.x.values().numel() if sparse else float(self.x.numel())
        nodes, edges = self.x.size(0), self.edge_index.size(1)
        share = 1.0
        if self.node_ptr is not None:
            graphs = self.node_ptr.numel() - 1
            share = min(1.0, (config.loop.batch_size or self.batch_size) / graphs)
        return TaskSize(
            data=4.0 * entries + 32.0 * edges,
            nodes=int(nodes * share),
            edges=int(edges * share),
            in_channels=self.x.size(1),
            out_channels=self.out_channels,
            level=self.level,
            graphs=1 if self.node_ptr is None else max(1, int(graphs * share)),
        )


@contextmanager
def in_memory_task(data: OwnData, objective: str, **options: Any) -> Iterator[str]:
    """Inside, the data are a task, by the name that this gives.

    A configuration of it trains as any other, by [`train`][adgn.training.train], in a run directory
    too: the name says which data they are, so that a run goes on with these and no others.

    Args:
        data: What is to be learnt.
        objective: `"classification"` or `"regression"`.
        **options: Further attributes of a [`TaskEntry`][adgn.training.TaskEntry].

    Example:
        >>> import adgn, torch
        >>> data = OwnData(
        ...     x=torch.eye(4),
        ...     edge_index=torch.tensor([[0, 1, 2, 3], [1, 0, 3, 2]]),
        ...     y=torch.tensor([0, 0, 1, 1]),
        ...     parts={"train": torch.tensor([0, 2]), "val": torch.tensor([1, 3])},
        ...     out_channels=2,
        ... )
        >>> with in_memory_task(data, "classification") as task:
        ...     result = adgn.train(task, loop={"max_epochs": 3})
        >>> sorted(result.scores)
        ['train', 'val']
    """
    name = f"own-{data.digest}"

    def build(
        config: "TrainConfig", device: "torch.device", progress: ProgressCallback | None
    ) -> TaskData:
        return data.task_data(config, device)

    register_task(
        name,
        objective=objective,
        size=data.size,
        summary="data in memory",
        **options,
    )(build)
    try:
        yield name
    finally:
        unregister_task(name)
