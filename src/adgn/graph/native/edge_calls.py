"""The native kernels that work along edges, on torch tensors: dot products, cosines, attention."""

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from adgn.graph.native import calls
from adgn.graph.native.library import Attention, EntryPattern, NativeLibrary, buffers

if TYPE_CHECKING:
    from adgn.graph.operator import CSR


def unsupported_reason(csr: "CSR", *tensors: Tensor) -> str | None:
    """Why the kernels cannot work on this pattern and these tensors; `None` where they can."""
    return calls.unsupported_pattern_reason(csr) or calls.unsupported_reason(*tensors)


def edge_dots(library: NativeLibrary, csr: "CSR", left: Tensor, right: Tensor) -> Tensor:
    """`left[row] · right[col]` for each entry, `[entries]`; nothing here is `unsupported`."""
    calls.check_pattern(library, csr)
    _check_rows("left", left, csr.shape[0])
    _check_rows("right", right, csr.shape[1], left.size(1))
    return _dots(library, csr, calls.readable(left), calls.readable(right), None, 0.0)


def cosines(library: NativeLibrary, csr: "CSR", x: Tensor, norm: Tensor, floor: float) -> Tensor:
    """`x[row] · x[col] / max(norm[row] norm[col], floor)` for each entry of a square pattern."""
    calls.check_pattern(library, csr)
    _check_square(csr)
    _check_rows("x", x, csr.shape[0])
    _check_shape("norm", norm, (csr.shape[0],))
    x = calls.readable(x)
    return _dots(library, csr, x, x, calls.readable(norm), floor)


def _dots(
    library: NativeLibrary, csr: "CSR", left: Tensor, right: Tensor, norm: Tensor | None, at: float
) -> Tensor:
    out = buffers.empty(library, (csr.col.numel(),), left.dtype)
    library.call(
        "adgn_edge_dots",
        *(_pattern(csr), left.size(1), left.data_ptr(), right.data_ptr()),
        *(None if norm is None else norm.data_ptr(), at),
        *(out.data_ptr(), torch.get_num_threads()),
        dtype=left.dtype,
    )
    return out


def cosines_backward(
    library: NativeLibrary,
    csr: "CSR",
    x: Tensor,
    norm: Tensor,
    floor: float,
    cosine: Tensor,
    grad: Tensor,
) -> Tensor:
    """The gradient in `x` from that in `cosines(…, x, norm, floor)`, which is `cosine`."""
    calls.check_pattern(library, csr)
    _check_square(csr)
    _check_rows("x", x, csr.shape[0])
    _check_shape("norm", norm, (csr.shape[0],))
    for name, tensor in (("cosine", cosine), ("grad", grad)):
        _check_shape(name, tensor, (csr.col.numel(),))
    x, norm, cosine, grad = map(calls.readable, (x, norm, cosine, grad))
    grad_x = buffers.empty(library, x.shape, x.dtype)
    turned = _turned(library, csr)
    library.call(
        "adgn_cosine_backward",
        *(_pattern(csr, turned), x.size(1), x.data_ptr(), norm.data_ptr(), floor),
        *(cosine.data_ptr(), grad.data_ptr(), grad_x.data_ptr(), torch.get_num_threads()),
        dtype=x.dtype,
    )
    return grad_x


def attention(
    library: NativeLibrary,
    csr: "CSR",
    value: Tensor,
    states: Tensor,
    heads: int,
    slope: float,
    keep: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Outputs `[rows, heads * channels]`, shares, and the shares times `keep`, `[heads, entries]`.

    `states` is `[rows, heads * (channels + 2)]`, see `AttentionTask` in kernels.hpp.
    """
    channels = _check_attention(library, csr, value, states, heads, keep)
    value, states = calls.readable(value), calls.readable(states)
    keep = None if keep is None else calls.readable(keep)
    shape = (heads, csr.col.numel())
    share = buffers.empty(library, shape, states.dtype)
    used = share if keep is None else buffers.empty(library, shape, states.dtype)
    out = buffers.empty(library, (csr.shape[0], heads * channels), states.dtype)
    problem = Attention(
        _pattern(csr),
        *(value.data_ptr(), heads, channels, states.data_ptr(), slope),
        *(None if keep is None else keep.data_ptr(), share.data_ptr(), used.data_ptr()),
        torch.get_num_threads(),
    )
    library.call("adgn_attention_forward", problem, out.data_ptr(), dtype=states.dtype)
    return out, share, used


def attention_backward(
    library: NativeLibrary,
    csr: "CSR",
    states: Tensor,
    heads: int,
    slope: float,
    kept: tuple[Tensor, Tensor, Tensor],
    grad: Tensor,
) -> Tensor:
    """The gradient in `states` from that in the outputs; `kept` is what `attention` returned."""
    out, share, used = kept
    channels = _check_attention(library, csr, None, states, heads, None)
    for name, tensor in (("out", out), ("grad", grad)):
        _check_shape(name, tensor, (csr.shape[0], heads * channels))
    for name, tensor in (("share", share), ("used", used)):
        _check_shape(name, tensor, (heads, csr.col.numel()))
    states, out, share, used, grad = map(calls.readable, (states, out, share, used, grad))
    grad_states = buffers.empty(library, states.shape, states.dtype)
    turned = _turned(library, csr)
    problem = Attention(
        _pattern(csr, turned),
        *(None, heads, channels, states.data_ptr(), slope, None),
        *(share.data_ptr(), used.data_ptr(), torch.get_num_threads()),
    )
    library.call(
        "adgn_attention_backward",
        *(problem, out.data_ptr(), grad.data_ptr(), grad_states.data_ptr()),
        dtype=states.dtype,
    )
    return grad_states


Turned = tuple[Tensor, Tensor, Tensor]  # rowptr and col of the transpose, and its order


def _turned(library: NativeLibrary, csr: "CSR") -> Turned:
    """The transpose of a checked pattern, worked out once per state of its arrays."""
    arrays = (csr.rowptr, csr.col)
    if any(array.is_inference() for array in arrays):
        return calls.transpose(library, *arrays, csr.shape)
    state = tuple((array.data_ptr(), array._version) for array in arrays)
    known: tuple[object, Turned] | None = csr.__dict__.get("_turned")
    if known is None or known[0] != state:
        known = (state, calls.transpose(library, *arrays, csr.shape))
        csr.__dict__["_turned"] = known
    return known[1]


def _pattern(csr: "CSR", turned: Turned | None = None) -> EntryPattern:
    transposed = (None, None, None) if turned is None else [t.data_ptr() for t in turned]
    return EntryPattern(csr.rowptr.data_ptr(), csr.col.data_ptr(), *transposed, *csr.shape)


def _check_attention(
    library: NativeLibrary,
    csr: "CSR",
    value: Tensor | None,
    states: Tensor,
    heads: int,
    keep: Tensor | None,
) -> int:
    """Raises unless all arrays have the sizes that C++ takes for granted; returns the channels."""
    calls.check_pattern(library, csr)
    _check_square(csr)
    entries = csr.col.numel()
    if value is not None:
        _check_shape("value", value, (entries,))
    if keep is not None:
        _check_shape("keep", keep, (heads, entries))
    channels, rest = divmod(states.size(-1), heads)
    if states.dim() != 2 or states.size(0) != csr.shape[0] or rest or channels < 3:
        raise ValueError(
            f"states has shape {list(states.shape)}; expected [{csr.shape[0]}, heads * (channels + "
            f"2)] with heads={heads} and at least one channel"
        )
    return channels - 2


def _check_square(csr: "CSR") -> None:
    if csr.shape[0] != csr.shape[1]:
        raise ValueError(f"the operator has shape {list(csr.shape)}; expected [N, N]")


def _check_rows(name: str, x: Tensor, rows: int, channels: int | None = None) -> None:
    channels = x.size(-1) if channels is None else channels
    _check_shape(name, x, (rows, channels))


def _check_shape(name: str, tensor: Tensor, shape: tuple[int, ...]) -> None:
    if tensor.shape != shape:
        raise ValueError(f"{name} has shape {list(tensor.shape)}; expected {list(shape)}")
