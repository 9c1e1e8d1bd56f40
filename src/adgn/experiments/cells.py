"""The file of a cell: what was measured so far, written whole after every run."""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime, timezone
from functools import cache
from pathlib import Path
from typing import Any

from adgn._util.environment import environment
from adgn.experiments.errors import ReproductionError, unwritable
from adgn.experiments.plan import FORMAT, CellPlan
from adgn.selection import Run
from adgn.selection.objective import read_scores
from adgn.training.files import RUN_AGAIN, write_atomically

__all__ = ["Cell", "new_cell", "next_step", "plain", "read_cell", "summarised", "write_cell"]

Cell = dict[str, Any]


def new_cell(plan: CellPlan) -> Cell:
    """The cell before anything was done."""
    published = plan.published()
    return {
        "format": FORMAT,
        "experiment": plan.experiment.name,
        "row": plan.row.key,
        "column": plan.column.key,
        "budget": plan.budget_name,
        "status": "waiting",
        "error": None,
        "fingerprint": plan.fingerprint,
        "planned_runs": plan.planned_runs,
        "runs": [],
        "train": {},
        "validation": {},
        "test": {},
        "score": None,
        "published": None if published is None else asdict(published),
        "search": None,
        "settings": {},
        "settings_by_split": {},
        "config": None,
        "curve": None,
        "seconds_per_epoch": None,
        "parameters": None,
        "notes": [],
        "date": None,
        "environment": None,
    }


def next_step(plan: CellPlan, cell: Cell) -> int | None:
    """The step to be done next: 0 finds the settings, k is the k-th round; `None`: all is done.

    A failed cell goes on where it failed.
    """
    if plan.budget.whole_selection or plan.experiment.kind == "seconds":
        return None if cell["status"] == "done" else 0
    if cell["search"] is None:
        return 0
    there = {Run(run["seed"], run["split"]) for run in cell["runs"]}
    for number, runs in enumerate(plan.rounds, start=1):
        if not there.issuperset(runs):
            return number
    return None


def summarised(plan: CellPlan, cell: Cell) -> Cell:
    """The cell with means and spreads over the runs that it has."""
    runs = {Run(run["seed"], run["split"]): run for run in cell["runs"]}
    by_split = {
        split: _summaries(plan, runs, split)
        for split in ("train", "val", "test")
        if runs and all(split in run["scores"] for run in runs.values())
    }
    metric = plan.experiment.metric
    score = by_split.get(metric.split, {}).get(metric.name)
    times = [run["seconds"] / run["epochs"] for run in runs.values() if run["epochs"]]
    return {
        **cell,
        "status": "done" if len(runs) >= plan.planned_runs else "partial" if runs else "waiting",
        "error": None,
        "train": by_split.get("train", {}),
        "validation": by_split.get("val", {}),
        "test": by_split.get("test", {}),
        "score": score,
        "seconds_per_epoch": _mean_and_std(times),
        "date": datetime.now(timezone.utc).date().isoformat(),
        "environment": _environment(),
    }


def _summaries(
    plan: CellPlan, runs: Mapping[Run, Mapping[str, Any]], split: str
) -> dict[str, dict[str, float | None]]:
    scores = {run: read_scores(record["scores"][split]) for run, record in runs.items()}
    names = next(iter(scores.values()))
    return {
        name: plain(asdict(plan.protocol.summary({run: by[name] for run, by in scores.items()})))
        for name in names
    }


def _mean_and_std(values: list[float]) -> dict[str, float | None] | None:
    if not values:
        return None
    mean = sum(values) / len(values)
    spread = sum((value - mean) ** 2 for value in values)
    return {"mean": mean, "std": math.sqrt(spread / (len(values) - 1)) if values[1:] else None}


@cache
def _environment() -> dict[str, Any]:
    return environment()


def plain(value: Any) -> Any:
    """The value with `None` where a number is not finite, as JSON has it."""
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def write_cell(path: Path, cell: Cell) -> None:
    """Writes the file, whole or not at all."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable(path.parent, error) from error
    write_atomically(path, (json.dumps(cell, indent=1, allow_nan=False) + "\n").encode(), RUN_AGAIN)


def read_cell(path: Path) -> Cell | None:
    """What the file of a cell says; `None` where there is none.

    Raises:
        ReproductionError: It is damaged, or of a newer version.
    """
    try:
        cell: Cell = json.loads(path.read_bytes())
        version = cell["format"]
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ReproductionError(
            f"{path} cannot be read ({error}); move it away to have the cell measured again"
        ) from error
    if version != FORMAT:
        raise ReproductionError(
            f"{path} has format {version}, this version of adgn writes {FORMAT}; choose another "
            "--out, or use the version of adgn that made it"
        )
    return cell
