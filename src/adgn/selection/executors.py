"""Where workers run. A new place is a class with `run`, and a line in `api.select`."""

import os
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Protocol

from adgn._util.environment import available_cores
from adgn._util.processes import Worker, run_tasks
from adgn._util.ray_cluster import check_reachable, import_ray, joined
from adgn._util.registry import VARIABLE as PLUGINS
from adgn.data.root import ROOT_VARIABLE, data_root
from adgn.selection.errors import ExecutorError
from adgn.selection.worker import WorkerSpec, work

Poll = Callable[[], None]

_MAX_QUICK_DEATHS = 3  # in a row, of workers that hardly lived: something is wrong for all
_QUICK_SECONDS = 20.0
_POLL_SECONDS = 1.0
_MAX_DEATHS_WITHOUT_ANSWER = 10  # per worker: nodes may come and go, but not for ever


class Executor(Protocol):
    """Runs workers until the study's queue is empty, and replaces those that die."""

    def run(self, spec: WorkerSpec, poll: Poll) -> None:
        """Returns when all workers have ended by themselves; calls `poll` about once a second."""
        ...


def threads_per_worker(workers: int, cores: int | None = None) -> int:
    """Threads for each of several workers on one machine, which share its cores."""
    return max(1, (available_cores() if cores is None else cores) // workers)


def check_workers(workers: int, threads: int | None = None) -> None:
    """Raises where there would be no worker, or none that could work."""
    for name, count in (("workers", workers), ("threads", threads)):
        if count is not None and count < 1:
            raise ExecutorError(f"{name}={count} is not valid; give at least 1")


class LocalExecutor:
    """Runs workers as processes of this machine, each with its share of the cores.

    Args:
        workers: How many.
        threads: Threads for each; `None`: the cores divided by the workers.
    """

    def __init__(self, workers: int = 1, threads: int | None = None) -> None:
        check_workers(workers, threads)
        self.workers = workers
        self.threads = threads_per_worker(workers) if threads is None else threads

    def run(self, spec: WorkerSpec, poll: Poll) -> None:
        """Runs workers until the queue is empty."""
        spec = replace(spec, threads=self.threads)
        to_start, deaths = [spec] * self.workers, 0

        def died(_: WorkerSpec, worker: Worker) -> None:
            nonlocal deaths
            deaths = deaths + 1 if worker.age < _QUICK_SECONDS else 1
            if deaths > _MAX_QUICK_DEATHS:
                raise ExecutorError(
                    f"workers die as soon as they start (the last with code {worker.code}): "
                    f"{worker.last_line()}; all they said is in {worker.log}"
                )
            to_start.append(spec)

        run_tasks(
            "adgn.selection.worker:handle",
            workers=self.workers,
            threads=self.threads,
            logs=Path(spec.folder) / "workers",
            next_task=lambda: to_start.pop() if to_start else None,
            message=asdict,
            done=lambda *_: None,
            died=died,
            poll=poll,
        )


def _work_in_ray(spec: WorkerSpec) -> None:
    work(spec, threading.Event())


class RayExecutor:
    """Runs workers as Ray tasks; Ray places them, and those of a lost node are started anew.

    A worker takes `threads` cores, and a GPU of its own where runs compute on one: with
    `device="cuda"`, or with `"auto"` in a cluster that has GPUs.

    Args:
        workers: How many.
        address: Of a cluster, `host:port` or `"auto"`; `None`: a cluster on this machine, which
            lives as long as the study runs.
        threads: Cores for each worker; `None`: on this machine its share, in a cluster 1.
    """

    def __init__(
        self, workers: int = 1, address: str | None = None, threads: int | None = None
    ) -> None:
        check_workers(workers, threads)
        self.workers, self.address = workers, address
        self.threads = threads or (1 if address else threads_per_worker(workers))

    def check(self) -> None:
        """Raises where Ray is missing or nobody answers at the address."""
        import_ray(ExecutorError)
        if self.address not in (None, "auto"):
            check_reachable(str(self.address), ExecutorError)

    def run(self, spec: WorkerSpec, poll: Poll) -> None:
        """Runs workers until the queue is empty."""
        self.check()
        with self.joined() as ray:
            self._run(ray, replace(spec, threads=self.threads), poll)

    def joined(self) -> AbstractContextManager[Any]:
        """Ray, joined to the cluster."""
        cores = max(available_cores(), self.workers * self.threads)
        # Workers on other machines do not inherit where this one was told to look for data and
        # for plugins. Nor do they work in the same folder, so the paths are absolute.
        told = {ROOT_VARIABLE: str(data_root()), PLUGINS: os.environ.get(PLUGINS, "")}
        return joined(self.address, cores, told, ExecutorError)

    def _run(self, ray: Any, spec: WorkerSpec, poll: Poll) -> None:
        # The study brings lost trials back; Ray must not run a worker again behind its back.
        gpus = _gpus_per_worker(spec.device, ray)
        task = ray.remote(num_cpus=self.threads, num_gpus=gpus, max_retries=0)(_work_in_ray)
        running = [task.remote(spec) for _ in range(self.workers)]
        deaths = 0
        while running:
            poll()
            done, running = ray.wait(running, num_returns=1, timeout=_POLL_SECONDS)
            for worker in done:
                try:
                    ray.get(worker)
                except ray.exceptions.RayTaskError as error:
                    cause = error.as_instanceof_cause()
                    raise ExecutorError(f"a worker failed: {cause}") from error
                except ray.exceptions.RayError as error:
                    deaths += 1
                    if deaths > _MAX_DEATHS_WITHOUT_ANSWER * self.workers:
                        raise ExecutorError(f"workers die again and again: {error}") from error
                    running.append(task.remote(spec))
        poll()


def check_ray_device(device: str) -> None:
    """Raises for a GPU by number: Ray hands out GPUs, and each worker sees its own alone."""
    if device.startswith("cuda:") and device != "cuda:0":
        raise ExecutorError(
            f"device={device!r} is not there for a worker in Ray, which is given one GPU and sees "
            "no other; use device='cuda'"
        )


def _gpus_per_worker(device: str, ray: Any) -> int:
    if device == "cpu":
        return 0
    check_ray_device(device)
    there = ray.cluster_resources().get("GPU", 0) >= 1
    if not there and device != "auto":
        # Ray would wait for one for ever, without a message.
        raise ExecutorError(
            f"device={device!r} needs a GPU for each worker, but the Ray cluster has no GPU; use "
            "device='cpu', or join a cluster with GPUs"
        )
    return int(there)
