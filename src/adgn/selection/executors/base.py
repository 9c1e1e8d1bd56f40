"""What an executor is."""

import os
from collections.abc import Callable
from typing import Protocol

from adgn.selection.errors import ExecutorError
from adgn.selection.worker import WorkerSpec

__all__ = ["Executor", "Poll", "available_cores", "check_workers", "threads_per_worker"]

Poll = Callable[[], None]


class Executor(Protocol):
    """Runs workers until the study's queue is empty, and replaces those that die."""

    def run(self, spec: WorkerSpec, poll: Poll) -> None:
        """Returns when all workers have ended by themselves; calls `poll` about once a second."""
        ...


def available_cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def threads_per_worker(workers: int, cores: int | None = None) -> int:
    """Threads for each of several workers on one machine, so that cores are not oversubscribed.

    Example:
        >>> threads_per_worker(2, cores=8), threads_per_worker(16, cores=8)
        (4, 1)
    """
    return max(1, (available_cores() if cores is None else cores) // workers)


def check_workers(workers: int) -> None:
    """Raises where there would be no worker."""
    if workers < 1:
        raise ExecutorError(f"workers={workers} is not valid; give at least 1")
