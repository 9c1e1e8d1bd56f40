"""What an experiment is: a table of the paper as data, its cells being rows times columns."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from adgn._util.suggestions import unknown_name
from adgn.nn import model_spec
from adgn.tasks.published import published_value
from adgn.training import TrainConfig

__all__ = ["Column", "Experiment", "Kind", "Metric", "PublishedCell", "Row"]

Kind = Literal["scores", "seconds", "depth"]
Settings = Mapping[str, Any]


@dataclass(frozen=True)
class Metric:
    """The number in a cell.

    Attributes:
        name: Of the score in a run's result.
        title: In words.
        higher_is_better: Which way is better.
        unit: `"%"`: values are shares, shown times 100.
        split: The split that it is measured on.
    """

    name: str
    title: str
    higher_is_better: bool
    unit: str = ""
    split: Literal["train", "val", "test"] = "test"


@dataclass(frozen=True)
class PublishedCell:
    """A number of the paper in the unit of the experiment's metric, and where it stands there."""

    mean: float
    std: float | None
    row: str
    column: str


@dataclass(frozen=True)
class Row:
    """A method of a table.

    Attributes:
        key: Its name in files and on the command line.
        title: As the table prints it.
        model: The model.
        settings: What distinguishes the row from others of the same model, nested.
        quotes: Published values by column that `adgn.tasks.published` does not have.
    """

    key: str
    title: str
    model: str
    settings: Settings = field(default_factory=dict)
    quotes: Mapping[str, PublishedCell] | None = None


@dataclass(frozen=True)
class Column:
    """A task of a table, with a number of layers in figures over the depth.

    Attributes:
        key: Its name in files.
        title: As the table prints it.
        task: The task.
        settings: Nested settings of the task.
        note: What a reader should know about it.
        layers: The number of layers, where it is fixed.
        group: The data set, where a column is a number of layers of it.
    """

    key: str
    title: str
    task: str
    settings: Settings = field(default_factory=dict)
    note: str | None = None
    layers: int | None = None
    group: str | None = None


Lookup = Callable[[Row, Column, TrainConfig], PublishedCell | None]


def published_score(row: Row, column: Column, config: TrainConfig) -> PublishedCell | None:
    """What the paper's tables say about a cell."""
    if row.quotes is not None:
        return row.quotes.get(column.key)
    value = published_value(
        column.task,
        model_spec(row.model).title,
        config.model.options,
        radius=getattr(config.task, "radius", None),
    )
    if value is None:
        return None
    return PublishedCell(value.mean, value.std, value.row, value.column)


@dataclass(frozen=True)
class Experiment:
    """A table or figure of the paper.

    Attributes:
        name: Its name on the command line.
        title: Its title.
        summary: What is measured, in a sentence or two.
        kind: `"scores"`, `"seconds"` (time per epoch) or `"depth"` (scores over the depth).
        metric: The number in a cell.
        rows: The methods.
        columns: The tasks.
        notes: What a reader must know before trusting a number.
        published: Finds the paper's number of a cell.
        settings_of: Settings that depend on both the row and the column, nested.
        borrows: The experiment whose selected settings are taken over.
        quoted: Published rows of methods that are not run: title, and values by column.
    """

    name: str
    title: str
    summary: str
    kind: Kind
    metric: Metric
    rows: tuple[Row, ...]
    columns: tuple[Column, ...]
    notes: tuple[str, ...] = ()
    published: Lookup = published_score
    settings_of: Callable[[Row, Column], Settings] = lambda row, column: {}
    borrows: str | None = None
    quoted: Mapping[str, Mapping[str, PublishedCell]] = field(default_factory=dict)

    def row(self, key: str) -> Row:
        """The row of this key."""
        rows = {row.key: row for row in self.rows}
        if key not in rows:
            raise unknown_name("row", key, rows)
        return rows[key]

    def column(self, key: str) -> Column:
        """The column of this key."""
        columns = {column.key: column for column in self.columns}
        if key not in columns:
            raise unknown_name("column", key, columns)
        return columns[key]
