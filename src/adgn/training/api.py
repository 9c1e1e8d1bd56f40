"""A run from beginning to end: from a configuration to scores, weights and files."""

import signal
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import Any

import torch

from adgn.nn import GraphNetwork
from adgn.training.batches import BatchSource, PackedBatches, Split
from adgn.training.block_batches import BlockBatches
from adgn.training.checkpoint import load_into, load_weights
from adgn.training.config import TrainConfig
from adgn.training.configfile import ConfigLike, resolve_config
from adgn.training.devices import resolve_device
from adgn.training.errors import ConfigError, DivergedError, RunError
from adgn.training.memory import check_run_memory
from adgn.training.metrics import Scores
from adgn.training.models import build_network
from adgn.training.objective import resolve_objective
from adgn.training.optim import build_optimizer, build_schedule
from adgn.training.result import RunResult
from adgn.training.run import RunDirectory, RunJournal
from adgn.training.seeding import own_randomness
from adgn.training.sharing import kept
from adgn.training.stopping import EarlyStopping
from adgn.training.tasks import Progress, TaskData, task_entry, with_extra_scores
from adgn.training.trainer import Journal, MemoryJournal, Observer, Trainer

__all__ = ["Prepared", "evaluate", "open_run", "prepare", "resume", "train"]


@dataclass(frozen=True, eq=False)
class Prepared:
    """A configuration made ready to run: data, network and trainer."""

    config: TrainConfig
    data: TaskData
    model: GraphNetwork
    trainer: Trainer

    def scores(self, split: Split) -> Scores:
        """All scores of a split with the weights of now."""
        found = self.trainer.evaluate(split, source=self.source(split))
        return with_extra_scores(self.config, found)

    def source(self, split: Split) -> BatchSource:
        """The batches of a split; raises `ConfigError` where the task has no such split."""
        sources = self.data.sources
        if split not in sources:
            raise ConfigError(f"split={split!r} is not there; choose from {', '.join(sources)}")
        return sources[split]


def train(
    config: ConfigLike,
    *,
    run_dir: str | Path | None = None,
    resume: bool = False,
    observers: Sequence[Observer] = (),
    progress: Progress | None = None,
    evaluate_test: bool = True,
    **sections: Any,
) -> RunResult:
    """Trains a model on a task, from a configuration to scores.

    Args:
        config: A `TrainConfig`, nested settings, a TOML file, or the name of a task, whose
            defaults then hold.
        run_dir: Where everything is kept; `None` keeps nothing on disk.
        resume: Go on with a run of the same configuration that is in `run_dir`.
        observers: Told about every step and epoch.
        progress: Told how far the preparation of a data set is.
        evaluate_test: Whether the test split is looked at once the run is over. Model selection
            does so for the selected configuration alone.
        **sections: Settings on top: `loop={"max_epochs": 10}`, `seed=3`.

    Raises:
        ConfigError: The configuration is not valid.
        NotEnoughMemoryError: The run needs more memory than there is, by an estimate.
        RunError: The run directory cannot be used.
        DivergedError: The loss is no longer finite; the last finite state is kept.
        Interrupted: Ctrl-C; the state is kept, and `adgn.resume` goes on.

    Example:
        >>> import adgn
        >>> result = adgn.train(
        ...     "graph-transfer",
        ...     task={"distance": 3, "train": 64, "val": 16, "test": 16},
        ...     loop={"max_epochs": 2},
        ... )
        >>> result.epochs, sorted(result.scores)
        (2, ['test', 'train', 'val'])
    """
    resolved = resolve_config(config, sections)
    resolve_device(resolved.device)  # before anything is loaded or written
    check_run_memory(resolved)
    if run_dir is None:
        if resume:
            raise RunError("resume=True needs a run_dir to go on from")
        return _run(resolved, None, observers, progress, evaluate_test)
    directory = RunDirectory(run_dir)
    if not resume:
        directory.refuse_existing()
    directory.make()
    with directory.lock():
        if not resume:
            directory.refuse_existing()  # another process may have been first
        directory.refuse_other(resolved)
        return _run(resolved, directory, observers, progress, evaluate_test)


def resume(
    run_dir: str | Path,
    *,
    observers: Sequence[Observer] = (),
    progress: Progress | None = None,
    device: str | None = None,
) -> RunResult:
    """Goes on with a run that was stopped, exactly as if it had not been.

    A finished run is evaluated again and changes nothing.

    Args:
        run_dir: A run directory.
        observers: Told about every step and epoch.
        progress: Told how far the preparation of a data set is.
        device: Where to compute from now on; `None`: where the run did. On another device the last
            bits of the scores may differ.

    Raises:
        RunError: There is no run, it is in use, or its state is damaged or of a newer version.

    Example:
        >>> import tempfile, adgn
        >>> task = {"distance": 3, "train": 16, "val": 8, "test": 8}
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     result = adgn.train(
        ...         "graph-transfer", task=task, loop={"max_epochs": 2}, run_dir=f"{folder}/run"
        ...     )
        ...     again = adgn.resume(f"{folder}/run")
        >>> again.scores == result.scores
        True
    """
    directory = RunDirectory(run_dir)
    config = _config_on(directory, device)
    with directory.missing_plugins_named():
        check_run_memory(config)
    with directory.lock():
        return _run(config, directory, observers, progress)


def _config_on(directory: RunDirectory, device: str | None) -> TrainConfig:
    """The configuration of a run, to be computed on a device that is there."""
    config = directory.config()
    if device is not None:
        resolve_device(device)
        return config.model_copy(update={"device": device})
    try:
        resolve_device(config.device)
    except ConfigError as error:
        raise ConfigError(
            f"the run in {directory.path} has device={config.device!r}, but here torch sees "
            f"{torch.cuda.device_count()} GPUs; give device='cpu' (`--device cpu`)"
        ) from error
    return config


def prepare(
    config: TrainConfig,
    *,
    journal: Journal | None = None,
    observers: Sequence[Observer] = (),
    progress: Progress | None = None,
) -> Prepared:
    """Loads the data of a configuration and builds its network and trainer.

    Args:
        config: What to train; `TrainConfig(task={"name": "texas"})` has all defaults.
        journal: Where scores and states go; `None` keeps them in memory.
        observers: Told about every step and epoch.
        progress: Told how far the preparation of a data set is.

    Example:
        >>> from adgn.training import TrainConfig
        >>> task = {"name": "graph-transfer", "distance": 3, "train": 16, "val": 8, "test": 8}
        >>> prepared = prepare(TrainConfig(task=task, loop={"max_epochs": 1}))
        >>> prepared.trainer.fit(), prepared.trainer.progress.epoch
        ('max_epochs', 1)
    """
    device = resolve_device(config.device)
    entry = task_entry(config.task.name)
    objective = resolve_objective(entry.objective)
    key = (config.task.model_dump_json(), config.loop.batch_size, device)
    data = kept(key, lambda: entry.build(config, device, progress))
    if isinstance(data.train, PackedBatches | BlockBatches):
        # Kept data may come from a run with another seed.
        data = replace(data, train=data.train.with_seed(config.seed))
    monitor = config.stopping.monitor or objective.monitor
    if monitor not in objective.modes:
        raise ConfigError(
            f"stopping.monitor={monitor!r} is not a score of {config.task.name!r}; choose one of: "
            + ", ".join(objective.modes)
        )
    if config.stopping.split not in data.sources:
        raise ConfigError(
            f"stopping.split={config.stopping.split!r} is not there for {config.task.name!r}; it "
            f"has {', '.join(data.sources)}"
        )
    with own_randomness(config.seed):
        try:
            model = build_network(
                config.model,
                in_channels=data.in_channels,
                out_channels=data.out_channels,
                level=data.level,
                embeddings=data.embeddings,
            ).to(device)
        except RuntimeError as error:  # torch could not get memory for the weights
            raise ConfigError(
                f"a network with model.hidden_channels={config.model.hidden_channels} and "
                f"model.num_layers={config.model.num_layers} cannot be built; take fewer "
                f"({str(error).partition(chr(10))[0]})"
            ) from error
    mode = objective.modes[monitor]
    optimizer = build_optimizer(model.parameters(), config.optimizer)
    stopping, loop = config.stopping, config.loop
    trainer = Trainer(
        model,
        data.train,
        data.sources.get("val"),
        objective=objective,
        optimizer=optimizer,
        schedule=build_schedule(optimizer, config.schedule, mode=mode, max_epochs=loop.max_epochs),
        stopping=EarlyStopping(mode, stopping.patience, stopping.ties, stopping.target),
        monitor=monitor,
        monitor_split=stopping.split,
        max_epochs=loop.max_epochs,
        passes_per_epoch=loop.passes_per_epoch,
        evaluate_every=loop.evaluate_every,
        accumulate=loop.accumulate,
        clip_norm=loop.clip_norm,
        seed=config.seed,
        train_eval=data.sources["train"],
        journal=journal,
        observers=observers,
    )
    return Prepared(config, data, model, trainer)


def _run(
    config: TrainConfig,
    directory: RunDirectory | None,
    observers: Sequence[Observer],
    progress: Progress | None,
    evaluate_test: bool = True,
) -> RunResult:
    if directory is None:
        prepared = prepare(config, observers=observers, progress=progress)
        return _fit(prepared, None, evaluate_test)
    state = directory.load_state(config)
    finished = directory.result()  # a damaged one is told, whatever else is there
    if finished is not None and state is None:  # its state was removed to save room
        return _finished(config, directory, finished, progress, evaluate_test)
    prepared = prepare(config, observers=observers, progress=progress)
    # Only now: a configuration that nothing can be made of must not be left in the directory.
    directory.begin(config)
    journal = RunJournal(directory, config, state and state["metrics"])
    prepared.trainer.journal = journal
    with journal.metrics:
        if state is not None:
            prepared.trainer.load_state_dict(state["trainer"])
        try:
            return _fit(prepared, directory, evaluate_test)
        except DivergedError:
            trainer = prepared.trainer
            journal.save_best(trainer.best_weights, trainer.stopping.best_epoch)
            raise


def _fit(prepared: Prepared, directory: RunDirectory | None, evaluate_test: bool) -> RunResult:
    trainer, data, config = prepared.trainer, prepared.data, prepared.config
    with _stop_on_interrupt(trainer):
        stopped = trainer.fit()
    trainer.restore_best()
    scores = _scores(prepared, evaluate_test)
    journal = trainer.journal
    history = journal.lines if isinstance(journal, MemoryJournal) else []
    if directory is not None and isinstance(journal, RunJournal):
        journal.save_best(trainer.best_weights, trainer.stopping.best_epoch)
        history = directory.history()
    result = RunResult(
        config=config,
        scores=scores,
        best_epoch=trainer.stopping.best_epoch or 0,
        epochs=trainer.progress.epoch,
        stopped=stopped,
        constant=data.constant,
        published=task_entry(config.task.name).published(config),
        notes=data.notes,
        parameters=prepared.model.parameter_counts(),
        seconds=trainer.progress.seconds,
        history=history,
        model=prepared.model,
        run_dir=None if directory is None else directory.path,
    )
    if directory is not None and not directory.result_file.exists():
        directory.write_result({**result.to_dict(), "metrics_sha256": directory.metrics_digest()})
    return result


def _scores(prepared: Prepared, evaluate_test: bool) -> dict[Split, Scores]:
    return {
        split: prepared.scores(split)
        for split in prepared.data.sources
        if evaluate_test or split != "test"
    }


def _finished(
    config: TrainConfig,
    directory: RunDirectory,
    result: Mapping[str, Any],
    progress: Progress | None,
    evaluate_test: bool,
) -> RunResult:
    """The result of a run that is over, from its files, which stay as they are."""
    prepared = _with_best_weights(config, directory, progress)
    return RunResult(
        config=config,
        scores=_scores(prepared, evaluate_test),
        best_epoch=result["best_epoch"],
        epochs=result["epochs"],
        stopped=result["stopped"],
        constant=prepared.data.constant,
        published=task_entry(config.task.name).published(config),
        notes=prepared.data.notes,
        parameters=prepared.model.parameter_counts(),
        seconds=result["seconds"],
        history=directory.history(result.get("metrics_sha256")),
        model=prepared.model,
        run_dir=directory.path,
    )


def open_run(run_dir: str | Path, *, device: str | None = None) -> Prepared:
    """The data and the network of a run, with its best weights.

    Args:
        run_dir: A run directory, of a finished run or of one that has begun.
        device: Where to compute; `None`: where the run did.

    Example:
        >>> model = open_run("runs/sssp-adgn-41").model  # doctest: +SKIP
    """
    directory = RunDirectory(run_dir)
    return _with_best_weights(_config_on(directory, device), directory, None)


def _with_best_weights(
    config: TrainConfig, directory: RunDirectory, progress: Progress | None
) -> Prepared:
    weights, about = load_weights(directory.best_file)
    directory.check_weights(config, about)
    with directory.missing_plugins_named():
        prepared = prepare(config, progress=progress)
    load_into(prepared.model, weights, directory.best_file)
    return prepared


def evaluate(
    run_dir: str | Path, splits: Sequence[Split] | None = None, *, device: str | None = None
) -> dict[str, Scores]:
    """The scores of a run's best weights, on all splits or on some.

    Args:
        run_dir: A run directory, of a finished run or of one that has begun.
        splits: `"train"`, `"val"` or `"test"`; `None`: all.
        device: Where to compute; `None`: where the run did.

    Example:
        >>> import tempfile, adgn
        >>> task = {"distance": 3, "train": 16, "val": 8, "test": 8}
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     result = adgn.train(
        ...         "graph-transfer", task=task, loop={"max_epochs": 2}, run_dir=f"{folder}/run"
        ...     )
        ...     scores = evaluate(f"{folder}/run", ["test"])
        >>> scores == {"test": result.scores["test"]}
        True
    """
    prepared = open_run(run_dir, device=device)
    wanted = list(splits or prepared.data.sources)
    for split in wanted:
        prepared.source(split)  # before any work
    return {split: prepared.scores(split) for split in wanted}


@contextmanager
def _stop_on_interrupt(trainer: Trainer) -> Iterator[None]:
    """Ctrl-C (and SIGTERM) ask for a stop after the step under way; a second Ctrl-C insists."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may handle signals
        return
    asked = False

    def ask(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True
        trainer.request_stop()

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
