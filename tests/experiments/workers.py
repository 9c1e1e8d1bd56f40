"""Workers in this process, for tests of what goes on around them."""

import queue
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adgn.experiments.driver import Watch
from adgn.experiments.processes import Answer
from adgn.experiments.worker import carry_out


class _Ended:
    def wait(self, timeout: float | None = None) -> int:
        return -9


@dataclass(eq=False)
class HereWorker:
    """Does a step at once, in this process; dies instead as often as `deaths` says."""

    threads: int
    log: Path
    answers: "queue.Queue[Any]"
    task: Any = None
    process = _Ended()
    deaths = 0

    def give(self, task, order):
        self.task = task
        if HereWorker.deaths > 0:
            HereWorker.deaths -= 1
            self.answers.put(Answer(self, None))
            return
        self.answers.put(Answer(self, carry_out(order, threading.Event())))

    def close(self):
        pass

    def last_words(self):
        return "Killed"

    @staticmethod
    def stop_all(workers):
        pass


class Steps(Watch):
    """Remembers what happened."""

    def __init__(self):
        self.begun: list[tuple[str, int]] = []
        self.ended: list[tuple[str, int, str]] = []

    def step_begins(self, job, step):
        self.begun.append((job.plan.name, step))

    def step_ends(self, job, step, outcome):
        self.ended.append((job.plan.name, step, outcome))
