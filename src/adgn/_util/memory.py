"""How much memory there is, and the refusal of work that needs more."""

import math
import os
from pathlib import Path

__all__ = ["NotEnoughMemoryError", "available_bytes", "check_memory", "meminfo"]

VARIABLE = "ADGN_MEMORY_CHECK"
_MEMINFO = Path("/proc/meminfo")
_CGROUP = Path("/sys/fs/cgroup")


class NotEnoughMemoryError(ValueError, MemoryError):
    """Work would need more memory than there is; nothing of it was begun."""


def meminfo(entry: str) -> float:
    """An entry of the system's memory in bytes, 0 where it is not known."""
    return _entry(_MEMINFO, f"{entry}:") * 1024


def available_bytes() -> float:
    """What the machine or the container has free, whichever is less; infinite where none tells.

    Pages of files that the system can drop count as free.
    """
    return min(meminfo("MemAvailable") or math.inf, _left_in_container())


def _left_in_container() -> float:
    """Of the limit on a container, by either version of control groups."""
    for limit, used, folder in (
        ("memory.max", "memory.current", _CGROUP),
        ("memory.limit_in_bytes", "memory.usage_in_bytes", _CGROUP / "memory"),
    ):
        try:
            left = float((folder / limit).read_text()) - float((folder / used).read_text())
        except (OSError, ValueError):  # no such version; "max": no limit
            continue
        return max(0.0, left + _entry(folder / "memory.stat", "inactive_file"))
    return math.inf


def _entry(path: Path, name: str) -> float:
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return 0.0
    return next((float(line.split()[1]) for line in lines if line.split()[:1] == [name]), 0.0)


def check_memory(need: float, what: str, available: float | None = None) -> None:
    """Raises where work needs more bytes than are available, unless `ADGN_MEMORY_CHECK=off`.

    Example:
        >>> check_memory(1e15, "graph-transfer with distance=10000000000", available=16e9)
        Traceback (most recent call last):
        adgn._util.memory.NotEnoughMemoryError: graph-transfer with distance=10000000000 needs about
        1,000,000 GB of memory, and 16 GB are free; make it smaller, or set ADGN_MEMORY_CHECK=off to
        try all the same
    """
    setting = os.environ.get(VARIABLE, "on")
    if setting not in ("on", "off"):
        raise ValueError(f"{VARIABLE}={setting!r} is not valid; set it to 'on' or 'off'")
    free = available_bytes() if available is None else available
    if setting == "on" and need > free:
        raise NotEnoughMemoryError(
            f"{what} needs about {_gigabytes(need)} of memory, and {_gigabytes(free)} are free; "
            f"make it smaller, or set {VARIABLE}=off to try all the same"
        )


def _gigabytes(size: float) -> str:
    number = size / 1e9
    if number >= 1e9:
        return f"{number:.0e} GB"
    return f"{number:,.0f} GB" if number >= 10 else f"{number:.2g} GB"
