"""Runs a case: times in one process, the memory of each way in its own."""

import math
import os
import platform
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from typing import Any

from adgn._util.environment import (
    available_bytes,
    git_commit,
    load_average,
    meminfo,
    processor,
    versions,
)
from adgn.bench.cases import CASES, OURS, Case
from adgn.bench.records import CaseRecord, Machine, PointRecord, WayRecord
from adgn.bench.worker import Job, WorkerError, run_alone
from adgn.bench.workloads import COMPILED, NETWORKS, WAYS, Workload

# Float32 sums of millions of terms in different orders; a wrong operator is off by far more.
LOSS_TOLERANCE = 1e-3
LEFT_OUT_BEFORE = "left out, as at a smaller size"
MEMORY_SHARE = 0.85  # of the available memory that a measurement may be expected to take


class BenchError(RuntimeError):
    """A case whose numbers cannot be trusted or could not be taken."""


@dataclass(frozen=True)
class Options:
    """How to measure."""

    quick: bool = False  # smaller workloads, fewer turns, memory only where a case asks for it
    repeats: int | None = None  # turns of each way; `None`: 7, or 2 of a quick run
    root: str | None = None  # the data root
    threads: int | None = None  # torch's; `None`: as they are
    max_edges: int | None = None  # random graphs with more directed edges are left out
    slowest: float = 120.0  # a way whose step would take more seconds is left out
    slowest_rival: float = 3.0  # the same for ways that are not this package's native one

    @property
    def turns(self) -> int:
        """Turns of each way."""
        return self.repeats if self.repeats is not None else (2 if self.quick else 7)


@dataclass
class _Run:
    """What the measurements of a case have in common."""

    case: Case
    options: Options
    tell: Callable[[str], None]
    told: set[str] = field(default_factory=set)
    first: dict[str, Any] = field(default_factory=dict)

    def ask(self, job: Job) -> dict[str, Any]:
        answer = run_alone(job)
        for warning in answer.pop("warnings"):
            if warning not in self.told:
                self.told.add(warning)
                self.tell(f"warning: {warning}")
        return answer


def run_case(
    name: str, options: Options, tell: Callable[[str], None] = lambda line: None
) -> CaseRecord:
    """Measures one of `CASES`, and tells in lines what is being done.

    Raises:
        BenchError: Where nothing could be measured, or two ways do not compute the same.
    """
    case = CASES[name]
    run = _Run(case, options, lambda line: tell(f"{name}: {line}"))
    load = load_average()
    limit = math.inf if options.max_edges is None else options.max_edges
    points: list[PointRecord] = []
    not_measured = ""
    for workload in case.quick if options.quick else case.points:
        if workload.data == "random" and workload.size > limit:
            continue
        before = points[-1] if points and points[-1].data == workload.data else None
        try:
            points.append(_point(run, workload, before))
        except WorkerError as error:
            if not points:
                raise BenchError(str(error)) from error
            # What was measured before is kept; a larger workload would fare no better.
            not_measured = f"{_about(workload)} and what follows: {error}"
            run.tell(f"not measured: {not_measured}")
            break
    if not points:
        raise BenchError(f"max_edges={options.max_edges} leaves nothing to measure")
    return CaseRecord(
        date=datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        commit=measured_commit(),
        machine=describe_machine(run.first["instruction_set"]),
        versions=measured_versions(),
        backend=run.first["backend"],
        threads=run.first["threads"],
        load_average=load,
        repeats=options.turns,
        quick=options.quick,
        imports_mb=run.first["imports_mb"],
        points=tuple(points),
        not_measured=not_measured,
    )


def describe_machine(instruction_set: str) -> Machine:
    """This machine; `instruction_set` is what the kernels are compiled for."""
    return Machine(
        processor=processor(),
        cores=os.cpu_count() or 1,
        memory_gb=round(meminfo("MemTotal") / 1e9, 1),
        system=f"{platform.system()} {platform.machine()}",
        instruction_set=instruction_set,
    )


def measured_versions() -> dict[str, str]:
    """The versions of what takes part in a measurement."""
    packages = versions("adgn", "torch", "torch_geometric", "numpy", "scipy")
    return {"python": platform.python_version(), **packages}


def measured_commit() -> str:
    """The commit that is measured, and whether the package differs from it."""
    found = git_commit()
    return "unknown" if found is None else found[0][:7] + (" with changes" if found[1] else "")


def available_megabytes() -> float:
    """The memory that new work can have, in MB; infinite where the system does not tell."""
    return available_bytes() / 1e6


def _point(run: _Run, workload: Workload, before: PointRecord | None) -> PointRecord:
    options = run.options
    left_out = {way: _why_not(run, workload, way, before) for way in run.case.ways}
    ways = tuple(way for way in run.case.ways if not left_out[way])
    if not ways:
        raise WorkerError("; ".join(f"{WAYS[way]}: {why}" for way, why in left_out.items()))
    run.tell(f"time of {_about(workload)} by {', '.join(ways)}")
    arguments = (options.root, options.turns, 20.0 if options.quick else 300.0, options.threads)
    timed = run.ask(Job("time", workload, ways, *arguments))
    run.first = run.first or timed
    alike = {way: seen for way, seen in timed["ways"].items() if way not in NETWORKS}
    _check_losses({way: seen["losses"] for way, seen in alike.items()})
    records = {way: WayRecord(left_out=why) for way, why in left_out.items() if why}
    for way, seen in timed["ways"].items():
        peak, why = _peak(run, Job("memory", workload, (way,), *arguments))
        records[way] = WayRecord(**seen, peak_mb=peak, left_out=why)
    about = {k: v for k, v in asdict(workload).items() if k != "size"}
    in_order = {way: records[way] for way in run.case.ways if way in records}
    return PointRecord(**about, **timed["sizes"], ways=in_order)


def _about(workload: Workload) -> str:
    size = f", size {workload.size}" if workload.size else ""
    return f"{workload.data}, {workload.layers} layers{size}"


def _peak(run: _Run, job: Job) -> tuple[float | None, str]:
    """The peak memory, or why there is none."""
    if run.options.quick and not run.case.quick_memory:
        return None, ""
    if job.ways[0] in COMPILED:  # the peak would be the compiler's
        return None, ""
    run.tell(f"memory of {_about(job.workload)} by {job.ways[0]}")
    try:
        return float(run.ask(job)["peak_mb"]), ""
    except WorkerError as error:  # the times are good all the same
        return None, f"memory: {error}"


def _why_not(run: _Run, workload: Workload, way: str, before: PointRecord | None) -> str:
    """Why a way is left out, from its cost at the workload before; empty where it is not."""
    if way in COMPILED and run.options.quick:
        return "compiling takes longer than a quick run"
    available = available_megabytes()
    if before is None:
        needed = run.case.needs_mb.get(way, 0.0)
        return "" if needed <= available else _no_memory(needed, available)
    earlier = before.ways.get(way)
    if earlier is None:
        return ""
    if earlier.left_out:
        return LEFT_OUT_BEFORE
    growth = (workload.size or before.edges) * workload.layers / (before.edges * before.layers)
    seconds = growth * (earlier.seconds or 0.0)
    if seconds > (run.options.slowest if way in OURS else run.options.slowest_rival):
        return f"a step would take about {seconds:.0f} s"
    needed = growth * ((earlier.peak_mb or 0.0) - run.first["imports_mb"])
    return "" if needed <= MEMORY_SHARE * available else _no_memory(needed, available)


def _no_memory(needed: float, available: float) -> str:
    return f"needs about {needed / 1e3:.1f} GB of memory, {available / 1e3:.1f} GB are available"


def _check_losses(losses: dict[str, list[float]]) -> None:
    """Raises unless all ways return the same losses: else they do not train the same network."""
    reference, *others = losses
    for way in others:
        for step, (ours, theirs) in enumerate(zip(losses[reference], losses[way], strict=True)):
            if not abs(ours - theirs) <= LOSS_TOLERANCE * abs(ours):
                raise BenchError(
                    f"the loss of step {step + 1} is {ours} by {WAYS[reference]} but {theirs} by "
                    f"{WAYS[way]}; they do not compute the same, so their times say nothing"
                )
