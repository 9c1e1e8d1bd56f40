"""A results directory, as `adgn reproduce` leaves it: read, checked, and kept as plain records."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError, model_validator

from adgn._util.jsontext import parse_json
from adgn._util.names import check_name

__all__ = [
    "FORMAT",
    "Cell",
    "Column",
    "Experiment",
    "Failure",
    "Group",
    "Metric",
    "Moments",
    "Published",
    "ReportError",
    "Results",
    "Row",
    "Run",
    "TableResults",
    "over_runs",
    "read_results",
]

FORMAT = 1

Name = Annotated[str, AfterValidator(check_name)]  # of a folder and of files


class ReportError(ValueError):
    """A results directory cannot be read or a report cannot be written."""


class _Record(BaseModel):
    # A later writer may add fields; those that are here must have the right type.
    model_config = ConfigDict(frozen=True, extra="ignore")

    @model_validator(mode="before")
    @classmethod
    def _null_is_unknown(cls, content: Any) -> Any:
        """A null stands for what is not known: the same as a field that is not there."""
        if not isinstance(content, dict):
            return content
        required = {name for name, field in cls.model_fields.items() if field.is_required()}
        return {k: v for k, v in content.items() if v is not None or k in required}


class Moments(_Record):
    """Mean and standard deviation; `None` where unknown or not finite."""

    mean: float | None
    std: float | None = None

    @property
    def finite(self) -> bool:
        """Whether there is a mean to show."""
        return self.mean is not None and isfinite(self.mean)


class Published(Moments):
    """A number of the paper, with the row and column that the paper has it in."""

    row: str | None = None
    column: str | None = None


class Failure(_Record):
    """What went wrong with a cell."""

    message: str
    traceback: str | None = None
    run: str | None = None


class Run(_Record):
    """One training run of a cell."""

    seed: int | None = None
    split: int | None = None
    scores: dict[str, dict[str, float | None]] = {}
    epochs: int | None = None
    best_epoch: int | None = None
    seconds: float | None = None


class Search(_Record):
    """How a cell's settings were found."""

    space: dict[str, Any] = {}
    trials: int | None = None
    failed: int | None = None
    how: str = ""
    seconds: float | None = None


class Curve(_Record):
    """The scores of a cell's first run by epoch; `None` where one is not finite."""

    metric: str
    epochs: tuple[int, ...]
    train: tuple[float | None, ...]
    val: tuple[float | None, ...]


class Cell(_Record):
    """One row × column of an experiment: what was run and what came out."""

    format: int
    experiment: str
    row: str
    column: str
    budget: str
    status: Literal["done", "partial", "failed", "waiting"]
    error: Failure | None = None
    fingerprint: str | None = None
    planned_runs: int = 0
    runs: tuple[Run, ...] = ()
    train: dict[str, Moments] = {}
    validation: dict[str, Moments] = {}
    test: dict[str, Moments] = {}
    score: Moments | None = None
    published: Published | None = None
    search: Search | None = None
    settings: dict[str, Any] = {}
    settings_by_split: dict[str, Any] = {}
    config: str | None = None
    curve: Curve | None = None
    seconds_per_epoch: Moments | None = None
    parameters: int | None = None
    notes: tuple[str, ...] = ()
    date: str | None = None
    environment: dict[str, Any] = {}


class Row(_Record):
    """A method of a table."""

    key: str
    title: str
    model: str | None = None


class Column(_Record):
    """A task of a table; in a depth experiment a data set (`group`) at a number of layers."""

    key: str
    title: str
    task: str | None = None
    note: str | None = None
    layers: int | None = None
    group: str | None = None


class Budget(_Record):
    """How much was run."""

    name: str
    text: str = ""


class Metric(_Record):
    """The score of a table. With the unit `"%"` values are shares, shown times 100."""

    name: str
    title: str
    higher_is_better: bool
    unit: Literal["", "%", "s"] = ""


class Quoted(_Record):
    """A published row of a method that the experiment does not run."""

    title: str
    values: dict[str, Moments]


class Planned(_Record):
    """What was known of a cell before anything ran."""

    row: str
    column: str
    planned_runs: int = 0
    published: Published | None = None


class Experiment(_Record):
    """What a table is: its rows, columns, score and notes."""

    format: int
    name: Name
    title: str
    summary: str = ""
    kind: Literal["scores", "seconds", "depth"]
    budget: Budget
    metric: Metric
    rows: tuple[Row, ...]
    columns: tuple[Column, ...]
    notes: tuple[str, ...] = ()
    cells: tuple[Planned, ...] = ()
    constant: dict[str, Moments] = {}
    quoted: tuple[Quoted, ...] = ()


class _Head(_Record):
    format: int
    adgn: str | None = None
    budget: str
    experiments: tuple[Name, ...]


@dataclass(frozen=True)
class Group:
    """Columns that are shown together: of one data set in a depth experiment, else all.

    Attributes:
        title: The data set; empty where the group is the whole table.
        key: Names the group among those of all experiments.
        columns: Its columns.
    """

    title: str
    key: str
    columns: tuple[Column, ...]


def over_runs(cell: Cell, value: Moments | None) -> Moments | None:
    """A score of a cell, without a deviation where there is a single run."""
    if value is None or len(cell.runs) != 1:
        return value
    return Moments(mean=value.mean)


@dataclass(frozen=True)
class TableResults:
    """An experiment with its cells; a cell that has not begun is there as `"waiting"`."""

    experiment: Experiment
    cells: Mapping[tuple[str, str], Cell]

    @property
    def statuses(self) -> Counter[str]:
        """How many cells are done, partial, failed and waiting."""
        return Counter(cell.status for cell in self.cells.values())

    @property
    def groups(self) -> list[Group]:
        """The columns that are shown together: all of them, or those of each data set."""
        experiment = self.experiment
        if experiment.kind != "depth":
            return [Group("", experiment.name, experiment.columns)]
        return [
            Group(
                title,
                f"{experiment.name}--{title}" if title else experiment.name,
                tuple(column for column in experiment.columns if (column.group or "") == title),
            )
            for title in dict.fromkeys(column.group or "" for column in experiment.columns)
        ]

    def score(self, cell: Cell) -> Moments | None:
        """The number that the table shows for a cell: its score, or its time per epoch.

        A time deviates from epoch to epoch; another score from run to run, so that of a single run
        there is no deviation to tell, whatever the file says.
        """
        if self.experiment.kind == "seconds":
            return cell.seconds_per_epoch or cell.score
        return over_runs(cell, cell.score)

    def constant(self, column: Column) -> Moments | None:
        """The constant predictor's score in a column; of its data set in a depth experiment."""
        depth = column.layers is not None and column.group is not None
        return self.experiment.constant.get(column.group or "" if depth else column.key)


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
    path = folder / "reproduction.json"
    if not path.exists():
        raise ReportError(
            f"DIR={folder} is not a results directory: it has no reproduction.json. Give the "
            "folder that `adgn reproduce --out DIR` wrote"
            + (f", such as {inside}" if (inside := _results_inside(folder)) else "")
        )
    head = _read(path, _Head)
    tables = tuple(_read_table(folder / name, name) for name in head.experiments)
    return Results(folder, head.adgn, head.budget, tables)


def _results_inside(folder: Path) -> Path | None:
    """A results directory below, or the one that the folder is a part of."""
    below = sorted(path.parent for path in folder.glob("*/reproduction.json"))
    if below:
        return below[0]
    return folder.parent if (folder.parent / "reproduction.json").exists() else None


def _read_table(folder: Path, name: str) -> TableResults:
    path = folder / "experiment.json"
    if not path.exists():
        raise ReportError(
            f"{path} is missing; `adgn reproduce {name} --out {folder.parent}` writes it again "
            "and keeps every cell that was measured"
        )
    experiment = _read(path, Experiment)
    if experiment.name != name:
        raise ReportError(
            f"{path} is about the experiment {experiment.name!r}, but its folder is {name!r}; put "
            "the file back where it was"
        )
    rows = [row.key for row in experiment.rows]
    columns = [column.key for column in experiment.columns]
    found: dict[tuple[str, str], Cell] = {}
    for cell_path in sorted((folder / "cells").glob("*.json")):
        cell = _read(cell_path, Cell)
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
        or _not_begun(experiment, planned.get((row, column)) or Planned(row=row, column=column))
        for row in rows
        for column in columns
    }
    return TableResults(experiment, cells)


def _not_begun(experiment: Experiment, planned: Planned) -> Cell:
    return Cell(
        format=FORMAT,
        experiment=experiment.name,
        row=planned.row,
        column=planned.column,
        budget=experiment.budget.name,
        status="waiting",
        planned_runs=planned.planned_runs,
        published=planned.published,
    )


_R = TypeVar("_R", _Head, Experiment, Cell)


def _read(path: Path, kind: type[_R]) -> _R:
    remedy = "put the file back, or move it away and run `adgn reproduce` on the directory again"
    try:
        content = parse_json(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ReportError(f"{path} is damaged ({error}); {remedy}") from error
    except OSError as error:
        raise ReportError(f"cannot read {path}: {error.strerror or error}") from error
    if not isinstance(content, dict) or "format" not in content:
        raise ReportError(f"{path} is not a file of results: it has no 'format'; {remedy}")
    if content["format"] != FORMAT:
        raise ReportError(
            f"{path} has format {content['format']!r}; this version of adgn reads format {FORMAT}. "
            f"Use the version that wrote it ({content.get('adgn') or 'see reproduction.json'}) or "
            "run `adgn reproduce` again into another folder"
        )
    try:
        return kind.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        why = first["msg"].removeprefix("Value error, ")
        raise ReportError(f"{path} is damaged: {place}: {why}; {remedy}") from error
