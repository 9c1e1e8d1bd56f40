"""Model selection from beginning to end."""

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

import optuna
from filelock import FileLock
from optuna.study import Study

from adgn._util.files import parse_json, read_file
from adgn._util.names import check_name
from adgn._util.processes import terminate_as_interrupt
from adgn._util.progress import ProgressCallback
from adgn._util.suggestions import unknown_name
from adgn.selection.definition import Prune, Search, StudyDefinition
from adgn.selection.errors import SelectionError
from adgn.selection.executors import Executor, LocalExecutor, RayExecutor, check_ray_device
from adgn.selection.forecast import (
    EpochTimes,
    Forecast,
    configurations_in,
    forecast,
    measure_epochs,
)
from adgn.selection.halving import rungs_for
from adgn.selection.protocols import protocol_of
from adgn.selection.results import SelectionResult, conclude
from adgn.selection.spaces import resolve_space
from adgn.selection.status import StudyStatus, study_status
from adgn.selection.storage import (
    GRACE_SECONDS,
    HEARTBEAT_SECONDS,
    QueueStorage,
    has_password,
    open_storage,
    shown_url,
    sqlite_url,
    storage_errors,
)
from adgn.selection.study import open_study, plan, requeue, start_study, stored_definition
from adgn.selection.worker import WorkerSpec, first_cause
from adgn.training import resolve_config, shared_data
from adgn.training.checkpoint import RUN_AGAIN, write_atomically
from adgn.training.models import check_run_memory
from adgn.training.seeding import resolve_device, thread_count

ROOT = Path("studies")
EPOCH_TIMES = "adgn_epoch_times"  # the study's attribute that holds them


class StudyFolder:
    """The folder of a study: its database, runs, logs and results.

    Args:
        name: The name of the study.
        folder: The folder; by default `studies/NAME`.
    """

    def __init__(self, name: str, folder: str | Path | None = None) -> None:
        try:
            self.name = check_name(name, "study")
        except ValueError as error:
            raise SelectionError(str(error)) from None
        self.path = Path(folder) if folder is not None else ROOT / name
        self.about = self.path / "study.json"

    def storage(self, given: str | None) -> str:
        """The URL of the study's storage: the given one, the one it was started with, or a file."""
        if given is not None:
            return given
        try:
            known = parse_json(read_file(self.about))
            keys = ("study", "storage", "needs_password")
            if not isinstance(known, dict) or any(key not in known for key in keys):
                raise ValueError(f"it does not have {', '.join(keys)}")
            study, url, needs_password = (known[key] for key in keys)
        except (FileNotFoundError, NotADirectoryError):
            return sqlite_url(self.path)
        except (OSError, ValueError) as error:
            raise SelectionError(
                f"{self.about} cannot be read ({error}); give the study's --storage, or, if its "
                "study.db is in the folder, move this file away"
            ) from error
        if study != self.name:
            other = f"the folder of the study {study!r}, not {self.name!r}"
            raise SelectionError(f"{self.path} is {other}")
        if url is None:
            return sqlite_url(self.path)  # so that a folder can be moved
        if needs_password:
            raise SelectionError(
                f"the study {self.name!r} is in {url}, whose password is not kept; give the whole "
                "URL with --storage"
            )
        return str(url)

    def make(self) -> None:
        """Makes the folder."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise SelectionError(
                f"folder={str(self.path)!r} cannot be the folder of a study: "
                f"{error.strerror or error}; give another --folder"
            ) from error

    def write(self, storage: str) -> None:
        """Writes down where the study is, without a password."""
        url = None if storage == sqlite_url(self.path) else shown_url(storage)
        secret = has_password(storage)
        about = {"study": self.name, "storage": url, "needs_password": secret}
        write_atomically(self.about, (json.dumps(about, indent=2) + "\n").encode(), RUN_AGAIN)

    def open(self, storage: str | None = None) -> tuple[Study, StudyDefinition]:
        """The study, to look at; what it is asked later belongs into `storage_errors`."""
        url = self.storage(storage)
        if url == sqlite_url(self.path) and not (self.path / "study.db").exists():
            raise SelectionError(
                f"there is no study in {self.path}; start it with `adgn select TASK --study "
                f"{self.name}`, or give its --storage"
            )
        with storage_errors(url):
            return open_study(self.name, open_storage(url, must_exist=True))


def select(
    task: str | None = None,
    *,
    model: str | None = None,
    space: str | Path | Mapping[str, Any] | None = None,
    search: Search | None = None,
    prune: Prune | None = None,
    first_rung: int | None = None,
    trials: int | None = None,
    hours: float | None = None,
    workers: int = 1,
    executor: Literal["local", "ray"] | Executor = "local",
    ray_address: str | None = None,
    threads: int | None = None,
    storage: str | None = None,
    study: str | None = None,
    folder: str | Path | None = None,
    settings: Mapping[str, Any] | None = None,
    seeds: Sequence[int] | None = None,
    splits: Sequence[int] | None = None,
    seed: int | None = None,
    retry_failed: bool = False,
    evaluate_test: bool = True,
    heartbeat: int = HEARTBEAT_SECONDS,
    grace: int = GRACE_SECONDS,
    callback: Callable[[StudyStatus], None] | None = None,
    progress: ProgressCallback | None = None,
    tell_cost: Callable[[Forecast], None] | None = None,
) -> SelectionResult:
    """Selects a configuration by its validation score, and gives its test score.

    Called again with the name of a study, it goes on where the study was stopped, in whatever
    way; what a study was started with need not be said again.

    Args:
        task: A task; needed for a new study.
        model: A model; by default `"adgn"`.
        space: `"paper"`, `"compact"`, a TOML file, or lists by key; by default `"compact"`.
        search: `"grid"` (all of the space), `"random"` or `"tpe"`; by default `"grid"`.
        prune: `"asha"`: trials that are not among the best third after 1, 3, 9, … of their runs are
            stopped. `"halving"`: all train for a few epochs, the best third goes on to nine times
            as many, from where it paused, and a few to all epochs and all runs; see `rungs_of`. By
            default `"none"`.
        first_rung: With halving, the epochs of the first rung; by default a 27th of the task's, or
            half the patience where that is less.
        trials: How many trials; by default all of a grid, 50 of a random or TPE search.
        hours: How long the search may take. As many configurations are tried as that allows
            without early stopping, drawn at random; a few epochs are timed first.
        workers: How many trials run at a time.
        executor: `"local"`: processes; `"ray"`: tasks of a Ray cluster.
        ray_address: The cluster; `None`: one on this machine.
        threads: Threads per worker; by default the cores divided by the workers.
        storage: A database URL; by default an SQLite file in the study's folder.
        study: The name of the study; by default `TASK-MODEL-SPACE`.
        folder: The study's folder; by default `studies/NAME`.
        settings: Settings of all trials, nested: `{"loop": {"max_epochs": 100}}`.
        seeds: Of the initialisations, instead of the protocol's.
        splits: Instead of all of the protocol's.
        seed: Of a random or TPE search.
        retry_failed: Run trials again that crashed (not those that diverged).
        evaluate_test: Whether the test split is looked at for the selected configuration; if not,
            `test` is empty.
        heartbeat: Seconds between two signs of life of a trial.
        grace: Seconds without one after which a trial is given to another worker.
        callback: Told about once a second how far the study is.
        progress: Told how far the test scores are.
        tell_cost: Told what the search will cost, before it begins; a few epochs are timed first,
            once for a study.

    Raises:
        SelectionError: One of its kinds: the space does not fit, the name is taken, the storage
            cannot be reached, workers cannot be started; or all trials crashed.

    Example:
        >>> settings = {"task": {"distance": 2}, "loop": {"max_epochs": 2}}
        >>> space = {"optimizer.lr": [0.1, 0.001]}
        >>> result = select("graph-transfer", space=space, settings=settings)  # doctest: +SKIP
        >>> result.counts["complete"], sorted(result.test)  # doctest: +SKIP
        (2, ['log10_mse', 'log10_mse_paper', 'loss', 'mae', 'mse'])
    """
    where = _executor(executor, workers, ray_address, threads)
    name = study or _default_name(task, model, space)
    place = StudyFolder(name, folder)
    url = place.storage(storage)
    definition = None
    if task is not None:
        definition = _definition(
            task, model, space, search, prune, first_rung, trials, settings, seeds, splits, seed
        )
    elif any(
        v is not None
        for v in (model, space, search, prune, first_rung, settings, seeds, splits, seed)
    ):
        raise SelectionError(
            f"task is missing: give it, or only the name of a study to go on with it as it is "
            f"(study={name!r})"
        )
    if isinstance(where, RayExecutor):
        where.check()  # before anything is written
        if definition is not None:
            check_ray_device(definition.base.device)
    elif executor == "local" and definition is not None:
        resolve_device(definition.base.device)
        check_run_memory(definition.largest(), workers)
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    place.make()
    if definition is None and url == sqlite_url(place.path):
        place.open()  # says that it is not there, rather than making a file for it
    with storage_errors(url):
        with FileLock(place.path / ".lock"):  # two drivers must not both plan
            database = open_storage(url, heartbeat=heartbeat, grace=grace, on_stale=requeue)
            if definition is None:
                opened, known = open_study(name, database)
                more = {} if trials is None else {"trials": trials}
                definition = known.model_copy(update=more)
                definition.check()
            times = None
            if hours is not None or tell_cost is not None:
                times = _epoch_times(name, database, definition, _threads(where))
            if hours is not None and times is not None:
                count = configurations_in(hours, definition, times, workers)
                definition = _shortened(name, database, definition, count, search)
            opened = start_study(name, database, definition)
            if times is not None:
                opened.set_user_attr(EPOCH_TIMES, asdict(times))
                if tell_cost is not None:
                    tell_cost(forecast(definition, times, workers, limit=hours))
            rungs = stored_definition(opened).rungs
            definition = definition.model_copy(update={"rungs": rungs})
            place.write(url)
            plan(opened, definition, retry_failed=retry_failed)
        path, device = str(place.path.resolve()), definition.base.device
        spec = WorkerSpec(name, url, path, 0, heartbeat, grace, device)
        with terminate_as_interrupt() as asked_to_stop:
            _run(where, spec, opened, definition, callback, asked_to_stop)
            return conclude(opened, definition, place.path, progress, evaluate_test)


def _run(
    executor: Executor,
    spec: WorkerSpec,
    study: Study,
    definition: StudyDefinition,
    callback: Callable[[StudyStatus], None] | None,
    asked_to_stop: threading.Event,
) -> None:
    def poll() -> None:
        if asked_to_stop.is_set():
            raise KeyboardInterrupt
        if callback is not None:
            callback(study_status(study, definition))

    while not (before := study_status(study, definition)).finished:
        executor.run(spec, poll)
        crash = first_cause(study, definition)
        if crash is not None:
            raise SelectionError(
                f"all trials crash, so the study was stopped. The first (trial {crash.number}): "
                f"{crash.user_attrs['error']}\n{crash.user_attrs['traceback']}Mend the cause and "
                "go on with --retry-failed"
            )
        if study_status(study, definition) == before:
            raise SelectionError(
                f"the workers ended with {before.waiting} trials waiting and {before.running} "
                f"running; `adgn select --study {spec.study}` goes on"
            )


def _executor(
    executor: Literal["local", "ray"] | Executor,
    workers: int,
    ray_address: str | None,
    threads: int | None,
) -> Executor:
    if not isinstance(executor, str):
        return executor
    if executor == "ray":
        return RayExecutor(workers, ray_address, threads)
    if executor != "local":
        raise unknown_name("executor", executor, ("local", "ray"))
    if ray_address is not None:
        raise SelectionError(f"ray_address={ray_address!r} has no effect without executor='ray'")
    return LocalExecutor(workers, threads)


def check_place(
    executor: Literal["local", "ray"],
    workers: int,
    ray_address: str | None = None,
    storage: str | None = None,
) -> None:
    """Checks where the studies of `select` would run and be kept, before any is started."""
    where = _executor(executor, workers, ray_address, None)
    if isinstance(where, RayExecutor):
        where.check()
    if storage is not None:
        open_storage(storage)


def _default_name(
    task: str | None, model: str | None, space: str | Path | Mapping[str, Any] | None
) -> str:
    if task is None:
        raise SelectionError("give a task to start a study, or the name of a study to go on with")
    kind = "own" if isinstance(space, Mapping) else Path(space or "compact").stem
    return f"{task}-{model or 'adgn'}-{kind}"


def _definition(
    task: str,
    model: str | None,
    space: str | Path | Mapping[str, Any] | None,
    search: Search | None,
    prune: Prune | None,
    first_rung: int | None,
    trials: int | None,
    settings: Mapping[str, Any] | None,
    seeds: Sequence[int] | None,
    splits: Sequence[int] | None,
    seed: int | None,
) -> StudyDefinition:
    for argument, value, valid in (
        ("search", search, ("grid", "random", "tpe")),
        ("prune", prune, ("asha", "halving", "none")),
    ):
        if value is not None and value not in valid:
            raise unknown_name(argument, value, valid)
    chosen = {"task": {"name": task}, "model": {"name": model or "adgn"}}
    base = resolve_config(chosen, settings or {})
    plain = base.model_dump(mode="json")
    space_name, values = resolve_space("compact" if space is None else space, plain)
    protocol = protocol_of(base, seeds, splits)
    definition = StudyDefinition(
        settings=plain,
        space_name=space_name,
        space=values,
        protocol=protocol,
        search=search or "grid",
        prune=prune or "none",
        first_rung=first_rung,
        rungs=rungs_for(base, len(protocol.runs()), first_rung) if prune == "halving" else (),
        trials=trials,
        seed=seed or 0,
    )
    definition.check()
    return definition


def _known(name: str, storage: QueueStorage) -> Study | None:
    if name not in optuna.get_all_study_names(storage):
        return None
    return optuna.load_study(study_name=name, storage=storage)


def _epoch_times(
    name: str, storage: QueueStorage, definition: StudyDefinition, threads: int
) -> EpochTimes:
    """The times that the study remembers, or new ones."""
    known = _known(name, storage)
    remembered = None if known is None else known.user_attrs.get(EPOCH_TIMES)
    if remembered is not None:
        layers, units = tuple(remembered["layers"]), tuple(remembered["units"])
        return EpochTimes(layers, units, tuple(map(tuple, remembered["seconds"])))
    with thread_count(threads), shared_data():
        return measure_epochs(definition)


def _threads(executor: Executor) -> int:
    return executor.threads if isinstance(executor, LocalExecutor | RayExecutor) else 1


def _shortened(
    name: str,
    storage: QueueStorage,
    definition: StudyDefinition,
    count: int,
    search: Search | None,
) -> StudyDefinition:
    """The study with no more configurations than there is time for, or than it has already."""
    if search == "grid":
        raise SelectionError(
            "hours= chooses a part of the space at random, and search='grid' asks for all of it; "
            "leave one of them out"
        )
    known = _known(name, storage)
    there = None if known is None else stored_definition(known).trials
    changes = {"trials": max(count, there or 0)}
    drawn = definition.search if definition.search == "tpe" else "random"
    return definition.model_copy(update={**changes, "search": drawn})
