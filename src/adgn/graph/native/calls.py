"""The native kernels on torch tensors: what C++ takes for granted is checked or made here."""

import ctypes
import itertools
from collections.abc import Sequence
from ctypes import c_int64
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from adgn.graph.checks import check_entries
from adgn.graph.native.library import (
    DTYPES,
    Integration,
    Kept,
    KeptRates,
    Matrix,
    NativeLibrary,
    Scheme,
    buffers,
)

if TYPE_CHECKING:
    from adgn.graph.operator import CSR

ACTIVATIONS = {"identity": 0, "tanh": 1, "relu": 2}
_ROW_BYTES = 64  # states are padded to whole cache lines
CHECKPOINT_COUNT = 3  # checkpoint_count of integrate.hpp
_INT32_LIMIT = 2**31 - 1
_FAULTS = {
    1: "rowptr[{place}] does not continue an ascending count from 0 to the number of entries",
    2: "col[{place}] is out of range",
    3: "block_ptr[{place}] does not continue an ascending count from 0 to the number of rows",
    4: "col[{place}] lies outside of its row's block, but block_ptr says that blocks are separate",
}


def unsupported_reason(*tensors: Tensor) -> str | None:
    """Why the kernels cannot read these tensors; `None` where they can."""
    for tensor in tensors:
        if tensor.device.type != "cpu":
            return f"tensors on {tensor.device}"
        if tensor.dtype not in DTYPES:
            return f"dtype {tensor.dtype}"
        if tensor.dtype != tensors[0].dtype:
            return f"mixed dtypes {tensors[0].dtype} and {tensor.dtype}"
        if tensor.layout != torch.strided or type(tensor) not in (Tensor, torch.nn.Parameter):
            return f"a {type(tensor).__name__} of layout {tensor.layout}"
        if torch._C._functorch.is_functorch_wrapped_tensor(tensor):
            return "a torch.func transform"
    return None


def readable(tensor: Tensor) -> Tensor:
    """The same numbers as C++ reads them: in one piece, none of them left for torch to work out.

    Torch may only note that a tensor is to be negated, or that it is zero without any memory.
    """
    lazy = tensor.is_neg() or tensor._is_zerotensor()
    return (tensor.clone() if lazy else tensor).contiguous()


def unsupported_pattern_reason(csr: "CSR") -> str | None:
    """Why the kernels cannot read this pattern; `None` where they can."""
    for name, index in (("rowptr", csr.rowptr), ("col", csr.col)):
        if index.device.type != "cpu":
            return f"a graph on {index.device}"
        if index.dtype != torch.int32:
            return f"{index.dtype} {name} (the kernels take 32-bit indices)"
        one_array = index.layout == torch.strided and index.dim() == 1 and index.is_contiguous()
        if not one_array or index.is_neg() or index._is_zerotensor():
            return f"a {name} that is not one contiguous array"
    if csr.rowptr.numel() != csr.shape[0] + 1:
        return f"{csr.rowptr.numel()} row pointers for {csr.shape[0]} rows"
    return None


def check_pattern(library: NativeLibrary, csr: "CSR", block_ptr: Tensor | None = None) -> None:
    """Raises unless all indices stay inside their arrays; looked at once per state of the arrays.

    Writes that torch cannot count (through `tensor.data` or NumPy) are not seen.
    """
    arrays = [csr.rowptr, csr.col] + ([] if block_ptr is None else [block_ptr])
    countable = not any(array.is_inference() for array in arrays)
    checked: set[object] = csr.__dict__.setdefault("_checked", set())
    if countable:
        state = tuple((array.data_ptr(), array.numel(), array._version) for array in arrays)
        if state in checked:
            return
    place = c_int64()
    fault = library.call(
        "adgn_check_pattern",
        *(csr.rowptr.data_ptr(), csr.col.data_ptr(), *csr.shape, csr.col.numel()),
        *(pointer(block_ptr), 0 if block_ptr is None else block_ptr.numel() - 1),
        ctypes.byref(place),
    )
    if fault:
        raise ValueError(
            f"the operator of shape {list(csr.shape)} is not valid: "
            + _FAULTS[fault].format(place=place.value)
        )
    if countable:
        checked.add(state)


def multiply(library: NativeLibrary, csr: "CSR", value: Tensor, x: Tensor) -> Tensor:
    """`A @ x` for `x` of shape `[columns, channels]`; both tensors passed `unsupported_reason`."""
    check_pattern(library, csr)
    _check_values(csr, value)
    if x.dim() != 2 or x.size(0) != csr.shape[1]:
        raise ValueError(
            f"x has shape {list(x.shape)}; the operator of shape {list(csr.shape)} multiplies "
            f"[{csr.shape[1]}, channels]"
        )
    value, x = readable(value), readable(x)
    out = buffers.empty(library, (csr.shape[0], x.size(1)), x.dtype)
    library.call(
        "adgn_multiply",
        _matrix(csr, value),
        *(csr.shape[0], x.size(1), x.data_ptr(), out.data_ptr(), torch.get_num_threads()),
        dtype=x.dtype,
    )
    return out


def sort_entries(
    library: NativeLibrary, row: Tensor, col: Tensor, shape: tuple[int, int]
) -> tuple[Tensor, Tensor, Tensor] | None:
    """`rowptr` and `col` of entries sorted and merged, and each entry's slot.

    `None` where the kernels cannot do it: on other devices, or where 32 bits are too few.
    """
    if row.device.type != "cpu" or max(*shape, row.numel()) > _INT32_LIMIT:
        return None
    row, col = readable(row.long()), readable(col.long())
    rowptr = torch.empty(shape[0] + 1, dtype=torch.int32, device="cpu")
    sorted_col = torch.empty(row.numel(), dtype=torch.int32, device="cpu")
    slot = torch.empty(row.numel(), dtype=torch.int32, device="cpu")
    slots = c_int64()
    library.call(
        "adgn_sort_entries",
        *(row.data_ptr(), col.data_ptr(), row.numel(), *shape),
        *(rowptr.data_ptr(), sorted_col.data_ptr(), slot.data_ptr(), ctypes.byref(slots)),
    )
    if slots.value < 0:
        check_entries(row, col, shape)  # names the entry that was found
    if slots.value < sorted_col.numel():
        sorted_col = sorted_col[: slots.value].clone()
    return rowptr, sorted_col, slot


def transpose(
    library: NativeLibrary, rowptr: Tensor, col: Tensor, shape: tuple[int, int]
) -> tuple[Tensor, Tensor, Tensor]:
    """`rowptr` and `col` of the transpose, and where each of its slots comes from."""
    turned_rowptr = torch.empty(shape[1] + 1, dtype=torch.int32, device="cpu")
    turned_col, order = torch.empty_like(col), torch.empty_like(col)
    library.call(
        "adgn_transpose",
        *(rowptr.data_ptr(), col.data_ptr(), *shape),
        *(turned_rowptr.data_ptr(), turned_col.data_ptr(), order.data_ptr()),
    )
    return turned_rowptr, turned_col, order


def count_at_edges(
    library: NativeLibrary,
    rowptr: Tensor,
    col: Tensor,
    first: Tensor,
    second: Tensor,
    *,
    lone: bool = False,
) -> Tensor:
    """`[4, pairs]`: triangles, nodes in 4-cycles, most cycles through one, and lone triangles.

    See neighbourhood.hpp. The rows, of 32 bits, are those of a simple undirected graph; the last
    count is zero unless `lone` asks for it.
    """
    counts = torch.zeros(4, first.numel(), dtype=torch.int64, device="cpu")
    first, second = readable(first.long()), readable(second.long())
    library.call(
        "adgn_count_at_edges",
        *(rowptr.data_ptr(), col.data_ptr(), rowptr.numel() - 1),
        *(first.data_ptr(), second.data_ptr(), first.numel()),
        *(counts[0].data_ptr(), counts[1].data_ptr(), counts[2].data_ptr()),
        *(counts[3].data_ptr() if lone else None, torch.get_num_threads()),
    )
    return counts


def take_blocks(
    library: NativeLibrary, csr: "CSR", node_ptr: Tensor, blocks: Tensor
) -> tuple[Tensor, Tensor, Tensor] | None:
    """Some blocks of a block-diagonal matrix, one after the other, as a matrix of their own.

    `node_ptr` says where each block's rows and columns begin, `blocks` has the numbers of those
    wanted. The result is `rowptr`, `col`, and the slot of `csr` that each entry comes from; `None`
    where the kernels cannot do it: on other devices, or where 32 bits are too few.
    """
    devices = {node_ptr.device.type, blocks.device.type}
    if unsupported_pattern_reason(csr) is not None or devices != {"cpu"}:
        return None
    blocks, node_ptr = readable(blocks.long()), readable(node_ptr.long())
    check_pattern(library, csr, node_ptr)
    if blocks.numel() and int(blocks.min()) < 0:
        raise IndexError(f"block {int(blocks.min())} is not there; blocks are numbered from 0")
    first, last = node_ptr[blocks], node_ptr[blocks + 1]  # raises for a block beyond the last
    rows = int((last - first).sum())
    # Summed in 64 bits: a block may be wanted more often than 32 bits can count its entries.
    entries = int((csr.rowptr[last] - csr.rowptr[first]).sum(dtype=torch.int64))
    if max(rows, entries) > _INT32_LIMIT:
        return None
    rowptr = torch.empty(rows + 1, dtype=torch.int32, device="cpu")
    col, slot = (torch.empty(entries, dtype=torch.int32, device="cpu") for _ in range(2))
    library.call(
        "adgn_take_blocks",
        *(csr.rowptr.data_ptr(), csr.col.data_ptr(), node_ptr.data_ptr()),
        *(blocks.data_ptr(), blocks.numel()),
        *(rowptr.data_ptr(), col.data_ptr(), slot.data_ptr()),
    )
    return rowptr, col, slot


def tanh(library: NativeLibrary, x: Tensor) -> Tensor:
    """The kernels' tanh, for tests of its accuracy."""
    x = readable(x)
    out = torch.empty_like(x)
    library.call("adgn_tanh", x.numel(), x.data_ptr(), out.data_ptr(), dtype=x.dtype)
    return out


def padded_width(channels: int, dtype: torch.dtype) -> int:
    """`channels`, rounded up to whole cache lines."""
    step = _ROW_BYTES // dtype.itemsize
    return -(-channels // step) * step


def integration(
    library: NativeLibrary,
    csr: "CSR",
    value: Tensor,
    w_self: Tensor,
    w_neigh: Tensor,
    bias: Tensor | None,
    block_ptr: Tensor | None,
    epsilon: float,
    activation: str,
    count: int,
    second: tuple["CSR", Tensor] | None = None,
    extra: int = 0,
    step_rows: Sequence[int] | None = None,
) -> Integration:
    """Some Euler steps as C++ reads them; tensors are `readable` and have no `unsupported_reason`.

    The fields of `Integration` in integrate.hpp say what they are. `csr` is the transpose for the
    backward pass, and `activation` a key of `ACTIVATIONS`. `second` are pattern and values of
    another operator, for the lower half of `w_neigh`, which is then `[K, 2 d, d]`. With `extra` the
    pattern has so many columns more than rows: see `adgn.graph.native.part_calls`. `step_rows` says
    how many of the first rows each step computes, without `block_ptr` only; all by default.
    """
    for pattern, values in [(csr, value)] + ([] if second is None else [second]):
        check_pattern(library, pattern, block_ptr)
        _check_values(pattern, values)
        if pattern.shape != (csr.shape[0], csr.shape[0] + extra):
            raise ValueError(
                f"the operator has shape {list(pattern.shape)}; expected [N, N], as many nodes as "
                "there are states"
            )
    rows = _step_rows(step_rows, count, csr.shape[0], block_ptr)
    problem = Integration(
        _matrix(csr, value),
        Matrix(None, None, None) if second is None else _matrix(*second),
        *(csr.shape[0], w_self.size(-1), count, w_self.size(0)),
        *(w_self.data_ptr(), w_neigh.data_ptr(), pointer(bias)),
        *(epsilon, ACTIVATIONS[activation]),
        *(pointer(block_ptr), 0 if block_ptr is None else block_ptr.numel() - 1),
        torch.get_num_threads(),
        pointer(rows),
    )
    # The memory lives as long.
    problem.tensors = (csr, value, second, w_self, w_neigh, bias, block_ptr, rows)
    problem.last_rows = csr.shape[0] if step_rows is None else step_rows[-1]
    return problem


def _step_rows(
    given: Sequence[int] | None, count: int, nodes: int, block_ptr: Tensor | None
) -> Tensor | None:
    """The rows of each step as C++ reads them; raises where it would go past its arrays."""
    if given is None:
        return None
    falling = all(a >= b for a, b in itertools.pairwise([nodes, *given, 0]))
    if len(given) != count or not falling or block_ptr is not None:
        raise ValueError(
            f"step_rows={list(given)} is not valid; give for each of {count} steps how many of "
            f"{nodes} rows it computes, never more than the step before, and no block_ptr"
        )
    return torch.tensor(given, dtype=torch.int64, device="cpu")


# See `Kept` in integrate.hpp: states, active, first.
KeptTensors = tuple[Tensor | None, Tensor | None, Tensor | None]


def forward(
    library: NativeLibrary, problem: Integration, x: Tensor, keep: bool
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """The states after the steps, and states and active of `Kept` in integrate.hpp."""
    _check_states("x", x, problem)
    nodes, channels = x.shape
    width = padded_width(channels, x.dtype)
    shape = (problem.steps, nodes, width)
    states = buffers.empty(library, shape, x.dtype) if keep else None
    relu = problem.activation == ACTIVATIONS["relu"]
    active = buffers.empty(library, shape, torch.uint8) if keep and relu else None
    start = padded(x, problem, width)
    out, spare = buffers.empty(library, start.shape, x.dtype), None
    alternating = not keep or problem.activation == ACTIVATIONS["tanh"]
    if problem.block_ptr is None and alternating and problem.steps > 1:
        spare = buffers.empty(library, start.shape, x.dtype)
    library.call(
        "adgn_forward",
        *(problem, start.data_ptr(), start.size(1), out.data_ptr(), pointer(spare)),
        Kept(pointer(states), pointer(active), None),
        dtype=x.dtype,
    )
    return _trimmed(out, channels, problem.last_rows), states, active


def backward(
    library: NativeLibrary,
    problem: Integration,
    grad: Tensor,
    kept: KeptTensors,
    grad_weights: tuple[Tensor, Tensor, Tensor | None] | None,
) -> Tensor:
    """The gradient in the first states; those in the weights are added to `grad_weights`.

    `problem` has the transposed pattern, `kept` is what `forward` kept and, for tanh, the first
    states, and `grad_weights` are those of `w_self`, `w_neigh` and `bias`, if they are needed.
    """
    _check_states("grad", grad, problem, problem.last_rows)
    nodes, channels = problem.nodes, grad.size(1)
    width = padded_width(channels, grad.dtype)
    start = padded(grad, problem, width)
    grad_x, spare = buffers.empty(library, (nodes, start.size(1)), grad.dtype), None
    if problem.block_ptr is None:
        arrays = 2 + CHECKPOINT_COUNT if problem.activation == ACTIVATIONS["tanh"] else 2
        spare = buffers.empty(library, (arrays, nodes, width), grad.dtype)
    states, active, first = kept
    if first is not None:
        _check_states("x", first, problem)
        first = padded(first, problem, width)
    library.call(
        "adgn_backward",
        *(problem, start.data_ptr(), start.size(1), grad_x.data_ptr(), pointer(spare)),
        Kept(pointer(states), pointer(active), pointer(first)),
        *map(pointer, grad_weights or (None, None, None)),
        dtype=grad.dtype,
    )
    return _trimmed(grad_x, channels)


def scheme(factors: Tensor, ends_step: Tensor, position: float | None) -> Scheme:
    """A scheme as C++ reads it; the fields of `Scheme` in scheme.hpp say what they are."""
    known = Scheme(
        *(factors.size(0), factors.size(1), factors.data_ptr(), ends_step.data_ptr()),
        *(int(position is not None), position or 0.0),
    )
    known.tensors = (factors, ends_step)
    return known


def scheme_forward(
    library: NativeLibrary,
    problem: Integration,
    scheme: Scheme,
    x: Tensor,
    velocity: Tensor | None,
    keep: bool,
) -> tuple[Tensor, Tensor | None, Tensor | None, Tensor | None]:
    """The states after the steps, the velocity, and rates and starts of `KeptRates`."""
    _check_states("x", x, problem)
    nodes, channels = x.shape
    width = padded_width(channels, x.dtype)
    start = padded(x, problem, width)
    rates = starts = spare = None
    if keep:
        starts = buffers.empty(library, (problem.steps, nodes, width), x.dtype)
        if velocity is None or problem.activation != ACTIVATIONS["identity"]:
            rates = buffers.empty(library, (scheme.rates, nodes, width), x.dtype)
    if problem.block_ptr is None:
        spare = buffers.empty(library, (4 + scheme.history, nodes, width), x.dtype)
    out = buffers.empty(library, start.shape, x.dtype)
    moving = None
    if velocity is not None:
        _check_states("velocity", velocity, problem)
        moving = padded(velocity, problem, width).clone()
    library.call(
        "adgn_scheme_forward",
        *(problem, scheme, start.data_ptr(), start.size(1), pointer(moving), out.data_ptr()),
        *(pointer(spare), KeptRates(pointer(rates), pointer(starts))),
        dtype=x.dtype,
    )
    moved = None if moving is None else _trimmed(moving, channels)
    return _trimmed(out, channels), moved, rates, starts


def scheme_backward(
    library: NativeLibrary,
    problem: Integration,
    scheme: Scheme,
    grad: Tensor,
    grad_velocity: Tensor | None,
    kept: tuple[Tensor | None, Tensor],
    grad_weights: tuple[Tensor, Tensor, Tensor | None] | None,
) -> tuple[Tensor, Tensor | None]:
    """The gradients in the first states and in the first velocity; as `backward` otherwise."""
    _check_states("grad", grad, problem)
    nodes, channels = grad.shape
    width = padded_width(channels, grad.dtype)
    start = padded(grad, problem, width)
    grad_x, spare = buffers.empty(library, start.shape, grad.dtype), None
    if problem.block_ptr is None:
        spare = buffers.empty(library, (2 + scheme.history, nodes, width), grad.dtype)
    moving = None
    if grad_velocity is not None:
        moving = padded(grad_velocity, problem, width).clone()
    library.call(
        "adgn_scheme_backward",
        *(problem, scheme, start.data_ptr(), start.size(1), pointer(moving), grad_x.data_ptr()),
        *(pointer(spare), KeptRates(*map(pointer, kept))),
        *map(pointer, grad_weights or (None, None, None)),
        dtype=grad.dtype,
    )
    moved = None if moving is None else _trimmed(moving, channels)
    return _trimmed(grad_x, channels), moved


def padded(x: Tensor, problem: Integration, width: int) -> Tensor:
    """Rows as the kernels take them: padded where they are worked on in place."""
    if problem.block_ptr is not None or x.size(1) == width:
        return readable(x)
    return torch.nn.functional.pad(x, (0, width - x.size(1)))


def _trimmed(x: Tensor, channels: int, rows: int | None = None) -> Tensor:
    """Rows without their padding, and never a view: torch forbids to change one in place."""
    rows = x.size(0) if rows is None else rows
    return x if x.shape == (rows, channels) else x[:rows, :channels].clone()


def _matrix(csr: "CSR", value: Tensor) -> Matrix:
    return Matrix(csr.rowptr.data_ptr(), csr.col.data_ptr(), value.data_ptr())


def pointer(tensor: Tensor | None) -> int | None:
    """Where a tensor's numbers begin, if there is one."""
    return None if tensor is None else tensor.data_ptr()


def _check_values(csr: "CSR", value: Tensor) -> None:
    if value.shape != (csr.col.numel(),):
        raise ValueError(
            f"the operator has values of shape {list(value.shape)} for {csr.col.numel()} entries"
        )


def _check_states(name: str, states: Tensor, problem: Integration, rows: int | None = None) -> None:
    """C++ takes the number of nodes from the pattern and that of channels from the weights."""
    expected = (problem.nodes if rows is None else rows, problem.channels)
    if states.shape != expected:
        raise ValueError(
            f"{name} has shape {list(states.shape)}; the operator and the weights are for "
            f"states of shape {list(expected)}"
        )
