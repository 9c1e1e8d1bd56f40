"""What a step of training works on, and where it comes from."""

from collections.abc import Iterable, Iterator
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, Protocol, runtime_checkable

import torch
from torch import Tensor
from torch_geometric.data import Data

from adgn.data.packed import PackedGraphs
from adgn.graph import (
    Adjacency,
    GraphBlocks,
    PartitionedGraph,
    SelectedGraphs,
    weighted_edges,
)
from adgn.graph.checks import check_finite
from adgn.graph.needed import LEAST_NODES
from adgn.training.seeding import derived_seed, own_randomness, random_state

Split = Literal["train", "val", "test"]


@dataclass(frozen=True, eq=False)
class LabelledBatch:
    """One or several graphs with targets.

    Attributes:
        x: Node features `[N, F]`, dense or sparse CSR, or integers for an embedding.
        graph: The edges, in any form that the layers take.
        y: The targets of the scored rows; where they are classes, −1 for an unknown one.
        size: What the batch counts for in an average: its graphs, or one graph's scored nodes.
        batch, num_graphs: `[N]`, the graph of each node where there are several; how many.
        rows: The rows of the model's output that are scored; `None`: all.
        weight: `[rows]`; the share of each scored row in the loss, 1 in sum. `None`: equal shares.
        edge_weight, edge_attr: `[E]` and `[E, D]`, for models that use them.
        node_id: `[N]`; the numbers of the nodes in the data set, where they are not their rows.
        nodes: `rows`, where other batches have the same graph and the same rows, objects and all,
            and the graph is not tiny: it then pays to find out what these nodes need, see
            `GraphNetwork.forward`.
    """

    x: Tensor
    graph: Adjacency
    y: Tensor
    size: int
    batch: Tensor | None = None
    num_graphs: int = 1
    rows: Tensor | None = None
    weight: Tensor | None = None
    edge_weight: Tensor | None = None
    edge_attr: Tensor | None = None
    node_id: Tensor | None = None
    nodes: Tensor | None = None

    @cached_property
    def label_range(self) -> tuple[int, int]:
        """The smallest and the largest label; read once for a batch that is used again."""
        if self.y.numel() == 0:
            return 0, 0
        low, high = torch.aminmax(self.y)
        return int(low), int(high)

    def keep(self, kept: Tensor) -> "LabelledBatch":
        """The batch with some of its scored rows, a mask over them; shares are counted anew."""
        rows = kept.nonzero().view(-1) if self.rows is None else self.rows[kept]
        weight, size = self.weight, rows.numel()
        if weight is not None and self.batch is not None:
            weight, size = _equal_shares(self.batch[rows], self.num_graphs)
        elif weight is not None:
            weight, size = weight[kept] / weight[kept].sum(), self.size
        return replace(self, y=self.y[kept], rows=rows, size=size, weight=weight, nodes=None)

    def check_finite(self) -> None:
        """Raises `NonFiniteError` where a feature, an edge weight or a target is not finite."""
        for name in ("x", "edge_weight", "edge_attr", "y"):
            values = getattr(self, name)
            if values is not None:
                check_finite(name, values.values() if values.layout == torch.sparse_csr else values)


def _equal_shares(owner: Tensor, graphs: int) -> tuple[Tensor, int]:
    """The share of each row, given the graph that owns it, and how many graphs own some."""
    count = torch.bincount(owner, minlength=graphs)
    owners = int((count > 0).sum())
    return (count * owners).reciprocal()[owner], owners


@runtime_checkable
class BatchSource(Protocol):
    """Gives the batches of a pass over the data.

    The batches of a pass depend on nothing but its number, which is what makes a run that was
    stopped between two of them go on exactly.
    """

    def batches(self, number: int, first: int = 0) -> Iterator[LabelledBatch]:
        """The batches of pass `number` (from 0), starting with batch `first`."""
        ...


def balanced_part(chosen: Tensor, cost: Tensor, rank: int, size: int) -> Tensor:
    """The numbers of those graphs of a batch that a rank takes, in the order of the batch.

    From the most costly to the cheapest, graphs are dealt out to the ranks in turns, each round in
    the opposite order of the one before.

    Args:
        chosen: `[graphs]`, the numbers of the graphs in the batch.
        cost: `[all graphs]`.
        rank: The rank, of `size`.
        size: How many ranks there are.

    Example:
        >>> cost = torch.tensor([5.0, 1.0, 4.0, 2.0])
        >>> [balanced_part(torch.arange(4), cost, rank, 2).tolist() for rank in (0, 1)]
        [[0, 1], [2, 3]]
    """
    order = torch.argsort(cost[chosen], descending=True, stable=True)
    place = torch.arange(order.numel(), device=order.device)
    turn, seat = place // size, place % size
    mine = torch.where(turn % 2 == 0, seat, size - 1 - seat) == rank
    return chosen[order[mine].sort().values]


class PackedBatches:
    """Batches of small graphs by a few index operations, without any work per graph.

    Args:
        graphs: The graphs, packed.
        batch_size: Graphs per batch; the last batch may have fewer.
        seed: Shuffles every pass in its own way; `None`: no shuffling, and the batches are made
            once and kept.

    Example:
        >>> from adgn.data.transfer import GraphTransfer
        >>> source = PackedBatches(GraphTransfer("line", 3, num_graphs=10).packed, 4, seed=1)
        >>> [batch.num_graphs for batch in source.batches(0)]
        [4, 4, 2]
        >>> first, again = next(source.batches(0, first=1)), list(source.batches(0))[1]
        >>> first.y.equal(again.y)
        True
    """

    def __init__(self, graphs: PackedGraphs, batch_size: int, *, seed: int | None = None) -> None:
        if batch_size < 1:
            raise ValueError(f"batch_size={batch_size} is not valid; give at least 1")
        if len(graphs) == 0:
            raise ValueError("graphs is empty; there is nothing to make batches of")
        self.graphs = graphs
        self.batch_size = batch_size
        self.seed = seed
        self._blocks, self._structure = _distinct_structures(graphs)
        dtype = graphs.y.dtype if graphs.y.is_floating_point() else torch.get_default_dtype()
        self._share = graphs.node_ptr.diff().to(dtype).reciprocal()
        self._part: tuple[int, int] | None = None
        self._kept: dict[int, LabelledBatch] = {}
        self._selected: dict[int, SelectedGraphs] = {}
        read = graphs.readout
        # Whether batches of one size differ in nothing but features and targets.
        one = self._structure is not None and len(self._blocks) == 1
        self._reads_alike = one and read is not None and bool((read == read[:1]).all())
        self._rows: dict[int, Tensor] = {}

    def __len__(self) -> int:
        return -(-len(self.graphs) // self.batch_size)

    def with_seed(self, seed: int | None) -> "PackedBatches":
        """The same graphs, prepared once for both, shuffled in another way."""
        other = copy(self)
        other.seed, other._kept = seed, {}
        return other

    def part_of(self, rank: int, size: int) -> "PackedBatches":
        """The same batches, of each of which one of `size` ranks has its part."""
        other = copy(self)
        other._part, other._kept = (rank, size), {}
        return other

    def tensors(self) -> list[Tensor]:
        """All that the batches are made of."""
        graphs = self.graphs
        found = [graphs.x, graphs.edge_index, graphs.node_ptr, graphs.edge_start, graphs.y]
        return found if graphs.readout is None else [*found, graphs.readout]

    def batches(self, number: int, first: int = 0) -> Iterator[LabelledBatch]:
        """The batches of pass `number`, starting with batch `first`."""
        if self.seed is None:
            for place in range(first, len(self)):
                if place not in self._kept:
                    last = min((place + 1) * self.batch_size, len(self.graphs))
                    chosen = torch.arange(place * self.batch_size, last, device=self.graphs.device)
                    self._kept[place] = self.batch(chosen)
                yield self._kept[place]
            return
        generator = torch.Generator().manual_seed(derived_seed(self.seed, "order", number))
        order = torch.randperm(len(self.graphs), generator=generator).to(self.graphs.device)
        for chosen in torch.split(order, self.batch_size)[first:]:
            yield self.batch(chosen)

    def batch(self, chosen: Tensor) -> LabelledBatch:
        """The graphs with these numbers as one batch."""
        graphs = self.graphs
        if self._part is not None:
            cost = graphs.node_ptr.diff() + graphs.edge_count
            chosen = balanced_part(chosen, cost, *self._part)
        selected = self._select(chosen)
        if self._structure is None:
            nodes = selected.node_index
        else:
            shift = graphs.node_ptr[chosen] - selected.node_ptr[:-1]
            places = torch.arange(selected.num_nodes, device=chosen.device)
            nodes = places + shift.index_select(0, selected.batch)
        count, by_node = chosen.numel(), graphs.y_level == "node"
        share, readout = self._share[chosen] / count, graphs.readout
        rows = self._rows.get(count) if self._reads_alike else None
        if rows is None and readout is not None:
            rows = selected.node_ptr[:-1] + readout[chosen]
            if self._reads_alike:
                self._rows[count] = rows
        return LabelledBatch(
            x=graphs.x.index_select(0, nodes),
            graph=selected,
            y=graphs.y.index_select(0, nodes if by_node else chosen),
            size=count,
            batch=selected.batch,
            num_graphs=count,
            rows=rows,
            nodes=rows if self._reads_alike and selected.num_nodes >= LEAST_NODES else None,
            weight=share.index_select(0, selected.batch) if by_node else None,
        )

    def _select(self, chosen: Tensor) -> SelectedGraphs:
        if self._structure is None:
            return self._blocks.select(chosen)
        if len(self._blocks) > 1:
            return self._blocks.select(self._structure[chosen])
        # One structure for all graphs: batches of one size are one and the same graph.
        count = chosen.numel()
        if count not in self._selected:
            self._selected[count] = self._blocks.select(torch.zeros_like(chosen))
        return self._selected[count]


def _distinct_structures(graphs: PackedGraphs) -> tuple[GraphBlocks, Tensor | None]:
    """Each stretch of edges once, and its number for each graph; `None` where all are distinct."""
    nodes = graphs.node_ptr.diff()
    keys = torch.stack([graphs.edge_start, graphs.edge_count, nodes], dim=1)
    distinct, number = torch.unique(keys, dim=0, return_inverse=True)
    shared = len(distinct) < len(graphs)
    if shared:
        everyone = torch.arange(len(graphs), device=number.device)
        first = torch.full((len(distinct),), len(graphs), device=number.device)
        graphs = graphs.select(first.scatter_reduce(0, number, everyone, "amin"))
    whole = graphs.batch()
    return GraphBlocks(whole.edge_index, whole.ptr), number if shared else None


class FullGraph:
    """One graph, of which some nodes are scored: a pass is a single batch.

    Args:
        x: Node features `[N, F]`, dense or sparse CSR.
        graph: The edges.
        y: Targets of all nodes, `[N]` or `[N, T]`.
        nodes: Which nodes are scored: a mask `[N]` or their numbers.
        edge_weight, edge_attr: `[E]` and `[E, D]`.
        node_id: `[N]`; the numbers of the nodes for predictions, where they are not their rows.
        weight: `[N]`; how much each node counts in the loss, such as the weight of its class.
            `None`: all alike.
    """

    def __init__(
        self,
        x: Tensor,
        graph: Adjacency,
        y: Tensor,
        nodes: Tensor,
        *,
        edge_weight: Tensor | None = None,
        edge_attr: Tensor | None = None,
        node_id: Tensor | None = None,
        weight: Tensor | None = None,
    ) -> None:
        rows = nodes.nonzero().view(-1) if nodes.dtype == torch.bool else nodes
        if rows.numel() == 0:
            raise ValueError("nodes has no node; there is nothing to score")
        share = None if weight is None else weight[rows] / weight[rows].sum()
        nodes_alone = rows if x.size(0) >= LEAST_NODES else None
        batch = LabelledBatch(
            x, graph, y[rows], rows.numel(), rows=rows, node_id=node_id, nodes=nodes_alone
        )
        self._batch = replace(batch, edge_weight=edge_weight, edge_attr=edge_attr, weight=share)

    def batches(self, number: int, first: int = 0) -> Iterator[LabelledBatch]:
        """The one batch, unless `first` says that it was there already."""
        if first == 0:
            yield self._batch

    @property
    def whole(self) -> LabelledBatch:
        """The one batch."""
        return self._batch

    def tensors(self) -> list[Tensor]:
        """All that the batch is made of."""
        batch = self._batch
        nodes = batch.x.size(0)
        edges, edge_weight, _ = weighted_edges(batch.graph, batch.edge_weight, nodes, batch.x)
        found = (batch.x, edges, batch.y, batch.rows, edge_weight, batch.weight, batch.edge_attr)
        return [tensor for tensor in found if tensor is not None]

    def part_of(self, part: PartitionedGraph, x: Tensor) -> "FullGraph":
        """What a rank has of it: its part of the graph, and the features of its nodes."""
        batch = self._batch
        if batch.y.dim() == 1 and batch.label_range[0] == -1 and not batch.y.is_floating_point():
            batch = batch.keep(batch.y != -1)  # shares are those among all known rows
        assert batch.rows is not None
        mine, rows = part.rows_of(batch.rows)
        size = rows.numel()
        weight = None
        if batch.weight is not None:
            # A part counts for its rows, and its shares for those that they have in the whole.
            weight = batch.weight[mine] * (batch.rows.numel() / max(size, 1))
        own = replace(
            batch,
            x=x,
            graph=part,
            y=batch.y[mine],
            size=size,
            rows=rows,
            nodes=None,  # ranks compute all their nodes: others wait for them
            weight=weight,
            edge_weight=None,
            node_id=part.nodes if batch.node_id is None else batch.node_id[part.nodes],
        )
        return FullGraph.of_batch(own)

    @classmethod
    def of_batch(cls, batch: LabelledBatch) -> "FullGraph":
        """The source of this one batch; a rank's may have no row that is scored."""
        made = cls.__new__(cls)
        made._batch = batch
        return made


class LoaderBatches:
    """The batches of a PyG loader (or any iterable of PyG data), the same for the same pass.

    The loader draws its random numbers (order, random transforms, worker seeds) from a stream of
    its own, which starts anew from the seed and the number of each pass. A batch in which no row is
    scored, as sampled parts of a graph may be, is passed over.

    Args:
        loader: Gives `torch_geometric.data.Data` or `Batch` objects.
        split: Where data carry masks (`train_mask`, `val_mask`, `test_mask`), the one to use.
        seed: Of the loader's random numbers.
        device: Where the batches go.
    """

    def __init__(
        self,
        loader: Iterable[Any],
        split: Split,
        *,
        seed: int = 0,
        device: torch.device | str = "cpu",
    ) -> None:
        self.loader = loader
        self.split: Split = split
        self.seed = seed
        self.device = torch.device(device)

    def batches(self, number: int, first: int = 0) -> Iterator[LabelledBatch]:
        """The batches of pass `number`, starting with batch `first`."""
        seed = derived_seed(self.seed, "loader", number)
        generator = getattr(self.loader, "generator", None)
        if generator is not None:
            generator.manual_seed(seed)
        with own_randomness(seed):
            iterator = iter(self.loader)
            inside = random_state()
        place = passed_over = 0
        while True:
            with own_randomness(inside):
                try:
                    data = next(iterator)
                except StopIteration:
                    break
                inside = random_state()
            batch = labelled_batch(data, self.split, self.device)
            if batch.y.size(0) == 0:
                passed_over += 1
            else:
                if place >= first:
                    yield batch
                place += 1
        if passed_over and not place:
            raise ValueError(
                f"the {self.split} mask selects no node in any of the {passed_over} batches of the "
                f"loader; give data whose {self.split}_mask (or mask) selects some"
            )


def labelled_batch(data: Any, split: Split, device: torch.device | str = "cpu") -> LabelledBatch:
    """PyG data as a batch: `x`, `edge_index`, `y`, and what else the data carry.

    A mask of the split (`train_mask`, …) or `mask` says which rows are scored. Where the data are a
    sampled neighbourhood (PyG's `NeighborLoader` gives `n_id`, `input_id` and the number of seeds
    as `batch_size`), no row but the seeds, which come first, is scored: the others have lost
    neighbours and may belong to another split. Where `y` has a row per node and there are several
    graphs, each graph has the same share in the loss. Floating-point targets `[v]` of each graph,
    which PyG puts one after another, are `v` values per graph.

    Args:
        data: A `Data` or `Batch` of PyG with `x`, `edge_index` and `y`.
        split: `"train"`, `"val"` or `"test"`.
        device: Where the batch goes.

    Example:
        >>> import torch
        >>> from torch_geometric.data import Data
        >>> edges, mask = torch.tensor([[0, 1], [1, 2]]), torch.tensor([True, False, True])
        >>> data = Data(torch.ones(3, 1), edges, y=torch.tensor([0, 1, 1]), train_mask=mask)
        >>> batch = labelled_batch(data, "train")
        >>> batch.rows.tolist(), batch.y.tolist()
        ([0, 2], [0, 1])
    """
    if not isinstance(data, Data):
        raise TypeError(
            f"the loader gave a {type(data).__name__}; expected torch_geometric.data.Data or Batch"
        )
    for name in ("x", "edge_index", "y"):
        if data.get(name) is None:
            raise ValueError(f"the loader's data have no {name}; training needs x, edge_index, y")
    data = data.to(device)
    y: Tensor = data.y
    nodes, graph_of_node = int(data.num_nodes or 0), data.get("batch")
    graphs = int(getattr(data, "num_graphs", 1) or 1)
    seeds = _seeds(data)
    mask = data.get(f"{split}_mask")
    mask = data.get("mask") if mask is None else mask
    if mask is not None and mask.dim() != 1:
        raise ValueError(
            f"the {split} mask has shape {list(mask.shape)}; choose one split: a mask [nodes]"
        )
    by_node = y.size(0) == nodes and (graphs != nodes or seeds is not None or mask is not None)
    rows = None if mask is None else mask.nonzero().view(-1)
    if seeds is not None:
        rows = torch.arange(seeds, device=y.device) if rows is None else rows[rows < seeds]
    batch = LabelledBatch(
        x=data.x,
        graph=data.edge_index,
        y=y,
        size=graphs,
        batch=graph_of_node,
        num_graphs=graphs,
        rows=rows,
        edge_weight=data.get("edge_weight"),
        edge_attr=data.get("edge_attr"),
        node_id=data.get("n_id") if "n_id" in data else data.get("node_id"),
    )
    if not by_node:
        if y.dim() == 1 and y.is_floating_point() and y.size(0) > graphs and not y.size(0) % graphs:
            return replace(batch, y=y.view(graphs, -1))
        if y.size(0) != graphs:
            raise ValueError(
                f"y has {y.size(0)} rows; expected one per node ({nodes}) or graph ({graphs})"
            )
        return batch
    if rows is not None:
        batch = replace(batch, y=y[rows])
    if graphs == 1 or graph_of_node is None:
        return replace(batch, size=batch.y.size(0))
    owner = graph_of_node if rows is None else graph_of_node[rows]
    weight, scored = _equal_shares(owner, graphs)
    return replace(batch, size=scored, weight=weight)


def _seeds(data: Data) -> int | None:
    """How many rows are the seeds of a sampled neighbourhood; `None` where data are no such."""
    seeds = data.get("batch_size")
    sampled = data.get("n_id") is not None or data.get("input_id") is not None
    return seeds if sampled and isinstance(seeds, int) else None
