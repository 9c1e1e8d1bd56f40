"""Settings that one experiment takes over from another: the figures over the depth."""

from typing import Any

from adgn.experiments.plan import CellPlan, plan_cell
from adgn.experiments.records import Cell
from adgn.experiments.results import ResultsDirectory

__all__ = ["settings_outdated", "settings_source", "taken_over_settings"]


def settings_source(plan: CellPlan) -> CellPlan | None:
    """The cell whose selected settings a cell takes over; `None` where it has its own.

    Example:
        >>> source = settings_source(plan_cell("depth", "gcn", "photo-5", "laptop"))
        >>> source.experiment.name, source.name
        ('benchmarks', 'gcn--photo')
    """
    source = plan.experiment.settings_from
    if source is None or plan.budget.search is not None:
        return None
    column = plan.column.group or plan.column.key
    return plan_cell(source, plan.row.key, column, plan.budget_name)


def taken_over_settings(plan: CellPlan, results: ResultsDirectory) -> tuple[dict[str, Any], str]:
    """The settings of a cell without a search, and in words where they come from."""
    source = settings_source(plan)
    if source is None:
        return {}, "no search: the settings of the budget"
    cell = results.cell(source)
    where = source.experiment.name
    if cell is None or not cell.settings:
        return {}, f"no search, and nothing selected in {where}: the protocol's defaults"
    settings = {key: value for key, value in cell.settings.items() if key not in plan.fixed}
    return settings, f"no search: as selected in {where} ({plan.row.key}, {source.column.key})"


def settings_outdated(
    plan: CellPlan, cell: Cell, results: ResultsDirectory, *, source_searches: bool
) -> bool:
    """Whether a cell was measured with other settings than it would take over now.

    `source_searches` says whether the source is about to search in the same call.
    """
    if settings_source(plan) is None or cell.search is None:
        return False
    settings, _ = taken_over_settings(plan, results)
    return cell.settings != settings or source_searches
