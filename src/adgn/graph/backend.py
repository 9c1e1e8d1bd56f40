"""Which kernels do the work: the native ones, or torch's."""

import itertools
import logging
import os
from dataclasses import dataclass
from typing import Literal

import torch

from adgn._util.suggestions import unknown_name
from adgn.graph.native.library import NativeLibrary, load_library

Setting = Literal["auto", "native", "torch"]
SETTINGS: tuple[Setting, ...] = ("auto", "native", "torch")
VARIABLE = "ADGN_BACKEND"

_logger = logging.getLogger("adgn")
_setting: Setting | None = None  # None: what the environment says
_times_missing = itertools.count()


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
