"""Tables of results and of plans, as text."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from adgn.experiments.api import plan_cells
from adgn.experiments.budgets import BUDGETS
from adgn.experiments.driver import Job
from adgn.experiments.plan import CellPlan
from adgn.experiments.records import Moments
from adgn.selection import grid_size

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
    experiments: Sequence[str], models: Sequence[str] | None, columns: Sequence[str] | None = None
) -> Iterator[Listing]:
    """What there is to reproduce, per experiment."""
    # The full budget has all columns; another may have fewer, which is no mistake here.
    chosen = plan_cells(experiments, "paper", models, columns)
    for experiment in {plan.experiment.name: plan.experiment for plan in chosen}.values():
        mine = [plan for plan in chosen if plan.experiment is experiment]
        rows, keys = (
            list(dict.fromkeys(names))
            for names in ((p.row.key for p in mine), (p.column.key for p in mine))
        )
        about = [["rows", ", ".join(rows)], ["columns", ", ".join(keys)]]
        budgets = []
        for budget in BUDGETS:
            every = plan_cells([experiment.name], budget)
            plans = [plan for plan in every if plan.row.key in rows and plan.column.key in keys]
            if plans:
                about.append([budget, plans[0].budget.text])
                budgets.append(_budget_line(budget, plans))
        title = f"{experiment.name}: {experiment.title}"
        yield Listing(title, experiment.summary, about, budgets)


def _budget_line(budget: str, plans: Sequence[CellPlan]) -> list[str]:
    search, sizes = plans[0].budget.search, [grid_size(plan.space or {}) for plan in plans]
    trials = 0 if search is None else sum(min(search.trials or size, size) for size in sizes)
    runs = sum(plan.planned_runs for plan in plans)
    seconds, time = plans[0].budget.seconds_per_cell, "unknown"
    if seconds is not None:
        cores = "all cores" if plans[0].experiment.kind == "seconds" else "one core"
        time = f"{len(plans) * seconds / 3600:.1f} h on {cores}"
    return [budget, str(len(plans)), str(trials), str(runs), time]
