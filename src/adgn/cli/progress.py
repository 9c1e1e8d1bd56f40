"""How work looks while it goes on: a live picture on a terminal, plain lines in a pipe."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console, RenderableType
from rich.live import Live
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from adgn.cli.console import error_console, say

__all__ = ["Display", "Share", "progress_bar", "show_work"]

Share = Callable[[int, int], None]  # called with (steps done, all steps)
LINE_SECONDS = 10.0  # between two lines in a pipe


class Display:
    """Shows work on standard error. There is one at a time: two would write over each other."""

    def __init__(self, out: Console, live: Live | None) -> None:
        self.out = out
        self.live = live
        self._next_line = 0.0
        self._about: object = None
        self._tenths = 0
        columns = (TextColumn("[bold]{task.description}"), BarColumn(bar_width=24))
        text = TextColumn("{task.fields[text]}", markup=False)
        self._bar = Progress(*columns, text, TimeElapsedColumn())

    def draw(self, picture: RenderableType) -> None:
        """Shows a picture in place of the one before, on a terminal."""
        if self.live is not None:
            self.live.update(picture)

    def draw_bar(self, label: str, done: float, total: float, text: str) -> None:
        """Shows a bar with a text beside it, on a terminal."""
        if not self._bar.tasks:
            self._bar.add_task(label)
        self._bar.update(
            self._bar.task_ids[0], description=label, completed=done, total=total, text=text
        )
        self.draw(self._bar)

    def line(self, text: str) -> None:
        """Prints a line, above the picture on a terminal."""
        say(text, to=self.out)

    def line_in_pipe(self, text: str, *, last: bool = False, about: object = None) -> None:
        """Prints a line in a pipe: at most every ten seconds unless it is the last.

        Nor does it print two lines in a row `about` the same.
        """
        if self.live is not None or (about is not None and about == self._about):
            return
        if last or time.monotonic() >= self._next_line:
            self._next_line, self._about = time.monotonic() + LINE_SECONDS, about
            self.line(text)

    def share(self, label: str) -> Share:
        """A function that shows how much is done: a bar, or a line per tenth in a pipe."""

        def show(done: int, total: int) -> None:
            self.draw_bar(label, done, total, f"{100 * done // total} %")
            tenths = 10 * done // total
            if self.live is None and tenths > self._tenths:
                self.line(f"{label}: {10 * tenths} %")
            self._tenths = tenths

        return show


@contextmanager
def show_work() -> Iterator[Display]:
    """A display as long as some work goes on."""
    out = error_console()
    if not out.is_terminal:
        yield Display(out, None)
        return
    with Live(console=out, transient=True, refresh_per_second=4) as live:
        yield Display(out, live)


@contextmanager
def progress_bar(label: str) -> Iterator[Share]:
    """Shows how far a piece of work is; yields a function to be told."""
    with show_work() as display:
        yield display.share(label)
