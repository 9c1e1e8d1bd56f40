"""The driver: gives the steps of all cells to workers, breadth first."""

import queue
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from adgn.experiments.borrowing import lender_of
from adgn.experiments.cells import Cell, new_cell, next_step, write_cell
from adgn.experiments.plan import CellPlan
from adgn.experiments.processes import Answer, WorkerProcess
from adgn.experiments.results import ResultsDirectory
from adgn.experiments.worker import StepOrder, failed_cell

__all__ = ["Driver", "Job", "Watch"]

MAX_DEATHS = 3  # workers that one cell may take with it
_POLL_SECONDS = 0.5


@dataclass(eq=False)
class Job:
    """A cell on its way through its steps.

    Attributes:
        plan: Its plan.
        cell: What is known so far.
        number: Its place in the table of all cells; earlier ones go first.
        rounds: The last round that is asked for; `None`: all.
        retry: Whether a failure of before is tried again.
    """

    plan: CellPlan
    cell: Cell
    number: int
    rounds: int | None = None
    retry: bool = False
    running: bool = False
    deaths: int = 0

    @property
    def failed(self) -> bool:
        """Whether it is over with a failure."""
        return self.cell["status"] == "failed" and not self.retry

    @property
    def step(self) -> int | None:
        """The next step; `None` where nothing is left to do."""
        if self.failed:
            return None
        step = next_step(self.plan, self.cell)
        return None if step is None or (self.rounds is not None and step > self.rounds) else step

    @property
    def alone(self) -> bool:
        """Whether nothing else may run beside it."""
        return self.plan.experiment.kind == "seconds"


class Watch:
    """Told what happens; override what is of interest."""

    def step_begins(self, job: Job, step: int) -> None:
        """A worker has begun a step."""

    def step_ends(self, job: Job, step: int, outcome: str) -> None:
        """It is over: `"done"`, `"failed"`, or `"died"`, to be tried again."""

    def tick(self, jobs: Sequence[Job]) -> None:
        """About twice a second."""


class Driver:
    """Does the steps of jobs, several at a time.

    The step with the lowest number goes first, whichever cell it belongs to, so that a table that
    is stopped half-way is as complete as it can be.

    Args:
        results: The results directory.
        jobs: All cells that were asked for.
        watch: Told what happens.
        asked_to_stop: Set where an interrupt came, see `terminate_as_interrupt`.
    """

    def __init__(
        self,
        results: ResultsDirectory,
        jobs: Sequence[Job],
        watch: Watch,
        asked_to_stop: threading.Event,
    ) -> None:
        self.results = results
        self.jobs = jobs
        self.watch = watch
        self.asked_to_stop = asked_to_stop

    def run(self, kind: Literal["alone", "together"], workers: int, threads: int) -> None:
        """Does all steps of one kind of jobs; returns when none is left.

        A step that raises or takes several workers with it marks its cell as failed; the others
        go on. When interrupted, the workers stop at places from which their steps can go on.
        """
        mine = [job for job in self.jobs if job.alone == (kind == "alone")]
        answers: queue.Queue[Answer[Job]] = queue.Queue()
        running: list[WorkerProcess[Job]] = []
        logs = self.results.path / "workers"
        try:
            while True:
                self._hand_out(mine, running, answers, workers, threads, logs)
                if not any(job.running for job in mine):
                    break
                if self.asked_to_stop.is_set():
                    raise KeyboardInterrupt
                self.watch.tick(self.jobs)
                try:
                    answer = answers.get(timeout=_POLL_SECONDS)
                except queue.Empty:
                    continue
                self._take(answer, running)
            self.watch.tick(self.jobs)
        finally:
            WorkerProcess.stop_all(running)

    def _hand_out(
        self,
        jobs: Sequence[Job],
        running: list[WorkerProcess[Job]],
        answers: "queue.Queue[Answer[Job]]",
        workers: int,
        threads: int,
        logs: Path,
    ) -> None:
        while True:
            idle = next((worker for worker in running if worker.task is None), None)
            if idle is None and len(running) >= workers:
                return
            job = self._next(jobs)
            if job is None:
                return
            if idle is None:
                taken = {worker.log.stem for worker in running}
                number = next(n for n in range(workers) if str(n) not in taken)
                idle = WorkerProcess(threads, logs / f"{number}.log", answers)
                running.append(idle)
            step = job.step
            if step is None:
                raise AssertionError("a job without a step was chosen")
            plan = job.plan
            names = (plan.experiment.name, plan.row.key, plan.column.key, plan.budget_name)
            job.running = True
            idle.give(job, StepOrder(str(self.results.path.resolve()), *names, step, job.retry))
            self.watch.step_begins(job, step)

    def _next(self, jobs: Sequence[Job]) -> Job | None:
        ready = [
            (step, job.number, job)
            for job in jobs
            if not job.running and (step := job.step) is not None and not self._must_wait(job, step)
        ]
        return min(ready, key=lambda entry: entry[:2])[2] if ready else None

    def _must_wait(self, job: Job, step: int) -> bool:
        """Whether the settings that it borrows are still being searched for."""
        lender = lender_of(job.plan) if step == 0 else None
        return lender is not None and any(
            (other.plan.experiment.name, other.plan.name) == (lender.experiment.name, lender.name)
            and other.step == 0
            for other in self.jobs
        )

    def _take(self, answer: Answer[Job], running: list[WorkerProcess[Job]]) -> None:
        worker, job = answer.worker, answer.worker.task
        if answer.content is None or answer.content["outcome"] == "interrupted":
            if worker in running:
                running.remove(worker)
            worker.close()
            code = worker.process.wait()
            if job is not None:
                worker.task = None
                self._mourn(job, worker, code)
            return
        if job is None:
            return
        worker.task = None
        step = job.step or 0
        self._reload(job)
        self.watch.step_ends(job, step, answer.content["outcome"])

    def _reload(self, job: Job) -> None:
        job.running = False
        job.retry = False
        job.cell = self.results.cell(job.plan) or new_cell(job.plan)

    def _mourn(self, job: Job, worker: WorkerProcess[Job], code: int) -> None:
        step = job.step or 0
        retry = job.retry
        self._reload(job)
        job.retry = retry
        job.deaths += 1
        if job.deaths < MAX_DEATHS:
            self.watch.step_ends(job, step, "died")
            return
        message = (
            f"WorkerDied: {job.deaths} workers died in this step (the last with code {code}); it "
            f"may need more memory than there is. {worker.last_words()}"
        )
        job.retry = False
        job.cell = failed_cell(job.cell, message, "", None)
        write_cell(self.results.cell_file(job.plan), job.cell)
        self.watch.step_ends(job, step, "failed")
