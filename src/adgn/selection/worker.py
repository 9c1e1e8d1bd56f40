"""A worker: takes trials from a study's queue until there are none, wherever it runs."""

import os
import shutil
import socket
import threading
import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import optuna
import torch
from filelock import Timeout
from optuna.exceptions import UpdateFinishedTrialError
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from adgn.selection.definition import StudyDefinition
from adgn.selection.objective import TrialObjective, is_running
from adgn.selection.replicate import held, key_lock
from adgn.selection.storage import QueueEmpty, open_storage, storage_errors
from adgn.selection.study import kinds, open_study, plan, requeue, wanted
from adgn.training import Interrupted, shared_data

CRASHES_TO_GIVE_UP = 3  # of the first trials, before any has a score
_POLL_SECONDS = 0.5


@dataclass(frozen=True)
class WorkerSpec:
    """What a worker needs to know."""

    study: str
    storage: str  # a URL
    folder: str
    threads: int  # that torch may use; 0: as many as it likes
    heartbeat: int  # seconds between two signs of life
    grace: int  # seconds of silence after which its trial is given to another worker
    device: str = "cpu"  # as the configuration has it


def handle(message: Mapping[str, Any], stop: threading.Event) -> None:
    """Works as a process of its own; `message` is a `WorkerSpec`."""
    work(WorkerSpec(**message), stop)


def work(spec: WorkerSpec, stop: threading.Event) -> None:
    """Runs trials until the queue is empty and no trial of a dead worker can come back to it."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    if spec.threads:
        torch.set_num_threads(spec.threads)
    with storage_errors(spec.storage):
        _work(spec, stop)


def _work(spec: WorkerSpec, stop: threading.Event) -> None:
    storage = open_storage(
        spec.storage, heartbeat=spec.heartbeat, grace=spec.grace, on_stale=requeue, must_exist=True
    )
    study, definition = open_study(spec.study, storage)
    name = f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:8]}"
    objective = TrialObjective(definition, Path(spec.folder), stop, name, spec.grace)
    with shared_data():
        while not stop.is_set() and first_cause(study, definition) is None:
            objective.trial = None
            try:
                study.optimize(
                    objective, n_trials=1, catch=(Exception,), callbacks=[_requeue_interrupted]
                )
            except QueueEmpty:
                if definition.rungs and _plan_next_rung(study, definition, Path(spec.folder), stop):
                    continue
                if not study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
                    break
                stop.wait(_POLL_SECONDS)
            except (UpdateFinishedTrialError, ValueError):
                # Where this worker was thought dead, its trial was ended by another.
                if objective.trial is None or is_running(objective.trial):
                    raise


def _plan_next_rung(
    study: Study, definition: StudyDefinition, folder: Path, stop: threading.Event
) -> int:
    """Puts into the queue what is decided by now, and removes states that are not needed again."""
    try:
        with held(folder / ".lock", stop):  # two workers must not both plan
            added = plan(study, definition)
            rungs, _ = wanted(study, definition)
    except Interrupted:
        return 0
    # Who stayed below is taken up again only while the rung above is not over.
    for number in range(1, len(rungs) - 1):
        for key in set(rungs[number - 1]) - set(rungs[number]):
            # A worker that was thought dead may still be at it; who plans next removes it.
            with suppress(Timeout, Interrupted), held(key_lock(folder, key), stop, seconds=0):
                shutil.rmtree(folder / "runs" / key, ignore_errors=True)
    return added


def _requeue_interrupted(study: Study, trial: FrozenTrial) -> None:
    if trial.state == TrialState.FAIL and trial.user_attrs.get("interrupted", False):
        requeue(study, trial)


def first_cause(study: Study, definition: StudyDefinition) -> FrozenTrial | None:
    """The first crash of a study in which everything crashes; `None` while some may succeed.

    A configuration that diverges says nothing about others and is no crash in this sense.
    """
    trials = list(kinds(study.get_trials(deepcopy=False), definition))
    if any(what in ("complete", "pruned") for _, what in trials):
        return None
    crashed = [t for t, what in trials if what == "failed" and not t.user_attrs.get("diverged")]
    return crashed[0] if len(crashed) >= CRASHES_TO_GIVE_UP else None
