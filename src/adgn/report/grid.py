"""A table before it is Markdown, LaTeX or HTML: the same lines and the same texts for all three."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Literal

from adgn.report.extra_scores import (
    extra_scores,
    measured_extra,
    published_extra,
    quoted_extra,
)
from adgn.report.numbers import ABSENT, NumberFormat, metric_label, number_format
from adgn.report.results import Cell, Column, Group, Moments, TableResults, over_runs
from adgn.training.tasks import ExtraScore

__all__ = [
    "Block",
    "Entry",
    "Grid",
    "Head",
    "Line",
    "anchor",
    "difference_to_published",
    "grids",
    "repeats_label",
    "repeats_text",
    "runs_text",
    "time_grid",
]

Role = Literal[
    "measured",
    "published",
    "difference",
    "extra",
    "published-extra",
    "runs",
    "constant",
    "quoted",
    "quoted-extra",
]
_MAIN: tuple[Role, ...] = ("measured", "constant", "quoted")


@dataclass(frozen=True)
class Entry:
    """One place of a table.

    Attributes:
        mean: The number, or a word where there is none.
        spread: `± std`, or empty.
        best: Whether it is the best measured value of its column.
        cell: The cell that it links to.
    """

    mean: str
    spread: str = ""
    best: bool = False
    cell: Cell | None = None

    @property
    def text(self) -> str:
        """The whole in one piece."""
        return f"{self.mean} {self.spread}".rstrip()

    @property
    def numeric(self) -> bool:
        """Whether it is a number, to be aligned with the others."""
        return self.mean[-1:].isdigit() and " of " not in self.mean


@dataclass(frozen=True)
class Line:
    """One line of a table, with its label."""

    role: Role
    label: str
    entries: tuple[Entry, ...]

    @property
    def main(self) -> bool:
        """Whether it is a method's own line, and not one that adds to it."""
        return self.role in _MAIN


@dataclass(frozen=True)
class Block:
    """What belongs to one method: measured, published, difference, runs."""

    lines: tuple[Line, ...]


@dataclass(frozen=True)
class Head:
    """The heading of a column."""

    title: str
    note: str = ""


@dataclass(frozen=True)
class Grid:
    """A table: caption, column headings and blocks of lines."""

    key: str
    caption: str
    corner: str
    heads: tuple[Head, ...]
    blocks: tuple[Block, ...]


def anchor(cell: Cell) -> str:
    """The name of the place in the page that tells about a cell."""
    return f"cell-{cell.experiment}--{cell.row}--{cell.column}"


def runs_text(cell: Cell) -> str:
    """How many runs a cell has, and of how many where some are missing."""
    done = len(cell.runs)
    if cell.status == "waiting" and not done:
        return ABSENT
    if done == cell.planned_runs or not cell.planned_runs:
        return str(done) if done else ABSENT
    return f"{done} of {cell.planned_runs}"


def repeats_label(table: TableResults) -> str:
    """What a mean of the table is taken over."""
    return "epochs timed" if table.experiment.kind == "seconds" else "runs"


def repeats_text(table: TableResults, cell: Cell) -> str:
    """How many of them a cell has: runs, or epochs where those are timed."""
    if table.experiment.kind != "seconds":
        return runs_text(cell)
    epochs = sum(run.epochs or 0 for run in cell.runs)
    return str(epochs) if epochs else ABSENT


def grids(table: TableResults) -> list[Grid]:
    """The tables of an experiment: one, or for a depth experiment one per data set."""
    experiment = table.experiment
    better = "higher" if experiment.metric.higher_is_better else "lower"
    score = metric_label(experiment.metric)
    about = f"mean ± standard deviation, {better} is better"
    if experiment.kind == "depth":
        return [
            _grid(
                table,
                group,
                f"{group.title}: {score} against the number of layers; {about}",
                "layers",
            )
            for group in table.groups
        ]
    subject = "" if score.lower() == experiment.title.lower() else f"{experiment.title}: "
    caption = f"{subject}{score}; {about}"
    for extra in extra_scores(table):
        caption += f"; {extra.title}: {extra.meaning}"
    caption = caption[:1].upper() + caption[1:]
    return [_grid(table, group, caption, "method") for group in table.groups]


def time_grid(table: TableResults) -> Grid | None:
    """The time per epoch of each cell, where the experiment itself is not about that."""
    experiment = table.experiment
    form = number_format("ms")
    cells = table.cells.values()
    if experiment.kind == "seconds" or not any(cell.seconds_per_epoch for cell in cells):
        return None
    blocks = []
    for row in experiment.rows:
        mine = [table.cells[row.key, column.key] for column in experiment.columns]
        entries = tuple(
            _entry(form, cell, over_runs(cell, cell.seconds_per_epoch)) for cell in mine
        )
        blocks.append(Block((Line("measured", row.title, entries),)))
    return Grid(
        f"{experiment.name}--epoch-time",
        f"{experiment.title}: milliseconds per epoch, evaluation included",
        "method",
        tuple(Head(_column_title(column)) for column in experiment.columns),
        tuple(blocks),
    )


def _column_title(column: Column) -> str:
    if column.layers is None:
        return column.title
    return f"{column.group}, {column.layers}" if column.group else str(column.layers)


def _grid(table: TableResults, group: Group, caption: str, corner: str) -> Grid:
    experiment = table.experiment
    form = number_format(experiment.metric.unit)
    columns = group.columns
    best = {column.key: _best(table, column) for column in columns}
    blocks = []
    for row in experiment.rows:
        cells = [table.cells[row.key, column.key] for column in columns]
        measured = tuple(
            _entry(form, cell, table.score(cell), row.key in best[cell.column]) for cell in cells
        )
        lines = [Line("measured", row.title, measured)]
        if any(cell.published for cell in cells):
            lines += _published_lines(table, form, cells)
        for extra in extra_scores(table):
            lines += _extra_lines(cells, extra)
        repeats = tuple(Entry(repeats_text(table, cell)) for cell in cells)
        if any(entry.mean != ABSENT for entry in repeats):
            lines.append(Line("runs", repeats_label(table), repeats))
        blocks.append(Block(tuple(lines)))
    constant = [table.constant(column) for column in columns]
    if any(constant):
        entries = tuple(_reference(form, value) for value in constant)
        blocks.append(Block((Line("constant", "constant predictor", entries),)))
    blocks += _quoted_blocks(table, form, columns)
    heads = tuple(
        Head(str(c.layers) if c.layers is not None else c.title, c.note or "") for c in columns
    )
    return Grid(group.key, caption, corner, heads, tuple(blocks))


def _quoted_blocks(
    table: TableResults, form: NumberFormat, columns: Sequence[Column]
) -> list[Block]:
    blocks = []
    for quoted in table.experiment.quoted:
        values = [quoted.values.get(column.key) for column in columns]
        if not any(values):
            continue
        entries = tuple(_reference(form, value) for value in values)
        lines = [Line("quoted", f"{quoted.title} (published)", entries)]
        for extra in extra_scores(table):
            more = [quoted_extra(quoted.title, column, extra) for column in columns]
            lines += _extra_line("quoted-extra", extra.title, extra, more)
        blocks.append(Block(tuple(lines)))
    return blocks


def _extra_lines(cells: Sequence[Cell], extra: ExtraScore) -> list[Line]:
    measured = [measured_extra(cell, extra) for cell in cells]
    published = [published_extra(cell, extra) for cell in cells]
    return [
        *_extra_line("extra", extra.title, extra, measured),
        *_extra_line("published-extra", f"published, {extra.title}", extra, published),
    ]


def _extra_line(
    role: Role, label: str, extra: ExtraScore, values: Sequence[Moments | None]
) -> list[Line]:
    form = NumberFormat(extra.digits)
    entries = tuple(_reference(form, value) for value in values)
    return [Line(role, label, entries)] if any(values) else []


def _published_lines(
    table: TableResults, form: NumberFormat, cells: Sequence[Cell]
) -> tuple[Line, Line]:
    published = tuple(_reference(form, cell.published) for cell in cells)
    differences = []
    for cell in cells:
        difference = difference_to_published(table, cell)
        differences.append(Entry(ABSENT if difference is None else form.signed(difference)))
    return Line("published", "published", published), Line(
        "difference", "difference", tuple(differences)
    )


def difference_to_published(table: TableResults, cell: Cell) -> float | None:
    """Measured minus published, where both are there and finite."""
    score, published = table.score(cell), cell.published
    if score is None or published is None or score.mean is None or published.mean is None:
        return None
    difference = score.mean - published.mean
    return difference if isfinite(difference) else None


def _entry(form: NumberFormat, cell: Cell, value: Moments | None, best: bool = False) -> Entry:
    if value is None:
        word = {"failed": "failed", "waiting": "waiting", "partial": "under way"}.get(cell.status)
        return Entry(word or ABSENT, cell=cell)
    spread = form.spread(value.std) if value.finite else ""
    if cell.status == "failed":  # some runs were made before one failed
        return Entry(f"{form.plain(value.mean)}, then failed", cell=cell)
    return Entry(form.plain(value.mean), spread, best, cell)


def _reference(form: NumberFormat, value: Moments | None) -> Entry:
    if value is None:
        return Entry(ABSENT)
    return Entry(form.plain(value.mean), form.spread(value.std) if value.finite else "")


def _best(table: TableResults, column: Column) -> frozenset[str]:
    """The rows with the best value of a column; ties as they are shown count alike."""
    form = number_format(table.experiment.metric.unit)
    means: dict[str, float] = {}
    for row in table.experiment.rows:
        cell = table.cells[row.key, column.key]
        score = table.score(cell)
        if cell.status != "failed" and score is not None and score.finite:
            means[row.key] = score.mean or 0.0
    if len(means) < 2:  # best of one says nothing
        return frozenset()
    choose: Callable[..., float] = max if table.experiment.metric.higher_is_better else min
    top = form.plain(choose(means.values()))
    return frozenset(key for key, mean in means.items() if form.plain(mean) == top)
