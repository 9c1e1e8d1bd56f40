"""A results directory, as `adgn reproduce` leaves it: read, checked, and kept as plain records."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from adgn.experiments.plan import is_outdated
from adgn.experiments.records import (
    FORMAT,
    Cell,
    Column,
    Head,
    Moments,
    Outline,
    Planned,
    Row,
    read_record,
)


class ReportError(ValueError):
    """A results directory cannot be read or a report cannot be written."""


@dataclass(frozen=True)
class Group:
    """Columns that are shown together: of one data set in a depth experiment, else of a group."""

    title: str  # the data set; empty where the group is the whole table
    key: str  # names the group among those of all experiments
    columns: tuple[Column, ...]


def over_runs(cell: Cell, value: Moments | None) -> Moments | None:
    """A score of a cell, without a deviation where there is a single run."""
    if value is None or len(cell.runs) != 1:
        return value
    return Moments(mean=value.mean)


@dataclass(frozen=True)
class TableResults:
    """An experiment with its cells; a cell that has not begun is there as `"waiting"`.

    `outdated` are the rows and columns of cells that hold something and whose definition has
    changed since they were measured, or the settings that they took over from another table.
    """

    experiment: Outline
    cells: Mapping[tuple[str, str], Cell]
    outdated: frozenset[tuple[str, str]] = frozenset()

    @property
    def statuses(self) -> Counter[str]:
        """How many cells are done, partial, failed and waiting."""
        return Counter(cell.status for cell in self.cells.values())

    @property
    def groups(self) -> list[Group]:
        """The columns that are shown together: those of each data set, or of each group."""
        name, columns = self.experiment.name, self.experiment.columns
        found: dict[str, list[Column]] = {}
        for column in columns:
            found.setdefault(column.group or "", []).append(column)
        return [
            Group(title, f"{name}--{title.replace(' ', '-')}" if title else name, tuple(mine))
            for title, mine in found.items()
        ]

    def score(self, cell: Cell) -> Moments | None:
        """The number that the table shows for a cell: its score, or its time per epoch.

        A time deviates from epoch to epoch; another score from run to run, so that of a single run
        there is no deviation to tell, whatever the file says.
        """
        if self.experiment.kind == "seconds":
            return cell.seconds_per_epoch or cell.score
        return over_runs(cell, cell.score)

    def compared(self, row: Row, column: Column) -> float | None:
        """The mean of a cell; `None` where it failed or is outdated, which counts nowhere."""
        cell = self.cells[row.key, column.key]
        if cell.status == "failed" or self.is_outdated(cell):
            return None
        score = self.score(cell)
        return None if score is None else score.mean

    def is_outdated(self, cell: Cell) -> bool:
        """Whether a cell was measured with another definition or settings than it has now."""
        return (cell.row, cell.column) in self.outdated

    def complete(self) -> "TableResults":
        """The table as if nothing had begun but the cells that are done."""
        cells = {
            key: cell
            if cell.status == "done"
            else not_begun(self.experiment, *key).model_copy(
                update={"planned_runs": cell.planned_runs, "published": cell.published}
            )
            for key, cell in self.cells.items()
        }
        shown = frozenset(place for place in self.outdated if cells[place].status == "done")
        return replace(self, cells=cells, outdated=shown)

    def constant(self, column: Column) -> Moments | None:
        """The constant predictor's score in a column; of its data set in a depth experiment."""
        return self.experiment.constant.get(column.dataset)


@dataclass(frozen=True)
class Results:
    """All experiments of a results directory."""

    folder: Path
    version: str | None
    budget: str
    tables: tuple[TableResults, ...]

    @property
    def statuses(self) -> Counter[str]:
        """How many cells are done, partial, failed and waiting."""
        return sum((table.statuses for table in self.tables), Counter[str]())

    @property
    def dates(self) -> tuple[str, ...]:
        """The days on which cells were measured, in order."""
        cells = (cell for table in self.tables for cell in table.cells.values())
        return tuple(sorted({cell.date for cell in cells if cell.date}))


def read_results(folder: Path) -> Results:
    """Reads and checks a results directory.

    Raises:
        ReportError: The folder or a file in it is missing, damaged or of another format; the
            message names the file and what to do.

    Example:
        >>> results = read_results(Path("results/reproduction"))  # those of this project
        >>> results.budget, results.tables[0].experiment.name
        ('laptop', 'property')
    """
    if not folder.is_dir():
        what = "is a file, not a folder" if folder.exists() else "does not exist"
        raise ReportError(
            f"DIR={folder} {what}; give the folder that `adgn reproduce --out DIR` wrote"
        )
    place = find_reproduction(folder)
    if place != folder:
        raise ReportError(
            f"DIR={folder} is not a results directory: it has no reproduction.json. Give the "
            "folder that `adgn reproduce --out DIR` wrote"
            + (f", such as {place}" if place else ", or for a report one with finished runs")
        )
    head = read_record(folder / "reproduction.json", Head, ReportError)
    tables = [_read_table(folder / name, name) for name in head.experiments]
    cells = {
        (table.experiment.name, *place): cell
        for table in tables
        for place, cell in table.cells.items()
    }
    marked = (replace(table, outdated=_outdated(table, cells)) for table in tables)
    return Results(folder, head.adgn, head.budget, tuple(marked))


def _outdated(
    table: TableResults, cells: Mapping[tuple[str, str, str], Cell]
) -> frozenset[tuple[str, str]]:
    return frozenset(
        place
        for place, cell in table.cells.items()
        if (cell.runs or cell.search) and is_outdated(cell, cells)
    )


def find_reproduction(folder: Path) -> Path | None:
    """What `adgn reproduce` wrote: the folder itself, one below, or the one above."""
    below = sorted(path.parent for path in folder.glob("*/reproduction.json"))
    places = [folder, *below, folder.parent]
    return next((place for place in places if (place / "reproduction.json").exists()), None)


def _read_table(folder: Path, name: str) -> TableResults:
    path = folder / "experiment.json"
    if not path.exists():
        raise ReportError(
            f"{path} is missing; `adgn reproduce {name} --out {folder.parent}` writes it again "
            "and keeps every cell that was measured"
        )
    experiment = read_record(path, Outline, ReportError)
    if experiment.name != name:
        raise ReportError(
            f"{path} is about the experiment {experiment.name!r}, but its folder is {name!r}; put "
            "the file back where it was"
        )
    rows = [row.key for row in experiment.rows]
    columns = [column.key for column in experiment.columns]
    found: dict[tuple[str, str], Cell] = {}
    for cell_path in sorted((folder / "cells").glob("*.json")):
        cell = read_record(cell_path, Cell, ReportError)
        for what, key, keys in (("row", cell.row, rows), ("column", cell.column, columns)):
            if key not in keys:
                raise ReportError(
                    f"{cell_path} belongs to {what}={key!r}, which {path} does not have (it has "
                    f"{', '.join(keys)}); move the file out of the folder, or run "
                    f"`adgn reproduce {name} --out {folder.parent}` again"
                )
        if (cell.row, cell.column) in found:
            raise ReportError(
                f"{cell_path} is a second file for row={cell.row!r}, column={cell.column!r}; "
                "move one of the two out of the folder"
            )
        found[cell.row, cell.column] = cell
    planned = {(cell.row, cell.column): cell for cell in experiment.cells}
    cells = {
        (row, column): found.get((row, column))
        or not_begun(experiment, row, column, planned.get((row, column)))
        for row in rows
        for column in columns
    }
    return TableResults(experiment, cells)


def not_begun(experiment: Outline, row: str, column: str, planned: Planned | None = None) -> Cell:
    """The cell of a place of which nothing but the plan is known."""
    return Cell(
        format=FORMAT,
        experiment=experiment.name,
        row=row,
        column=column,
        budget=experiment.budget.name,
        status="waiting",
        planned_runs=planned.planned_runs if planned else 0,
        published=planned.published if planned else None,
    )
