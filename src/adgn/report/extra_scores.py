"""The scores of a table besides the one that it is about, as its tasks declare them."""

from collections.abc import Sequence

from adgn.experiments.records import Cell, Moments
from adgn.report.results import TableResults, over_runs
from adgn.training.tasks import TASKS, ExtraScore


def extra_scores(table: TableResults) -> Sequence[ExtraScore]:
    """The extra scores of the tasks in the columns; none of tasks that are not known here."""
    tasks = {column.task for column in table.experiment.columns if column.task is not None}
    found = [TASKS[name].extra_scores for name in sorted(tasks) if name in TASKS]
    return list({score.name: score for scores in found for score in scores}.values())


def measured_extra(cell: Cell, score: ExtraScore) -> Moments | None:
    """What a cell measured."""
    splits = {"train": cell.train, "val": cell.validation, "test": cell.test}
    return over_runs(cell, splits[score.split].get(score.name))


def published_extra(cell: Cell, score: ExtraScore) -> Moments | None:
    """What was published next to the value that a cell is compared with."""
    place = cell.published
    if place is None or place.row is None or place.column is None:
        return None
    return quoted_extra(place.row, place.column, score)


def quoted_extra(row: str, column: str, score: ExtraScore) -> Moments | None:
    """What was published in a row and a column, also of a method that was not run."""
    value = score.published(row, column)
    return None if value is None else Moments(mean=value)
