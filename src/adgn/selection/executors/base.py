"""What an executor is."""

from collections.abc import Callable
from typing import Protocol

from adgn._util.environment import available_cores
from adgn.selection.errors import ExecutorError
from adgn.selection.worker import WorkerSpec

Poll = Callable[[], None]


class Executor(Protocol):
    """Runs workers until the study's queue is empty, and replaces those that die."""

    def run(self, spec: WorkerSpec, poll: Poll) -> None:
        """Returns when all workers have ended by themselves; calls `poll` about once a second."""
        ...


def threads_per_worker(workers: int, cores: int | None = None) -> int:
    """Threads for each of several workers on one machine, so that cores are not oversubscribed.

    Example:
        >>> threads_per_worker(2, cores=8), threads_per_worker(16, cores=8)
        (4, 1)
    """
    return max(1, (available_cores() if cores is None else cores) // workers)


def check_workers(workers: int, threads: int | None = None) -> None:
    """Raises where there would be no worker, or none that could work."""
    for name, count in (("workers", workers), ("threads", threads)):
        if count is not None and count < 1:
            raise ExecutorError(f"{name}={count} is not valid; give at least 1")
