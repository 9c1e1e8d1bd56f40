"""How a study looks while it goes on."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

from rich.markup import escape
from rich.table import Table

from adgn.cli.console import Share, show_work
from adgn.selection import StudyStatus
from adgn.selection.forecast import Forecast


def time_left(status: StudyStatus, first: StudyStatus, seconds: float) -> float | None:
    """Seconds until the plan is done at the pace so far; `None` before anything was done.

    Args:
        status: The study now.
        first: The study when this began.
        seconds: What has passed since then.
    """
    done, total = status.work
    since = done - first.work[0]
    return None if since <= 0 else (total - done) * seconds / since


def cost_lines(cost: Forecast) -> list[str]:
    """What a search will cost, in words."""
    count = f"{cost.configurations:,} configurations"
    if cost.configurations < cost.space:
        count = f"{cost.configurations:,} of {cost.space:,} configurations, drawn at random"
    given = "" if cost.limit is None else f"in {cost.limit:g} h: "
    lines = [f"{given}{count}"]
    if len(cost.rungs) > 1:
        parts = zip(cost.counts, cost.rungs, strict=True)
        lines.append("rungs: " + ", ".join(f"{number} to {rung}" for number, rung in parts))
    several = "1 worker" if cost.workers == 1 else f"{cost.workers} workers"
    epochs = f"cost: {sum(cost.epochs):,} epochs"
    if cost.seconds_per_epoch is None or cost.hours is None or cost.most_hours is None:
        reason = "configurations that were timed diverged in the first epoch"
        return [*lines, f"{epochs}, hours unknown: {reason}"]
    largest = f", {_hours(cost.most_hours)} if the largest go on" if len(cost.rungs) > 1 else ""
    took = f"{cost.seconds_per_epoch:.3g} s (measured), {_hours(cost.hours)} with {several}"
    return [*lines, f"{epochs} of {took}{largest}; early stopping makes it less"]


def _hours(hours: float) -> str:
    return f"{hours:.1f} h" if hours >= 0.95 else f"{60 * hours:.1f} min"


def _rungs(status: StudyStatus) -> str:
    """How full each rung is, such as `50 epochs 96/96, 450 epochs 12/32`."""
    return ", ".join(
        f"{rung.epochs} epochs{f' × {rung.runs}' if rung.runs > 1 else ''} "
        f"{rung.done}/{rung.planned}"
        for rung in status.rungs
    )


def _clock(seconds: float | None) -> str:
    return "unknown" if seconds is None else str(timedelta(seconds=int(seconds)))


def _table(label: str, status: StudyStatus, best: str, passed: str, left: str) -> Table:
    cells = {
        "done": f"{status.done}/{status.total}",
        "running": f"{status.running}",
        "waiting": f"{status.waiting}",
        "pruned": f"{status.pruned}",
        "failed": f"{status.failed}",
        "best": best,
        "elapsed": passed,
        "time left": left,
    }
    table = Table(title=f"study {escape(label)}", title_justify="left")
    for column in cells:
        table.add_column(column, justify="right")
    table.add_row(*cells.values())
    captions = [f"rungs: {_rungs(status)}"] if status.rungs else []
    if status.best_params:
        values = ", ".join(f"{key}={value}" for key, value in status.best_params.items())
        captions.append(f"best: {escape(values)}")
    if captions:
        table.caption = "\n".join(captions)
        table.caption_justify = "left"
    return table


@contextmanager
def show_study(label: str) -> Iterator[tuple[Callable[[StudyStatus], None], Share]]:
    """Yields what is to be told the study's status, and how far the test scores are."""
    started = time.monotonic()
    first: StudyStatus | None = None

    def callback(status: StudyStatus) -> None:
        nonlocal first
        first = first or status
        passed = time.monotonic() - started
        left = _clock(time_left(status, first, passed))
        best = "none yet" if status.best is None else f"{status.best:.4f}"
        display.draw(_table(label, status, best, _clock(passed), left))
        display.line_in_pipe(
            f"{label}: {status.done} of {status.total} trials done, {status.running} running, "
            f"{status.pruned} pruned, {status.failed} failed, best {best}, time left {left}"
            + (f"; {_rungs(status)}" if status.rungs else ""),
            last=status.finished,
            about=status,
        )

    with show_work() as display:
        yield callback, display.share("test scores")
