"""Tables of results and of plans, as text."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from adgn.experiments.api import plan_cells
from adgn.experiments.budgets import BUDGETS
from adgn.experiments.driver import Job
from adgn.experiments.outline import without_data
from adgn.experiments.plan import CellPlan
from adgn.experiments.records import Cell, Moments
from adgn.experiments.results import ResultsDirectory

Table = tuple[str, list[str], list[list[str]]]


@dataclass(frozen=True)
class Listing:
    """What `adgn reproduce --list` says about an experiment."""

    title: str
    summary: str
    about: list[list[str]]  # a label and a text: rows, columns, and what each budget does
    budgets: list[list[str]]  # name, cells, configurations, runs and time


def shown_score(plan: CellPlan, score: Moments | None) -> str:
    """A score with its spread, in the unit that people read: `50.00 ± 10.00`."""
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
    """What there is to reproduce, per experiment.

    `places` has the results directories by budget, whose records say how much is done.
    """
    # The full budget has all columns; another may have fewer, which is no mistake here.
    chosen = plan_cells(experiments, "paper", models, columns)
    for experiment in {plan.experiment.name: plan.experiment for plan in chosen}.values():
        mine = [plan for plan in chosen if plan.experiment is experiment]
        rows, keys = (
            list(dict.fromkeys(names))
            for names in ((p.row.key for p in mine), (p.column.key for p in mine))
        )
        missing = without_data(experiment)
        without = [key for key in keys if key in missing]
        keys = [key for key in keys if key not in missing] or keys
        about = [["rows", ", ".join(rows)], ["columns", ", ".join(keys)]]
        if without:
            about.append(["no file", f"{', '.join(without)} (see `adgn data info {without[0]}`)"])
        budgets = []
        for budget in BUDGETS:
            every = plan_cells([experiment.name], budget)
            plans = [plan for plan in every if plan.row.key in rows and plan.column.key in keys]
            if plans:
                about.append([budget, plans[0].budget.text])
                budgets.append(_budget_line(budget, plans, (places or {}).get(budget)))
        title = f"{experiment.name}: {experiment.title}"
        yield Listing(title, experiment.summary, about, budgets)


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
