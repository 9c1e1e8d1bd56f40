"""The trees' second score: accuracy in percent per trained unit, the paper's first one."""

from adgn.data.published import published_tables
from adgn.report.numbers import NumberFormat
from adgn.report.results import Cell, Moments, Published, TableResults, over_runs

NORMALISED = NumberFormat(2)  # as many digits as the paper has
_TASK, _SCORE = "tree-neighbors-match", "normalised_accuracy"


def has_normalised(table: TableResults) -> bool:
    """Whether the cells of a table have this score."""
    return any(column.task == _TASK for column in table.experiment.columns)


def normalised_score(cell: Cell) -> Moments | None:
    """What a cell measured."""
    return over_runs(cell, cell.train.get(_SCORE))


def published_normalised(place: Published | None) -> Moments | None:
    """What the paper reports next to an accuracy of its table.

    Example:
        >>> published_normalised(Published(mean=None, row="GGNN", column="radius 5")).mean
        0.38
    """
    table = published_tables()["tree_neighbors_match"]
    rows, columns = table["rows_normalised"], [f"radius {r}" for r in table["radius"]]
    if place is None or place.row not in rows or place.column not in columns:
        return None
    value = rows[place.row][columns.index(place.column)]
    return None if value is None else Moments(mean=value)
