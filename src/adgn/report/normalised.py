"""The trees' second score: accuracy in percent per trained unit, the paper's first one."""

from adgn.data.published import published_tables
from adgn.report.numbers import NumberFormat
from adgn.report.results import Cell, Column, Moments, TableResults, over_runs

NORMALISED = NumberFormat(2)  # as many digits as the paper has
_TASK, _SCORE = "tree-neighbors-match", "normalised_accuracy"


def has_normalised(table: TableResults) -> bool:
    """Whether the cells of a table have this score."""
    return any(column.task == _TASK for column in table.experiment.columns)


def normalised_score(cell: Cell) -> Moments | None:
    """What a cell measured."""
    return over_runs(cell, cell.train.get(_SCORE))


def published_normalised(cell: Cell) -> Moments | None:
    """What the paper reports next to the accuracy that a cell is compared with."""
    place = cell.published
    if place is None or place.row is None or place.column is None:
        return None
    return _published(place.row, place.column)


def quoted_normalised(title: str, column: Column) -> Moments | None:
    """What the paper reports for a method that was not run.

    Example:
        >>> quoted_normalised("GGNN", Column(key="radius-5", title="radius 5")).mean
        0.38
    """
    return _published(title, column.title)


def _published(row: str, column: str) -> Moments | None:
    table = published_tables()["tree_neighbors_match"]
    columns = [f"radius {radius}" for radius in table["radius"]]
    if row not in table["rows_normalised"] or column not in columns:
        return None
    value = table["rows_normalised"][row][columns.index(column)]
    return None if value is None else Moments(mean=value)
