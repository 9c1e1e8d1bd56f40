"""How a run looks while it goes on."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from rich.spinner import Spinner

from adgn.cli.console import Display, Share, show_work
from adgn.training.progress import Callback
from adgn.training.trainer import Trainer

_BAR_SECONDS = 0.1  # between two looks at the bar: drawing must not cost training time


class _Progress(Callback):
    """Epoch, loss, best score and time left: a bar, or a line at the first and last epoch."""

    def __init__(self, label: str, display: Display) -> None:
        self.label = label
        self.display = display
        self.next_time = 0.0
        self.loss = "-"

    def on_step(self, trainer: Trainer) -> None:
        if self.display.live is None or time.monotonic() < self.next_time:
            return
        self.next_time = time.monotonic() + _BAR_SECONDS
        done, total = trainer.progress.passes / trainer.passes_per_epoch, trainer.max_epochs
        text = self._text(trainer, trainer.progress.epoch + 1)
        self.display.draw_bar(self.label, done, total, text)

    def on_epoch(self, trainer: Trainer, line: Mapping[str, Any]) -> None:
        self.loss = f"{line['train_loss']:.5g}"
        text = f"{self.label}: {self._text(trainer, line['epoch'])}"
        self.display.line_in_pipe(text, last=trainer.stop_reason() is not None)

    def _text(self, trainer: Trainer, epoch: int) -> str:
        best = trainer.stopping.best
        name = f"{trainer.monitor_split} {trainer.monitor}"
        score = "no score yet" if best is None else f"best {name} {best:.4f}"
        left = _time_left(trainer)
        return f"epoch {epoch}/{trainer.max_epochs}, loss {self.loss}, {score}, {left}"


def _time_left(trainer: Trainer) -> str:
    """The time that all epochs would take; early stopping may end the run sooner."""
    done = trainer.progress.passes / trainer.passes_per_epoch
    if not done:
        return "time left unknown"
    seconds = trainer.progress.seconds / done * (trainer.max_epochs - done)
    return f"at most {timedelta(seconds=max(int(seconds), 0))} left"


@contextmanager
def show_training(label: str) -> Iterator[tuple[Callback, Share]]:
    """Yields what is to be told of the training, and of how far the data are prepared."""
    with show_work() as display:
        yield _Progress(label, display), display.share("preparing the data")


@contextmanager
def show_fitting(started: Callable[[], None]) -> Iterator[tuple[Callback, Callable[[str], None]]]:
    """Yields what is to be told of each training, and, in words, of what is being done.

    `started` is called once, when the first is told: what was decided before is known by then.
    """
    with show_work() as display:
        progress = _Progress("", display)
        first = True

        def tell(text: str) -> None:
            nonlocal first
            if first:
                first = False
                started()
            progress.label = text.removeprefix("training ")
            display.draw(Spinner("dots", text))
            if display.live is None:
                display.line(text)

        yield progress, tell
