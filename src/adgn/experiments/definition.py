"""What an experiment is: a table of the paper as data, its cells being rows times columns."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, TypeVar

from pydantic import Field

from adgn._util.suggestions import unknown_name
from adgn.experiments import records
from adgn.experiments.records import Published
from adgn.nn import model_spec
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
    value = published_value(column.task, title, config.model.options, radius=radius)
    return None if value is None else Published(**asdict(value))


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
