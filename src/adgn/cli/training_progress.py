"""How a run looks while it goes on: a bar on a terminal, plain lines in a pipe."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from adgn.cli.console import error_console, progress_bar
from adgn.training.trainer import Callback, Trainer

__all__ = ["Shown", "shown_progress"]

_LINE_SECONDS = 10.0  # between two lines in a pipe
_BAR_SECONDS = 0.1  # between two looks at the bar: drawing must not cost training time


def _score(trainer: Trainer) -> str:
    best = trainer.stopping.best
    if best is None:
        return "no score yet"
    return f"best {trainer.monitor_split} {trainer.monitor} {best:.4f}"


def _time_left(trainer: Trainer) -> str:
    """The time that all epochs would take; early stopping may end the run sooner."""
    done = trainer.progress.passes / trainer.passes_per_epoch
    if not done:
        return "time left unknown"
    seconds = int(trainer.progress.seconds / done * (trainer.max_epochs - done))
    minutes, seconds = divmod(max(seconds, 0), 60)
    hours, minutes = divmod(minutes, 60)
    return f"at most {hours}:{minutes:02}:{seconds:02} left"


class _Lines(Callback):
    """A line every few seconds, and at the first and the best-known last epoch."""

    def __init__(self, label: str) -> None:
        self.label = label
        self.out = error_console()
        self.next_time = 0.0

    def on_epoch(self, trainer: Trainer, line: Mapping[str, Any]) -> None:
        now = time.monotonic()
        if now < self.next_time and trainer.stop_reason() is None:
            return
        self.next_time = now + _LINE_SECONDS
        self.out.print(
            f"{self.label}: epoch {line['epoch']}/{trainer.max_epochs}, loss "
            f"{line['train_loss']:.5g}, {_score(trainer)}, {_time_left(trainer)}",
            highlight=False,
            soft_wrap=True,
        )


class _Bar(Callback):
    """A progress bar with epoch, loss, best score and time left."""

    def __init__(self, label: str, progress: Progress) -> None:
        self.progress = progress
        self.task = progress.add_task(label, total=None, text="preparing")
        self.next_time = 0.0
        self.loss = "-"

    def on_step(self, trainer: Trainer) -> None:
        if time.monotonic() < self.next_time:
            return
        self.next_time = time.monotonic() + _BAR_SECONDS
        done = trainer.progress.passes / trainer.passes_per_epoch
        self.progress.update(
            self.task,
            completed=done,
            total=trainer.max_epochs,
            text=f"epoch {trainer.progress.epoch + 1}/{trainer.max_epochs}  loss {self.loss}  "
            f"{_score(trainer)}  {_time_left(trainer)}",
        )

    def on_epoch(self, trainer: Trainer, line: Mapping[str, Any]) -> None:
        self.loss = f"{line['train_loss']:.5g}"


@dataclass(frozen=True)
class Shown:
    """What shows a run: `callback` the training, `preparing` the making of a data set."""

    callback: Callback
    preparing: Callable[[int, int], None]


@contextmanager
def shown_progress(label: str) -> Iterator[Shown]:
    """Shows a run on standard error."""
    out = error_console()
    if not out.is_terminal:
        with progress_bar("preparing the data") as preparing:
            yield Shown(_Lines(label), preparing)
        return
    columns = (
        TextColumn("[bold]{task.description}"),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[text]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=out, transient=True) as progress:
        bar = _Bar(label, progress)

        def preparing(done: int, total: int) -> None:
            text = f"preparing the data: {done} of {total} graphs"
            progress.update(bar.task, completed=done, total=total, text=text)

        yield Shown(bar, preparing)
