"""Nodes in an order in which those that hear each other are close in memory."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from adgn.graph.native import calls
from adgn.graph.native.library import NativeLibrary, buffers
from adgn.graph.operator import SparseOperator, cached, tensor_state
from adgn.graph.two_way import GraphOperator, TwoWayOperator, sparse_operators_of

# States that take less, in bytes, stay in the second-level cache in any order.
CACHE_BYTES = 2**20
# How much less has to be read in the other order, in parts of the graph, for it to be worked out.
LEAST_GAIN = 1.25
_SAMPLES = 4


@dataclass(frozen=True, eq=False)
class Renumbered:
    """A graph whose nodes have other numbers.

    Attributes:
        order: `[N]`; the node that has each of the new numbers.
        place: `[N]`; the new number of each node.
        operator: The graph between the new numbers.
    """

    order: Tensor
    place: Tensor
    operator: GraphOperator

    def there(self, states: Tensor) -> Tensor:
        """States `[N, d]` in the order of the new numbers."""
        return _rows(states, self.order)

    def back(self, states: Tensor) -> Tensor:
        """States `[N, d]` in the new order in the one that was given."""
        return _rows(states, self.place)


def renumbered(
    library: NativeLibrary, operator: GraphOperator, row_bytes: int
) -> Renumbered | None:
    r"""The graph with nodes numbered so that neighbours are close, where that pays; else `None`.

    A neighbour sum reads the states of neighbours, and soon again those that nearby nodes have in
    common. How often a state is no longer in the cache depends on the order of the nodes. It is
    counted with a cache of as many states as a second-level cache has room for, at four places of
    the graph: for nodes with consecutive numbers, and for those that would follow each other in the
    new order. Where the first number is not larger by a quarter than the second, nothing is done:
    nodes drawn at random have no better order, and a mesh that is numbered along itself has a good
    one. All of it is worked out once for each operator.

    Args:
        library: The native kernels.
        operator: The graph, on the CPU.
        row_bytes: What the states of a node take in memory.

    Example:
        >>> from adgn.graph import graph_operator
        >>> from adgn.graph.native.library import native_library
        >>> ring = torch.randperm(40_000)  # the numbers along a ring
        >>> edges = torch.stack([ring, ring.roll(1)])
        >>> operator = graph_operator(torch.cat([edges, edges.flip(0)], 1), num_nodes=40_000)
        >>> library = native_library()
        >>> found = None if library is None else renumbered(library, operator, row_bytes=256)
        >>> found is None or found.order.numel()  # True without the native kernels
        40000
    """
    parts = sparse_operators_of(operator)
    nodes, window = operator.shape[0], max(1, CACHE_BYTES // max(1, row_bytes))
    made_from = [tensor for one in parts for tensor in (one.pattern.csr.col, one.value)]
    # What cannot be remembered would be worked out every time.
    if nodes < 2 * window or any(tensor_state(tensor) is None for tensor in made_from):
        return None
    return cached(tuple(made_from), ("renumbered", window), lambda: _build(library, parts, window))


def _build(
    library: NativeLibrary, operators: Sequence[SparseOperator], window: int
) -> Renumbered | None:
    first, *_ = operators
    nodes = first.shape[0]
    patterns = (first.pattern.csr, first.pattern.transposed)
    generator = torch.Generator().manual_seed(0)
    starts = torch.randint(0, nodes - 2 * window + 1, (_SAMPLES,), generator=generator).tolist()
    now = [torch.arange(start, start + 2 * window, dtype=torch.int32) for start in starts]
    then = [calls.order_by_neighbours(library, *patterns, start, 2 * window) for start in starts]
    if _misses(library, first, now) <= LEAST_GAIN * _misses(library, first, then):
        return None
    order = calls.order_by_neighbours(library, *patterns).long()
    place = torch.empty_like(order)
    place[order] = torch.arange(nodes)
    moved = []
    for one in operators:
        row, col = one.places
        value = one.value.detach()
        moved.append(SparseOperator.from_entries(place[row], place[col], value, one.shape))
    return Renumbered(order, place, moved[0] if len(moved) == 1 else TwoWayOperator(*moved))


def _misses(library: NativeLibrary, operator: SparseOperator, parts: Sequence[Tensor]) -> float:
    """Of the entries in the second halves of `parts`, the share that the cache does not have."""
    csr = operator.pattern.csr
    begin = parts[0].numel() // 2  # the first half fills the cache
    misses = [calls.count_misses(library, csr, part, begin, begin) for part in parts]
    read = torch.cat([part[begin:] for part in parts]).long()
    entries = int((csr.rowptr[read + 1] - csr.rowptr[read]).sum())
    return sum(misses) / max(1, entries)


def _rows(states: Tensor, which: Tensor) -> Tensor:
    out = buffers.empty(None, states.shape, states.dtype)
    return torch.index_select(states.detach(), 0, which, out=out)
