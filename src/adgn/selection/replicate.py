"""The runs of one configuration, with all its seeds and splits: trained, gone on with, or read."""

import math
import shutil
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from filelock import FileLock, Timeout

from adgn.selection.protocols import Run
from adgn.training import (
    Callback,
    DamagedRunError,
    Interrupted,
    RunDirectory,
    TrainConfig,
    Trainer,
    train,
)

_Answer = TypeVar("_Answer")
_POLL_SECONDS = 0.2


class StopCallback(Callback):
    """Stops a run, at a place from which it can go on, as soon as a function says so."""

    def __init__(self, should_stop: Callable[[], bool]) -> None:
        self.should_stop = should_stop

    def on_step(self, trainer: Trainer) -> None:
        """Looks after every step."""
        if self.should_stop():
            trainer.request_stop()


def replicate(
    runs: Iterable[Run],
    config_of: Callable[[Run], TrainConfig],
    folder_of: Callable[[Run], Path],
    *,
    should_stop: Callable[[], bool] = lambda: False,
    evaluate_test: bool = False,
) -> Iterator[tuple[Run, dict[str, Any]]]:
    """Yields the result of every run, as its result.json has it.

    A run that was stopped, in whatever way, goes on; one that is over is read, and with
    `evaluate_test` looks at the test split if it has not; one whose files are lost or damaged
    starts again. `should_stop` is asked after every step; where it says so,
    `Interrupted` is raised.
    """

    def result_of(config: TrainConfig, directory: RunDirectory) -> dict[str, Any]:
        result = directory.result()
        if result is not None:
            directory.refuse_other(config)
        if result is None or (evaluate_test and "test" not in result["scores"]):
            found = train(
                config,
                run_dir=directory.path,
                resume=True,
                evaluate_test=evaluate_test,
                callbacks=[StopCallback(should_stop)],
            )
            if result is not None:  # of a search, which does not look at the test split
                directory.write_result({**result, "scores": found.scores})
            # A finished run needs its weights alone; the state is several times as large.
            shutil.rmtree(directory.states.folder, ignore_errors=True)
        return directory.result() or {}

    for run in runs:
        if should_stop():
            raise Interrupted("stopped between two runs", 0)
        config, folder = config_of(run), folder_of(run)
        yield run, with_restart(folder, partial(result_of, config, RunDirectory(folder)))


def with_restart(folder: Path, attempt: Callable[[], _Answer]) -> _Answer:
    """What `attempt` gives; where files of the run in the folder are lost or damaged, once more.

    The folder is removed before, with a warning that says why. The run comes to the same scores.
    """
    file = RunDirectory(folder).config_file
    try:
        if not file.exists() and any(folder.glob("[!.]*")):
            raise DamagedRunError(f"{file} is missing")
        return attempt()
    except DamagedRunError as error:
        warnings.warn(f"{error}. The run in {folder} starts again", stacklevel=3)
        shutil.rmtree(folder)
    return attempt()


def run_record(run: Run, scores: Any, result: Mapping[str, Any]) -> dict[str, Any]:
    """What is kept of a run once it is over."""
    facts = {key: result.get(key) for key in ("epochs", "best_epoch", "seconds")}
    return {"seed": run.seed, "split": run.split, "scores": scores, **facts}


def read_scores(scores: Mapping[str, float | None]) -> dict[str, float]:
    """Scores as they were before they were written as JSON, which has neither −∞ nor NaN.

    A logarithm is −∞ where an error is zero; a ranking is not defined where there is one class.
    """

    def missing(name: str) -> float:
        return -math.inf if name.startswith("log10") else math.nan

    return {name: missing(name) if x is None else float(x) for name, x in scores.items()}


def key_lock(folder: Path, key: str) -> Path:
    """The file that is locked while somebody is at the runs of a configuration in a study."""
    return folder / "locks" / f"{key}.lock"


@contextmanager
def held(file: Path, stop: threading.Event, seconds: float = math.inf) -> Iterator[None]:
    """Holds a lock, so that two workers never write into one run; waits `seconds` at most."""
    file.parent.mkdir(parents=True, exist_ok=True)
    lock, limit = FileLock(file), time.monotonic() + seconds
    while not lock.is_locked:
        try:
            lock.acquire(timeout=0)
        except Timeout:
            if time.monotonic() > limit:
                raise
            if stop.wait(_POLL_SECONDS):
                raise Interrupted("stopped while another worker holds the run", 0) from None
    try:
        yield
    finally:
        lock.release()
