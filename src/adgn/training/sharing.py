"""Runs in one process that share what they load: the data and the graphs made ready for layers."""

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

Made = TypeVar("Made")
_store: ContextVar[dict[Hashable, Any] | None] = ContextVar("shared_data", default=None)


@contextmanager
def shared_data() -> Iterator[None]:
    """Inside, the data of a task are loaded once and serve every run that needs the same.

    Operators built from a graph are remembered with its tensors, so they are shared as well.

    Example:
        >>> with shared_data():
        ...     first = cached_data("key", lambda: object())
        ...     first is cached_data("key", lambda: object())
        True
        >>> cached_data("key", lambda: "made anew outside")
        'made anew outside'
    """
    if _store.get() is not None:
        yield  # an outer one keeps more
        return
    token = _store.set({})
    try:
        yield
    finally:
        _store.reset(token)


def cached_data(key: Hashable, make: Callable[[], Made]) -> Made:
    """What `make` gave for this key before, inside `shared_data`; otherwise made anew."""
    store = _store.get()
    if store is None:
        return make()
    if key not in store:
        store[key] = make()
    made: Made = store[key]
    return made
