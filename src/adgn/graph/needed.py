"""Which states of a deep network what is read still depends on, layer by layer."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from adgn.graph.adjacency import sparse_features
from adgn.graph.blocks import runs
from adgn.graph.cache import cached
from adgn.graph.checks import check_count, check_node_numbers
from adgn.graph.edge_operator import EdgeOperator
from adgn.graph.operator import SparseOperator, SparsePattern
from adgn.graph.two_way import GraphOperator, TwoWayOperator, operators_of, sparse_operators_of

# What a row costs besides its entries, in entries: products with [d, d] weights for d = 32.
ROW_COST = 16
# With more of the work left than this, renumbering the nodes costs as much as it saves.
LARGEST_SHARE = 0.75
# Below this much work saved, in entries, the calls that renumber cost more.
LEAST_SAVED = 30_000
# On graphs with fewer nodes than this even asking costs more than it could save.
LEAST_NODES = 512


@dataclass(frozen=True, eq=False)
class NeededNodes:
    r"""The part of a graph on which the last states of some nodes depend, and for how long.

    Where $\mathcal{N}_L$ are the nodes that are read after $L$ layers, each of which hears one edge
    away, layer $\ell$ is needed at $\mathcal{N}_\ell$ alone:

    $$
    \mathcal{N}_{\ell - 1} = \mathcal{N}_\ell \cup
        \{ j : a_{uj} \neq 0,\ u \in \mathcal{N}_\ell \}
    $$

    The nodes are numbered anew, those that are needed longest first: the states that layer $\ell$
    has to compute are the first `counts[l]` rows of what it is given.

    Attributes:
        nodes: `[counts[0]]`; the number of each in the whole graph.
        counts: How many first states are needed, then how many after each layer.
        operator: The graph between them, `[counts[0], counts[0]]`, whose rows from `counts[1]` on
            are empty.
        read: `[K]`; where each node that is read is among the last states.
    """

    nodes: Tensor
    counts: tuple[int, ...]
    operator: GraphOperator
    read: Tensor
    _layers: dict[int, GraphOperator] = field(default_factory=dict)

    @property
    def num_layers(self) -> int:
        """How many layers there are."""
        return len(self.counts) - 1

    def between(self, first: int, last: int) -> "NeededNodes":
        """The layers `first` to `last - 1` alone, with the nodes and edges that they need."""
        if (first, last) == (0, self.num_layers):
            return self
        counts = self.counts[first : last + 1]
        return NeededNodes(self.nodes[: counts[0]], counts, self.layer(first), self.read)

    def layer(self, number: int) -> GraphOperator:
        """The operator of one layer, counted from 0: of the states that it is given.

        Its rows from `counts[number + 1]` on are empty.
        """
        if number == 0:
            return self.operator
        if number not in self._layers:
            sizes = self.counts[number], self.counts[number + 1]
            parts = [_first_rows(one, *sizes) for one in sparse_operators_of(self.operator)]
            self._layers[number] = parts[0] if len(parts) == 1 else TwoWayOperator(*parts)
        return self._layers[number]


def needed_nodes(operator: GraphOperator, nodes: Tensor, num_layers: int) -> NeededNodes | None:
    """What the states of `nodes` after `num_layers` layers depend on; `None` for nearly all.

    Worked out once for each operator and tensor of nodes. It is also `None` where nothing can be
    worked out beforehand: for traced and explained graphs and learned edge weights. "Nearly all" is
    more than three quarters of the work, where an entry of the operator counts one and a node 16,
    or all but 30 000.

    Args:
        operator: What each layer applies.
        nodes: `[K]`; the numbers of the nodes that are read, in any order, also repeated.
        num_layers: How many layers.

    Example:
        >>> from adgn.graph import graph_operator
        >>> path = torch.stack([torch.arange(999), torch.arange(1, 1000)])  # 0 → 1 → … → 999
        >>> needed = needed_nodes(graph_operator(path, num_nodes=1000), torch.tensor([3]), 2)
        >>> needed.nodes.tolist(), needed.counts
        ([3, 2, 1], (3, 2, 1))
    """
    check_count("num_layers", num_layers)
    operators = operators_of(operator)
    if any(isinstance(one, EdgeOperator) or one.value.requires_grad for one in operators):
        return None
    found = sparse_operators_of(operator)
    made_from = [tensor for one in found for tensor in (one.pattern.csr.col, one.value)]

    def build() -> NeededNodes | None:
        check_node_numbers("nodes", nodes, operator.shape[0], found[0].value)
        return _build(found, nodes, num_layers)

    return cached((nodes, *made_from), ("needed", num_layers), build)


def feature_rows(x: Tensor, nodes: Tensor) -> SparseOperator:
    """Rows of sparse CSR features as an operator, worked out once for each `nodes`.

    Example:
        >>> x = torch.tensor([[0.0, 2.0], [3.0, 0.0]]).to_sparse_csr()
        >>> feature_rows(x, torch.tensor([1])).to_dense().tolist()
        [[3.0, 0.0]]
    """

    def build() -> SparseOperator:
        whole = sparse_features(x)
        shape = (nodes.numel(), whole.shape[1])
        return SparseOperator.from_entries(*_entries_of(whole, nodes), shape)

    return cached((x, nodes), "rows", build)


def _build(
    operators: Sequence[SparseOperator], nodes: Tensor, num_layers: int
) -> NeededNodes | None:
    total = operators[0].shape[0]
    # The last layer after which each node's state is needed; the frontier of each layer is new.
    last = torch.full((total,), -1, device=nodes.device)
    last[nodes] = num_layers
    frontier = torch.unique(nodes)
    for layer in reversed(range(num_layers)):
        heard = torch.cat([_entries_of(one, frontier)[1] for one in operators]).long()
        frontier = torch.unique(heard[last[heard] < 0])
        last[frontier] = layer
    needed = (last >= 0).nonzero().view(-1)
    order = needed[torch.argsort(last[needed], descending=True, stable=True)]
    by_layer = torch.bincount(last[order], minlength=num_layers + 1)
    counts = tuple(by_layer.flip(0).cumsum(0).flip(0).tolist())
    place = torch.empty_like(last)
    place[order] = torch.arange(order.numel(), device=nodes.device)
    size = (counts[0], counts[0])
    parts, work = [], ROW_COST * sum(counts[1:])
    for one in operators:
        row, col, value = _entries_of(one, order[: counts[1]])
        parts.append(SparseOperator.from_entries(row, place[col.long()], value, size))
        ends = parts[-1].pattern.csr.rowptr[torch.tensor(counts[1:], device=nodes.device)]
        work += int(ends.sum(dtype=torch.int64))
    entries = sum(one.num_entries for one in operators)
    whole = num_layers * (entries + ROW_COST * total)
    if work > LARGEST_SHARE * whole or whole - work < LEAST_SAVED:
        return None
    operator = parts[0] if len(parts) == 1 else TwoWayOperator(*parts)
    return NeededNodes(order, counts, operator, place[nodes])


def _entries_of(operator: SparseOperator, rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The entries of some rows: the place of each entry's row in `rows`, its column and value."""
    rowptr = operator.pattern.csr.rowptr.long()
    first = rowptr[rows]
    row, slot = runs(first, rowptr[rows + 1] - first)
    col = operator.pattern.csr.col.index_select(0, slot)
    return row, col, operator.value.detach().index_select(0, slot)


def _first_rows(operator: SparseOperator, size: int, rows: int) -> SparseOperator:
    """The first rows of an operator, which have no entry from column `size` on, as `[size, size]`.

    Those from `rows` on are empty.
    """
    end = int(operator.pattern.csr.rowptr[rows])
    csr = operator.pattern.csr
    pattern, _ = SparsePattern.from_entries(csr.row[:end], csr.col[:end], (size, size))
    return SparseOperator(pattern, operator.value[:end].clone())
