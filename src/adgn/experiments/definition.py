"""What an experiment is: a table of the paper as data, its cells being rows times columns."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import Field

from adgn._util.suggestions import unknown_name
from adgn.experiments import records
from adgn.experiments.records import Published
from adgn.nn import model_spec
from adgn.tasks.published import published_value
from adgn.training import TrainConfig

__all__ = ["Column", "Experiment", "Metric", "Row"]

Settings = Mapping[str, Any]


class Metric(records.Metric):
    """The number in a cell, and the split that it is measured on."""

    split: Literal["train", "val", "test"] = "test"


class Row(records.Row):
    """A method of a table.

    Attributes:
        settings: What distinguishes the row from others of the same model, nested.
        quotes: Published values by column that `adgn.tasks.published` does not have.
    """

    model: str
    settings: Settings = Field(default_factory=dict)
    quotes: dict[str, Published] | None = None


class Column(records.Column):
    """A task of a table, with nested settings."""

    task: str
    settings: Settings = Field(default_factory=dict)


Lookup = Callable[[Row, Column, TrainConfig], Published | None]


def published_score(row: Row, column: Column, config: TrainConfig) -> Published | None:
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
    return Published(mean=value.mean, std=value.std, row=value.row, column=value.column)


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
        settings_from: The experiment whose selected settings are taken over.
        quoted: Published rows of methods that are not run: title, and values by column.
    """

    name: str
    title: str
    summary: str
    kind: Literal["scores", "seconds", "depth"]
    metric: Metric
    rows: tuple[Row, ...]
    columns: tuple[Column, ...]
    notes: tuple[str, ...] = ()
    published: Lookup = published_score
    settings_of: Callable[[Row, Column], Settings] = lambda row, column: {}
    settings_from: str | None = None
    quoted: Mapping[str, Mapping[str, Published]] = field(default_factory=dict)

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
