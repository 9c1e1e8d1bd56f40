"""Many small graphs in a handful of tensors, and PyG data sets over them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from torch import Tensor
from torch_geometric.data import Batch, Data, Dataset

Level = Literal["node", "graph"]
GraphIndex = Tensor | slice | Sequence[int]


@dataclass(frozen=True)
class PackedGraphs:
    """G graphs in a few tensors.

    Graph `g` has the nodes `node_ptr[g] : node_ptr[g + 1]` and the edges
    `edge_start[g] : edge_start[g] + edge_count[g]`. Edges name nodes by their number within the
    graph, so graphs of one shape can share one stretch of `edge_index`.

    Args:
        x: node features [sum of N, F].
        edge_index: edges [2, E], node numbers local to each graph.
        node_ptr: where each graph's nodes begin, and the end of the last [G + 1].
        edge_start: where each graph's edges begin [G].
        edge_count: how many edges each graph has [G].
        y: targets, one row per node (`y_level="node"`) or per graph (`"graph"`).
        y_level: what a row of `y` belongs to.
        readout: where the answer of a graph is read at a single node, that node's number within
            its graph [G]; else `None`. Batches then carry it as a node mask `mask`.

    Example:
        >>> pair = Data(x=torch.ones(2, 1), edge_index=torch.tensor([[0], [1]]), y=torch.ones(1, 1))
        >>> no_edge = torch.empty(2, 0, dtype=torch.long)
        >>> one = Data(x=torch.zeros(1, 1), edge_index=no_edge, y=torch.zeros(1, 1))
        >>> packed = PackedGraphs.from_data_list([pair, one], y_level="graph")
        >>> len(packed), packed[0].num_nodes
        (2, 2)
        >>> packed.batch([1, 0, 0]).edge_index
        tensor([[1, 3],
                [2, 4]])
    """

    x: Tensor
    edge_index: Tensor
    node_ptr: Tensor
    edge_start: Tensor
    edge_count: Tensor
    y: Tensor
    y_level: Level
    readout: Tensor | None = None

    def __post_init__(self) -> None:
        graphs = self.node_ptr.numel() - 1
        y_rows = {"node": self.x.shape[0], "graph": graphs}
        if self.y_level not in y_rows:
            raise ValueError(f"y_level={self.y_level!r} is unknown; valid: node, graph")
        if self.edge_index.ndim != 2 or self.edge_index.shape[0] != 2:
            raise ValueError(f"edge_index has shape {tuple(self.edge_index.shape)}; needs [2, E]")
        for name, tensor, rows in (
            ("edge_start", self.edge_start, graphs),
            ("edge_count", self.edge_count, graphs),
            ("y", self.y, y_rows[self.y_level]),
            ("readout", self.readout, graphs),
        ):
            if tensor is not None and tensor.shape[0] != rows:
                raise ValueError(
                    f"{name} has {tensor.shape[0]} rows; {graphs} graphs with {self.x.shape[0]} "
                    f"nodes and y_level={self.y_level!r} need {rows}"
                )

    @classmethod
    def from_data_list(cls, graphs: Sequence[Data], *, y_level: Level) -> "PackedGraphs":
        """Pack PyG graphs; a node mask `mask` with one true entry becomes `readout`."""
        if not graphs:
            raise ValueError("graphs is empty; give at least one graph")
        for number, graph in enumerate(graphs):
            _check_graph(number, graph, y_level)
        nodes = torch.tensor([graph.num_nodes for graph in graphs])
        edges = torch.tensor([graph.num_edges for graph in graphs])
        readout = None
        if all("mask" in graph for graph in graphs):
            readout = torch.cat([graph.mask.nonzero().view(-1) for graph in graphs])
        return cls(
            x=torch.cat([graph.x for graph in graphs]),
            edge_index=torch.cat([graph.edge_index for graph in graphs], dim=1),
            node_ptr=offsets(nodes),
            edge_start=offsets(edges)[:-1],
            edge_count=edges,
            y=torch.cat([graph.y for graph in graphs]),
            y_level=y_level,
            readout=readout,
        )

    def __len__(self) -> int:
        return self.edge_start.numel()

    def __getitem__(self, graph: int) -> Data:
        """One graph as PyG data; its tensors are views where that is possible."""
        if not -len(self) <= graph < len(self):
            raise IndexError(f"graph {graph} is out of range for {len(self)} graphs")
        graph %= len(self)
        first, end = self.node_ptr[graph : graph + 2].tolist()
        start = int(self.edge_start[graph])
        data = Data(
            x=self.x[first:end],
            edge_index=self.edge_index[:, start : start + int(self.edge_count[graph])],
            y=self.y[first:end] if self.y_level == "node" else self.y[graph : graph + 1],
        )
        if self.readout is not None:
            data.mask = torch.arange(end - first, device=self.x.device) == self.readout[graph]
        return data

    @property
    def device(self) -> torch.device:
        """Where the tensors are."""
        return self.x.device

    def to(self, device: torch.device | str) -> "PackedGraphs":
        """The same graphs on another device."""
        tensors: dict[str, Any] = {
            name: value.to(device)
            for name, value in vars(self).items()
            if isinstance(value, Tensor)
        }
        return replace(self, **tensors)

    def select(self, graphs: GraphIndex) -> "PackedGraphs":
        """The chosen graphs, in the given order, repeats allowed; edges are shared, not copied."""
        chosen = self._numbers(graphs)
        nodes, node_ptr = _ragged(self.node_ptr[:-1][chosen], self.node_ptr.diff()[chosen])
        return replace(
            self,
            x=self.x[nodes],
            node_ptr=node_ptr,
            edge_start=self.edge_start[chosen],
            edge_count=self.edge_count[chosen],
            y=self.y[nodes if self.y_level == "node" else chosen],
            readout=None if self.readout is None else self.readout[chosen],
        )

    def batch(self, graphs: GraphIndex | None = None) -> Batch:
        """The chosen graphs (default: all) as one disconnected graph.

        Returns:
            `x`, `edge_index` (node numbers of the whole batch), `y`, `batch` (the graph of
            each node), `ptr`, and `mask` where answers are read at single nodes: the true
            entries are in the order of the graphs, so `out[mask]` goes with `y`.
        """
        chosen = self if graphs is None else self.select(graphs)
        edges, _ = _ragged(chosen.edge_start, chosen.edge_count)
        first = chosen.node_ptr[:-1]
        shift = first.repeat_interleave(chosen.edge_count, output_size=edges.numel())
        numbers = torch.arange(len(chosen), device=chosen.device)
        batch = Batch(
            x=chosen.x,
            edge_index=chosen.edge_index[:, edges] + shift,
            y=chosen.y,
            batch=numbers.repeat_interleave(chosen.node_ptr.diff(), output_size=chosen.x.shape[0]),
            ptr=chosen.node_ptr,
        )
        if chosen.readout is not None:
            mask = torch.zeros(chosen.x.shape[0], dtype=torch.bool, device=chosen.device)
            mask[first + chosen.readout] = True
            batch.mask = mask
        return batch

    def _numbers(self, graphs: GraphIndex) -> Tensor:
        if isinstance(graphs, slice):
            return torch.arange(len(self), device=self.device)[graphs]
        chosen = torch.as_tensor(graphs, device=self.device)
        if chosen.dtype == torch.bool:
            if chosen.shape != (len(self),):
                raise IndexError(
                    f"a mask of shape {tuple(chosen.shape)} cannot choose among {len(self)} graphs"
                )
            return chosen.nonzero().view(-1)
        if chosen.numel() == 0:
            return torch.empty(0, dtype=torch.long, device=self.device)
        if chosen.ndim != 1 or chosen.is_floating_point() or chosen.is_complex():
            raise IndexError(
                f"graphs must be a one-dimensional index of integers or booleans, not "
                f"{chosen.dtype} of shape {tuple(chosen.shape)}"
            )
        outside = chosen[(chosen < -len(self)) | (chosen >= len(self))]
        if outside.numel():
            raise IndexError(f"graph {int(outside[0])} is out of range for {len(self)} graphs")
        return torch.where(chosen < 0, chosen + len(self), chosen).long()


def offsets(counts: Tensor) -> Tensor:
    """Where each of several stretches begins, and the end of the last: [G] -> [G + 1]."""
    return torch.cat([counts.new_zeros(1), counts.cumsum(0)])


def _ragged(starts: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
    """The positions of several stretches one after another, and their new offsets."""
    ptr = offsets(counts)
    total = int(ptr[-1])
    shift = (starts - ptr[:-1]).repeat_interleave(counts, output_size=total)
    return torch.arange(total, device=starts.device) + shift, ptr


def _check_graph(number: int, graph: Data, y_level: Level) -> None:
    rows = graph.num_nodes if y_level == "node" else 1
    if graph.y is None or graph.y.shape[0] != rows:
        found = "missing" if graph.y is None else f"of shape {tuple(graph.y.shape)}"
        raise ValueError(
            f"graphs[{number}].y is {found}; y_level={y_level!r} needs {rows} row(s) for a graph "
            f"of {graph.num_nodes} nodes"
        )
    if (
        graph.num_edges
        and not 0 <= int(graph.edge_index.min()) <= int(graph.edge_index.max()) < graph.num_nodes
    ):
        raise ValueError(
            f"graphs[{number}].edge_index has node numbers from {int(graph.edge_index.min())} to "
            f"{int(graph.edge_index.max())}; the graph has {graph.num_nodes} nodes"
        )
    if "mask" in graph and int(graph.mask.sum()) != 1:
        raise ValueError(
            f"graphs[{number}].mask has {int(graph.mask.sum())} true entries; the answer of a "
            "graph is read at exactly one node"
        )


class PackedDataset(Dataset):  # type: ignore[misc]  # PyG is untyped
    """A PyG data set over `PackedGraphs`: works with PyG's loaders, slices and transforms.

    `dataset[i]` is a PyG `Data`; `dataset[10:20]` a smaller data set; `dataset.packed` the
    packed form of what the data set holds now.

    Args:
        packed: the graphs.
        transform: applied to each graph on access.

    Example:
        >>> edge = torch.tensor([[0, 1], [1, 0]])
        >>> pairs = [
        ...     Data(x=torch.rand(2, 3), edge_index=edge, y=torch.tensor([float(number)]))
        ...     for number in range(5)
        ... ]
        >>> dataset = PackedDataset(PackedGraphs.from_data_list(pairs, y_level="graph"))
        >>> len(dataset), dataset.num_features, dataset[4].y
        (5, 3, tensor([4.]))
        >>> dataset[2:4].packed.batch().y
        tensor([2., 3.])
    """

    def __init__(
        self, packed: PackedGraphs, transform: Callable[[Data], Any] | None = None
    ) -> None:
        super().__init__(None, transform)
        self._packed = packed

    def len(self) -> int:
        """The number of graphs before any slicing."""
        return len(self._packed)

    def get(self, idx: int) -> Data:
        """Graph `idx` before any slicing, without the transform."""
        return self._packed[idx]

    @property
    def packed(self) -> PackedGraphs:
        """The graphs in packed form (transforms are not applied)."""
        if self._indices is None:
            return self._packed
        return self._packed.select(list(self._indices))
