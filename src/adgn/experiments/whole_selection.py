"""Cells of the full budget: one study each, by the task's own protocol, on any executor."""

import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from adgn.experiments.cells import Cell, summarised, write_cell
from adgn.experiments.driver import Job, Watch
from adgn.experiments.plan import CellPlan
from adgn.experiments.results import ResultsDirectory
from adgn.experiments.steps import learning_curve
from adgn.experiments.trees import add_normalised
from adgn.experiments.worker import failed_cell
from adgn.selection import Run, SelectionResult, grid_size, select
from adgn.selection.api import check_place
from adgn.selection.errors import ExecutorError, StorageError
from adgn.training import RunDirectory, to_toml

__all__ = ["SelectionOptions", "select_cell"]


@dataclass(frozen=True)
class SelectionOptions:
    """Where the trials run, and what keeps them."""

    workers: int
    executor: Literal["local", "ray"] = "local"
    ray_address: str | None = None
    storage: str | None = None

    def check(self) -> None:
        """Raises where workers cannot be started, or the storage cannot be reached."""
        check_place(self.executor, self.workers, self.ray_address, self.storage)


def select_cell(
    results: ResultsDirectory,
    job: Job,
    jobs: Sequence[Job],
    options: SelectionOptions,
    watch: Watch,
) -> None:
    """Fills a cell by model selection over its whole space; a failure is written into it.

    Args:
        results: The results directory.
        job: The cell.
        jobs: All cells, for those who watch.
        options: Where the trials run.
        watch: Told what happens.
    """
    plan = job.plan
    job.running = True
    watch.step_begins(job, 0)
    try:
        result = select(
            plan.column.task,
            model=plan.row.model,
            space=plan.space,
            workers=options.workers,
            executor=options.executor,
            ray_address=options.ray_address,
            storage=options.storage,
            study=f"{plan.experiment.name}-{plan.name}-{plan.fingerprint[:8]}",
            folder=results.claim_work(plan) / "search",
            settings=plan.base.model_dump(mode="json"),
            retry_failed=job.retry,
            watch=lambda status: watch.tick(jobs),
        )
        job.cell = _filled(plan, job.cell, result)
    except Exception as error:
        # Of the place, not of this cell: all others would fail alike.
        if isinstance(error, ExecutorError) or (
            options.storage and isinstance(error, StorageError)
        ):
            raise
        message = f"{type(error).__name__}: {error}"
        job.cell = failed_cell(job.cell, message, traceback.format_exc(), "search")
    finally:
        job.running = False
    job.retry = False
    write_cell(results.cell_file(plan), job.cell)
    watch.step_ends(job, 0, "failed" if job.cell["status"] == "failed" else "done")


def _filled(plan: CellPlan, cell: Cell, result: SelectionResult) -> Cell:
    record = result.record
    by_split = {int(split): values for split, values in record["settings_by_split"].items()}
    runs, notes = [], []
    for run in record["runs"]:
        scores = {split: dict(values) for split, values in run["scores"].items()}
        config = plan.config(
            by_split.get(run["split"], result.settings), Run(run["seed"], run["split"])
        )
        if plan.experiment.name == "trees":
            notes.append(f"normalised accuracy {add_normalised(config, scores):.2f}")
        trained = _directory(result, run).result() or {}
        about_run = {key: trained.get(key) for key in ("epochs", "best_epoch", "seconds")}
        runs.append({"seed": run["seed"], "split": run["split"], "scores": scores, **about_run})
    space = plan.space or {}
    search: dict[str, Any] = {
        "space": space,
        "trials": result.counts["total"],
        "failed": result.counts["failed"],
        "how": f"grid, all {grid_size(space)} configurations, {record['rule']}",
        "seconds": record["trial_seconds"],
    }
    first = plan.protocol.runs()[0]
    directory = _directory(result, record["runs"][0])
    trained = directory.result() or {}
    cell = {
        **cell,
        "runs": runs,
        "search": search,
        "settings": result.settings,
        "settings_by_split": record["settings_by_split"],
        "config": to_toml(plan.config(by_split.get(first.split or 0, result.settings), first)),
        "curve": learning_curve(plan, directory.history()),
        "parameters": trained.get("parameters", {}).get("total"),
        "notes": notes,
    }
    return summarised(plan, cell)


def _directory(result: SelectionResult, run: Mapping[str, Any]) -> RunDirectory:
    """Where a run of the study lies; it is empty where somebody has cleared it away."""
    return RunDirectory(result.folder / run["folder"])
