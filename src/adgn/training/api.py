"""A run from beginning to end: from a configuration to scores, weights and files."""

import json
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import FrameType
from typing import Any

from adgn._util.environment import versions
from adgn._util.progress import ProgressCallback
from adgn._version import __version__
from adgn.distributed.ranks import ALONE, Ranks
from adgn.graph import backend
from adgn.training.checkpoint import bytes_of_state, load_into, load_weights, state_of_bytes
from adgn.training.config import ConfigLike, TrainConfig, flat_settings, resolve_config
from adgn.training.errors import DivergedError, RunError
from adgn.training.models import check_run_memory
from adgn.training.preparation import Prepared, prepare
from adgn.training.progress import Callback
from adgn.training.run import Checkpointer, RunDirectory, RunResult, essential_settings
from adgn.training.saved_runs import OUTCOME, config_on
from adgn.training.seeding import resolve_device
from adgn.training.tasks import task_entry
from adgn.training.trainer import Trainer

# Of the data: what a network is built for.
_NETWORK = ("in_channels", "out_channels", "level", "embeddings", "fully_adjacent")


def train(
    config: ConfigLike,
    *,
    run_dir: str | Path | None = None,
    resume: bool = False,
    callbacks: Sequence[Callback] = (),
    progress: ProgressCallback | None = None,
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
    progress: ProgressCallback | None = None,
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
    config = config_on(directory, device)
    if ranks.size == 1:
        with directory.missing_plugins_named():
            check_run_memory(config)
    with directory.lock():
        return _run(config, directory, callbacks, progress, True, ranks, partition)


def _run(
    config: TrainConfig,
    directory: RunDirectory | None,
    callbacks: Sequence[Callback],
    progress: ProgressCallback | None,
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
            outcome = {key: finished[key] for key in OUTCOME}
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
