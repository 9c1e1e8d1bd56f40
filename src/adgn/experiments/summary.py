"""Tables of results and of plans, as text."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from adgn.experiments.api import plan_cells
from adgn.experiments.budgets import BUDGETS
from adgn.experiments.driver import Job
from adgn.experiments.plan import CellPlan
from adgn.experiments.records import Moments
from adgn.selection import grid_size

__all__ = ["Listing", "listing", "shown_score", "summary_tables"]

Table = tuple[str, list[str], list[list[str]]]


@dataclass(frozen=True)
class Listing:
    """What `adgn reproduce --list` says about an experiment.

    Attributes:
        title: Its name and title.
        summary: What it is.
        about: Pairs of a label and a text: rows, columns, and what each budget does.
        budgets: For each budget its name, cells, configurations, runs and time.
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
) -> Iterator[Listing]:
    """Per experiment a title, what it is, its outline and what budgets do, and their size."""
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
        budgets = [_budget_line(budget, plans) for budget, plans in mine.items() if plans]
        yield Listing(f"{name}: {experiment.title}", experiment.summary, about, budgets)


def _budget_line(budget: str, plans: Sequence[CellPlan]) -> list[str]:
    trials = sum(_trials(plan) for plan in plans)
    runs = sum(plan.planned_runs for plan in plans)
    seconds = plans[0].budget.seconds_per_cell
    time = "unknown" if seconds is None else f"{len(plans) * seconds / 3600:.1f} h"
    if seconds is not None:
        time += " on all cores" if plans[0].experiment.kind == "seconds" else " on one core"
    return [budget, str(len(plans)), str(trials), str(runs), time]


def _trials(plan: CellPlan) -> int:
    search, space = plan.budget.search, plan.space
    if search is None or space is None:
        return 0
    return min(search.trials or grid_size(space), grid_size(space))
