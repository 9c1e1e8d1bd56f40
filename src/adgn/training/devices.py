"""Where a run computes."""

import torch

__all__ = ["check_device", "resolve_device"]


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
