"""Measurements in a process of their own, so that none sees the memory of another."""

import atexit
import queue
import threading
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import torch

from adgn._util.processes import Worker
from adgn.bench.timing import interleaved, peak_megabytes
from adgn.bench.workloads import Workload, build_step, load_source, served_ways
from adgn.data import DataError
from adgn.graph import backend

FUNCTION = f"{__name__}:handle"
# Processes that fork another for each measurement: imports take seconds, and so are done once.
_servers: dict[str, Worker] = {}
MEMORY_STEPS = 2  # the second holds the gradients and the optimiser's state of the first


class WorkerError(RuntimeError):
    """A measurement that could not be made."""


@dataclass(frozen=True)
class Job:
    """What a process has to measure: times of all ways in turns, or the peak of the only way."""

    kind: Literal["time", "memory"]
    workload: Workload
    ways: Sequence[str]
    root: str | None = None  # of the data
    repeats: int = 1  # turns of each way
    seconds: float = 600.0  # no further turns after this time
    threads: int | None = None  # torch's; `None`: as they are


def measure(job: Job) -> dict[str, Any]:
    """Measures, in this very process."""
    if job.threads is not None:
        torch.set_num_threads(job.threads)
    imports_mb = peak_megabytes()
    source = load_source(job.workload, None if job.root is None else Path(job.root))
    ways = served_ways(source, job.ways)
    steps = {way: build_step(job.workload, source, way) for way in ways}
    found: dict[str, Any] = {"sizes": source.sizes(), "imports_mb": imports_mb}
    if job.kind == "memory":
        for step in steps.values():
            for _ in range(MEMORY_STEPS):
                step()
        return found | {"peak_mb": peak_megabytes()}
    timed = interleaved(steps, job.repeats, seconds=job.seconds)
    serving = backend()
    return found | {
        "ways": {way: asdict(seen) for way, seen in timed.items()},
        "backend": serving.name,
        "instruction_set": serving.instruction_set,
        "threads": serving.threads,
    }


def run_alone(job: Job) -> dict[str, Any]:
    """Measures in a new process that has imported what it needs and done nothing else."""
    if FUNCTION not in _servers:
        _servers[FUNCTION] = Worker(FUNCTION, queue.Queue(), fork=True)
        atexit.register(_servers[FUNCTION].end)
    worker = _servers[FUNCTION]
    worker.give(asdict(job))
    try:
        answer = worker.answers.get()
    except BaseException:  # interrupted: nobody waits for the result any more
        del _servers[FUNCTION]
        worker.kill()
        raise
    if answer.ended or not worker.forks:
        del _servers[FUNCTION]
        code = worker.end()
    if answer.ended:
        killed = " (killed; often for want of memory)" if code == -9 else ""
        raise WorkerError(f"the process ended with exit code {code}{killed} and no result")
    if "error" in answer.content:
        raise WorkerError(answer.content["error"])
    return dict(answer.content)


def handle(message: dict[str, Any], stop: threading.Event) -> dict[str, Any]:
    """Measures as a process of its own, see `adgn._util.processes`; `message` is a `Job`."""
    job = Job(**message | {"workload": Workload(**message["workload"])})
    answer: dict[str, Any]
    with warnings.catch_warnings(record=True) as seen:
        try:
            answer = measure(job)
        except (RuntimeError, ValueError, MemoryError, DataError) as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
    answer["warnings"] = sorted({str(warning.message) for warning in seen})
    return answer
