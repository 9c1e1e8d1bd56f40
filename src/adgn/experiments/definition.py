"""What an experiment is: a table of the paper as data, its cells being rows times columns."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, TypeVar

from pydantic import Field

from adgn._util.suggestions import unknown_name
from adgn.experiments import records
from adgn.experiments.records import Published
from adgn.nn import model_spec
from adgn.tasks.protocols import conditions_of, differences, direction_sentence, published_protocol
from adgn.tasks.published import published_value
from adgn.training import TrainConfig

Settings = Mapping[str, Any]


class Metric(records.Metric):
    """The number in a cell, and the split that it is measured on."""

    higher_is_better: bool = False
    split: Literal["train", "val", "test"] = "test"


class Row(records.Row):
    """A method of a table, with nested settings that tell it from others of the same model."""

    model: str
    settings: Settings = Field(default_factory=dict)
    quotes: dict[str, Published] | None = None  # by column; not in `adgn.tasks.published`
    published: str | None = None  # the row of the paper's table; by default that of the model
    # What is searched besides, or in place of what is fixed.
    space: dict[str, list[Any]] = Field(default_factory=dict)


class Column(records.Column):
    """A task of a table, with nested settings."""

    task: str
    settings: Settings = Field(default_factory=dict)


Lookup = Callable[[Row, Column, TrainConfig], Published | None]


def published_score(row: Row, column: Column, config: TrainConfig) -> Published | None:
    """What the paper's tables say about a cell."""
    if row.quotes is not None:
        return row.quotes.get(column.key)
    title, radius = model_spec(row.model).title, getattr(config.task, "radius", None)
    options = config.model.options
    value = published_value(column.task, row.published or title, options, radius=radius)
    if value is None:
        return None
    protocol = published_protocol(value.table, value.row)
    found = differences(protocol.conditions, conditions_of(config), column.task)
    return Published(**asdict(value), source=protocol.source, differences=found)


def row_notes(row: Row, table: str | None, published: str | None, config: TrainConfig) -> list[str]:
    """What a reader must know to compare a row with the published one, a sentence each.

    Args:
        row: The row.
        table: The paper's table, in `adgn.tasks.published`; `None`: it has none.
        published: What that table calls the row; `None`: it has no such row.
        config: A configuration of the row.
    """
    if table is None:
        return list(row.notes)
    ours = conditions_of(config)
    if published is None:
        return [*filter(None, [direction_sentence(None, ours)]), *row.notes]
    protocol = published_protocol(table, published)
    first = direction_sentence(protocol.conditions, ours)
    found = differences(protocol.conditions, ours)
    return [*filter(None, [first]), *found, *protocol.remarks, *row.notes]


@dataclass(frozen=True)
class Experiment:
    """A table or figure of the paper."""

    name: str  # on the command line
    title: str
    summary: str  # what is measured, in a sentence or two
    kind: Literal["scores", "seconds", "depth"]  # seconds per epoch; scores over the depth
    metric: Metric
    rows: tuple[Row, ...]
    columns: tuple[Column, ...]
    notes: tuple[str, ...] = ()  # what a reader must know before trusting a number
    published: Lookup = published_score
    settings_of: Callable[[Row, Column], Settings] = lambda row, column: {}  # of both, nested
    settings_from: str | None = None  # the experiment whose selected settings are taken over
    table: str | None = None  # of `adgn.tasks.published`, whose rows' conditions are noted
    # Published rows of methods that are not run: title, and values by column.
    quoted: Mapping[str, Mapping[str, Published]] = field(default_factory=dict)
    quoted_groups: Mapping[str, str] = field(default_factory=dict)  # of quoted rows: what they are

    def row(self, key: str) -> Row:
        """The row of this key."""
        return _by_key("row", self.rows, key)

    def column(self, key: str) -> Column:
        """The column of this key."""
        return _by_key("column", self.columns, key)


_Part = TypeVar("_Part", Row, Column)


def _by_key(what: str, parts: tuple[_Part, ...], key: str) -> _Part:
    found = {part.key: part for part in parts}
    if key not in found:
        raise unknown_name(what, key, found)
    return found[key]
