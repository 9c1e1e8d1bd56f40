"""How a reproduction looks while it goes on: a live table on a terminal, and a line per step."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from adgn.cli.console import error_console, progress_bar
from adgn.experiments.driver import Job, ReproductionCallback
from adgn.experiments.summary import shown_score

__all__ = ["shown_reproduction"]


def _table(jobs: Sequence[Job]) -> Table:
    table = Table()
    for column in ("experiment", "cells done", "partial", "waiting", "failed", "runs", "now"):
        table.add_column(column, justify="left" if column in ("experiment", "now") else "right")
    for name in dict.fromkeys(job.plan.experiment.name for job in jobs):
        mine = [job for job in jobs if job.plan.experiment.name == name]
        count = dict.fromkeys(("done", "partial", "waiting", "failed"), 0)
        for job in mine:
            count[job.cell.status] += 1
        runs = sum(len(job.cell.runs) for job in mine)
        planned = sum(job.cell.planned_runs for job in mine)
        now = ", ".join(escape(job.plan.name) for job in mine if job.running)
        table.add_row(
            name,
            f"{count['done']}/{len(mine)}",
            *(str(count[status]) for status in ("partial", "waiting", "failed")),
            f"{runs}/{planned}",
            now,
        )
    return table


class _Lines(ReproductionCallback):
    def __init__(self, out: Console, live: Live | None) -> None:
        self.out = out
        self.live = live
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
        self.out.print(
            f"{job.plan.label}: {what} [{took:.0f} s]",
            highlight=False,
            soft_wrap=True,
            markup=False,
        )

    def tick(self, jobs: Sequence[Job]) -> None:
        if self.live is not None:
            self.live.update(_table(jobs))


@contextmanager
def shown_reproduction() -> Iterator[tuple[ReproductionCallback, Callable[[int, int], None]]]:
    """Shows a reproduction on standard error.

    Yields:
        What is to be told about cells, and what is to be told how far the data are prepared.
    """
    out = error_console()
    if not out.is_terminal:
        with progress_bar("data") as progress:
            yield _Lines(out, None), progress
        return
    # One live display for both: two would write over each other.
    with Live(console=out, transient=True, refresh_per_second=2) as live:
        yield (
            _Lines(out, live),
            lambda done, total: live.update(Text(f"data: {100 * done // total} %")),
        )
