"""From a configuration to a run that can begin: its data, its network and its trainer."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from adgn._util.progress import ProgressCallback
from adgn.distributed.errors import RankError
from adgn.distributed.partition import METHODS
from adgn.distributed.ranks import ALONE, Ranks
from adgn.nn import GraphNetwork
from adgn.training.batches import BatchSource, PackedBatches, Split
from adgn.training.block_batches import BlockBatches
from adgn.training.checkpoint import bytes_of_state, sha256
from adgn.training.config import TrainConfig
from adgn.training.errors import ConfigError
from adgn.training.metrics import Scores
from adgn.training.models import build_network, check_run_memory
from adgn.training.objective import (
    EarlyStopping,
    build_optimizer,
    build_schedule,
    resolve_objective,
)
from adgn.training.progress import Callback
from adgn.training.seeding import own_randomness, resolve_device
from adgn.training.shards import read_shard
from adgn.training.shares import check_network, share_data
from adgn.training.tasks import TaskData, cached_data, task_entry, with_extra_scores
from adgn.training.trainer import Trainer


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


def prepare(
    config: TrainConfig,
    *,
    callbacks: Sequence[Callback] = (),
    progress: ProgressCallback | None = None,
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


def _reported_to(ranks: Ranks, progress: ProgressCallback | None) -> ProgressCallback | None:
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
