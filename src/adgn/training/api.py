"""A run from beginning to end: from a configuration to scores, weights and files."""

import json
import math
import signal
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import Any

import torch

from adgn._util.environment import versions
from adgn._version import __version__
from adgn.distributed.errors import RankError
from adgn.distributed.partition import METHODS
from adgn.distributed.ranks import ALONE, Ranks
from adgn.graph import backend
from adgn.nn import GraphNetwork
from adgn.training.batches import BatchSource, PackedBatches, Split
from adgn.training.block_batches import BlockBatches
from adgn.training.checkpoint import (
    bytes_of_state,
    load_into,
    load_weights,
    sha256,
    state_of_bytes,
)
from adgn.training.config import ConfigLike, TrainConfig, flat_settings, resolve_config
from adgn.training.errors import ConfigError, DivergedError, RunError
from adgn.training.metrics import Scores
from adgn.training.models import build_network, check_run_memory
from adgn.training.objective import (
    EarlyStopping,
    build_optimizer,
    build_schedule,
    resolve_objective,
)
from adgn.training.progress import Callback
from adgn.training.run import Checkpointer, RunDirectory, RunResult, essential_settings
from adgn.training.seeding import own_randomness, resolve_device
from adgn.training.shards import read_shard
from adgn.training.shares import check_network, share_data
from adgn.training.tasks import (
    Progress,
    TaskData,
    TaskSize,
    cached_data,
    task_entry,
    with_extra_scores,
)
from adgn.training.trainer import Trainer

# Of the data: what a network is built for.
_NETWORK = ("in_channels", "out_channels", "level", "embeddings", "fully_adjacent")
_OUTCOME = ("best_epoch", "epochs", "stopped", "seconds")  # of result.json: how training ended


@dataclass(frozen=True, eq=False)
class Prepared:
    """A configuration made ready to run: data, network and trainer."""

    config: TrainConfig
    data: TaskData
    model: GraphNetwork
    trainer: Trainer
    partition: str | bytes | None = None  # of a spread graph, on rank 0: its shards, or a file

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
    callbacks: Sequence[Callback] = (),
    progress: Progress | None = None,
    evaluate_test: bool = True,
    ranks: Ranks = ALONE,
    partition: str = "auto",
    **sections: Any,
) -> RunResult:
    """Trains a model on a task, from a configuration to scores.

    Args:
        config: A `TrainConfig`, nested settings, a TOML file, or the name of a task, whose
            defaults then hold.
        run_dir: Where everything is kept; `None` keeps nothing on disk.
        resume: Go on with a run of the same configuration that is in `run_dir`.
        callbacks: Called after every step and epoch.
        progress: Told how far the preparation of a data set is.
        evaluate_test: Whether the test split is looked at once the run is over. Model selection
            does so for the selected configuration alone.
        ranks: The processes that train together, each of which calls this with the same
            configuration (see `adgn.training.launch`). Rank 0 has the run directory.
        partition: How one graph is spread over ranks: `"metis"`, `"ldg"`, `"blocks"`, `"auto"`, or
            what `adgn partition` wrote: a file, or a folder with a shard of the data for each rank,
            which is then all that a rank reads. Rank 0 decides. `"auto"` in a run that goes on with
            as many ranks is what it had before.
        **sections: Settings on top: `loop={"max_epochs": 10}`, `seed=3`.

    Raises:
        ConfigError: The configuration is not valid.
        NotEnoughMemoryError: The run needs more memory than there is, by an estimate.
        RunError: The run directory cannot be used.
        DivergedError: The loss is no longer finite; the last finite state is kept.
        Interrupted: Ctrl-C; the state is kept, and `adgn.resume` goes on.
        RankError: Ranks differ in what they would do, or one was lost; the state is kept.

    Example:
        >>> import adgn
        >>> small = {"distance": 3, "train": 64}
        >>> result = adgn.train("graph-transfer", task=small, loop={"max_epochs": 2})
        >>> result.epochs, sorted(result.scores)
        (2, ['test', 'train', 'val'])
    """
    resolved = resolve_config(config, sections)
    resolve_device(resolved.device)  # before anything is loaded or written
    if ranks.size == 1:
        check_run_memory(resolved)
    if run_dir is None:
        if resume:
            raise RunError("resume=True needs a run_dir to go on from")
        return _run(resolved, None, callbacks, progress, evaluate_test, ranks, partition)
    directory = RunDirectory(run_dir)
    if not resume:
        directory.refuse_existing()
    directory.make()
    with directory.lock():
        if not resume:
            directory.refuse_existing()  # another process may have been first
        directory.refuse_other(resolved)
        return _run(resolved, directory, callbacks, progress, evaluate_test, ranks, partition)


def resume(
    run_dir: str | Path,
    *,
    callbacks: Sequence[Callback] = (),
    progress: Progress | None = None,
    device: str | None = None,
    ranks: Ranks = ALONE,
    partition: str = "auto",
) -> RunResult:
    """Goes on with a run that was stopped, exactly as if it had not been.

    A finished run is evaluated again and changes nothing.

    Args:
        run_dir: A run directory.
        callbacks, progress: As of `train`.
        device: Where to compute from now on; `None`: where the run did. On another device the last
            bits of the scores may differ.
        ranks, partition: As of `train`; there may be more or fewer ranks than before. The ranks
            after the first call `train` without a run directory.

    Raises:
        RunError: There is no run, it is in use, or its state is damaged or of a newer version.

    Example:
        >>> import tempfile, adgn
        >>> settings = {"task": {"distance": 3, "train": 16}, "loop": {"max_epochs": 2}}
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     result = adgn.train("graph-transfer", run_dir=f"{folder}/run", **settings)
        ...     adgn.resume(f"{folder}/run").scores == result.scores
        True
    """
    directory = RunDirectory(run_dir)
    config = _config_on(directory, device)
    if ranks.size == 1:
        with directory.missing_plugins_named():
            check_run_memory(config)
    with directory.lock():
        return _run(config, directory, callbacks, progress, True, ranks, partition)


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
    callbacks: Sequence[Callback] = (),
    progress: Progress | None = None,
    ranks: Ranks = ALONE,
    partition: str = "auto",
) -> Prepared:
    """Loads the data of a configuration and builds its network and trainer.

    Args:
        config: What to train; `TrainConfig("texas")` has all defaults.
        callbacks, progress, ranks, partition: As of `train`.

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
    partition, shards = _agreed(partition, ranks)
    if ranks.size > 1:
        check_run_memory(config, ranks=ranks.size, shards=shards)
    ranks.report_activity("reading the data")
    if shards:
        data = read_shard(Path(partition), ranks, config.task, device)
    else:
        key = (config.task.model_dump_json(), config.loop.batch_size, device)
        report = _reported_to(ranks, progress)
        data = cached_data(key, lambda: entry.build(config, device, report))
    if isinstance(data.train, PackedBatches | BlockBatches):
        # The data may come from a run with another seed.
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
            model = build_network(config.model, data).to(device)
        except RuntimeError as error:  # torch could not get memory for the weights
            raise ConfigError(
                f"a network with model.hidden_channels={config.model.hidden_channels} and "
                f"model.num_layers={config.model.num_layers} cannot be built; take fewer "
                f"({str(error).partition(chr(10))[0]})"
            ) from error
    kept: str | bytes | None = partition if shards else None
    if ranks.size > 1:
        check_network(model, config.model.name, data)
        if not shards:
            shared = share_data(data, ranks, partition)
            data, kept = shared.data, shared.partition
        ranks.agree({"first weights": sha256(bytes_of_state(model.state_dict()))})
    mode = objective.modes[monitor]
    optimizer = build_optimizer(model.parameters(), config.optimizer, model.undecayed_parameters())
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
        **loop.model_dump(exclude={"batch_size"}),
        seed=config.seed,
        train_eval=data.sources["train"],
        callbacks=callbacks,
        penalties=config.optimizer.penalties,
        ranks=ranks,
    )
    return Prepared(config, data, model, trainer, kept)


def _reported_to(ranks: Ranks, progress: Progress | None) -> Progress | None:
    """Progress that other ranks see too, so that they wait."""
    if ranks.size == 1:
        return progress

    def report(done: int, total: int) -> None:
        ranks.report_activity(f"preparing the data ({done} of {total})")
        if progress is not None:
            progress(done, total)

    return report


def _agreed(partition: str, ranks: Ranks) -> tuple[str, bool]:
    """The partition that rank 0 has, and whether it is a folder of shards, on all ranks."""
    shards = partition not in METHODS and Path(partition).is_dir()
    if ranks.size == 1:
        if shards:
            raise RankError(
                f"partition={partition!r} is a folder of shards for several ranks, and there is "
                "one process; give --workers, or leave it out"
            )
        return partition, False
    partition, shards = json.loads(ranks.broadcast(json.dumps([partition, shards]).encode()))
    return partition, shards


def _run(
    config: TrainConfig,
    directory: RunDirectory | None,
    callbacks: Sequence[Callback],
    progress: Progress | None,
    evaluate_test: bool,
    ranks: Ranks,
    partition: str,
) -> RunResult:
    with ranks.reporting_errors():
        _check_same(config, ranks)
        found = _found(config, directory, ranks)
        if directory is not None:
            partition = directory.partition_of(ranks.size, partition)
        named = nullcontext() if directory is None else directory.missing_plugins_named()
        with named:
            prepared = prepare(
                config, callbacks=callbacks, progress=progress, ranks=ranks, partition=partition
            )
        trainer, state = prepared.trainer, found["state"]
        if found["weights"] is not None:
            load_into(prepared.model, found["weights"], "best.safetensors")
            return _result(prepared, directory, evaluate_test, **found["outcome"])
        if directory is None:
            if state is not None:
                trainer.load_state_dict(state["trainer"])
            return _fit(prepared, None, evaluate_test)
        # Only now: a configuration that nothing can be made of must not be left in the directory.
        directory.begin(config)
        directory.keep_partition(ranks.size, prepared.partition)
        checkpointer = Checkpointer(directory, config, state and state["metrics"])
        trainer.checkpointer = checkpointer
        with checkpointer.metrics:
            if state is not None:
                trainer.load_state_dict(state["trainer"])
            try:
                return _fit(prepared, directory, evaluate_test)
            except DivergedError:
                checkpointer.save_best(trainer.best_weights, trainer.stopping.best_epoch)
                raise


def _check_same(config: TrainConfig, ranks: Ranks) -> None:
    """Raises on all ranks where one has another version or another configuration."""
    if ranks.size == 1:
        return
    facts = {"the version of adgn": __version__, **versions("torch", "torch_geometric")}
    # They exchange other rows by the kernels than without.
    facts["the kernels in use"] = backend().name
    settings = flat_settings(essential_settings(config))
    ranks.agree({**facts, **{key: json.dumps(value) for key, value in settings}})


def _found(config: TrainConfig, directory: RunDirectory | None, ranks: Ranks) -> dict[str, Any]:
    """What rank 0 has found in the run directory, on all ranks.

    A `state` to go on from; or, of a finished run whose state was removed to save room, the best
    `weights` and the `outcome`.
    """
    found: dict[str, Any] = {"state": None, "weights": None, "outcome": None}
    if directory is not None:
        found["state"] = directory.load_state(config)
        finished = directory.result()  # a damaged one is told, whatever else is there
        if finished is not None and found["state"] is None:
            weights, about = load_weights(directory.best_file)
            directory.check_weights(config, about)
            outcome = {key: finished[key] for key in _OUTCOME}
            outcome["history"] = directory.history(finished.get("metrics_sha256"))
            found |= {"weights": weights, "outcome": outcome}
    if ranks.size == 1:
        return found
    return state_of_bytes(ranks.broadcast(bytes_of_state(found) if ranks.rank == 0 else b""))


def _fit(prepared: Prepared, directory: RunDirectory | None, evaluate_test: bool) -> RunResult:
    trainer = prepared.trainer
    with _stop_on_interrupt(trainer):
        stopped = trainer.fit()
    trainer.restore_best()
    if trainer.checkpointer is not None:
        trainer.checkpointer.save_best(trainer.best_weights, trainer.stopping.best_epoch)
    result = _result(
        prepared,
        directory,
        evaluate_test,
        best_epoch=trainer.stopping.best_epoch or 0,
        epochs=trainer.progress.epoch,
        stopped=stopped,
        seconds=trainer.progress.seconds,
        history=trainer.history if directory is None else directory.history(),
    )
    if directory is not None and not directory.result_file.exists():
        more = {
            "metrics_sha256": directory.metrics_digest(),
            "network": {key: getattr(prepared.data, key) for key in _NETWORK},
        }
        directory.write_result({**result.to_dict(), **more})
    return result


def _result(
    prepared: Prepared, directory: RunDirectory | None, evaluate_test: bool, **outcome: Any
) -> RunResult:
    """The result of a run, whose network has the best weights; `outcome` is how training ended."""
    config, data = prepared.config, prepared.data
    splits = [split for split in data.sources if evaluate_test or split != "test"]
    return RunResult(
        config=config,
        scores={split: prepared.scores(split) for split in splits},
        constant=data.constant,
        published=task_entry(config.task.name).published(config),
        notes=data.notes,
        transforms=data.transforms,
        parameters=prepared.model.parameter_counts(),
        model=prepared.model,
        run_dir=None if directory is None else directory.path,
        **outcome,
    )


def finished_run(run_dir: str | Path) -> RunResult | None:
    """The result of a finished run from its files alone: the data may be too large to be read here.

    The network, with the best weights, is on the CPU. `None` where the run is not over, or an
    earlier version finished it, which wrote too little for this.
    """
    directory = RunDirectory(run_dir)
    config, found = directory.config(), directory.result()
    if found is None or "network" not in found:
        return None
    weights, about = load_weights(directory.best_file)
    directory.check_weights(config, about)
    sizes = dict(found["network"])
    if sizes["embeddings"] is not None:
        sizes["embeddings"] = tuple(sizes["embeddings"])  # JSON has lists
    with own_randomness(config.seed):
        model = build_network(config.model, TaskSize(0.0, 0, 0, **sizes))
    load_into(model, weights, directory.best_file)
    return RunResult(
        config=config,
        scores={split: _numbers(scores) for split, scores in found["scores"].items()},
        constant=_numbers(found["constant_predictor"]),
        published=task_entry(config.task.name).published(config),
        notes=tuple(found["notes"]),
        transforms=tuple(found["transforms"]),
        parameters=found["parameters"],
        model=model,
        run_dir=directory.path,
        history=directory.history(found["metrics_sha256"]),
        **{key: found[key] for key in _OUTCOME},
    )


def _numbers(scores: Mapping[str, float | None]) -> Scores:
    """Scores as they were; JSON has no number for one that is not finite."""
    return {name: math.nan if score is None else score for name, score in scores.items()}


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
        >>> settings = {"task": {"distance": 3, "train": 16}, "loop": {"max_epochs": 2}}
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     result = adgn.train("graph-transfer", run_dir=f"{folder}/run", **settings)
        ...     evaluate(f"{folder}/run", ["test"]) == {"test": result.scores["test"]}
        True
    """
    prepared = open_run(run_dir, device=device)
    chosen = list(splits or prepared.data.sources)
    for split in chosen:
        prepared.source(split)  # before any work
    return {split: prepared.scores(split) for split in chosen}


@contextmanager
def _stop_on_interrupt(trainer: Trainer) -> Iterator[None]:
    """Ctrl-C (and SIGTERM) ask for a stop after the step under way; a second Ctrl-C insists."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may handle signals
        return
    requested = False

    def request(number: int, frame: FrameType | None) -> None:
        nonlocal requested
        if requested:
            raise KeyboardInterrupt
        requested = True
        trainer.request_stop()

    before = {number: signal.signal(number, request) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
