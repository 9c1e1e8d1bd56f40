"""Ranks on this machine, or those that `torchrun` has started.

`local_ranks` makes the calling process rank 0 and starts the others, so that progress, Ctrl-C and
the result are where they are without workers.
"""

import os
import queue
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import torch
from torch._C._distributed_c10d import TCPStore
from torch.distributed.rendezvous import rendezvous

from adgn._util.environment import available_cores
from adgn._util.processes import Answer, Worker
from adgn.distributed.errors import RankError
from adgn.distributed.ranks import (
    DEFAULT_PREPARE_TIMEOUT,
    DEFAULT_TIMEOUT,
    ProcessRanks,
    Ranks,
)
from adgn.training.api import train
from adgn.training.config import TrainConfig, resolve_config
from adgn.training.errors import Interrupted
from adgn.training.seeding import thread_count

_HOST = "127.0.0.1"
_STOP_SECONDS = 10.0


def check_counts(
    workers: int,
    threads: int | None,
    timeout: float,
    prepare_timeout: float = DEFAULT_PREPARE_TIMEOUT,
) -> None:
    """Raises where there would be no rank, or none that could work."""
    for name, count in (("workers", workers), ("threads", threads)):
        if count is not None and count < 1:
            raise RankError(f"{name}={count} is not valid; give at least 1")
    for name, seconds in (("rank_timeout", timeout), ("prepare_timeout", prepare_timeout)):
        if not seconds > 0:
            raise RankError(f"{name}={seconds:g} is not valid; give seconds above 0")


@contextmanager
def local_ranks(
    workers: int,
    config: TrainConfig,
    *,
    threads: int | None = None,
    timeout: float = DEFAULT_TIMEOUT,
    prepare_timeout: float = DEFAULT_PREPARE_TIMEOUT,
    partition: str = "auto",
    evaluate_test: bool = True,
) -> Iterator[Ranks]:
    """Starts `workers - 1` processes that train with this one, which is rank 0.

    Args:
        workers: How many ranks.
        config: What they train.
        threads: Threads of each; `None`: the cores divided by the ranks.
        timeout: Seconds that a rank waits for the others in an exchange.
        prepare_timeout: Seconds that it waits for one that prepares without reporting progress.
        partition, evaluate_test: As of `adgn.training.train`.

    Example:
        >>> from adgn.training import resolve_config, train
        >>> config = resolve_config("graph-transfer")
        >>> with local_ranks(2, config) as ranks:  # doctest: +SKIP
        ...     result = train(config, ranks=ranks, run_dir="runs/two")
    """
    check_counts(workers, threads, timeout, prepare_timeout)
    if workers == 1:
        yield Ranks()
        return
    each = max(1, available_cores() // workers) if threads is None else threads
    # Port 0: one that is free. The store is this process's, and outlives every other rank.
    limit = timedelta(seconds=timeout)
    store = TCPStore(_HOST, 0, is_master=True, timeout=limit, wait_for_workers=False)
    started = _Started(each)
    common = {
        "port": store.port,
        "size": workers,
        "timeout": timeout,
        "prepare_timeout": prepare_timeout,
        "threads": each,
        "partition": partition,
        "evaluate_test": evaluate_test,
        "config": config.model_dump(mode="json"),
    }
    try:
        for rank in range(1, workers):
            started.start(rank, {**common, "rank": rank})
        device = rank_device(config.device, 0)
        limits: dict[str, Any] = {"timeout": timeout, "prepare_timeout": prepare_timeout}
        ranks = ProcessRanks(store, 0, workers, device=device, watch=started.watch, **limits)
        with thread_count(each), ranks:
            yield ranks
    finally:
        started.stop()


class _Started:
    """The processes of the other ranks, as rank 0 sees them."""

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._answers: queue.Queue[Answer] = queue.Queue()
        self._ranks: dict[Worker, int] = {}
        self._reason: str | None = None

    def start(self, rank: int, message: dict[str, Any]) -> None:
        """Starts a rank."""
        worker = Worker("adgn.training.launch:serve_rank", self._answers, threads=self._threads)
        self._ranks[worker] = rank
        worker.give(message)

    def watch(self) -> str | None:
        """Why one of them has ended before its time, if one has."""
        while self._reason is None and not self._answers.empty():
            answer = self._answers.get()
            rank = self._ranks[answer.worker]
            if answer.ended:
                self._reason = f"rank {rank} is lost: its process {_ended(answer.worker.end(1.0))}"
            elif answer.content["error"] is not None:
                self._reason = f"rank {rank} failed: {answer.content['error']}"
        return self._reason

    def stop(self) -> None:
        """Waits until all have ended, and ends those that do not."""
        Worker.stop_all(list(self._ranks), _STOP_SECONDS)


def _ended(code: int) -> str:
    if code < 0:
        return f"was ended by {signal.Signals(-code).name}"
    return f"ended with code {code}; what it said is above"


def serve_rank(message: dict[str, Any], stop: threading.Event) -> dict[str, Any]:
    """The work of a rank after the first; `error` is why it could not be done."""
    try:
        torch.set_num_threads(message["threads"])
        limit = timedelta(seconds=message["timeout"])
        store = TCPStore(_HOST, message["port"], is_master=False, timeout=limit)
        config = resolve_config(message["config"])
        device = rank_device(config.device, message["rank"])
        limits = {name: message[name] for name in ("timeout", "prepare_timeout")}
        with ProcessRanks(
            store, message["rank"], message["size"], device=device, **limits
        ) as ranks:
            train(
                config.model_copy(update={"device": str(device)}),
                ranks=ranks,
                partition=message["partition"],
                evaluate_test=message["evaluate_test"],
            )
    except Interrupted:
        return {"error": None}
    except Exception as error:  # rank 0 tells the user
        return {"error": f"{type(error).__name__}: {error}"}
    return {"error": None}


def rank_device(name: str, local_rank: int) -> torch.device:
    """Where a rank computes: of several GPUs of a machine each rank has its own."""
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if name == "auto":
        name = "cuda" if count else "cpu"
    if name == "cuda" and count:
        if local_rank >= count:
            raise RankError(
                f"rank {local_rank} of this machine has no GPU of its own, for there are {count}; "
                f"take {count} ranks here, or device='cpu'"
            )
        return torch.device("cuda", local_rank)
    return torch.device(name)


def in_torchrun() -> bool:
    """Whether this process is one of several that `torchrun`, or the like, has started."""
    needed = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
    return all(os.environ.get(name) for name in needed) and os.environ["WORLD_SIZE"] != "1"


@contextmanager
def torchrun_ranks(
    config: TrainConfig,
    timeout: float = DEFAULT_TIMEOUT,
    prepare_timeout: float = DEFAULT_PREPARE_TIMEOUT,
) -> Iterator[Ranks]:
    """The ranks that `torchrun` has started, of which this process is one."""
    check_counts(1, None, timeout, prepare_timeout)
    place = f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"
    try:
        found = rendezvous("env://", timeout=timedelta(seconds=timeout))
        store, rank, size = next(iter(found))
    except (RuntimeError, ValueError) as error:  # torch's own errors of the network among them
        first = (str(error).splitlines() or ["no reason given"])[0]
        raise RankError(
            f"ranks cannot meet at {place} (MASTER_ADDR, MASTER_PORT): {first}; is the port in use "
            "by another program, or the machine out of reach?"
        ) from error
    device = rank_device(config.device, int(os.environ.get("LOCAL_RANK", "0")))
    limits: dict[str, Any] = {"timeout": timeout, "prepare_timeout": prepare_timeout}
    with ProcessRanks(store, rank, size, device=device, **limits) as ranks:
        yield ranks
