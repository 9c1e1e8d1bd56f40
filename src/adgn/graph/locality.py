"""Nodes in an order in which those that hear each other are close in memory."""

from dataclasses import dataclass

import torch
from torch import Tensor

from adgn.graph.cache import cached, tensor_state
from adgn.graph.native.library import NativeLibrary
from adgn.graph.native.locality_calls import order_by_neighbours, read_rows, renumber, take_rows
from adgn.graph.operator import CSR, SparseOperator, SparsePattern
from adgn.graph.two_way import GraphOperator, TwoWayOperator, sparse_operators_of

# States that take less, in bytes, stay in the second-level cache in any order.
CACHE_BYTES = 2**20
# The share of entries that have to wait for memory in the given order alone, for another one to be
# made. An entry with a wait takes several times as long as one without.
LEAST_SAVED = 0.1
_SAMPLES = 4


@dataclass(frozen=True, eq=False)
class Renumbered:
    """A graph whose nodes have other numbers.

    Attributes:
        library: The native kernels.
        order: `[N]`; the node that has each of the new numbers.
        place: `[N]`; the new number of each node.
        operator: The graph between the new numbers.
    """

    library: NativeLibrary
    order: Tensor
    place: Tensor
    operator: GraphOperator

    def there(self, states: Tensor) -> Tensor:
        """States `[N, d]` in the order of the new numbers."""
        return take_rows(self.library, states, self.order)

    def back(self, states: Tensor) -> Tensor:
        """States `[N, d]` in the new order in the one that was given."""
        return take_rows(self.library, states, self.place)


def renumbered(
    library: NativeLibrary, operator: GraphOperator, row_bytes: int
) -> Renumbered | None:
    r"""The graph with nodes numbered so that neighbours are close, where that pays; else `None`.

    A neighbour sum reads the states of neighbours, and soon again those that nearby nodes have in
    common. How often it has to wait for a state that is no longer in the cache depends on the order
    of the nodes. That is counted, with a cache of as many states as a second-level one has room
    for, at four places of the graph: for nodes with consecutive numbers, and for those that would
    follow each other in the new order. Where that saves less than a tenth of the entries a wait,
    nothing is done: nodes drawn at random have no better order, and a mesh that is numbered along
    itself has a good one. All of it is worked out once for each operator.

    Args:
        library: The native kernels.
        operator: The graph, on the CPU.
        row_bytes: What the states of a node take in memory.

    Example:
        >>> from adgn.graph import graph_operator
        >>> from adgn.graph.native.library import native_library
        >>> ring = torch.randperm(40_000, generator=torch.Generator().manual_seed(0))
        >>> edges = torch.stack([ring, ring.roll(1)])  # between neighbours along a ring
        >>> operator = graph_operator(torch.cat([edges, edges.flip(0)], 1), num_nodes=40_000)
        >>> library = native_library()
        >>> found = None if library is None else renumbered(library, operator, row_bytes=256)
        >>> found is None or sorted(found.order.tolist()) == list(range(40_000))
        True
    """
    first, *_ = parts = sparse_operators_of(operator)
    nodes, window = operator.shape[0], max(1, CACHE_BYTES // max(1, row_bytes))
    made_from = [tensor for one in parts for tensor in (one.pattern.csr.col, one.value)]
    # What cannot be remembered would be worked out every time.
    if nodes < 2 * window or any(tensor_state(tensor) is None for tensor in made_from):
        return None
    col = first.pattern.csr.col

    def find_order() -> Tensor:
        return order_by_neighbours(library, first.pattern.csr, first.pattern.transposed)

    def order() -> Tensor:
        return cached((col,), "order by neighbours", find_order)

    def pays() -> bool:
        # Of a small graph the samples would be more work than all of it.
        whole = nodes <= _SAMPLES * 2 * window
        return _saved(library, first.pattern, window, order() if whole else None) >= LEAST_SAVED

    if not cached((col,), ("another order pays", window), pays):
        return None
    moved = [_moved(library, one, order()) for one in parts]
    new = moved[0][0] if len(moved) == 1 else TwoWayOperator(*(pair[0] for pair in moved))
    return Renumbered(library, order(), moved[0][1], new)


def _saved(
    library: NativeLibrary, pattern: SparsePattern, window: int, order: Tensor | None
) -> float:
    """The share of entries that wait for memory in the given order, less that in the new one.

    Of all nodes where the new order is known, else of samples, each of two windows of nodes.
    """
    nodes = pattern.shape[0]
    if order is not None:
        now, then = [_count_up(0, nodes)], [order]
    else:
        generator = torch.Generator().manual_seed(0)
        places = torch.randint(
            nodes - 2 * window + 1, (_SAMPLES,), generator=generator, device="cpu"
        )
        patterns = (pattern.csr, pattern.transposed)
        now = [_count_up(place, place + 2 * window) for place in places.tolist()]
        then = [
            order_by_neighbours(library, *patterns, place, 2 * window) for place in places.tolist()
        ]
    return _waits(library, pattern.csr, now, window) - _waits(library, pattern.csr, then, window)


def _waits(library: NativeLibrary, csr: CSR, parts: list[Tensor], window: int) -> float:
    """Of the entries of `parts`, but for the first `window` of their rows, the share that waits."""
    read = [read_rows(library, csr, part, window, window) for part in parts]
    return sum(waits for _, waits in read) / max(1, sum(entries for entries, _ in read))


def _moved(
    library: NativeLibrary, operator: SparseOperator, order: Tensor
) -> tuple[SparseOperator, Tensor]:
    """The operator between the new numbers, and the new number of each node.

    The pattern is renumbered once for all values, and the values end with those they came from.
    """
    csr, value = operator.pattern.csr, operator.value

    def pattern() -> tuple[SparsePattern, Tensor, Tensor]:
        rowptr, col, slot, place = renumber(library, csr, order)
        return SparsePattern.from_csr(CSR(rowptr, col, csr.shape)), slot, place

    new, slot, place = cached((csr.col, order), "renumbered", pattern)

    def values() -> SparseOperator:
        return SparseOperator(new, value.detach().index_select(0, slot))

    return cached((value, csr.col, order), "renumbered", values), place


def _count_up(first: int, last: int) -> Tensor:
    return torch.arange(first, last, dtype=torch.int32, device="cpu")
