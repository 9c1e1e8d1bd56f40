"""Runs that are on disk: their results, and their networks with the best weights."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch

from adgn.training.batches import Split
from adgn.training.checkpoint import load_into, load_weights
from adgn.training.config import TrainConfig
from adgn.training.errors import ConfigError
from adgn.training.metrics import Scores
from adgn.training.models import build_network
from adgn.training.preparation import Prepared, prepare
from adgn.training.run import RunDirectory, RunResult
from adgn.training.seeding import own_randomness, resolve_device
from adgn.training.tasks import TaskSize, task_entry

OUTCOME = ("best_epoch", "epochs", "stopped", "seconds")  # of result.json: how training ended


def config_on(directory: RunDirectory, device: str | None) -> TrainConfig:
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
        **{key: found[key] for key in OUTCOME},
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
    config = config_on(directory, device)
    weights, about = load_weights(directory.best_file)
    directory.check_weights(config, about)
    with directory.missing_plugins_named():
        prepared = prepare(config)
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
