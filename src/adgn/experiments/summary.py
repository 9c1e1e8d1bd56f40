"""Tables of results and of plans, as text."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from adgn.experiments.api import plan_cells
from adgn.experiments.budgets import BUDGETS
from adgn.experiments.driver import Job
from adgn.experiments.plan import CellPlan
from adgn.experiments.records import Cell, Moments
from adgn.experiments.results import ResultsDirectory

__all__ = ["Listing", "listing", "seconds_used", "shown_score", "summary_tables"]

Table = tuple[str, list[str], list[list[str]]]


@dataclass(frozen=True)
class Listing:
    """What `adgn reproduce --list` says about an experiment.

    Attributes:
        title: Its name and title.
        summary: What it is.
        about: Pairs of a label and a text: rows, columns, and what each budget does.
        budgets: For each budget its name, cells, configurations, runs, and the hours that it takes
            in all, has taken, and will take.
    """

    title: str
    summary: str
    about: list[list[str]]
    budgets: list[list[str]]


def shown_score(plan: CellPlan, score: Moments | None) -> str:
    """A score with its spread, in the unit that people read.

    Example:
        >>> from adgn.experiments.plan import plan_cell
        >>> plan = plan_cell("benchmarks", "gcn", "photo", "smoke")
        >>> shown_score(plan, Moments(mean=0.5, std=0.1))
        '50.00 ± 10.00'
    """
    if score is None:
        return "–"
    unit = plan.experiment.metric.unit
    factor, digits = (100, 2) if unit == "%" else (1, 3 if unit == "s" else 4)
    mean, std = score.mean, score.std
    text = "not finite" if mean is None else f"{factor * mean:.{digits}f}"
    return text if mean is None or std is None else f"{text} ± {factor * std:.{digits}f}"


def summary_tables(jobs: Sequence[Job]) -> Iterator[Table]:
    """Per experiment a title, column names and rows with the score of each cell."""
    for name in dict.fromkeys(job.plan.experiment.name for job in jobs):
        mine = [job for job in jobs if job.plan.experiment.name == name]
        experiment = mine[0].plan.experiment
        unit = {"%": " (%)", "s": " (s)"}.get(experiment.metric.unit, "")
        columns = dict.fromkeys(job.plan.column.key for job in mine)
        rows = []
        for row in dict.fromkeys(job.plan.row.key for job in mine):
            cells = {job.plan.column.key: job for job in mine if job.plan.row.key == row}
            shown = [_shown(cells[column]) for column in columns]
            rows.append([experiment.row(row).title, *shown])
        yield f"{experiment.title}: {experiment.metric.title}{unit}", ["", *columns], rows


def _shown(job: Job) -> str:
    cell = job.cell
    text = shown_score(job.plan, cell.score)
    if cell.status == "failed":
        return "failed" if cell.score is None else f"{text} (then failed)"
    if cell.status == "partial":
        return f"{text} ({len(cell.runs)} of {cell.planned_runs})"
    return text


def listing(
    experiments: Sequence[str],
    models: Sequence[str] | None,
    columns: Sequence[str] | None = None,
    places: Mapping[str, Path] | None = None,
) -> Iterator[Listing]:
    """Per experiment a title, what it is, its outline and what budgets do, and their size.

    Args:
        experiments: Names; none: all.
        models: As of `plan_cells`.
        columns: As of `plan_cells`.
        places: By budget the results directory, whose records say how much is done; a budget that
            is not among them, or whose directory is not there, has not begun.
    """
    # The full budget has all columns; another may have fewer, which is no mistake here.
    chosen = plan_cells(experiments, "paper", models, columns)
    keys = {(plan.experiment.name, plan.column.key) for plan in chosen}
    everything = {
        budget: [
            plan
            for plan in plan_cells(experiments, budget, models)
            if (plan.experiment.name, plan.column.key) in keys
        ]
        for budget in BUDGETS
    }
    for name in dict.fromkeys(plan.experiment.name for plan in everything["paper"]):
        mine = {
            budget: [plan for plan in plans if plan.experiment.name == name]
            for budget, plans in everything.items()
        }
        experiment = mine["paper"][0].experiment
        about = [
            ["rows", ", ".join(dict.fromkeys(plan.row.key for plan in mine["paper"]))],
            ["columns", ", ".join(dict.fromkeys(plan.column.key for plan in mine["paper"]))],
        ]
        about += [[budget, plans[0].budget.text] for budget, plans in mine.items() if plans]
        budgets = [
            _budget_line(budget, plans, (places or {}).get(budget))
            for budget, plans in mine.items()
            if plans
        ]
        yield Listing(f"{name}: {experiment.title}", experiment.summary, about, budgets)


def _budget_line(budget: str, plans: Sequence[CellPlan], place: Path | None) -> list[str]:
    tried = sum(plan.tried for plan in plans)
    runs = sum(plan.planned_runs for plan in plans)
    whole = [plan.seconds_left(None) for plan in plans]
    cells: list[Cell | None] = [None] * len(plans)
    if place is not None and place.exists():
        results = ResultsDirectory(place)
        cells = [results.cell(plan) for plan in plans]
    used = sum(seconds_used(cell) for cell in cells if cell is not None)
    left = [plan.seconds_left(cell) for plan, cell in zip(plans, cells, strict=True)]
    hours = [_hours(whole), _hours([used]), _hours(left)]
    return [budget, str(len(plans)), str(tried), str(runs), *hours]


def seconds_used(cell: Cell) -> float:
    """What the search and the runs of a cell have taken so far, by its records."""
    searched = cell.search.seconds if cell.search is not None else None
    return (searched or 0.0) + sum(run.seconds or 0.0 for run in cell.runs)


def _hours(seconds: Sequence[float | None]) -> str:
    known = [part for part in seconds if part is not None]
    return f"{sum(known) / 3600:.1f} h" if len(known) == len(seconds) else "unknown"
