"""Results that are worked out once: of an object for good, of a tensor until it changes."""

from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar, overload

import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch_geometric import EdgeIndex

Result = TypeVar("Result")


class lazy_property(Generic[Result]):  # noqa: N801 - used like functools.cached_property
    """A property that is worked out at its first use, without a lock.

    Up to Python 3.11 `functools.cached_property` holds a lock while it works, and a process forked
    at that moment would wait for it for ever. Here two threads may both work it out; the results
    are the same.
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
    `torch.func`. Writes into the same memory that torch does not count, through `tensor.data` or
    NumPy, change nothing here. The state keeps no memory alive.
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
