"""Memory for states that is used again and again.

A fresh large array costs more than the arithmetic on it: the system clears every page before it
hands it out, at every training step anew. So large arrays come back here when nobody holds them
any more, and serve the next request for exactly as many bytes. A request that none of them fits
frees all of them first, so that graphs of changing sizes leave nothing behind. What the last step
needed waits until then, or until `adgn.graph.clear_cache()`.
"""

import os
import threading
import weakref
from collections.abc import Sequence
from math import prod

import torch
from torch import Tensor

from adgn.graph.native.library import NativeLibrary

__all__ = ["LARGE", "Rooms", "rooms"]

LARGE = 2**23  # bytes: a few large pages; below, malloc itself keeps memory


class Rooms:
    """Hands out uninitialised tensors and takes their memory back when they are gone.

    Example:
        >>> from adgn.graph.backend import native_library
        >>> own = Rooms()
        >>> first = own.empty(native_library(), (4096, 1024), torch.float32)
        >>> address = first.data_ptr()
        >>> del first
        >>> own.waiting_bytes, own.empty(None, (1024, 4096), torch.float32).data_ptr() == address
        (16777216, True)
    """

    def __init__(self) -> None:
        # Memory can come back while another thread, or this one, is in `empty`.
        self._lock = threading.RLock()
        self._waiting: list[Tensor] = []

    def empty(
        self, library: NativeLibrary | None, shape: Sequence[int], dtype: torch.dtype
    ) -> Tensor:
        """A tensor of any content, in large pages where it is large."""
        size = prod(shape) * dtype.itemsize
        if size < LARGE:
            return torch.empty(shape, dtype=dtype, device="cpu")
        room = self._take(size)
        if room is None:
            room = torch.empty(size, dtype=torch.uint8, device="cpu")
            if library is not None:
                library.call("adgn_prefer_large_pages", room.data_ptr(), size)
        # The tensor holds the array, and the array's end is when nobody holds the tensor.
        array = room.numpy()
        weakref.finalize(array, self._take_back, room).atexit = False
        storage = torch.frombuffer(array, dtype=dtype).untyped_storage()
        # Not a view: torch would forbid to change the result of an autograd function in place.
        return torch.empty(0, dtype=dtype, device="cpu").set_(storage).resize_(tuple(shape))

    def after_fork(self) -> None:
        """In a child: another thread of the parent may have held the lock."""
        self._lock = threading.RLock()

    def clear(self) -> None:
        """Gives all waiting memory back to the system."""
        with self._lock:
            self._waiting.clear()

    @property
    def waiting_bytes(self) -> int:
        """How much memory waits to be used again."""
        with self._lock:
            return sum(room.nbytes for room in self._waiting)

    def _take(self, size: int) -> Tensor | None:
        with self._lock:
            for number in reversed(range(len(self._waiting))):
                if self._waiting[number].nbytes == size:
                    return self._waiting.pop(number)
            self._waiting.clear()
            return None

    def _take_back(self, room: Tensor) -> None:
        with self._lock:
            self._waiting.append(room)


rooms = Rooms()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=rooms.after_fork)
