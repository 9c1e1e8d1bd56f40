"""The native kernels as ctypes sees them, the memory they work in, and whether they serve.

Memory for states is used again and again: clearing fresh pages costs more than the work. Large
arrays come back to `buffers` when nothing refers to them any more, and serve the next request for
as many bytes or a little less: batches of graphs differ in size. A request that none of them fits
frees all of them first, so that graphs of changing sizes leave nothing behind; so does
`adgn.graph.clear_cache()`.
"""

import ctypes
import itertools
import logging
import os
import sys
import weakref
from collections.abc import Sequence
from ctypes import POINTER, Structure, c_char_p, c_double, c_int, c_int64, c_void_p
from dataclasses import dataclass
from functools import cache
from math import prod
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from adgn._util.suggestions import unknown_name

Setting = Literal["auto", "native", "torch"]
SETTINGS: tuple[Setting, ...] = ("auto", "native", "torch")
VARIABLE = "ADGN_BACKEND"
LARGE = 2**23  # bytes: a few large pages; below, malloc itself keeps memory

_FILE = "_kernels.dll" if sys.platform == "win32" else "_kernels.so"  # as setup.py names it
_INTERFACE = 9  # the number that adgn_interface() in api.cpp returns
_SUFFIX = {torch.float32: "float", torch.float64: "double"}
DTYPES = tuple(_SUFFIX)

_logger = logging.getLogger("adgn")
_setting: Setting | None = None  # None: what the environment says
_times_missing = itertools.count()


class Matrix(Structure):
    """`Matrix` of kernels.hpp."""

    _fields_ = (("rowptr", c_void_p), ("col", c_void_p), ("value", c_void_p))


class Integration(Structure):
    """`Integration` of integrate.hpp."""

    _fields_ = (
        *(("matrix", Matrix), ("second", Matrix), ("nodes", c_int64), ("channels", c_int64)),
        *(("steps", c_int64), ("weight_sets", c_int64), ("w_self", c_void_p)),
        *(("w_neigh", c_void_p), ("bias", c_void_p), ("epsilon", c_double), ("activation", c_int)),
        *(("block_ptr", c_void_p), ("blocks", c_int64), ("threads", c_int)),
        ("step_rows", c_void_p),
    )


class Kept(Structure):
    """`Kept` of integrate.hpp."""

    _fields_ = (("states", c_void_p), ("active", c_void_p), ("first", c_void_p))


class Scheme(Structure):
    """`Scheme` of scheme.hpp."""

    _fields_ = (
        *(("rates", c_int64), ("history", c_int64), ("factor", c_void_p)),
        *(("ends_step", c_void_p), ("has_velocity", c_int), ("position", c_double)),
    )


class KeptRates(Structure):
    """`KeptRates` of scheme.hpp."""

    _fields_ = (("rates", c_void_p), ("starts", c_void_p))


class EntryPattern(Structure):
    """`EntryPattern` of edge_work.hpp."""

    _fields_ = (
        *(("rowptr", c_void_p), ("col", c_void_p), ("rowptr_t", c_void_p), ("col_t", c_void_p)),
        *(("order", c_void_p), ("rows", c_int64), ("columns", c_int64)),
    )


class Attention(Structure):
    """`Attention` of edge_work.hpp."""

    _fields_ = (
        *(("pattern", EntryPattern), ("value", c_void_p), ("heads", c_int64)),
        *(("channels", c_int64), ("states", c_void_p), ("slope", c_double), ("keep", c_void_p)),
        *(("share", c_void_p), ("used", c_void_p), ("threads", c_int)),
    )


class Reading(Structure):
    """`Reading` of locality.hpp."""

    _fields_ = (("entries", c_int64), ("waits", c_int64), ("wrong", c_int64))


_PROTOTYPES: dict[str, list[Any]] = {
    "adgn_sort_entries": [c_void_p] * 2 + [c_int64] * 3 + [c_void_p] * 3 + [POINTER(c_int64)],
    "adgn_prefer_large_pages": [c_void_p, c_int64],
    "adgn_transpose": [c_void_p] * 2 + [c_int64] * 2 + [c_void_p] * 3,
    "adgn_order_by_neighbours": [c_void_p] * 4 + [c_int64] * 3 + [c_void_p],
    "adgn_read_rows": [
        *(c_void_p, c_void_p, c_int64, c_int64, c_void_p, c_int64, c_int64, c_int64),
        POINTER(Reading),
    ],
    "adgn_renumber": [c_void_p] * 3 + [c_int64] + [c_void_p] * 4 + [POINTER(c_int64)],
    "adgn_take_rows": [c_void_p] * 2 + [c_int64] * 2 + [c_void_p, c_int],
    "adgn_count_at_edges": [c_void_p] * 2
    + [c_int64, c_void_p, c_void_p, c_int64]
    + [c_void_p] * 4
    + [c_int],
    "adgn_take_blocks": [c_void_p] * 4 + [c_int64] + [c_void_p] * 3,
    "adgn_check_pattern": [c_void_p] * 2 + [c_int64] * 3 + [c_void_p, c_int64, POINTER(c_int64)],
    "adgn_use_instruction_set": [c_char_p],
}
_TYPED_PROTOTYPES: dict[str, list[Any]] = {
    "adgn_multiply": [POINTER(Matrix), c_int64, c_int64, c_void_p, c_void_p, c_int],
    "adgn_forward": [POINTER(Integration), c_void_p, c_int64] + [c_void_p] * 2 + [POINTER(Kept)],
    "adgn_backward": [
        *(POINTER(Integration), c_void_p, c_int64, c_void_p, c_void_p, POINTER(Kept)),
        *(c_void_p, c_void_p, c_void_p),
    ],
    "adgn_step_forward": [POINTER(Integration)] + [c_int64] * 3 + [c_void_p] * 2 + [POINTER(Kept)],
    "adgn_start_backward": [POINTER(Integration)] + [c_void_p] * 3 + [POINTER(Kept)],
    "adgn_step_backward": [
        *(POINTER(Integration), c_int64, c_int64, c_int64, c_void_p, c_void_p, c_void_p, c_void_p),
        *(POINTER(Kept), c_void_p, c_void_p, c_void_p),
    ],
    "adgn_scheme_forward": [
        *(POINTER(Integration), POINTER(Scheme), c_void_p, c_int64),
        *([c_void_p] * 3 + [POINTER(KeptRates)]),
    ],
    "adgn_scheme_backward": [
        *(POINTER(Integration), POINTER(Scheme), c_void_p, c_int64),
        *([c_void_p] * 3 + [POINTER(KeptRates)] + [c_void_p] * 3),
    ],
    "adgn_tanh": [c_int64, c_void_p, c_void_p],
    "adgn_edge_dots": [
        *(POINTER(EntryPattern), c_int64, c_void_p, c_void_p, c_void_p, c_double, c_void_p, c_int),
    ],
    "adgn_cosine_backward": [
        *(POINTER(EntryPattern), c_int64, c_void_p, c_void_p, c_double, c_void_p, c_void_p),
        *(c_void_p, c_int),
    ],
    "adgn_attention_forward": [POINTER(Attention), c_void_p],
    "adgn_attention_backward": [POINTER(Attention)] + [c_void_p] * 3,
}


class NativeLibrary:
    """The library's functions. Python's lock is released while one of them runs."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._library = ctypes.CDLL(str(path))
        interface = self._library.adgn_interface()
        if interface != _INTERFACE:
            raise OSError(
                f"{path} is of another version of the package (interface {interface}, expected "
                f"{_INTERFACE}); build it again"
            )
        self._library.adgn_instruction_set.restype = c_char_p
        for name, arguments in _PROTOTYPES.items():
            getattr(self._library, name).argtypes = arguments
        for name, arguments in _TYPED_PROTOTYPES.items():
            for suffix in _SUFFIX.values():
                getattr(self._library, f"{name}_{suffix}").argtypes = arguments
        for suffix in _SUFFIX.values():
            getattr(self._library, f"adgn_tanh_{suffix}").restype = None
        self._library.adgn_prefer_large_pages.restype = None
        self._library.adgn_take_blocks.restype = None
        self.shares_threads = self._join_team_of_torch()

    @property
    def instruction_set(self) -> str:
        """The instructions that the kernels use: `"avx512"`, `"avx2"` or `"baseline"`."""
        name: bytes = self._library.adgn_instruction_set()
        return name.decode()

    def use_instruction_set(self, name: str) -> bool:
        """Chooses other instructions, for tests; whether this processor has them."""
        return bool(self._library.adgn_use_instruction_set(name.encode()))

    def call(self, name: str, *arguments: object, dtype: torch.dtype | None = None) -> int | None:
        """Calls a function (the one for `dtype`, where types matter) and returns its result."""
        full = name if dtype is None else f"{name}_{_SUFFIX[dtype]}"
        result: int | None = getattr(self._library, full)(*arguments)
        if result == -1:
            raise MemoryError(f"{full} could not allocate its working memory")
        return result

    def _join_team_of_torch(self) -> bool:
        """Runs on torch's own OpenMP threads: others would compete with them."""
        self._library.adgn_use_team.argtypes = [c_void_p]
        self._library.adgn_use_team.restype = None
        try:
            runner = ctypes.CDLL(torch._C.__file__).GOMP_parallel
        except (AttributeError, OSError):
            self._library.adgn_use_team(None)
            return False
        self._library.adgn_use_team(ctypes.cast(runner, c_void_p))
        return True


@cache
def load_library() -> NativeLibrary | str:
    """The library, or why there is none."""
    path = Path(__file__).with_name(_FILE)
    if not path.exists():
        return "the native kernels were not built; with a C++17 compiler, install the package again"
    try:
        return NativeLibrary(path)
    except (OSError, AttributeError) as error:
        return f"the native kernels do not load: {error}"


class BufferPool:
    """Hands out uninitialised tensors and takes their memory back when they are gone."""

    def __init__(self) -> None:
        # By size. Memory can come back while another thread, or this one, is in `empty`, and a
        # process can be forked at any moment: so there is no lock, and each change is one operation
        # that Python does as a whole.
        self._waiting: dict[int, list[Tensor]] = {}

    def empty(
        self, library: NativeLibrary | None, shape: Sequence[int], dtype: torch.dtype
    ) -> Tensor:
        """A tensor of any content, in large pages where it is large."""
        size = prod(shape) * dtype.itemsize
        if size < LARGE:
            return torch.empty(shape, dtype=dtype, device="cpu")
        step = 1 << (size.bit_length() - 4)
        size = -(-size // step) * step  # at most an eighth more
        buffer = self._take(size, size + step)
        if buffer is None:
            buffer = torch.empty(size, dtype=torch.uint8, device="cpu")
            if library is not None:
                library.call("adgn_prefer_large_pages", buffer.data_ptr(), size)
        # The tensor refers to the array, which ends when nothing refers to the tensor.
        array = buffer.numpy()
        weakref.finalize(array, self._take_back, buffer).atexit = False
        storage = torch.frombuffer(array, dtype=dtype).untyped_storage()
        # Not a view: torch would forbid to change the result of an autograd function in place.
        return torch.empty(0, dtype=dtype, device="cpu").set_(storage).resize_(tuple(shape))

    def clear(self) -> None:
        """Gives all waiting memory back to the system."""
        self._waiting.clear()

    @property
    def waiting_bytes(self) -> int:
        """How much memory waits to be used again."""
        return sum(buffer.nbytes for same in list(self._waiting.values()) for buffer in list(same))

    def _take(self, *sizes: int) -> Tensor | None:
        for size in sizes:
            try:
                return self._waiting[size].pop()
            except (KeyError, IndexError):
                pass
        self._waiting.clear()
        return None

    def _take_back(self, buffer: Tensor) -> None:
        self._waiting.setdefault(buffer.nbytes, []).append(buffer)


buffers = BufferPool()


@dataclass(frozen=True)
class Backend:
    """Which kernels serve on the CPU.

    Attributes:
        name: `"native"` or `"torch"`.
        reason: Why it is torch; empty for the native kernels.
        instruction_set: What the native kernels are compiled for: `"avx512"`, `"avx2"` or
            `"baseline"`; empty for torch.
        threads: How many threads are used at most: torch's setting.
    """

    name: Literal["native", "torch"]
    reason: str
    instruction_set: str
    threads: int


class set_backend:  # noqa: N801 - used like torch.set_grad_enabled
    """Chooses the kernels, for good or, as a context manager, for a while.

    Args:
        setting: `"auto"`: the native kernels wherever they can serve, else torch. `"native"`: an
            error where they cannot serve an integration. `"torch"`: torch alone. The environment
            variable `ADGN_BACKEND` sets it at the start; without it, `"auto"`.

    Example:
        >>> with set_backend("torch"):
        ...     backend().name
        'torch'
    """

    def __init__(self, setting: Setting) -> None:
        global _setting
        if setting not in SETTINGS:
            raise unknown_name("setting", setting, SETTINGS)
        if setting == "native" and isinstance(library := load_library(), str):
            raise RuntimeError(f"set_backend('native'): {library}; or use 'auto' or 'torch'")
        self._before = _setting
        _setting = setting

    def __enter__(self) -> None:
        """The choice was made when the object was."""

    def __exit__(self, *_: object) -> None:
        global _setting
        _setting = self._before


def backend() -> Backend:
    """Which kernels serve CPU tensors of 32 or 64 bits, and why.

    Example:
        >>> backend().name in ("native", "torch")
        True
    """
    threads = torch.get_num_threads()
    if setting() == "torch":
        return Backend("torch", f"chosen by {VARIABLE} or set_backend", "", threads)
    library = load_library()
    if isinstance(library, str):
        return Backend("torch", library, "", threads)
    return Backend("native", "", library.instruction_set, threads)


def setting() -> Setting:
    """The choice that holds now."""
    if _setting is not None:
        return _setting
    value = os.environ.get(VARIABLE, "auto")
    for known in SETTINGS:
        if value == known:
            return known
    raise unknown_name(VARIABLE, value, SETTINGS)


def native_library() -> NativeLibrary | None:
    """The native kernels where they are to be used; a warning says once that there are none."""
    chosen = setting()
    if chosen == "torch":
        return None
    library = load_library()
    if isinstance(library, NativeLibrary):
        return library
    if chosen == "native":
        raise RuntimeError(f"{VARIABLE}=native: {library}; or use 'auto' or 'torch'")
    if next(_times_missing) == 0:
        _logger.warning("torch does the work, more slowly: %s", library)
    return None
