"""Where a run computes."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from adgn.training.errors import ConfigError


def resolve_device(name: str) -> torch.device:
    """The device of a name, which must be there; `"auto"` is a GPU where there is one."""
    check_device_name(name)
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    device = torch.device(name)
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise ConfigError(
            f"device={name!r} is not there: torch sees {torch.cuda.device_count()} GPUs; use 'cpu'"
        )
    try:
        torch.zeros(1, device=device).item()
    except (RuntimeError, AssertionError, ImportError) as error:
        # "meta" holds no numbers; of others torch says in many ways that they are not here.
        raise ConfigError(
            f"device={name!r} cannot be computed on here; use 'cpu', 'cuda', 'cuda:1' or 'auto'"
        ) from error
    return device


def check_device_name(name: str) -> None:
    """Raises unless this is the name of a device, on this machine or another one."""
    if name == "auto":
        return
    try:
        torch.device(name)
    except RuntimeError:
        raise ConfigError(
            f"device={name!r} is not known; use 'cpu', 'cuda', 'cuda:1' or 'auto'"
        ) from None


@contextmanager
def thread_count(count: int) -> Iterator[None]:
    """Torch's number of threads inside: results depend on it in their last bits."""
    before = torch.get_num_threads()
    if count != before:
        torch.set_num_threads(count)
    try:
        yield
    finally:
        if torch.get_num_threads() != before:
            torch.set_num_threads(before)
