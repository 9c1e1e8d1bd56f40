"""Where a run computes."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

__all__ = ["check_device", "resolve_device", "thread_count"]


def resolve_device(name: str) -> torch.device:
    """The device of a name; `"auto"` is a GPU where there is one.

    Example:
        >>> resolve_device("cpu")
        device(type='cpu')
    """
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        raise ValueError(
            f"device={name!r} is not known; use 'cpu', 'cuda', 'cuda:1' or 'auto'"
        ) from None
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise ValueError(
            f"device={name!r} is not there: torch sees {torch.cuda.device_count()} GPUs; use 'cpu'"
        )
    return device


def check_device(name: str) -> None:
    """Raises unless a device of this name can be used on this machine."""
    resolve_device(name)


@contextmanager
def thread_count(count: int) -> Iterator[None]:
    """Torch's number of threads inside: results depend on it in their last bits.

    Example:
        >>> with thread_count(1):
        ...     torch.get_num_threads()
        1
    """
    before = torch.get_num_threads()
    if count != before:
        torch.set_num_threads(count)
    try:
        yield
    finally:
        if torch.get_num_threads() != before:
            torch.set_num_threads(before)
