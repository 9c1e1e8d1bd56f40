"""What tests of studies share."""

import contextlib
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import optuna
from filelock import FileLock

from adgn.selection import StudyDefinition, StudyFolder, grid_size, select
from adgn.selection.definition import params_key
from adgn.selection.executors import Poll
from adgn.selection.spaces import grid_point
from adgn.selection.study import kind, trial_key
from adgn.selection.worker import WorkerSpec, work

SPACE = {"optimizer.lr": [0.1, 0.01], "model.hidden_channels": [2, 4]}
ONE = {"space": {"optimizer.lr": [0.1]}}  # where nothing is to be chosen

# Eight configurations of two runs, each long enough to be caught in the middle. That a study does
# not end before a test is done with it is not left to time: see `held`.
LONG = {
    "task": "graph-transfer",
    "space": {"optimizer.lr": [0.1, 0.03, 0.01, 0.003], "model.hidden_channels": [2, 4]},
    "settings": {
        "task": {"distance": 2, "train": 18, "val": 6, "test": 6},
        "loop": {"max_epochs": 20, "batch_size": 6},
        "stopping": {"patience": "none"},
        "checkpoint": {"every_epochs": 5},
    },
    "seeds": [0, 1],
    "study": "long",
}


TOTAL = grid_size(LONG["space"])


def key_of(number: int) -> str:
    """The name of configuration `number` of the long study; -1 is the last."""
    return params_key(grid_point(LONG["space"], number % TOTAL), LONG["space"]) or ""


@contextlib.contextmanager
def held(folder: Path, number: int) -> Iterator[None]:
    """Keeps workers from beginning configuration `number` of the long study in this folder.

    The worker that takes its trial waits, as it does for another worker that is at it; so the study
    cannot end within the block, however slow this process or fast the workers are.
    """
    file = folder / "locks" / f"{key_of(number)}.lock"
    file.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(file):
        yield


class InProcess:
    """Runs one worker in the calling process, with one thread as the others have."""

    def run(self, spec: WorkerSpec, poll: Poll) -> None:
        poll()
        work(replace(spec, threads=1), threading.Event())
        poll()


def arguments(folder: Path, executor: Any) -> dict[str, Any]:
    """Arguments of `select` for a grid of four configurations, two runs each."""
    return {
        "task": "graph-transfer",
        "space": SPACE,
        "settings": {
            "task": {"distance": 2, "train": 12, "val": 6, "test": 6},
            "loop": {"max_epochs": 3, "batch_size": 6},
        },
        "seeds": [0, 1],
        "study": "tiny",
        "folder": folder,
        "executor": executor,
        "heartbeat": 1,
        "grace": 5,
    }


class Nowhere:
    """Runs no worker: the study is planned and left as it is."""

    def run(self, spec: WorkerSpec, poll: Poll) -> None:
        raise StopIteration


def planned(arguments: dict[str, Any]) -> tuple[optuna.Study, StudyDefinition]:
    """The study of these arguments, with all its trials waiting."""
    with contextlib.suppress(StopIteration):
        select(**{**arguments, "executor": Nowhere()})
    return StudyFolder(arguments["study"], arguments["folder"]).open()


def finished(folder: Any, name: str, storage: str | None = None) -> dict[str, list[float | None]]:
    """For every configuration that is over, the scores of its trials."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study, definition = StudyFolder(name, folder).open(storage)
    found: dict[str, list[float | None]] = {}
    for trial in study.get_trials(deepcopy=False):
        if kind(trial) in ("complete", "pruned", "failed"):
            found.setdefault(trial_key(trial, definition) or "", []).append(trial.value)
    return found


def wait_until(
    condition: Callable[[], Any],
    what: str,
    process: subprocess.Popen[str] | None = None,
    seconds: float = 240,
) -> Any:
    """What the condition gives once it is true; these machines may be slow, so it waits long.

    A process that should bring it about and has ended instead is reported at once.
    """
    limit = time.monotonic() + seconds
    while time.monotonic() < limit:
        ended = process is not None and process.poll() is not None
        answer = condition()
        if answer:
            return answer
        if ended:
            raise AssertionError(f"it ended without a {what}: {process.communicate()[0]}")
        time.sleep(0.3)  # each look costs time of a processor, too
    raise AssertionError(f"after {seconds} s there is still no {what}")
