"""Measurements in a process of their own, so that none sees the memory of another."""

import json
import multiprocessing
import warnings
from dataclasses import asdict, dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Literal

import torch

from adgn.bench.timing import interleaved, peak_megabytes
from adgn.bench.workloads import Workload, build_step, load_source, served_ways
from adgn.data import DataError
from adgn.graph import backend

__all__ = ["Job", "WorkerError", "do", "run_alone"]

MEMORY_STEPS = 2  # the second holds the gradients and the optimiser's state of the first


class WorkerError(RuntimeError):
    """A measurement that could not be made."""


@dataclass(frozen=True)
class Job:
    """What a process has to measure.

    Args:
        kind: `"time"`: all ways in turns; `"memory"`: the peak of the only way.
        workload: What is trained.
        ways: By which ways.
        root: The data root.
        repeats: Turns of each way.
        seconds: No further turns after this time.
        threads: Torch's; `None`: as they are.
    """

    kind: Literal["time", "memory"]
    workload: Workload
    ways: tuple[str, ...]
    root: str | None = None
    repeats: int = 1
    seconds: float = 600.0
    threads: int | None = None


def do(job: Job) -> dict[str, Any]:
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
    """Measures in a new process that has imported what it needs and done nothing else.

    Raises:
        WorkerError: With the message of what went wrong there.
    """
    # Where processes can be forked, they are: from a server that has all imported, which saves
    # each of them several seconds.
    method = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
    context: Any = multiprocessing.get_context(method)
    if method == "forkserver":
        context.set_forkserver_preload([__name__])
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_serve, args=(job, sender), daemon=True)
    process.start()
    sender.close()
    try:
        answer = json.loads(receiver.recv_bytes())
    except EOFError:
        process.join()
        killed = " (killed; often for want of memory)" if process.exitcode == -9 else ""
        raise WorkerError(
            f"the process ended with exit code {process.exitcode}{killed} and no result"
        ) from None
    except BaseException:  # interrupted: nobody waits for the result any more
        process.kill()
        raise
    finally:
        receiver.close()
        process.join()
        process.close()
    if "error" in answer:
        raise WorkerError(answer["error"])
    return dict(answer)


def _serve(job: Job, sender: Connection) -> None:
    answer: dict[str, Any]
    with warnings.catch_warnings(record=True) as heard:
        try:
            answer = do(job)
        except (RuntimeError, ValueError, MemoryError, DataError) as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
    answer["warnings"] = sorted({str(warning.message) for warning in heard})
    sender.send_bytes(json.dumps(answer).encode())
    sender.close()
