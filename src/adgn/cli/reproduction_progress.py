"""How a reproduction looks while it goes on."""

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.markup import escape
from rich.table import Table

from adgn.cli.console import Display, Share, show_work
from adgn.experiments.driver import Job, ReproductionCallback
from adgn.experiments.summary import shown_score


def _table(jobs: Sequence[Job]) -> Table:
    table = Table()
    for column in ("experiment", "cells done", "partial", "waiting", "failed", "runs", "now"):
        table.add_column(column, justify="left" if column in ("experiment", "now") else "right")
    for name in dict.fromkeys(job.plan.experiment.name for job in jobs):
        mine = [job for job in jobs if job.plan.experiment.name == name]
        count = Counter(job.cell.status for job in mine)
        runs = sum(len(job.cell.runs) for job in mine)
        table.add_row(
            name,
            f"{count['done']}/{len(mine)}",
            *(str(count[status]) for status in ("partial", "waiting", "failed")),
            f"{runs}/{sum(job.cell.planned_runs for job in mine)}",
            ", ".join(escape(job.plan.name) for job in mine if job.running),
        )
    return table


class _Progress(ReproductionCallback):
    """A table of all cells, and a line per step."""

    def __init__(self, display: Display) -> None:
        self.display = display
        self.began: dict[int, float] = {}

    def step_begins(self, job: Job, step: int) -> None:
        self.began[job.number] = time.monotonic()

    def step_ends(self, job: Job, step: int, outcome: str) -> None:
        took = time.monotonic() - self.began.get(job.number, time.monotonic())
        cell = job.cell
        if outcome == "failed" and cell.error is not None:
            what = "failed: " + cell.error.message.splitlines()[0]
        elif outcome == "died":
            what = "the worker died; trying again"
        elif cell.score is None:
            what = "settings found"
        else:
            runs = f"{len(cell.runs)} of {cell.planned_runs} runs"
            what = f"{shown_score(job.plan, cell.score)} ({runs})"
        self.display.line(f"{job.plan.label}: {what} [{took:.0f} s]")

    def tick(self, jobs: Sequence[Job]) -> None:
        if self.display.live is not None:
            self.display.draw(_table(jobs))


@contextmanager
def show_reproduction() -> Iterator[tuple[ReproductionCallback, Share]]:
    """Yields what is to be told about cells, and how far the data are prepared."""
    with show_work() as display:
        yield _Progress(display), display.share("data")
