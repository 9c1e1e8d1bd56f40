"""The driver: gives the steps of all cells to workers, breadth first."""

import threading
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from adgn._util.processes import Worker, run_tasks
from adgn.experiments.plan import CellPlan
from adgn.experiments.records import Cell
from adgn.experiments.results import ResultsDirectory
from adgn.experiments.steps import StepOrder, do_step, failed_cell

MAX_DEATHS = 3  # workers that one cell may take with it


@dataclass(eq=False)
class Job:
    """A cell on its way through its steps."""

    plan: CellPlan
    cell: Cell  # what is known so far
    number: int  # its place in the table of all cells; earlier ones go first
    rounds: int | None = None  # the last round that is asked for; `None`: all
    retry: bool = False  # whether a failure of before is tried again
    running: bool = False
    deaths: int = 0

    @property
    def step(self) -> int | None:
        """The next step; `None` where nothing is left to do."""
        if self.cell.status == "failed" and not self.retry:
            return None
        step = self.plan.next_step(self.cell)
        return None if step is None or (self.rounds is not None and step > self.rounds) else step


class ReproductionCallback:
    """Told what happens; override what is of interest."""

    def step_begins(self, job: Job, step: int) -> None:
        """A worker has begun a step."""

    def step_ends(self, job: Job, step: int, outcome: str) -> None:
        """It is over: `"done"`, `"failed"`, or `"died"`, to be tried again."""

    def tick(self, jobs: Sequence[Job]) -> None:
        """About twice a second."""


@dataclass(frozen=True)
class Driver:
    """Does the steps of jobs, several at a time.

    The step with the lowest number goes first, whichever cell it belongs to, so that a table that
    is stopped half-way is as complete as it can be. A step that raises or takes several workers
    with it marks its cell as failed; the others go on.

    `asked_to_stop` is set where an interrupt came, see `terminate_as_interrupt`.
    """

    results: ResultsDirectory
    jobs: Sequence[Job]
    callback: ReproductionCallback
    asked_to_stop: threading.Event

    def run(self, kind: Literal["alone", "together"], workers: int, threads: int) -> None:
        """Does all steps of one kind of jobs; nothing may run beside a measurement of time."""
        timed = kind == "alone"
        mine = [job for job in self.jobs if (job.plan.experiment.kind == "seconds") == timed]
        run_tasks(
            "adgn.experiments.steps:handle",
            workers=workers,
            threads=threads,
            logs=self.results.path / "workers",
            next_task=lambda: self._next(mine),
            message=lambda job: {**asdict(self._begin(job)), "threads": threads},
            done=self._done,
            died=self._died,
            poll=self._poll,
        )

    def run_here(self, job: Job, **place: Any) -> None:
        """Does a cell that is a whole study; `place` says where its trials run, as for `select`."""
        order = self._begin(job)
        try:
            outcome = do_step(order, self.asked_to_stop, callback=lambda _: self._poll(), **place)
        finally:
            job.running = False
        if outcome == "interrupted":  # Ctrl-C came while a run was trained in this process
            raise KeyboardInterrupt
        self._done(job, outcome)

    def _poll(self) -> None:
        if self.asked_to_stop.is_set():
            raise KeyboardInterrupt
        self.callback.tick(self.jobs)

    def _next(self, jobs: Sequence[Job]) -> Job | None:
        ready = [
            (step, job.number, job)
            for job in jobs
            if not job.running and (step := job.step) is not None and not self._must_wait(job, step)
        ]
        return min(ready, key=lambda entry: entry[:2])[2] if ready else None

    def _must_wait(self, job: Job, step: int) -> bool:
        """Whether the settings that it takes over are still being searched for."""
        source = job.plan.settings_source if step == 0 else None
        return source is not None and any(
            other.plan.label == source.label and other.step == 0 for other in self.jobs
        )

    def _begin(self, job: Job) -> StepOrder:
        plan, out = job.plan, str(self.results.path.resolve())
        names = (plan.experiment.name, plan.row.key, plan.column.key, plan.budget_name)
        order = StepOrder(out, *names, job.step or 0, job.retry)
        job.running = True
        self.callback.step_begins(job, order.step)
        return order

    def _done(self, job: Job, outcome: str) -> None:
        if outcome == "interrupted":
            self._died(job, None)
            return
        step = job.step or 0
        job.retry = False
        self._reload(job)
        self.callback.step_ends(job, step, outcome)

    def _died(self, job: Job, worker: Worker | None) -> None:
        step = job.step or 0
        self._reload(job)
        job.deaths += 1
        if job.deaths < MAX_DEATHS:
            self.callback.step_ends(job, step, "died")
            return
        last = "" if worker is None else f" (the last with code {worker.code})"
        message = (
            f"WorkerDied: {job.deaths} workers died in this step{last}; it may need more memory "
            f"than there is. {'' if worker is None else worker.last_line()}"
        )
        job.retry = False
        job.cell = failed_cell(job.cell, message)
        self.results.write_cell(job.plan, job.cell)
        self.callback.step_ends(job, step, "failed")

    def _reload(self, job: Job) -> None:
        job.running = False
        job.cell = self.results.cell(job.plan) or job.plan.new_cell()
