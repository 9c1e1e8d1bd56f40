"""A worker: takes trials from a study's queue until there are none, wherever it runs.

As a program, `main`, it reads one line of JSON, a `WorkerSpec`, and then waits for its standard
input to end: that is how the driver, by closing it or by dying, asks it to stop.
"""

import os
import signal
import socket
import sys
import threading
import uuid
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import optuna
import torch
from optuna.exceptions import UpdateFinishedTrialError
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState
from pydantic import TypeAdapter

from adgn.selection.definition import StudyDefinition
from adgn.selection.objective import TrialObjective
from adgn.selection.storage import QueueEmpty, open_storage, storage_errors
from adgn.selection.study import kinds, open_study, requeue
from adgn.training import shared_data

__all__ = ["WorkerSpec", "first_cause", "work"]

HOPELESS = 3  # crashes without a single success after which a study is given up
_POLL_SECONDS = 0.5


@dataclass(frozen=True)
class WorkerSpec:
    """What a worker needs to know.

    Attributes:
        study: The name of the study.
        storage: The URL of its storage.
        folder: The study's folder.
        threads: Threads that torch may use; 0: as many as it likes.
        heartbeat: Seconds between two signs of life.
        grace: Seconds of silence after which its trial is given to another worker.
        device: Where its runs compute, as the configuration has it.
    """

    study: str
    storage: str
    folder: str
    threads: int
    heartbeat: int
    grace: int
    device: str = "cpu"

    def to_json(self) -> str:
        """As a line of JSON."""
        return TypeAdapter(WorkerSpec).dump_json(self).decode()

    @staticmethod
    def from_json(text: str) -> "WorkerSpec":
        """From a line of JSON."""
        return TypeAdapter(WorkerSpec).validate_json(text)


def work(spec: WorkerSpec, stop: threading.Event) -> None:
    """Runs trials until the queue is empty and no trial of a dead worker can come back to it."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    if spec.threads:
        torch.set_num_threads(spec.threads)
    with storage_errors(spec.storage):
        _work(spec, stop)


def _work(spec: WorkerSpec, stop: threading.Event) -> None:
    storage = open_storage(
        spec.storage,
        heartbeat=spec.heartbeat,
        grace=spec.grace,
        on_stale=requeue,
        must_exist=True,
    )
    study, definition = open_study(spec.study, storage)
    name = f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:8]}"
    objective = TrialObjective(definition, Path(spec.folder), stop, name, spec.grace)
    with shared_data():
        while not stop.is_set() and first_cause(study, definition) is None:
            try:
                study.optimize(
                    objective, n_trials=1, catch=(Exception,), callbacks=[_requeue_interrupted]
                )
            except QueueEmpty:
                if not study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
                    break
                stop.wait(_POLL_SECONDS)
            except (UpdateFinishedTrialError, ValueError) as error:
                if not _was_taken_away(error):
                    raise


def _was_taken_away(error: Exception) -> bool:
    """Whether a trial could not be ended because this worker was thought dead and it was failed."""
    return isinstance(error, UpdateFinishedTrialError) or "Cannot tell a" in str(error)


def _requeue_interrupted(study: Study, trial: FrozenTrial) -> None:
    if trial.state == TrialState.FAIL and trial.user_attrs.get("interrupted", False):
        requeue(study, trial)


def first_cause(study: Study, definition: StudyDefinition) -> FrozenTrial | None:
    """The first crash of a study in which everything crashes; `None` while there is hope.

    A configuration that diverges says nothing about others and is no crash in this sense.
    """
    trials = list(kinds(study.get_trials(deepcopy=False), definition))
    if any(what in ("complete", "pruned") for _, what in trials):
        return None
    crashed = [t for t, what in trials if what == "failed" and not t.user_attrs.get("diverged")]
    return crashed[0] if len(crashed) >= HOPELESS else None


def main() -> None:
    """Runs a worker as a process of its own."""
    spec = WorkerSpec.from_json(sys.stdin.readline())
    stop = threading.Event()

    def ask(number: int, frame: FrameType | None) -> None:
        stop.set()

    signal.signal(signal.SIGTERM, ask)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the driver decides what Ctrl-C means

    def wait_for_the_end() -> None:
        # Not through sys.stdin: a thread that waits in it would hinder the interpreter's end.
        while os.read(0, 1024):
            pass
        stop.set()

    threading.Thread(target=wait_for_the_end, daemon=True).start()
    work(spec, stop)
    # Taking the interpreter and torch apart would take more than a second for nothing: all files
    # are written and closed by now.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
