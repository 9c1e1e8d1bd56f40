"""Workers as processes of this machine."""

from dataclasses import asdict, replace
from pathlib import Path

from adgn._util.processes import Worker, run_tasks
from adgn.selection.errors import ExecutorError
from adgn.selection.executors.base import Poll, check_workers, threads_per_worker
from adgn.selection.worker import WorkerSpec

_MAX_QUICK_DEATHS = 3  # in a row, of workers that hardly lived: something is wrong for all
_QUICK_SECONDS = 20.0


class LocalExecutor:
    """Runs workers as processes, each with its share of the cores.

    A process of its own per worker keeps one crash from taking others along.

    Args:
        workers: How many.
        threads: Threads for each; `None`: the cores divided by the workers.
    """

    def __init__(self, workers: int = 1, threads: int | None = None) -> None:
        check_workers(workers, threads)
        self.workers = workers
        self.threads = threads_per_worker(workers) if threads is None else threads

    def run(self, spec: WorkerSpec, poll: Poll) -> None:
        """Runs workers until the queue is empty."""
        spec = replace(spec, threads=self.threads)
        to_start = [spec] * self.workers
        deaths = 0

        def died(_: WorkerSpec, worker: Worker) -> None:
            nonlocal deaths
            deaths = deaths + 1 if worker.age < _QUICK_SECONDS else 1
            if deaths > _MAX_QUICK_DEATHS:
                raise ExecutorError(
                    f"workers die as soon as they start (the last with code {worker.code}): "
                    f"{worker.last_line()}; all they said is in {worker.log}"
                )
            to_start.append(spec)

        run_tasks(
            "adgn.selection.worker:handle",
            workers=self.workers,
            threads=self.threads,
            logs=Path(spec.folder) / "workers",
            next_task=lambda: to_start.pop() if to_start else None,
            message=asdict,
            done=lambda *_: None,
            died=died,
            poll=poll,
        )
