"""A step of a cell: its settings (`select`), a round of its runs (`replicate`), or its time."""

import math
import shutil
import threading
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from functools import cache, partial
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import torch

from adgn._util.environment import environment, load_average
from adgn.experiments.budgets import SEARCH_SEED, Search
from adgn.experiments.condense import mean_scores, search_record, thinned
from adgn.experiments.plan import CellPlan, plan_cell
from adgn.experiments.records import Cell, Curve, Failure, Moments, RunRecord, SearchRecord
from adgn.experiments.results import ResultsDirectory
from adgn.selection import Run, SelectionResult, grid_size, protocol_of, select
from adgn.selection.errors import ExecutorError, StorageError
from adgn.selection.executors import Poll
from adgn.selection.halving import Rung, planned_counts
from adgn.selection.replicate import StopCallback, held, replicate, run_record
from adgn.selection.worker import WorkerSpec, work
from adgn.training import Callback, Interrupted, RunDirectory, Trainer, shared_data, to_toml, train
from adgn.training.run import essential_settings
from adgn.training.tasks import task_entry

_environment = cache(environment)
_LOCK_SECONDS = 300.0  # the worker of a driver that was killed may still be writing


@dataclass(frozen=True)
class StepOrder:
    """A step of a cell, by names."""

    out: str
    experiment: str
    row: str
    column: str
    budget: str
    step: int  # 0: the settings, a whole study, or a measurement of time; k: the k-th round of runs
    retry: bool = False  # run trials of the search again that crashed


def handle(message: Mapping[str, Any], stop: threading.Event) -> str:
    """Does a step as a process of its own; `message` is a `StepOrder` and `threads`."""
    order = dict(message)
    torch.set_num_threads(order.pop("threads"))
    return do_step(StepOrder(**order), stop)


def do_step(order: StepOrder, stop: threading.Event, **place: Any) -> str:
    """Does a step, or goes on with it; a failure is written into the cell.

    `stop` is set when it is to stop at a place from which it can go on; `place` says where the
    trials of a cell run that is a whole study, as arguments of `select`. Errors of the place, which
    concern all cells, are raised. The answer is `"done"`, `"failed"` or `"interrupted"`.
    """
    plan = plan_cell(order.experiment, order.row, order.column, order.budget)
    results = ResultsDirectory(order.out)
    folder = results.claim_work(plan)
    try:
        with held(folder / ".lock", stop, _LOCK_SECONDS), shared_data():
            cell = results.cell(plan) or plan.new_cell()
            try:
                for state in _states(plan, cell, order, results, stop, place):
                    cell = state
                    results.write_cell(plan, cell)
            except Interrupted:
                raise
            except Exception as error:
                of_all = ExecutorError if place.get("storage") is None else StorageError
                if isinstance(error, of_all | ExecutorError):
                    raise
                message, trace = f"{type(error).__name__}: {error}", traceback.format_exc()
                failed = failed_cell(cell, message, trace, _failed_run(plan, cell, order.step))
                results.write_cell(plan, failed)
                return "failed"
    except Interrupted:
        return "interrupted"
    return "done"


def failed_cell(cell: Cell, message: str, trace: str = "", run: str | None = None) -> Cell:
    """The cell with the mark of a failure; what it has measured stays."""
    error = Failure(message=message, traceback=trace, run=run)
    return cell.model_copy(update={"status": "failed", "error": error})


def _failed_run(plan: CellPlan, cell: Cell, step: int) -> str | None:
    if plan.experiment.kind == "seconds":
        return Run(plan.base.seed).name
    missing = [] if step == 0 else plan.missing_runs(cell, step)
    return "search" if step == 0 else missing[0].name if missing else None


def _states(
    plan: CellPlan,
    cell: Cell,
    order: StepOrder,
    results: ResultsDirectory,
    stop: threading.Event,
    place: Mapping[str, Any],
) -> Iterator[Cell]:
    """Does a step and yields the cell whenever there is something new in it."""
    # A failure of before is over once this step has something to save.
    status = "partial" if cell.runs else "waiting"
    cell = cell.model_copy(update={"status": status, "error": None})
    folder = results.work_folder(plan)
    if plan.experiment.kind == "seconds":
        yield _timed(plan, cell, stop)
    elif plan.budget.study_per_cell:
        yield _whole_study(plan, cell, folder / "search", order.retry, place)
    elif order.step == 0:
        yield _with_settings(plan, cell, results, order.retry, stop)
    else:
        for run, result in replicate(
            plan.missing_runs(cell, order.step),
            partial(plan.config, cell.settings),
            lambda run: folder / "runs" / run.name,
            should_stop=stop.is_set,
            evaluate_test=True,
        ):
            directory = RunDirectory(folder / "runs" / run.name)
            cell = _with_run(plan, cell, run, cell.settings, result["scores"], directory)
            yield cell


@dataclass
class _InProcessExecutor:
    """Runs a study's trials in this process, with the threads that it has."""

    stop: threading.Event

    def run(self, spec: WorkerSpec, poll: Poll) -> None:
        work(replace(spec, threads=torch.get_num_threads()), self.stop)
        if self.stop.is_set():
            raise Interrupted("stopped during a search", 0)


def _with_settings(
    plan: CellPlan, cell: Cell, results: ResultsDirectory, retry: bool, stop: threading.Event
) -> Cell:
    search = plan.budget.search
    if search is None:
        settings, how = results.taken_over_settings(plan)
        return cell.model_copy(update={"search": _no_search(how), "settings": settings})
    seeds = protocol_of(plan.base).seeds[: search.seeds]
    base = plan.base.model_dump(mode="json")
    if search.max_epochs is not None:
        base["loop"]["max_epochs"] = search.max_epochs
    folder = results.work_folder(plan) / "search"
    result = _select(
        plan,
        folder,
        study=f"{plan.experiment.name}-{plan.name}",
        settings=base,
        search="random",
        prune=search.prune,
        first_rung=search.first_rung,
        trials=plan.tried,
        executor=_InProcessExecutor(stop),
        seeds=seeds,
        splits=search.splits,
        seed=SEARCH_SEED,
        retry_failed=retry,
        evaluate_test=False,
    )
    _take_over_runs(plan, result, results.work_folder(plan) / "runs")
    shutil.rmtree(folder / "runs", ignore_errors=True)  # large, and not needed
    how = _how(plan, search, result, len(seeds))
    about = search_record(result.record, how, trials=plan.tried, space=plan.space or {})
    return cell.model_copy(update={"search": about, "settings": result.settings})


def _take_over_runs(plan: CellPlan, result: SelectionResult, place: Path) -> None:
    """Moves runs of the selected configuration that are the same as final runs to their place."""
    wanted = {run for number in plan.rounds for run in number}
    for record in result.record["runs"]:
        run, trained = Run(record["seed"], record["split"]), result.folder / record["folder"]
        directory = RunDirectory(trained)
        if run not in wanted or not directory.result_file.exists():
            continue  # it may have been moved before a kill
        config = plan.config(result.settings, run)
        if essential_settings(directory.config()) == essential_settings(config):
            place.mkdir(parents=True, exist_ok=True)
            trained.rename(place / run.name)


def _select(plan: CellPlan, folder: Path, **options: Any) -> SelectionResult:
    task, model = plan.column.task, plan.row.model
    return select(task, model=model, space=plan.space, folder=folder, **options)


def _no_search(how: str) -> SearchRecord:
    return SearchRecord(trials=0, failed=0, how=how, seconds=0.0)


def _how(plan: CellPlan, search: Search, result: SelectionResult, seeds: int) -> str:
    size, trials, splits = grid_size(plan.space or {}), plan.tried, search.splits or ()
    tried = f"all {size}" if trials >= size else f"random search, {trials} of {size}"
    parts = [f"{tried} configurations", f"{seeds} initialisation{'s' if seeds > 1 else ''}"]
    if splits:
        parts.append(f"split{'s' if len(splits) > 1 else ''} {', '.join(map(str, splits))}")
    parts.append(f"at most {search.max_epochs or plan.base.loop.max_epochs} epochs")
    rungs = [Rung(**rung) for rung in result.record["rungs"]]
    if rungs:
        counts = zip(planned_counts(trials, rungs), rungs, strict=True)
        parts.append("halving: " + ", ".join(f"{count} to {rung}" for count, rung in counts))
    return ", ".join(parts)


def _whole_study(
    plan: CellPlan, cell: Cell, folder: Path, retry: bool, place: Mapping[str, Any]
) -> Cell:
    """A cell of the full budget: one study over the whole space, by the task's own protocol."""
    result = _select(
        plan,
        folder,
        study=f"{plan.experiment.name}-{plan.name}-{plan.fingerprint[:8]}",
        settings=plan.base.model_dump(mode="json"),
        retry_failed=retry,
        **place,
    )
    how = f"grid, all {grid_size(plan.space or {})} configurations, {result.record['rule']}"
    found = {
        "runs": (),
        "search": search_record(result.record, how, trials=plan.tried, space=plan.space or {}),
        "settings": result.settings,
        "settings_by_split": result.record["settings_by_split"],
    }
    cell = cell.model_copy(update=found)
    for record in result.record["runs"]:
        run = Run(record["seed"], record["split"])
        settings = result.by_split.get(run.split or 0, result.settings)
        scores = {split: dict(values) for split, values in record["scores"].items()}
        directory = RunDirectory(result.folder / record["folder"])
        cell = _with_run(plan, cell, run, settings, scores, directory)
    return cell


def _with_run(
    plan: CellPlan,
    cell: Cell,
    run: Run,
    settings: Mapping[str, Any],
    scores: dict[str, dict[str, Any]],
    directory: RunDirectory,
) -> Cell:
    """The cell with one more run, whose directory may have been cleared away."""
    config, result = plan.config(settings, run), directory.result() or {}
    notes = [*result.get("notes", ()), *result.get("transforms", ())]
    for extra in task_entry(config.task.name).extra_scores:
        value = scores[extra.split].setdefault(extra.name, extra.value(config, scores[extra.split]))
        notes.append(f"{extra.name.replace('_', ' ')} {value:.{extra.digits}f}")
    found: dict[str, Any] = {"runs": (*cell.runs, RunRecord(**run_record(run, scores, result)))}
    if not cell.runs:
        found |= {
            "config": to_toml(config),
            "curve": _learning_curve(plan, directory.history()),
            "parameters": result.get("parameters", {}).get("total"),
            "notes": tuple(notes),
        }
    return _summarised(plan, cell.model_copy(update=found))


def _summarised(plan: CellPlan, cell: Cell) -> Cell:
    """The cell with means and spreads over the runs that it has."""
    runs = {Run(run.seed or 0, run.split): run for run in cell.runs}
    by_split = {
        split: mean_scores(plan.protocol, {run: r.scores[split] for run, r in runs.items()})
        for split in ("train", "val", "test")
        if runs and all(split in record.scores for record in runs.values())
    }
    metric = plan.experiment.metric
    times = [(run.seconds or 0.0) / run.epochs for run in cell.runs if run.epochs]
    found = {
        "status": "done" if len(runs) >= plan.planned_runs else "partial" if runs else "waiting",
        "error": None,
        "train": by_split.get("train", {}),
        "validation": by_split.get("val", {}),
        "test": by_split.get("test", {}),
        "score": by_split.get(metric.split, {}).get(metric.name),
        "seconds_per_epoch": _moments(times),
        "date": datetime.now(timezone.utc).date().isoformat(),
        "environment": _environment(),
    }
    return cell.model_copy(update=found)


def _moments(values: Sequence[float]) -> Moments | None:
    if not values:
        return None
    return Moments(mean=fmean(values), std=stdev(values) if len(values) > 1 else None)


def _learning_curve(plan: CellPlan, history: list[dict[str, Any]]) -> Curve | None:
    """The first run's scores over its epochs, thinned out; train and validation in one measure."""
    lines = [line for line in history if "val" in line or "train" in line]
    if not lines:
        return None
    lines = thinned(lines)
    name, on_train = plan.experiment.metric.name, "val" not in lines[0]
    if on_train:  # the score is followed on the train split
        train = [line["train"][name] for line in lines]
    else:
        train = [line["train_loss"] for line in lines]
        if name == "log10_mse_paper":
            train = [math.log10(loss) if loss else None for loss in train]
        else:  # the train accuracy is not measured on the way; the loss is, on both
            name = "loss"
    val = () if on_train else tuple(line["val"][name] for line in lines)
    epochs = tuple(line["epoch"] for line in lines)
    return Curve(metric=name, epochs=epochs, train=tuple(train), val=val)


class _Clock(Callback):
    def __init__(self) -> None:
        self.times: list[float] = []

    def on_epoch(self, trainer: Trainer, line: Mapping[str, Any]) -> None:
        self.times.append(time.perf_counter())


def _timed(plan: CellPlan, cell: Cell, stop: threading.Event) -> Cell:
    epochs = plan.budget.timed_epochs
    config = plan.config({"loop.max_epochs": epochs + 1}, Run(plan.base.seed))
    clock = _Clock()
    load = load_average()
    result = train(config, callbacks=[clock, StopCallback(stop.is_set)], evaluate_test=False)
    seconds = [after - before for before, after in zip(clock.times, clock.times[1:], strict=False)]
    best, total = result.best_epoch, sum(seconds)
    record = RunRecord(seed=config.seed, epochs=epochs, best_epoch=best, seconds=total)
    cell = _summarised(plan, cell.model_copy(update={"runs": (record,)}))
    measured = {
        "search": _no_search(f"no search; {epochs} epochs timed after a first one"),
        "score": _moments(seconds),
        "seconds_per_epoch": _moments(seconds),
        "config": to_toml(config),
        "parameters": result.parameters["total"],
        "notes": (f"{torch.get_num_threads()} threads, load average {load:.2f} before",),
    }
    return cell.model_copy(update=measured)
