"""The machine that a program runs on."""

import os
import platform
from pathlib import Path

__all__ = ["load_average", "processor"]

_CPUINFO = Path("/proc/cpuinfo")


def processor() -> str:
    """The processor's name, as far as the system tells.

    Example:
        >>> processor() != ""
        True
    """
    if _CPUINFO.exists():
        for line in _CPUINFO.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def load_average() -> float:
    """How many processes wanted a processor in the last minute; nan where nobody counts them.

    Example:
        >>> load_average() < 0
        False
    """
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else float("nan")
