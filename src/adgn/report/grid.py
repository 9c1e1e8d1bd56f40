"""A table before it is Markdown, LaTeX or HTML: the same lines and the same texts for all three."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from adgn.experiments.records import Cell, Column, Moments
from adgn.report.extra_scores import extra_scores, measured_extra, published_extra, quoted_extra
from adgn.report.numbers import ABSENT, NumberFormat, metric_label, number_format, sentence
from adgn.report.results import Group, TableResults, over_runs


@dataclass(frozen=True)
class Entry:
    """One place of a table."""

    mean: str  # the number, or a word where there is none
    spread: str = ""  # `± std`, or empty
    best: bool = False  # whether it is the best measured value of its column
    cell: Cell | None = None  # what it links to

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

    # "measured", "constant" or "quoted": a method's own line. Those that add to it are "published",
    # "difference", "runs", "extra", "published-extra" and "quoted-extra".
    role: str
    label: str
    entries: tuple[Entry, ...]
    mark: str = ""  # the number of the note about the method

    @property
    def main(self) -> bool:
        """Whether it is a method's own line, and not one that adds to it."""
        return self.role in ("measured", "constant", "quoted")


@dataclass(frozen=True)
class Head:
    """The heading of a column."""

    title: str
    note: str = ""


@dataclass(frozen=True)
class Note:
    """What must be known to compare some methods with what is published."""

    mark: str  # at the labels of these methods
    methods: tuple[str, ...]
    text: str

    @property
    def whole(self) -> str:
        """The methods and the text."""
        return f"{', '.join(self.methods)}: {self.text}"


@dataclass(frozen=True)
class Grid:
    """A table: caption, column headings and blocks of lines, one block per method."""

    key: str
    caption: str
    corner: str
    heads: tuple[Head, ...]
    blocks: tuple[tuple[Line, ...], ...]
    notes: tuple[Note, ...] = ()


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


def _repeats(table: TableResults, cell: Cell) -> str:
    text = repeats_text(table, cell)
    return f"{text}, outdated" if table.is_outdated(cell) else text


def grids(table: TableResults) -> list[Grid]:
    """The tables of an experiment: one, or for a depth experiment one per data set."""
    experiment = table.experiment
    better = "higher" if experiment.metric.higher_is_better else "lower"
    score = metric_label(experiment.metric)
    about = f"mean ± standard deviation, {better} is better"
    if experiment.kind == "depth":
        what = f"{score} against the number of layers; {about}"
        return [_grid(table, group, f"{group.title}: {what}", "layers") for group in table.groups]
    subject = "" if score.lower() == experiment.title.lower() else f"{experiment.title}: "
    for extra in extra_scores(table):
        about += f"; {extra.title}: {extra.meaning}"
    caption = sentence(f"{subject}{score}; {about}")
    return [
        _grid(table, group, f"{caption} ({group.title})" if group.title else caption, "method")
        for group in table.groups
    ]


def time_grid(table: TableResults) -> Grid | None:
    """The time per epoch of each cell, where the experiment itself is not about that."""
    experiment = table.experiment
    if experiment.kind == "seconds" or not any(c.seconds_per_epoch for c in table.cells.values()):
        return None
    blocks = []
    for row in experiment.rows:
        cells = [table.cells[row.key, column.key] for column in experiment.columns]
        times = [(cell, over_runs(cell, cell.seconds_per_epoch)) for cell in cells]
        entries = tuple(cell_entry(number_format("ms"), *time) for time in times)
        blocks.append((Line("measured", row.title, entries),))
    return Grid(
        f"{experiment.name}--epoch-time",
        f"{experiment.title}: milliseconds per epoch, evaluation included",
        "method",
        tuple(Head(column.title) for column in experiment.columns),
        tuple(blocks),
    )


def difference_to_published(table: TableResults, cell: Cell) -> float | None:
    """Measured minus published, where both are there."""
    score, published = table.score(cell), cell.published
    if score is None or published is None or score.mean is None or published.mean is None:
        return None
    return score.mean - published.mean


def _grid(table: TableResults, group: Group, caption: str, corner: str) -> Grid:
    experiment, columns = table.experiment, group.columns
    form = number_format(experiment.metric.unit)
    best = {column.key: _best(table, column) for column in columns}
    extras = extra_scores(table)
    notes = _notes(table, columns)
    marks = {method: note.mark for note in notes for method in note.methods}
    blocks = []
    for row in experiment.rows:
        cells = [table.cells[row.key, column.key] for column in columns]
        measured = tuple(
            cell_entry(form, cell, table.score(cell), row.key in best[cell.column])
            for cell in cells
        )
        lines = [Line("measured", row.title, measured, marks.get(row.title, ""))]
        if any(cell.published for cell in cells):
            lines += _line("published", "published", form, (cell.published for cell in cells))
            gaps = [difference_to_published(table, cell) for cell in cells]
            texts = tuple(Entry(ABSENT if gap is None else form.signed(gap)) for gap in gaps)
            lines.append(Line("difference", "difference", texts))
        for extra in extras:
            digits, title = NumberFormat(extra.digits), extra.title
            found = [measured_extra(cell, extra) for cell in cells]
            published = [published_extra(cell, extra) for cell in cells]
            lines += _line("extra", title, digits, found)
            lines += _line("published-extra", f"published, {title}", digits, published)
        repeats = tuple(Entry(_repeats(table, cell)) for cell in cells)
        if any(entry.mean != ABSENT for entry in repeats):
            lines.append(Line("runs", repeats_label(table), repeats))
        blocks.append(tuple(lines))
    lines = _line("constant", "constant predictor", form, map(table.constant, columns))
    blocks.append(tuple(lines))
    for quoted in experiment.quoted:
        values = (quoted.values.get(column.key) for column in columns)
        kind = f"; {quoted.group}" if quoted.group else ""
        label = f"{quoted.title} (published{kind})"
        lines = [
            replace(line, mark=marks.get(quoted.title, ""))
            for line in _line("quoted", label, form, values)
        ]
        for extra in extras if lines else ():
            more = [quoted_extra(quoted.title, column.title, extra) for column in columns]
            lines += _line("quoted-extra", extra.title, NumberFormat(extra.digits), more)
        blocks.append(tuple(lines))
    heads = [Head(c.title if c.layers is None else str(c.layers), c.note or "") for c in columns]
    return Grid(group.key, caption, corner, tuple(heads), tuple(filter(None, blocks)), notes)


def _notes(table: TableResults, columns: tuple[Column, ...]) -> tuple[Note, ...]:
    """The notes of the methods with values in these columns; equal ones once."""
    experiment = table.experiment
    texts: dict[str, list[str]] = {}
    for row in experiment.rows:
        if row.notes:
            texts.setdefault(" ".join(row.notes), []).append(row.title)
    for quoted in experiment.quoted:
        if quoted.notes and any(column.key in quoted.values for column in columns):
            texts.setdefault(" ".join(quoted.notes), []).append(quoted.title)
    return tuple(
        Note(str(number), tuple(methods), text)
        for number, (text, methods) in enumerate(texts.items(), start=1)
    )


def _line(
    role: str, label: str, form: NumberFormat, values: Iterable[Moments | None]
) -> list[Line]:
    """A line of values, or nothing where there are none."""
    values = list(values)
    entries = tuple(Entry(ABSENT) if value is None else _entry(form, value) for value in values)
    return [Line(role, label, entries)] if any(values) else []


def _entry(form: NumberFormat, value: Moments) -> Entry:
    return Entry(form.plain(value.mean), form.spread(value.std) if value.finite else "")


def cell_entry(form: NumberFormat, cell: Cell, value: Moments | None, best: bool = False) -> Entry:
    """What a cell has of a score, or the word for why it has none."""
    if value is None:
        words = {"done": ABSENT, "partial": "under way"}
        return Entry(words.get(cell.status, cell.status), cell=cell)
    if cell.status == "failed":  # some runs were made before one failed
        return Entry(f"{form.plain(value.mean)}, then failed", cell=cell)
    return replace(_entry(form, value), best=best, cell=cell)


def _best(table: TableResults, column: Column) -> frozenset[str]:
    """The rows with the best value of a column; ties as they are shown count alike."""
    metric = table.experiment.metric
    found = {row.key: table.compared(row, column) for row in table.experiment.rows}
    means = {key: mean for key, mean in found.items() if mean is not None}
    if len(means) < 2:  # best of one says nothing
        return frozenset()
    shown = number_format(metric.unit).plain
    top = shown((max if metric.higher_is_better else min)(means.values()))
    return frozenset(key for key, mean in means.items() if shown(mean) == top)
