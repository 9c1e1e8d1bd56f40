"""Ranks on a Ray cluster, by Ray Train."""

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from adgn._util.environment import available_cores
from adgn._util.progress import ProgressCallback
from adgn._util.ray_cluster import joined
from adgn._util.registry import VARIABLE as PLUGINS
from adgn.data.root import ROOT_VARIABLE, data_root
from adgn.distributed.errors import RankError
from adgn.distributed.partition import METHODS
from adgn.distributed.ranks import DEFAULT_PREPARE_TIMEOUT, DEFAULT_TIMEOUT, ProcessRanks
from adgn.training.api import resume, train
from adgn.training.config import TrainConfig, resolve_config
from adgn.training.errors import Interrupted
from adgn.training.launch import check_counts, rank_device
from adgn.training.progress import Callback
from adgn.training.run import RunDirectory, RunResult
from adgn.training.saved_runs import finished_run
from adgn.training.trainer import Trainer

_LINE_SECONDS = 10.0


class _Lines(Callback):
    """A line every ten seconds; Ray shows what a worker prints."""

    def __init__(self) -> None:
        self._next = 0.0

    def on_epoch(self, trainer: Trainer, line: Mapping[str, Any]) -> None:
        if time.monotonic() >= self._next or trainer.stop_reason() is not None:
            self._next = time.monotonic() + _LINE_SECONDS
            epoch = f"epoch {line['epoch']}/{trainer.max_epochs}"
            print(f"{epoch}, loss {line['train_loss']:.5g}", flush=True)


def train_on_ray(
    config: TrainConfig,
    run_dir: Path,
    *,
    workers: int,
    threads: int = 1,
    address: str | None = None,
    timeout: float = DEFAULT_TIMEOUT,
    prepare_timeout: float = DEFAULT_PREPARE_TIMEOUT,
    partition: str = "auto",
    callbacks: Sequence[Callback] = (),
    progress: ProgressCallback | None = None,
) -> RunResult:
    """Trains with ranks that Ray places, and goes on with a run that is in `run_dir`.

    The directory must be one that the machine of rank 0 and this one share.

    Args:
        config: What to train.
        run_dir: The run directory; a run of this configuration that is there goes on.
        workers: How many ranks.
        threads: Cores of each.
        address: Of a cluster, `host:port` or `"auto"`; `None`: one on this machine, for this run.
        timeout: Seconds that a rank waits for the others in an exchange.
        prepare_timeout: Seconds that it waits for one that prepares without reporting progress.
        partition: As of `adgn.training.train`.
        callbacks, progress: As of `adgn.training.resume`, for a run that an earlier version has
            finished; it is evaluated here. Of training, which is elsewhere, they are not told.

    Raises:
        RankError: Ray is missing or has too little room, or a rank was lost; the state is kept.
    """
    check_counts(workers, threads, timeout, prepare_timeout)
    folder = Path(run_dir).resolve()
    directory = RunDirectory(folder)
    directory.make()
    told = {ROOT_VARIABLE: str(data_root()), PLUGINS: os.environ.get(PLUGINS, "")}
    cores = max(available_cores(), workers * threads + 1)
    with joined(address, cores, told, RankError, log_to_driver=True) as ray:
        _check_room(ray, workers, threads)
        from ray.train import FailureConfig, RunConfig, ScalingConfig
        from ray.train.torch import TorchConfig, TorchTrainer

        gpu = config.device != "cpu" and ray.cluster_resources().get("GPU", 0) >= workers
        settings = {
            "config": config.model_dump(mode="json"),
            "run_dir": str(folder),
            "timeout": timeout,
            "prepare_timeout": prepare_timeout,
            "threads": threads,
            "partition": absolute_partition(partition),
        }
        trainer = TorchTrainer(
            _train_rank,
            train_loop_config=settings,
            torch_config=TorchConfig(backend="nccl" if gpu else "gloo", timeout_s=int(timeout) + 1),
            scaling_config=ScalingConfig(
                num_workers=workers, use_gpu=gpu, resources_per_worker={"CPU": threads}
            ),
            run_config=RunConfig(
                name="ranks",
                storage_path=str(folder / ".ray"),
                failure_config=FailureConfig(max_failures=0),
            ),
        )
        try:
            trainer.fit()
        except KeyboardInterrupt:
            raise Interrupted("stopped on request") from None
        except Exception as error:  # Ray has a class of its own for each way to fail
            raise RankError(
                f"the run on Ray ended: {_reason(error)}. It goes on from its last state"
            ) from error
    # Not `resume` where it can be helped: it reads all of the data, which ranks may share because
    # they are too large for one machine.
    return finished_run(folder) or resume(folder, callbacks=callbacks, progress=progress)


def absolute_partition(partition: str) -> str:
    """A method as it is, and a path as a rank finds it, whose working directory is Ray's choice.

    Example:
        >>> absolute_partition("metis")
        'metis'
    """
    return partition if partition in METHODS else str(Path(partition).resolve())


def _check_room(ray: Any, workers: int, threads: int) -> None:
    """Raises where ranks would wait for cores that the cluster does not have."""
    there = int(ray.cluster_resources().get("CPU", 0))
    if there < workers * threads:
        raise RankError(
            f"{workers} ranks of {threads} cores need {workers * threads}, and the Ray cluster has "
            f"{there}; take fewer workers, or add machines"
        )


def _reason(error: BaseException) -> str:
    """What a rank said, out of what Ray says about it."""
    for line in reversed(str(error).splitlines()):
        if "Error" in line and ":" in line:
            return line.strip()
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def _train_rank(settings: dict[str, Any]) -> None:
    """What each rank does; Ray has joined them already."""
    torch.set_num_threads(settings["threads"])
    config = resolve_config(settings["config"])
    device = rank_device(config.device, 0)  # Ray shows each rank its own GPU alone
    rank, size = dist.get_rank(), dist.get_world_size()
    store = dist.distributed_c10d._get_default_store()
    common: dict[str, Any] = {"partition": settings["partition"]}
    config = config.model_copy(update={"device": str(device)})
    limits = {name: settings[name] for name in ("timeout", "prepare_timeout")}
    with ProcessRanks(store, rank, size, device=device, joined=True, **limits) as ranks:
        if rank > 0:
            train(config, ranks=ranks, **common)
        else:
            folder = settings["run_dir"]
            train(config, run_dir=folder, resume=True, ranks=ranks, callbacks=[_Lines()], **common)
