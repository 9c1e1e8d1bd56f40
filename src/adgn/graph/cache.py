"""Operators that were built, remembered for as long as the tensors they were built from live."""

import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch_geometric import EdgeIndex

from adgn.graph.lasting import lasting
from adgn.graph.native.rooms import rooms

Built = TypeVar("Built")
_PER_TENSOR = 16  # more variants of one graph than anybody uses at once


class TensorCache:
    """Remembers what was built from tensors, by identity and state of each tensor.

    A tensor that is passed again is recognised by being the same object in the same state; a
    tensor changed in place is in another state (torch counts in-place writes) and is not. Writes
    that torch cannot count, through `tensor.data` or shared NumPy memory, are not seen: call
    `clear` after such a write. Nothing here keeps a tensor alive.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._entries: dict[int, OrderedDict[Hashable, tuple[Any, Any]]] = {}
        self._owners: dict[int, weakref.ref[Tensor]] = {}
        self.hits = 0
        self.misses = 0

    def get(self, tensors: tuple[Tensor, ...], key: Hashable, build: Callable[[], Built]) -> Built:
        """What `build` returns, built at the first call with these tensors and this key."""
        if any(tensor.is_inference() for tensor in tensors):
            return build()  # made in inference mode: torch does not count its writes
        owner, *others = tensors
        full_key = (key, *(id(other) for other in others))
        state = tuple(_state(tensor) for tensor in tensors)
        with self._lock:
            entries = self._entries_of(owner)
            known = entries.get(full_key)
            if known is not None:
                (known_state, known_others), built = known
                if known_state == state and all(
                    reference() is other
                    for reference, other in zip(known_others, others, strict=True)
                ):
                    self.hits += 1
                    entries.move_to_end(full_key)
                    result: Built = built
                    return result
        built_now = build()
        with self._lock:
            self.misses += 1
            entries = self._entries_of(owner)
            references = tuple(weakref.ref(other) for other in others)
            entries[full_key] = ((state, references), built_now)
            while len(entries) > _PER_TENSOR:
                entries.popitem(last=False)
        return built_now

    def clear(self) -> None:
        """Forgets everything."""
        with self._lock:
            # The owners first: an entry may hold the last reference to another one's owner.
            self._owners.clear()
            self._entries.clear()

    def __len__(self) -> int:
        return sum(len(entries) for entries in self._entries.values())

    def _entries_of(self, owner: Tensor) -> OrderedDict[Hashable, tuple[Any, Any]]:
        number = id(owner)
        reference = self._owners.get(number)
        if reference is None or reference() is not owner:

            def forget(dead: weakref.ref[Tensor]) -> None:
                with self._lock:
                    # The number may belong to a newer tensor by now.
                    if self._owners.get(number) is dead:
                        del self._owners[number], self._entries[number]

            self._owners[number] = weakref.ref(owner, forget)
            self._entries[number] = OrderedDict()
        return self._entries[number]


def _state(tensor: Tensor) -> tuple[int, int]:
    """Changes with every write; an `EdgeIndex` wraps a tensor that can be written to itself."""
    inner = tensor.as_tensor() if isinstance(tensor, EdgeIndex) else tensor
    return tensor._version, inner._version


_cache = TensorCache()


def cached(tensors: tuple[Tensor, ...], key: Hashable, build: Callable[[], Built]) -> Built:
    """`TensorCache.get` of the package's one cache."""
    if any(torch._C._functorch.is_functorch_wrapped_tensor(tensor) for tensor in tensors):
        return build()

    def build_to_last() -> Built:
        with lasting(*tensors):
            return build()

    return _cache.get(tensors, key, build_to_last)


def clear_cache() -> None:
    """Forgets all operators that were built, and gives memory that waits for the next step back.

    Needed only to have that memory, or after writing into an `edge_index` in a way torch cannot
    see, such as through `tensor.data` or a NumPy array that shares its memory.

    Example:
        >>> import torch
        >>> from adgn.graph import graph_operator
        >>> edges = torch.tensor([[0], [1]])
        >>> operator = graph_operator(edges, num_nodes=2)
        >>> edges.data[1, 0] = 0  # torch does not see this
        >>> clear_cache()
        >>> graph_operator(edges, num_nodes=2).to_dense().tolist()
        [[1.0, 0.0], [0.0, 0.0]]
    """
    _cache.clear()
    rooms.clear()


def cache_info() -> dict[str, int]:
    """How many look-ups found an operator (`hits`) or built one (`misses`), and `size`.

    Example:
        >>> import torch
        >>> from adgn.graph import graph_operator
        >>> edge_index = torch.tensor([[0, 1], [1, 0]])
        >>> _ = graph_operator(edge_index, num_nodes=2)
        >>> before = cache_info()
        >>> _ = graph_operator(edge_index, num_nodes=2)
        >>> after = cache_info()
        >>> after["hits"] > before["hits"], after["misses"] == before["misses"]
        (True, True)
    """
    return {"hits": _cache.hits, "misses": _cache.misses, "size": len(_cache)}
