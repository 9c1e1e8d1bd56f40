"""Worker processes, seen from the driver."""

import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from adgn._util.files import open_to_append
from adgn.experiments.worker import StepOrder

__all__ = ["Answer", "WorkerProcess"]

Task = TypeVar("Task")
_STOP_SECONDS = 120.0


@dataclass(frozen=True)
class Answer(Generic[Task]):
    """What a worker says about its task; `content` is `None` where it died."""

    worker: "WorkerProcess[Task]"
    content: dict[str, Any] | None


@dataclass(eq=False)
class WorkerProcess(Generic[Task]):
    """A worker with its log, living in a session of its own so that Ctrl-C does not reach it.

    Args:
        threads: Threads that it may use.
        log: What it prints goes here.
        answers: Where its answers go.
    """

    threads: int
    log: Path
    answers: "queue.Queue[Answer[Task]]"
    task: Task | None = None
    process: "subprocess.Popen[str]" = field(init=False)

    def __post_init__(self) -> None:
        count = str(self.threads)
        threads = dict.fromkeys(
            ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), count
        )
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with open_to_append(self.log) as output:
            self.process = subprocess.Popen(
                [sys.executable, "-c", "from adgn.experiments.worker import main; main()"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                env={**os.environ, **threads},
                text=True,
                start_new_session=True,
            )
        self._tell(json.dumps({"threads": self.threads}))
        threading.Thread(target=self._listen, daemon=True).start()

    def give(self, task: Task, order: StepOrder) -> None:
        """Gives it a step to do."""
        self.task = task
        self._tell(order.to_json())

    def _tell(self, line: str) -> None:
        if self.process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):  # dead already: its listener says so
                self.process.stdin.write(line + "\n")
                self.process.stdin.flush()

    def _listen(self) -> None:
        for line in self.process.stdout or ():
            self.answers.put(Answer(self, json.loads(line)))
        self.answers.put(Answer(self, None))

    def close(self) -> None:
        """Asks it to stop, at a place from which its step can go on."""
        if self.process.stdin is not None and not self.process.stdin.closed:
            with contextlib.suppress(BrokenPipeError):
                self.process.stdin.close()

    def last_words(self) -> str:
        """The last line of its log."""
        lines = self.log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return lines[-1] if lines else "nothing was said"

    @staticmethod
    def stop_all(workers: "Sequence[WorkerProcess[Task]]") -> None:
        """Asks all to stop and waits; those that do not are killed, all when asked twice."""
        for worker in workers:
            worker.close()
        try:
            for worker in workers:
                try:
                    worker.process.wait(_STOP_SECONDS)
                except subprocess.TimeoutExpired:
                    worker.process.kill()
                    worker.process.wait()
        except KeyboardInterrupt:
            for worker in workers:
                worker.process.kill()
                worker.process.wait()
            raise
