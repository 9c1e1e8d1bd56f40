"""Tables of results and of plans, as text."""

from collections.abc import Iterator, Mapping, Sequence

from adgn.experiments.api import plan_cells
from adgn.experiments.driver import Job
from adgn.experiments.plan import CellPlan

__all__ = ["listing", "shown_score", "summary_tables"]

Table = tuple[str, list[str], list[list[str]]]


def shown_score(plan: CellPlan, score: Mapping[str, float | None] | None) -> str:
    """A score with its spread, in the unit that people read.

    Example:
        >>> from adgn.experiments.plan import plan_cell
        >>> shown_score(plan_cell("benchmarks", "gcn", "photo", "smoke"), {"mean": 0.5, "std": 0.1})
        '50.00 ± 10.00'
    """
    if score is None:
        return "–"
    unit = plan.experiment.metric.unit
    factor, digits = (100, 2) if unit == "%" else (1, 3 if unit == "s" else 4)
    mean, std = score["mean"], score["std"]
    text = "−∞" if mean is None else f"{factor * mean:.{digits}f}"
    return text if std is None else f"{text} ± {factor * std:.{digits}f}"


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
    text = shown_score(job.plan, cell["score"])
    if cell["status"] == "failed":
        return "failed" if cell["score"] is None else f"{text} (then failed)"
    if cell["status"] == "partial":
        return f"{text} ({len(cell['runs'])} of {cell['planned_runs']})"
    return text


def listing(
    experiments: Sequence[str], budget: str, models: Sequence[str] | None
) -> Iterator[tuple[str, str, list[str], list[list[str]]]]:
    """Per experiment a title, what the budget does, column names, and a table of its plan."""
    plans = plan_cells(experiments, budget, models)
    for name in dict.fromkeys(plan.experiment.name for plan in plans):
        mine = [plan for plan in plans if plan.experiment.name == name]
        first = mine[0]
        columns = dict.fromkeys(plan.column.key for plan in mine)
        rows = list(dict.fromkeys(plan.row.key for plan in mine))
        runs = sum(plan.planned_runs for plan in mine)
        seconds = first.budget.seconds_per_cell
        hours = "not measured" if seconds is None else f"{len(mine) * seconds / 3600:.1f} h"
        yield (
            f"{name}: {first.experiment.title}",
            f"{first.experiment.summary} {first.budget.text}",
            ["", ""],
            [
                ["rows", ", ".join(rows)],
                ["columns", ", ".join(columns)],
                ["cells", str(len(mine))],
                ["final runs", str(runs)],
                ["time of one core", hours],
            ],
        )
