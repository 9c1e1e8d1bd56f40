"""How a study looks while it goes on: a live table on a terminal, plain lines in a pipe."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.live import Live
from rich.markup import escape
from rich.table import Table

from adgn.cli.console import error_console
from adgn.selection import StudyStatus
from adgn.selection.forecast import Forecast

__all__ = ["cost_lines", "shown_study", "time_left"]

_LINE_SECONDS = 10.0  # between two lines in a pipe


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
    lines.append(
        f"cost: {sum(cost.epochs):,} epochs of {cost.seconds_per_epoch:.3g} s (measured), "
        f"{_hours(cost.hours)} with {several}"
        + (f", {_hours(cost.most_hours)} if the largest go on" if len(cost.rungs) > 1 else "")
        + "; early stopping makes it less"
    )
    return lines


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
    if seconds is None:
        return "unknown"
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}"


def _best(status: StudyStatus) -> str:
    return "none yet" if status.best is None else f"{status.best:.4f}"


def _table(label: str, status: StudyStatus, left: float | None, passed: float) -> Table:
    table = Table(title=f"study {escape(label)}", title_justify="left")
    columns = ("done", "running", "waiting", "pruned", "failed", "best", "elapsed", "time left")
    for column in columns:
        table.add_column(column, justify="right")
    table.add_row(
        f"{status.done}/{status.total}",
        str(status.running),
        str(status.waiting),
        str(status.pruned),
        str(status.failed),
        _best(status),
        _clock(passed),
        _clock(left),
    )
    captions = [f"rungs: {_rungs(status)}"] if status.rungs else []
    if status.best_params:
        values = ", ".join(f"{key}={value}" for key, value in status.best_params.items())
        captions.append(f"best: {escape(values)}")
    if captions:
        table.caption = "\n".join(captions)
        table.caption_justify = "left"
    return table


@contextmanager
def shown_study(label: str) -> Iterator[Callable[[StudyStatus], None]]:
    """Shows a study on standard error; yields the function to be told its status."""
    out = error_console()
    started = time.monotonic()
    first: StudyStatus | None = None

    def pace(status: StudyStatus) -> tuple[float | None, float]:
        nonlocal first
        first = first or status
        passed = time.monotonic() - started
        return time_left(status, first, passed), passed

    if out.is_terminal:
        with Live(console=out, transient=True, refresh_per_second=2) as live:

            def draw(status: StudyStatus) -> None:
                left, passed = pace(status)
                live.update(_table(label, status, left, passed))

            yield draw
        return
    next_time, last = 0.0, None

    def print_line(status: StudyStatus) -> None:
        nonlocal next_time, last
        left, _ = pace(status)
        now = time.monotonic()
        if status == last or (now < next_time and not status.finished):
            return
        next_time, last = now + _LINE_SECONDS, status
        out.print(
            f"{label}: {status.done} of {status.total} trials done, {status.running} running, "
            f"{status.pruned} pruned, {status.failed} failed, best {_best(status)}, "
            f"time left {_clock(left)}" + (f"; {_rungs(status)}" if status.rungs else ""),
            highlight=False,
            soft_wrap=True,
        )

    yield print_line
