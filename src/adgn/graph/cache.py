"""What is worked out once: of an object for good, of tensors until they change or end."""

import os
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Any, Generic, TypeVar, overload

import torch
from torch import Tensor
from torch._functorch.pyfunctorch import temporarily_clear_interpreter_stack
from torch.multiprocessing.reductions import StorageWeakRef
from torch_geometric import EdgeIndex

from adgn.graph.native.library import buffers

Result = TypeVar("Result")
_Entries = OrderedDict[Hashable, tuple[Any, Any]]  # state and weak references, and what was built
_PER_TENSOR = 16  # variants of one graph


@contextmanager
def outside_transforms(*made_from: Tensor) -> Iterator[None]:
    """What is computed inside from `made_from` can be used after the active transform has ended.

    In inference mode results could never be saved for a backward pass, and inside `torch.func.grad`
    and the like they would belong to that transform alone. Where a tensor that goes in belongs to a
    transform itself, nothing can be done, and nothing is.
    """
    if any(torch._C._functorch.is_functorch_wrapped_tensor(tensor) for tensor in made_from):
        yield
        return
    with torch.inference_mode(False), temporarily_clear_interpreter_stack():
        yield


class lazy_property(Generic[Result]):  # noqa: N801 - used like functools.cached_property
    """A property that is worked out at its first use, without a lock.

    Up to Python 3.11 `functools.cached_property` holds a lock while it works, and a process forked
    at that moment would wait for it for ever.
    """

    def __init__(self, work_out: Callable[[Any], Result]) -> None:
        self.work_out = work_out
        self.__doc__ = work_out.__doc__

    @overload
    def __get__(self, instance: None, owner: type) -> "lazy_property[Result]": ...
    @overload
    def __get__(self, instance: object, owner: type) -> Result: ...
    def __get__(self, instance: object | None, owner: type) -> "lazy_property[Result] | Result":
        if instance is None:
            return self
        result = self.work_out(instance)
        # The entry hides this descriptor from now on.
        first: Result = instance.__dict__.setdefault(self.work_out.__name__, result)
        return first


def tensor_state(tensor: Tensor) -> Hashable | None:
    """What differs after every write that torch counts and after `tensor.data = other`.

    `None` where nothing is known of writes: for tensors made in inference mode, and inside
    `torch.func`. The state keeps no memory alive.
    """
    if tensor.is_inference() or torch._C._functorch.is_functorch_wrapped_tensor(tensor):
        return None
    if isinstance(tensor, EdgeIndex):  # wraps a tensor that can be written to itself
        inner = tensor.as_tensor()
        return tensor._version, inner._version, *_memory(inner)
    if tensor.layout == torch.sparse_coo:
        return tensor._version, *_memory(tensor._indices()), *_memory(tensor._values())
    entries = tensor if tensor.layout == torch.strided else tensor.values()
    return tensor._version, *_memory(entries)


def _memory(tensor: Tensor) -> tuple[Hashable, ...]:
    """Where and how the numbers lie; a weak reference keeps an address from being used again."""
    storage = StorageWeakRef(tensor.untyped_storage())  # type: ignore[no-untyped-call]
    return storage, tensor.storage_offset(), tensor.shape, tensor.stride()


class TensorCache:
    """Remembers what was built from tensors, by identity and state (`tensor_state`) of each.

    Writes that torch cannot count, through `tensor.data` or shared NumPy memory, are not seen: call
    `clear` after such a write. Nothing here keeps a tensor alive.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        # By the owner's number, in one dictionary: a fork in the middle of a change finds an owner
        # with its entries or without them, never half of it.
        self._owners: dict[int, tuple[weakref.ref[Tensor], _Entries]] = {}
        self.hits = 0
        self.misses = 0

    def get(
        self, tensors: tuple[Tensor, ...], key: Hashable, build: Callable[[], Result]
    ) -> Result:
        """What `build` returns, built at the first call with these tensors and this key."""
        owner, *others = tensors
        full_key = (key, *(id(other) for other in others))
        state = tuple(tensor_state(tensor) for tensor in tensors)
        if None in state:
            return build()  # what is written into such a tensor would not be seen
        with self._lock:
            entries = self._entries_of(owner)
            known = entries.get(full_key)
            if known is not None:
                (known_state, known_others), built = known
                same = (ref() is other for ref, other in zip(known_others, others, strict=True))
                if known_state == state and all(same):
                    self.hits += 1
                    entries.move_to_end(full_key)
                    result: Result = built
                    return result
        built_now = build()
        with self._lock:
            self.misses += 1
            entries = self._entries_of(owner)
            forget = self._forgetting(owner, full_key)
            references = tuple(weakref.ref(other, forget) for other in others)
            entries[full_key] = ((state, references), built_now)
            while len(entries) > _PER_TENSOR:
                entries.popitem(last=False)
        return built_now

    def _forgetting(self, owner: Tensor, key: Hashable) -> Callable[[weakref.ref[Tensor]], None]:
        """What drops an entry when one of its other tensors ends, such as the weights of a step."""
        number = id(owner)  # and no reference to the entries, which would keep them alive

        def forget(dead: weakref.ref[Tensor]) -> None:
            with self._lock:
                known = self._owners.get(number)
                entry = None if known is None else known[1].get(key)
                # The numbers may belong to newer tensors by now.
                if known and entry and any(reference is dead for reference in entry[0][1]):
                    known[1].pop(key, None)  # a collection just now may have dropped it too

        return forget

    def clear(self) -> None:
        """Forgets everything."""
        with self._lock:
            # Out of reach first: an entry may hold the last reference to another one's owner.
            owners, self._owners = self._owners, {}
            owners.clear()

    def after_fork(self) -> None:
        """In a child: another thread of the parent may have held the lock."""
        self._lock = threading.RLock()

    def __len__(self) -> int:
        with self._lock:
            # A list first: while entries are counted, tensors may end in this very thread.
            return sum(len(entries) for _, entries in list(self._owners.values()))

    def _entries_of(self, owner: Tensor) -> _Entries:
        number = id(owner)
        known = self._owners.get(number)
        if known is not None and known[0]() is owner:
            return known[1]

        def forget(dead: weakref.ref[Tensor]) -> None:
            with self._lock:
                # The number may belong to a newer tensor by now.
                if number in self._owners and self._owners[number][0] is dead:
                    del self._owners[number]

        entries: _Entries = OrderedDict()
        self._owners[number] = (weakref.ref(owner, forget), entries)
        return entries


_cache = TensorCache()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_cache.after_fork)


def cached(tensors: tuple[Tensor, ...], key: Hashable, build: Callable[[], Result]) -> Result:
    """`TensorCache.get` of the package's one cache."""

    def build_outside() -> Result:
        with outside_transforms(*tensors):
            return build()

    return _cache.get(tensors, key, build_outside)


def clear_cache() -> None:
    """Forgets all operators that were built, and gives memory that waits for the next step back.

    Needed only to have that memory, or after writing into an `edge_index` in a way torch cannot
    see, such as through `tensor.data` or a NumPy array that shares its memory.

    Example:
        >>> from adgn.graph import graph_operator
        >>> edges = torch.tensor([[0], [1]])
        >>> operator = graph_operator(edges, num_nodes=2)
        >>> edges.data[1, 0] = 0  # torch does not see this
        >>> clear_cache()
        >>> graph_operator(edges, num_nodes=2).to_dense().tolist()
        [[1.0, 0.0], [0.0, 0.0]]
    """
    _cache.clear()
    buffers.clear()


def cache_info() -> dict[str, int]:
    """How many look-ups found an operator (`hits`) or built one (`misses`), and `size`.

    Example:
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
