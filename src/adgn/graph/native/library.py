"""The shared library of the native kernels, as ctypes sees it."""

import ctypes
import sys
from ctypes import POINTER, Structure, c_char_p, c_double, c_int, c_int64, c_void_p
from functools import cache
from pathlib import Path
from typing import Any

import torch

_FILE = "_kernels.dll" if sys.platform == "win32" else "_kernels.so"  # as setup.py names it
_INTERFACE = 3  # the number that adgn_interface() in api.cpp returns
_SUFFIX = {torch.float32: "float", torch.float64: "double"}
DTYPES = tuple(_SUFFIX)


class Matrix(Structure):
    """`Matrix` of kernels.hpp."""

    _fields_ = (("rowptr", c_void_p), ("col", c_void_p), ("value", c_void_p))


class Integration(Structure):
    """`Integration` of integrate.hpp."""

    _fields_ = (
        *(("matrix", Matrix), ("nodes", c_int64), ("channels", c_int64), ("steps", c_int64)),
        *(("weight_sets", c_int64), ("w_self", c_void_p), ("w_neigh", c_void_p)),
        *(("bias", c_void_p), ("epsilon", c_double), ("activation", c_int)),
        *(("block_ptr", c_void_p), ("blocks", c_int64), ("threads", c_int)),
    )


class Kept(Structure):
    """`Kept` of integrate.hpp."""

    _fields_ = (("states", c_void_p), ("active", c_void_p), ("first", c_void_p))


_PROTOTYPES: dict[str, list[Any]] = {
    "adgn_sort_entries": [c_void_p] * 2 + [c_int64] * 3 + [c_void_p] * 3 + [POINTER(c_int64)],
    "adgn_prefer_large_pages": [c_void_p, c_int64],
    "adgn_transpose": [c_void_p] * 2 + [c_int64] * 2 + [c_void_p] * 3,
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
    "adgn_tanh": [c_int64, c_void_p, c_void_p],
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
