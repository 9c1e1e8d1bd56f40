"""Settings that one experiment takes over from another: the figures over the depth."""

from typing import Any

from adgn.experiments.cells import Cell
from adgn.experiments.plan import CellPlan, plan_cell
from adgn.experiments.results import ResultsDirectory

__all__ = ["borrowed_settings", "lender_of", "outdated_loan"]


def lender_of(plan: CellPlan) -> CellPlan | None:
    """The cell whose selected settings a cell takes over; `None` where it has its own.

    Example:
        >>> lender = lender_of(plan_cell("depth", "gcn", "photo-5", "laptop"))
        >>> lender.experiment.name, lender.name
        ('benchmarks', 'gcn--photo')
    """
    lender = plan.experiment.borrows
    if lender is None or plan.budget.search is not None:
        return None
    column = plan.column.group or plan.column.key
    return plan_cell(lender, plan.row.key, column, plan.budget_name)


def borrowed_settings(plan: CellPlan, results: ResultsDirectory) -> tuple[dict[str, Any], str]:
    """The settings of a cell without a search, and in words where they come from."""
    lender = lender_of(plan)
    if lender is None:
        return {}, "no search: the settings of the budget"
    cell = results.cell(lender)
    where = lender.experiment.name
    if cell is None or not cell["settings"]:
        return {}, f"no search, and nothing selected in {where}: the protocol's defaults"
    settings = {key: value for key, value in cell["settings"].items() if key not in plan.fixed}
    return settings, f"no search: as selected in {where} ({plan.row.key}, {lender.column.key})"


def outdated_loan(
    plan: CellPlan, cell: Cell, results: ResultsDirectory, *, lender_searches: bool
) -> bool:
    """Whether a cell was measured with other settings than it would borrow now.

    Args:
        plan: The plan of the cell.
        cell: What was measured.
        results: Where the lender's cell is.
        lender_searches: Whether the lender is about to search in the same call.
    """
    if lender_of(plan) is None or cell["search"] is None:
        return False
    settings, _ = borrowed_settings(plan, results)
    return cell["settings"] != settings or lender_searches
