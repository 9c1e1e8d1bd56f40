"""Runs that pause at an epoch and go on from there later, exactly as if they had not paused."""

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adgn.selection.replicate import StopCallback, read_scores, with_restart
from adgn.training import (
    Callback,
    Interrupted,
    RunDirectory,
    TrainConfig,
    Trainer,
    train,
)

_CURVE_POINTS = 5  # of a rung; each is an entry in a database


@dataclass(frozen=True)
class RunSoFar:
    """A run up to some epoch.

    Attributes:
        lines: The scores of its epochs.
        result: The content of its result.json, where the run was over by then.
    """

    lines: list[dict[str, Any]]
    result: dict[str, Any] | None

    def best(self, split: str, epoch: int) -> dict[str, float]:
        """The scores of the best epoch up to this one."""
        return read_scores(self._best_line(epoch)[split])

    def _best_line(self, epoch: int) -> dict[str, Any]:
        return [line for line in self.lines if line.get("best") and line["epoch"] <= epoch][-1]

    def scores(self, split: str) -> Mapping[str, float | None]:
        """The scores of the best epoch as they are recorded; of a run that is over, all of them."""
        last = len(self.lines)
        scores = self._best_line(last) if self.result is None else self.result["scores"]
        found: Mapping[str, float | None] = scores[split]
        return found

    @property
    def facts(self) -> dict[str, Any]:
        """How long it has trained."""
        last = len(self.lines)
        seen = {"epochs": last, "best_epoch": self._best_line(last)["epoch"]}
        return seen | {"seconds": None if self.result is None else self.result["seconds"]}


class _PauseAfter(Callback):
    """Stops a run after an epoch, unless it is over by itself then."""

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.reached = False

    def on_epoch(self, trainer: Trainer, line: Mapping[str, Any]) -> None:
        """Looks after every epoch; the state that is then written is the one to go on from."""
        if trainer.progress.epoch >= self.epoch and trainer.stop_reason() is None:
            self.reached = True
            trainer.request_stop()


def train_to(
    epochs: int, config: TrainConfig, folder: Path, should_stop: Callable[[], bool]
) -> RunSoFar:
    """Goes on with a run until it has had some epochs, or is over.

    A run whose files are lost or damaged starts again, and comes to the same scores.

    Args:
        epochs: Counted from the beginning of the run; `config.loop.max_epochs` stays what it is.
        config: Of the run.
        folder: The run directory.
        should_stop: Says when to stop before; asked after every step.

    Raises:
        Interrupted: It was stopped before.
        RunError: The folder holds a run of another configuration.
    """
    if should_stop():
        raise Interrupted("stopped between two runs", 0)
    directory = RunDirectory(folder)
    return with_restart(folder, lambda: _train_to(epochs, config, directory, should_stop))


def _train_to(
    epochs: int, config: TrainConfig, directory: RunDirectory, should_stop: Callable[[], bool]
) -> RunSoFar:
    result = directory.result()
    directory.refuse_other(config)
    state = None if result is not None else directory.load_state(config)
    digest = None if state is None else state["metrics"]["sha256"]
    if result is None and (state is None or state["trainer"]["progress"]["epoch"] < epochs):
        pause, digest = _PauseAfter(epochs), None
        try:
            train(
                config,
                run_dir=directory.path,
                resume=True,
                evaluate_test=False,
                callbacks=[pause, StopCallback(should_stop)],
            )
        except Interrupted:
            if not pause.reached:
                raise
        result = directory.result()
    if result is not None:
        digest = result.get("metrics_sha256")
        # A finished run needs its weights alone; the state is several times as large.
        shutil.rmtree(directory.states.folder, ignore_errors=True)
    lines = directory.history(digest)
    ended = result is not None and result["epochs"] <= epochs
    return RunSoFar(lines[:epochs], result if ended else None)


def curve_epochs(before: int, after: int, evaluate_every: int) -> list[int]:
    """Epochs between two rungs at which scores are reported; each has been measured.

    Example:
        >>> curve_epochs(50, 150, 1)
        [70, 90, 110, 130, 150]
        >>> curve_epochs(0, 3, 1)
        [1, 2, 3]
    """
    count = min(_CURVE_POINTS, (after - before) // evaluate_every)
    share = (after - before) / max(count, 1)
    points = {before + round(share * number) for number in range(1, count)}
    measured = {point // evaluate_every * evaluate_every for point in points}
    return sorted({*(point for point in measured if point > before), after})
