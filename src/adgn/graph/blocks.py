"""Many small graphs, prepared once; a batch of them is a few index operations."""

from collections.abc import Callable, Hashable

import torch
from torch import Tensor

from adgn.graph.adjacency import Adjacency, Normalization, for_weights, graph_operator
from adgn.graph.cache import lazy_property, outside_transforms
from adgn.graph.checks import check_edge_index, check_edge_weight, check_same_place
from adgn.graph.direction import OperatorDirection
from adgn.graph.native import calls
from adgn.graph.native.library import native_library
from adgn.graph.operator import CSR, SparseOperator, SparsePattern


class GraphBlocks:
    """Many graphs side by side, from which batches are taken without sorting or normalising again.

    The operator of all graphs together is block-diagonal and built once; the operator of a batch
    consists of rows of it, moved to their new places. The arguments are copied.

    Args:
        edge_index: `[2, E]`; the edges of all graphs, each node numbered among all nodes.
        node_ptr: `[graphs + 1]`; graph `g` has the nodes `node_ptr[g]` to `node_ptr[g + 1] - 1`.
        edge_weight: `[E]`, optional; of the dtype of the states that will be multiplied.
        normalized: Whether the weights are an operator already. A layer that would normalise them
            (by `"mean"`, `"sym"`, `"gcn"`, …) then gets them as they are, without further self
            loops; `"laplacian"` and `"skew"`, which are made from an operator, are made from them.

    Example:
        >>> edges = torch.tensor([[0, 1, 2], [1, 0, 3]])  # graph 0: 0 ↔ 1, graph 1: 2 → 3
        >>> blocks = GraphBlocks(edges, torch.tensor([0, 2, 4]))
        >>> second = blocks.select(torch.tensor([1]))
        >>> second.edge_index.tolist(), second.node_index.tolist()
        ([[0], [1]], [2, 3])
    """

    def __init__(
        self,
        edge_index: Tensor,
        node_ptr: Tensor,
        edge_weight: Tensor | None = None,
        *,
        normalized: bool = False,
    ) -> None:
        check_node_ptr(node_ptr)
        self.normalized = normalized
        check_same_place("node_ptr", node_ptr, "edge_index", edge_index)
        check_edge_index(edge_index, int(node_ptr[-1]))
        self.node_ptr = node_ptr.long().clone(memory_format=torch.contiguous_format)
        self.edge_index = edge_index.long().clone()
        if edge_weight is not None:
            check_edge_weight(edge_weight, edge_index.size(1), edge_weight)
            if edge_weight.requires_grad:
                raise ValueError(
                    "edge_weight requires a gradient, but prepared graphs keep their operators; "
                    "pass edge_index and edge_weight to the model, or edge_weight.detach() here"
                )
        self.edge_weight = None if edge_weight is None else edge_weight.clone()
        graph_of_edge = torch.bucketize(self.edge_index, self.node_ptr[1:], right=True)
        crossing = (graph_of_edge[0] != graph_of_edge[1]).nonzero()
        if len(crossing):
            edge = int(crossing[0])
            raise ValueError(
                f"edge_index[:, {edge}] = {edge_index[:, edge].tolist()} joins graph "
                f"{int(graph_of_edge[0, edge])} with graph {int(graph_of_edge[1, edge])}; the "
                "graphs of GraphBlocks must be separate"
            )
        self._edge_order = torch.argsort(graph_of_edge[0], stable=True)
        self._edge_count = torch.bincount(graph_of_edge[0], minlength=len(self))
        self._operators: dict[Hashable, SparseOperator] = {}

    def __len__(self) -> int:
        return self.node_ptr.numel() - 1

    @property
    def edge_count(self) -> Tensor:
        """`[graphs]`; how many edges each graph has."""
        return self._edge_count

    @property
    def num_nodes(self) -> int:
        """The nodes of all graphs together."""
        return int(self.node_ptr[-1])

    def operator(
        self,
        normalization: Normalization,
        dtype: torch.dtype,
        direction: OperatorDirection = "in",
    ) -> SparseOperator:
        """The operator of all graphs together."""
        normalization = for_weights(normalization, self.normalized)

        def build() -> SparseOperator:
            return graph_operator(
                self.edge_index,
                self.edge_weight,
                num_nodes=self.num_nodes,
                normalization=normalization,
                direction=direction,
                like=torch.empty(0, dtype=dtype, device=self.edge_index.device),
            )

        return self.kept((normalization, dtype, direction), build)

    def kept(self, key: Hashable, build: Callable[[], SparseOperator]) -> SparseOperator:
        """What `build` makes of all graphs, a block-diagonal operator, made once for this key."""
        if key not in self._operators:
            whole = build()
            _ = whole.transposed_value  # now, so that no batch has to turn values over
            self._operators[key] = whole
        return self._operators[key]

    def select(self, graphs: Tensor) -> "SelectedGraphs":
        """The batch of these graphs, in this order; a graph may come more than once."""
        if graphs.numel() and not 0 <= int(graphs.min()) <= int(graphs.max()) < len(self):
            raise IndexError(
                f"graphs has numbers from {int(graphs.min())} to {int(graphs.max())}, but there "
                f"are {len(self)} graphs, numbered from 0"
            )
        return SelectedGraphs(self, graphs)

    def to(self, device: torch.device | str) -> "GraphBlocks":
        """The same graphs on another device."""
        weight = None if self.edge_weight is None else self.edge_weight.to(device)
        ends, starts = self.edge_index.to(device), self.node_ptr.to(device)
        return GraphBlocks(ends, starts, weight, normalized=self.normalized)


class SelectedGraphs:
    """A batch of graphs out of `GraphBlocks`; layers take it in place of `edge_index`.

    Attributes:
        node_ptr: `[batch + 1]`; where each graph's nodes begin in the batch.
        batch: `[N]`; the place in the batch of each node's graph.
        node_index: `[N]`; for each node of the batch its number among all nodes.
        num_nodes: The number `N` of nodes in the batch.

    Example:
        >>> edges = torch.tensor([[0, 1, 2], [1, 0, 3]])  # graph 0: 0 ↔ 1, graph 1: 2 → 3
        >>> blocks = GraphBlocks(edges, torch.tensor([0, 2, 4]))
        >>> swapped = blocks.select(torch.tensor([1, 0]))
        >>> swapped.batch.tolist(), swapped.node_index.tolist()
        ([0, 0, 1, 1], [2, 3, 0, 1])
        >>> (swapped.operator("none", torch.float32) @ torch.eye(4)).tolist()[1]  # from node 0 to 1
        [1.0, 0.0, 0.0, 0.0]
    """

    def __init__(self, blocks: GraphBlocks, graphs: Tensor) -> None:
        self.blocks = blocks
        self.graphs = graphs = graphs.clone()  # operators are put together later
        first = blocks.node_ptr[graphs]
        count = blocks.node_ptr[graphs + 1] - first
        self.node_ptr = _with_zero(count.cumsum(0))
        self.num_nodes = int(self.node_ptr[-1])
        self._shift = self.node_ptr[:-1] - first  # from a node's number to its place in the batch
        self.batch = torch.repeat_interleave(count, output_size=self.num_nodes)
        positions = torch.arange(self.num_nodes, device=graphs.device)
        # index_select throughout: plain indexing takes three times as long on long vectors.
        self.node_index = positions - self._shift.index_select(0, self.batch)
        self._operators: dict[Hashable, SparseOperator] = {}

    def __len__(self) -> int:
        return self.graphs.numel()

    @property
    def device(self) -> torch.device:
        """Where the graphs are."""
        return self.node_ptr.device

    def operator(
        self,
        normalization: Normalization,
        dtype: torch.dtype,
        direction: OperatorDirection = "in",
    ) -> SparseOperator:
        """The operator of the batch, put together when first asked for."""
        kind = (normalization, dtype, direction)
        return self.rows_of(kind, lambda: self.blocks.operator(*kind))

    def rows_of(self, key: Hashable, build: Callable[[], SparseOperator]) -> SparseOperator:
        """The batch's part of a block-diagonal operator of all graphs, which is made once."""
        if key not in self._operators:
            with outside_transforms(self.node_ptr):
                self._operators[key] = self._operator(self.blocks.kept(key, build))
        return self._operators[key]

    def _operator(self, whole: SparseOperator) -> SparseOperator:
        csr, slots = self._rows_of(whole.pattern.csr)
        one = None if whole.value.requires_grad else whole.one_value
        if one is None:
            value = whole.value.index_select(0, slots)
        else:  # without weights all values are 1, and need not be looked up
            value = whole.value.new_full((slots.numel(),), one)
        if whole.is_symmetric:
            pattern = SparsePattern(csr, csr, None, self.node_ptr)
            return SparseOperator(pattern, value, value)
        transposed, turned_slots = self._rows_of(whole.pattern.transposed)
        pattern = SparsePattern(csr, transposed, None, self.node_ptr)
        return SparseOperator(pattern, value, whole.transposed_value.index_select(0, turned_slots))

    @lazy_property
    def edge_index(self) -> Tensor:
        """The edges of the batch, `[2, E]`, for layers that pass messages along edges."""
        return self._edges[0]

    @lazy_property
    def edge_number(self) -> Tensor:
        """`[E]`; for each edge of the batch its number among all edges."""
        return self._edges[1]

    @property
    def edge_weight(self) -> Tensor | None:
        """The weights of the batch's edges, where the graphs have weights."""
        weight = self.blocks.edge_weight
        return None if weight is None else weight[self.edge_number]

    @lazy_property
    def _edges(self) -> tuple[Tensor, Tensor]:
        blocks = self.blocks
        count = blocks._edge_count[self.graphs]
        first = (blocks._edge_count.cumsum(0) - blocks._edge_count)[self.graphs]
        graph, position = runs(first, count)
        number = blocks._edge_order[position]
        return blocks.edge_index[:, number] + self._shift[graph], number

    def _rows_of(self, whole: CSR) -> tuple[CSR, Tensor]:
        """The batch's rows of a block-diagonal matrix, and the slots that they take along."""
        shape = (self.num_nodes, self.num_nodes)
        library = native_library()
        if library is not None:
            taken = calls.take_blocks(library, whole, self.blocks.node_ptr, self.graphs)
            if taken is not None:
                rowptr, col, slots = taken
                return CSR(rowptr, col, shape), slots
        first = whole.rowptr[self.blocks.node_ptr[self.graphs]]
        last = whole.rowptr[self.blocks.node_ptr[self.graphs + 1]]
        graph, slots = runs(first, last - first)
        dtype = whole.col.dtype
        ends = whole.rowptr.index_select(0, self.node_index + 1)
        lengths = ends - whole.rowptr.index_select(0, self.node_index)
        rowptr = _with_zero(lengths.cumsum(0)).to(dtype)
        col = whole.col.index_select(0, slots) + self._shift.to(dtype).index_select(0, graph)
        return CSR(rowptr, col, shape), slots


def check_node_ptr(node_ptr: Tensor) -> None:
    """Raises unless `node_ptr` is `[graphs + 1]`, starts at 0 and never falls."""
    if node_ptr.dim() != 1 or node_ptr.numel() < 1 or node_ptr.is_floating_point():
        raise ValueError(
            f"node_ptr has shape {list(node_ptr.shape)} and dtype {node_ptr.dtype}; expected "
            "integers [graphs + 1]"
        )
    if int(node_ptr[0]) != 0 or bool((node_ptr.diff() < 0).any()):
        raise ValueError("node_ptr must start at 0 and never fall: it counts the nodes so far")


def _with_zero(counts: Tensor) -> Tensor:
    return torch.cat([counts.new_zeros(1), counts])


def runs(first: Tensor, count: Tensor) -> tuple[Tensor, Tensor]:
    """The runs `first[i], first[i] + 1, …` of `count[i]` numbers each, and each number's `i`."""
    total = int(count.sum())
    run = torch.repeat_interleave(count, output_size=total)
    start = first - (count.cumsum(0, dtype=count.dtype) - count)
    places = torch.arange(total, device=first.device, dtype=first.dtype)
    return run, places + start.index_select(0, run)


def graph_as_given(
    edge_index: Tensor, edge_weight: Tensor | None, num_nodes: int, *, normalized: bool = False
) -> tuple[Adjacency, Tensor | None]:
    """A graph and its weights as layers take them.

    Args:
        edge_index: `[2, E]`.
        edge_weight: `[E]`, or `None`.
        num_nodes: The number of nodes.
        normalized: Whether the weights are an operator already, as those of a transform are. The
            graph is then one that layers take as it is, without normalising it again.

    Example:
        >>> from adgn.graph import graph_operator
        >>> edges, weight = torch.tensor([[0], [1]]), torch.tensor([0.25])
        >>> graph, rest = graph_as_given(edges, weight, 2, normalized=True)
        >>> graph_operator(graph, rest, num_nodes=2, normalization="gcn").to_dense().tolist()
        [[0.0, 0.0], [0.25, 0.0]]
    """
    if not normalized:
        return edge_index, edge_weight
    pointer = torch.tensor([0, num_nodes], device=edge_index.device)
    blocks = GraphBlocks(edge_index, pointer, edge_weight, normalized=True)
    return blocks.select(torch.zeros(1, dtype=torch.long, device=edge_index.device)), None
