"""How a study looks while it goes on."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

from rich.markup import escape
from rich.table import Table

from adgn.cli.progress import Share, show_work
from adgn.selection import StudyStatus

__all__ = ["show_study", "time_left"]


def time_left(status: StudyStatus, first: StudyStatus, seconds: float) -> float | None:
    """Seconds until the plan is done at the pace so far; `None` before anything was done.

    Args:
        status: The study now.
        first: The study when this began.
        seconds: What has passed since then.
    """
    done = status.done - first.done
    return None if done < 1 else (status.total - status.done) * seconds / done


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
    if status.best_params:
        values = ", ".join(f"{key}={value}" for key, value in status.best_params.items())
        table.caption = f"best: {escape(values)}"
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
            f"{status.pruned} pruned, {status.failed} failed, best {best}, time left {left}",
            last=status.finished,
            about=status,
        )

    with show_work() as display:
        yield callback, display.share("test scores")
