"""The machine and the software that a result was made with."""

import importlib.metadata
import os
import platform
import subprocess
from pathlib import Path
from typing import Any

__all__ = ["available_cores", "environment", "git_commit", "load_average", "processor", "versions"]

_PACKAGE = Path(__file__).resolve().parents[1]
_CPUINFO = Path("/proc/cpuinfo")


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


def _entry(file: Path, name: str) -> str | None:
    if file.exists():
        for line in file.read_text().splitlines():
            key, _, value = line.partition(":")
            if key.strip() == name:
                return value.strip()
    return None


def versions(*packages: str) -> dict[str, str]:
    """The installed versions of packages."""
    return {package: importlib.metadata.version(package) for package in packages}


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
