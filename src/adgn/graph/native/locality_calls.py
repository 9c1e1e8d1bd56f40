"""The native functions of locality.hpp on torch tensors."""

import ctypes
from ctypes import c_int64
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from adgn.graph.native.calls import check_pattern, readable, unsupported_pattern_reason
from adgn.graph.native.library import NativeLibrary, Reading, buffers

if TYPE_CHECKING:
    from adgn.graph.operator import CSR


def order_by_neighbours(
    library: NativeLibrary, csr: "CSR", transposed: "CSR", first: int = 0, count: int | None = None
) -> Tensor:
    """Nodes of a square pattern in an order with neighbours close to each other, `[count]`.

    All of them, or those that come first where one begins at the node `first`; see locality.hpp.
    """
    nodes = csr.shape[0]
    count = nodes if count is None else count
    if csr.shape[1] != nodes or transposed.shape != csr.shape:
        raise ValueError(
            f"csr has shape {list(csr.shape)} and transposed {list(transposed.shape)}; nodes have "
            "an order where both are [N, N]"
        )
    if not (0 <= count <= nodes and (0 <= first < nodes or count == 0)):
        raise ValueError(
            f"first={first} and count={count} do not fit {nodes} nodes; give a first node below "
            f"and a count up to {nodes}"
        )
    arrays = _arrays(library, csr)
    if transposed is not csr:
        arrays += _arrays(library, transposed)
    order = torch.empty(count, dtype=torch.int32, device="cpu")
    pointers = [array.data_ptr() for array in arrays] + [None] * (4 - len(arrays))
    library.call("adgn_order_by_neighbours", *pointers, nodes, first, count, order.data_ptr())
    return order


def read_rows(
    library: NativeLibrary, csr: "CSR", rows: Tensor, begin: int, window: int
) -> tuple[int, int]:
    """How many entries some rows have, and how many of them wait for memory, in this order.

    With a cache of `window` states, counted from `rows[begin]` on; see locality.hpp. `rows` has
    32 bits.
    """
    rowptr, col = _arrays(library, csr)
    rows, found = readable(rows), Reading()
    library.call(
        "adgn_read_rows",
        *(rowptr.data_ptr(), col.data_ptr(), *csr.shape, rows.data_ptr(), rows.numel()),
        *(begin, window, ctypes.byref(found)),
    )
    if found.wrong >= 0:
        wrong = int(rows[found.wrong])
        raise ValueError(
            f"rows[{found.wrong}] = {wrong} is not a row; rows are 0 to {csr.shape[0] - 1}"
        )
    return found.entries, found.waits


def renumber(
    library: NativeLibrary, csr: "CSR", order: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """`rowptr` and `col` where node `order[i]` is node `i`, the slots of entries, and `place`.

    `order` `[N]`, of 32 bits, is a permutation, as `order_by_neighbours` returns it.
    """
    rowptr, col = _arrays(library, csr)
    order, wrong = readable(order), c_int64()
    new_rowptr, new_col, slot, place = (
        torch.empty_like(array) for array in (rowptr, col, col, order)
    )
    library.call(
        "adgn_renumber",
        *(rowptr.data_ptr(), col.data_ptr(), order.data_ptr(), csr.shape[0], place.data_ptr()),
        *(new_rowptr.data_ptr(), new_col.data_ptr(), slot.data_ptr(), ctypes.byref(wrong)),
    )
    if wrong.value >= 0:
        raise ValueError(
            f"order[{wrong.value}] = {int(order[wrong.value])} does not continue a permutation of "
            f"{csr.shape[0]} nodes; give each of them once"
        )
    return new_rowptr, new_col, slot, place


def take_rows(library: NativeLibrary, states: Tensor, order: Tensor) -> Tensor:
    """`states[order]` for states `[N, d]` and a permutation, by as many threads as torch has.

    Unlike torch's own it works in a forked child.
    """
    states = readable(states.detach())
    out = buffers.empty(library, states.shape, states.dtype)
    row_bytes = states.size(1) * states.element_size()
    library.call(
        "adgn_take_rows",
        *(states.data_ptr(), order.data_ptr(), states.size(0), row_bytes, out.data_ptr()),
        torch.get_num_threads(),
    )
    return out


def _arrays(library: NativeLibrary, csr: "CSR") -> list[Tensor]:
    reason = unsupported_pattern_reason(csr)
    if reason is not None:
        raise ValueError(f"the native kernels cannot read {reason}")
    check_pattern(library, csr)
    return [csr.rowptr, csr.col]
