"""Where and with what something is measured."""

import importlib.metadata
import os
import platform
import subprocess
from pathlib import Path

from adgn._util.memory import available_bytes, meminfo
from adgn.bench.records import Machine
from adgn.host import processor

__all__ = ["available_megabytes", "commit", "describe_machine", "versions"]

_PACKAGE = Path(__file__).resolve().parents[1]


def describe_machine(instruction_set: str) -> Machine:
    """This machine; `instruction_set` is what the kernels are compiled for."""
    return Machine(
        processor=processor(),
        cores=os.cpu_count() or 1,
        memory_gb=round(meminfo("MemTotal") / 1e9, 1),
        system=f"{platform.system()} {platform.machine()}",
        instruction_set=instruction_set,
    )


def versions() -> dict[str, str]:
    """The versions of what takes part."""
    packages = ("adgn", "torch", "torch_geometric", "numpy", "scipy")
    found = {package: importlib.metadata.version(package) for package in packages}
    return {"python": platform.python_version(), **found}


def commit() -> str:
    """The commit that is measured, and whether the package differs from it."""
    if not _git("ls-files", "__init__.py"):  # installed, perhaps inside another repository
        return "unknown"
    changed = " with changes" if _git("status", "--porcelain", "--", ".") else ""
    return _git("rev-parse", "--short", "HEAD") + changed


def available_megabytes() -> float:
    """The memory that new work can have, in MB; infinite where the system does not tell."""
    return available_bytes() / 1e6


def _git(*arguments: str) -> str:
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=_PACKAGE, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout.strip()
