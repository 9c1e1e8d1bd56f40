"""The machine and the software that a result was made with, and the memory that there is."""

import math
import os
import platform
import re
import subprocess
from pathlib import Path
from typing import Any

VARIABLE = "ADGN_MEMORY_CHECK"
_PACKAGE = Path(__file__).resolve().parents[1]
_CPUINFO = Path("/proc/cpuinfo")
_MEMINFO = Path("/proc/meminfo")
_CGROUP = Path("/sys/fs/cgroup")


def processor() -> str:
    """The processor's name, as far as the system tells."""
    return _entry(_CPUINFO, "model name") or platform.processor() or platform.machine()


def available_cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def load_average() -> float:
    """How many processes wanted a processor in the last minute; nan where nobody counts them."""
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else float("nan")


def _entry(path: Path, name: str) -> str:
    """An entry of one of the system's lists, empty where it is not there."""
    try:
        text = path.read_text()
    except OSError:
        return ""
    found = re.search(rf"^{re.escape(name)}[ \t:]+(.*)$", text, re.MULTILINE)
    return found[1] if found else ""


def versions(*packages: str) -> dict[str, str]:
    """The installed versions of packages."""
    from importlib.metadata import version  # it takes long to import

    return {package: version(package) for package in packages}


def git_commit() -> tuple[str, bool] | None:
    """The commit that the package's own files are at, and whether they were changed since.

    `None` where they are not in a repository: installed into an environment inside some other
    repository, they are not tracked by it.
    """
    if not _git("ls-files", "__init__.py"):
        return None
    return _git("rev-parse", "HEAD"), bool(_git("status", "--porcelain", "--", "."))


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(_PACKAGE), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()


def environment() -> dict[str, Any]:
    """Versions and machine: what the last bits of a result depend on."""
    import torch

    commit = git_commit()
    found = versions("adgn", "torch", "torch_geometric", "numpy")
    return {
        "adgn": found.pop("adgn"),
        "git_commit": commit and commit[0] + ("+" if commit[1] else ""),
        "python": platform.python_version(),
        **found,
        "platform": platform.platform(),
        "processor": processor(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
    }


class NotEnoughMemoryError(ValueError, MemoryError):
    """Work would need more memory than there is; nothing of it was begun."""


def meminfo(entry: str) -> float:
    """An entry of the system's memory in bytes, 0 where it is not known."""
    return float(_entry(_MEMINFO, entry).removesuffix("kB") or 0) * 1024


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
        return max(0.0, left + float(_entry(folder / "memory.stat", "inactive_file") or 0))
    return math.inf


def check_memory(need: float, what: str, available: float | None = None) -> None:
    """Raises where work needs more bytes than are available, unless `ADGN_MEMORY_CHECK=off`.

    Example:
        >>> check_memory(1e15, "graph-transfer with distance=10000000000", available=16e9)
        Traceback (most recent call last):
        adgn._util.environment.NotEnoughMemoryError: graph-transfer with distance=10000000000 needs
        about 1,000,000 GB of memory, and 16 GB are free; make it smaller, or set
        ADGN_MEMORY_CHECK=off to try all the same
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
