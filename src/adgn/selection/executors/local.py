"""Workers as processes of this machine."""

import contextlib
import os
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path

from adgn._util.files import open_to_append
from adgn.selection.errors import ExecutorError
from adgn.selection.executors.base import Poll, check_workers, threads_per_worker
from adgn.selection.worker import WorkerSpec

__all__ = ["LocalExecutor"]

_POLL_SECONDS = 0.5
_MAX_QUICK_DEATHS = 3  # in a row, of workers that hardly lived: something is wrong for all
_QUICK_SECONDS = 20.0
_STOP_SECONDS = 120.0


@dataclass
class _Worker:
    process: subprocess.Popen[str]
    log: Path
    started: float


class LocalExecutor:
    """Runs workers as processes, each with its share of the cores.

    A process of its own per worker keeps one crash from taking others along. The workers live in
    a session of their own, so that Ctrl-C reaches the driver alone, which then asks them to stop;
    they also stop when the driver dies.

    Args:
        workers: How many.
        threads: Threads for each; `None`: the cores divided by the workers.
    """

    def __init__(self, workers: int = 1, threads: int | None = None) -> None:
        check_workers(workers)
        if threads is not None and threads < 1:
            raise ExecutorError(f"threads={threads} is not valid; give at least 1")
        self.workers = workers
        self.threads = threads_per_worker(workers) if threads is None else threads

    def run(self, spec: WorkerSpec, poll: Poll) -> None:
        """Runs workers until the queue is empty."""
        spec = replace(spec, threads=self.threads)
        logs = Path(spec.folder) / "workers"
        logs.mkdir(parents=True, exist_ok=True)
        running: list[_Worker] = []
        try:
            for number in range(self.workers):
                running.append(self._start(spec, logs / f"{number}.log"))
            deaths = 0
            while running:
                poll()
                time.sleep(_POLL_SECONDS)
                for worker in list(running):
                    code = worker.process.poll()
                    if code is None:
                        continue
                    running.remove(worker)
                    self._close(worker)
                    if code == 0:
                        continue
                    lived = time.monotonic() - worker.started
                    deaths = deaths + 1 if lived < _QUICK_SECONDS else 1
                    if deaths > _MAX_QUICK_DEATHS:
                        raise ExecutorError(
                            f"workers die as soon as they start (the last with code {code}): "
                            f"{_last_line(worker.log)}; all they said is in {worker.log}"
                        )
                    running.append(self._start(spec, worker.log))
            poll()
        finally:
            self._stop(running)

    def _start(self, spec: WorkerSpec, log: Path) -> _Worker:
        count = str(spec.threads)
        threads = dict.fromkeys(
            ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), count
        )
        with open_to_append(log) as output:
            process = subprocess.Popen(
                [sys.executable, "-c", "from adgn.selection.worker import main; main()"],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                env={**os.environ, **threads},
                text=True,
                start_new_session=True,
            )
        if process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):  # dead already: the loop will see it
                process.stdin.write(spec.to_json() + "\n")
                process.stdin.flush()
        return _Worker(process, log, time.monotonic())

    def _stop(self, running: list[_Worker]) -> None:
        """Asks the workers to stop at a place to go on from; those that do not are killed."""
        for worker in running:
            self._close(worker)
        limit = time.monotonic() + _STOP_SECONDS
        try:
            for worker in running:
                try:
                    worker.process.wait(max(0.0, limit - time.monotonic()))
                except subprocess.TimeoutExpired:
                    worker.process.kill()
                    worker.process.wait()
        except KeyboardInterrupt:  # asked a second time
            for worker in running:
                worker.process.kill()
                worker.process.wait()
            raise

    @staticmethod
    def _close(worker: _Worker) -> None:
        if worker.process.stdin is not None and not worker.process.stdin.closed:
            with contextlib.suppress(BrokenPipeError):
                worker.process.stdin.close()


def _last_line(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return lines[-1] if lines else "nothing was said"
