"""One step of a cell: finding its settings, a round of its runs, or a measurement of time."""

import math
import shutil
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from adgn._util.environment import load_average
from adgn.experiments.borrowing import borrowed_settings
from adgn.experiments.budgets import SEARCH_SEED
from adgn.experiments.cells import Cell, plain, summarised
from adgn.experiments.plan import CellPlan
from adgn.experiments.results import ResultsDirectory
from adgn.experiments.trees import add_normalised
from adgn.selection import Run, grid_size, protocol_of, select
from adgn.selection.executors import Poll
from adgn.selection.worker import WorkerSpec, work
from adgn.training import Interrupted, Observer, RunDirectory, Trainer, to_toml, train

__all__ = ["StepFailedError", "do_step", "learning_curve"]

CURVE_POINTS = 120
Save = Callable[[Cell], None]


class StepFailedError(RuntimeError):
    """A run of a step failed; `run` names it."""

    def __init__(self, run: str) -> None:
        super().__init__(run)
        self.run = run


class _StopObserver(Observer):
    def __init__(self, stop: threading.Event) -> None:
        self.stop = stop

    def on_step(self, trainer: Trainer) -> None:
        if self.stop.is_set():
            trainer.request_stop()


class _HereExecutor:
    """Runs a study's trials in this process, with the threads that it has."""

    def __init__(self, stop: threading.Event) -> None:
        self.stop = stop

    def run(self, spec: WorkerSpec, poll: Poll) -> None:
        work(replace(spec, threads=torch.get_num_threads()), self.stop)
        if self.stop.is_set():
            raise Interrupted("stopped during a search", 0)


def do_step(
    plan: CellPlan,
    cell: Cell,
    step: int,
    work_folder: Path,
    stop: threading.Event,
    save: Save,
    *,
    retry: bool = False,
) -> None:
    """Does one step of a cell, or goes on with it; `save` is given every new state of the cell.

    Args:
        plan: The plan of the cell.
        cell: What is known about it so far.
        step: 0: the settings, or a measurement of time; k: the k-th round of runs.
        work_folder: The cell's folder for studies and runs.
        stop: Set when the step is to stop at a place from which it can go on.
        save: Keeps the cell.
        retry: Run trials of the search again that crashed.

    Raises:
        Interrupted: It was stopped.
        StepFailedError: A run failed; its cause is attached.
    """
    # A failure of before is over once this step has something to save.
    cell = {**cell, "status": "partial" if cell["runs"] else "waiting", "error": None}
    if plan.experiment.kind == "seconds":
        save(_timed(plan, cell, stop))
    elif step == 0:
        save(_with_settings(plan, cell, work_folder, stop, retry))
    else:
        for run in plan.rounds[step - 1]:
            if any(
                (record["seed"], record["split"]) == (run.seed, run.split)
                for record in cell["runs"]
            ):
                continue
            try:
                cell = _with_run(plan, cell, run, work_folder / "runs" / run.name, stop)
            except Interrupted:
                raise
            except Exception as error:
                raise StepFailedError(run.name) from error
            save(cell)


def _with_settings(
    plan: CellPlan, cell: Cell, work_folder: Path, stop: threading.Event, retry: bool
) -> Cell:
    search, space = plan.budget.search, plan.space
    if search is None or space is None:
        settings, how = borrowed_settings(plan, ResultsDirectory.around(work_folder))
        about = {"space": {}, "trials": 0, "failed": 0, "how": how, "seconds": 0.0}
        return {**cell, "search": about, "settings": settings}
    usual = protocol_of(plan.base)
    settings = {} if search.max_epochs is None else {"loop": {"max_epochs": search.max_epochs}}
    base = plan.base.model_dump(mode="json")
    for section, values in settings.items():
        base[section] = {**base[section], **values}
    result = select(
        plan.column.task,
        model=plan.row.model,
        space=space,
        search="random",
        trials=search.trials or grid_size(space),
        executor=_HereExecutor(stop),
        study=f"{plan.experiment.name}-{plan.name}",
        folder=work_folder / "search",
        settings=base,
        seeds=usual.seeds[: search.seeds],
        splits=search.splits,
        seed=SEARCH_SEED,
        retry_failed=retry,
        evaluate_test=False,
    )
    shutil.rmtree(work_folder / "search" / "runs", ignore_errors=True)  # large, and not needed
    about = {
        "space": space,
        "trials": result.counts["total"],
        "failed": result.counts["failed"],
        "how": _how(plan, result.counts["total"], len(usual.seeds[: search.seeds])),
        "seconds": result.record["trial_seconds"],
    }
    return {**cell, "search": about, "settings": result.settings}


def _how(plan: CellPlan, trials: int, seeds: int) -> str:
    search, size = plan.budget.search, grid_size(plan.space or {})
    if search is None:
        return "no search"
    parts = [
        f"all {size} configurations"
        if trials >= size
        else f"random search, {trials} of {size} configurations",
        f"{seeds} initialisation{'s' if seeds > 1 else ''}",
    ]
    if search.splits is not None:
        parts.append(
            f"{'split' if len(search.splits) == 1 else 'splits'} "
            f"{', '.join(map(str, search.splits))}"
        )
    parts.append(f"at most {search.max_epochs or plan.base.loop.max_epochs} epochs")
    return ", ".join(parts)


def _with_run(plan: CellPlan, cell: Cell, run: Run, folder: Path, stop: threading.Event) -> Cell:
    if stop.is_set():
        raise Interrupted("stopped between two runs", 0)
    config = plan.config(cell["settings"], run)
    directory = RunDirectory(folder)
    if directory.result() is not None:
        directory.begin(config)  # raises where it is the result of another configuration
    else:
        train(config, run_dir=folder, resume=True, observers=[_StopObserver(stop)])
        # A finished run is never resumed, and its state is several times as large as its weights.
        shutil.rmtree(directory.states.folder, ignore_errors=True)
    result = directory.result() or {}
    scores = result["scores"]
    notes = list(result["notes"])
    if plan.experiment.name == "trees":
        notes.append(f"normalised accuracy {add_normalised(config, scores):.2f}")
    record = {
        "seed": run.seed,
        "split": run.split,
        "scores": scores,
        "epochs": result["epochs"],
        "best_epoch": result["best_epoch"],
        "seconds": result["seconds"],
    }
    first = not cell["runs"]
    cell = {**cell, "runs": [*cell["runs"], record]}
    if first:
        cell.update(
            config=to_toml(config),
            curve=learning_curve(plan, directory.history()),
            parameters=result["parameters"]["total"],
            notes=notes,
        )
    return summarised(plan, cell)


def learning_curve(plan: CellPlan, history: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The first run's scores over its epochs, thinned out; train and validation in one measure."""
    lines = [line for line in history if "val" in line or "train" in line]
    if not lines:
        return None
    kept = lines
    if len(lines) > CURVE_POINTS:
        share = (len(lines) - 1) / (CURVE_POINTS - 1)
        kept = [lines[round(share * number)] for number in range(CURVE_POINTS)]
    metric = plan.experiment.metric
    if "val" not in lines[0]:  # the score is followed on the train split
        values = {"train": [line["train"][metric.name] for line in kept], "val": []}
        name = metric.name
    elif metric.name == "log10_mse_paper":
        name = metric.name
        values = {
            "train": [_log10(line["train_loss"]) for line in kept],
            "val": [line["val"][name] for line in kept],
        }
    else:  # the train accuracy is not measured on the way; the loss is, on both
        name = "loss"
        values = {
            "train": [line["train_loss"] for line in kept],
            "val": [line["val"]["loss"] for line in kept],
        }
    curve: dict[str, Any] = plain(
        {"metric": name, "epochs": [line["epoch"] for line in kept], **values}
    )
    return curve


def _log10(value: float | None) -> float | None:
    return math.log10(value) if value else None


class _Clock(Observer):
    def __init__(self) -> None:
        self.times: list[float] = []

    def on_epoch(self, trainer: Trainer, line: Mapping[str, Any]) -> None:
        self.times.append(time.perf_counter())


def _timed(plan: CellPlan, cell: Cell, stop: threading.Event) -> Cell:
    epochs = plan.budget.timed_epochs
    config = plan.config({"loop.max_epochs": epochs + 1}, Run(plan.base.seed))
    clock = _Clock()
    load = load_average()
    try:
        result = train(config, observers=[clock, _StopObserver(stop)], evaluate_test=False)
    except Interrupted:
        raise
    except Exception as error:
        raise StepFailedError(Run(plan.base.seed).name) from error
    seconds = [after - before for before, after in zip(clock.times, clock.times[1:], strict=False)]
    record: dict[str, Any] = {
        "seed": config.seed,
        "split": None,
        "scores": {},
        "epochs": epochs,
        "best_epoch": result.best_epoch,
        "seconds": sum(seconds),
    }
    cell = summarised(plan, {**cell, "runs": [record]})
    mean = sum(seconds) / epochs
    spread = math.sqrt(sum((s - mean) ** 2 for s in seconds) / (epochs - 1)) if epochs > 1 else None
    measured = {"mean": mean, "std": spread}
    how = f"no search; {epochs} epochs timed after a first one"
    return {
        **cell,
        "search": {"space": {}, "trials": 0, "failed": 0, "how": how, "seconds": 0.0},
        "score": measured,
        "seconds_per_epoch": measured,
        "config": to_toml(config),
        "parameters": result.parameters["total"],
        "notes": [f"{torch.get_num_threads()} threads, load average {load:.2f} before"],
    }
