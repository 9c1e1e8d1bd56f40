"""Memory for states that is used again and again: clearing fresh pages costs more than the work.

Large arrays come back here when nothing refers to them any more, and serve the next request for
exactly as many bytes. A request that none of them fits frees all of them first, so that graphs of
changing sizes leave nothing behind; so does `adgn.graph.clear_cache()`.
"""

import weakref
from collections.abc import Sequence
from math import prod

import torch
from torch import Tensor

from adgn.graph.native.library import NativeLibrary

__all__ = ["LARGE", "BufferPool", "buffers"]

LARGE = 2**23  # bytes: a few large pages; below, malloc itself keeps memory


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
        buffer = self._take(size)
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

    def _take(self, size: int) -> Tensor | None:
        try:
            return self._waiting[size].pop()
        except (KeyError, IndexError):
            self._waiting.clear()
            return None

    def _take_back(self, buffer: Tensor) -> None:
        self._waiting.setdefault(buffer.nbytes, []).append(buffer)


buffers = BufferPool()
