"""What the page tells about one cell, one click away from its number."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from adgn.report.extra_scores import extra_scores, measured_extra, published_extra
from adgn.report.grid import anchor, difference_to_published, repeats_label, repeats_text
from adgn.report.numbers import ABSENT, NumberFormat, duration, number_format
from adgn.report.results import Cell, Column, Row, Run, TableResults

__all__ = ["CellView", "cell_view"]

Pairs = list[tuple[str, str]]


@dataclass(frozen=True)
class CellView:
    """The texts of a cell's details.

    Attributes:
        title: The row and the column.
        summary: The score, or what there is instead.
        facts: Score, published value, runs, parameters, date.
        run_heads: The headings of the table of runs.
        runs: Its lines.
    """

    cell: Cell
    anchor: str
    title: str
    summary: str
    facts: Pairs
    run_heads: list[str]
    runs: list[list[str]]
    settings: Pairs
    settings_by_split: list[tuple[str, Pairs]]
    search: Pairs
    environment: Pairs


def cell_view(table: TableResults, row: Row, column: Column) -> CellView:
    """The details of a row and column."""
    cell = table.cells[row.key, column.key]
    where = column.title
    if column.layers is not None and column.group and column.group not in where:
        where = f"{column.group}, {where}"
    if column.layers is not None and where in (
        str(column.layers),
        f"{column.group}, {column.layers}",
    ):
        where = f"{where} layers"
    heads, runs = _runs(table, cell)
    return CellView(
        cell=cell,
        anchor=anchor(cell),
        title=f"{row.title}, {where}",
        summary=_summary(table, cell),
        facts=_facts(table, cell),
        run_heads=heads,
        runs=runs,
        settings=_pairs(cell.settings),
        settings_by_split=[
            (str(split), _pairs(settings if isinstance(settings, Mapping) else {"": settings}))
            for split, settings in cell.settings_by_split.items()
        ],
        search=_search(cell),
        environment=_pairs(cell.environment),
    )


def _summary(table: TableResults, cell: Cell) -> str:
    score = table.score(cell)
    if score is None or cell.status in ("failed", "waiting"):
        return "under way" if cell.status == "partial" else cell.status
    text = number_format(table.experiment.metric.unit).moments(score)
    number = repeats_text(table, cell)
    if number == ABSENT:
        return text
    word = "epoch" if table.experiment.kind == "seconds" else "run"
    return f"{text}, {number} {word}{'' if number == '1' else 's'}"


def _facts(table: TableResults, cell: Cell) -> Pairs:
    metric = table.experiment.metric
    form = number_format(metric.unit)
    score, published = table.score(cell), cell.published
    facts = [("status", cell.status), (repeats_label(table), repeats_text(table, cell))]
    if score is not None:
        facts.append((metric.title, form.moments(score)))
    if published is not None:
        place = ", ".join(f"“{name}”" for name in (published.row, published.column) if name)
        in_paper = f" ({place} in the paper)" if place else ""
        facts.append(("published", f"{form.moments(published)}{in_paper}"))
        difference = difference_to_published(table, cell)
        facts.append(("difference", ABSENT if difference is None else form.signed(difference)))
    for extra in extra_scores(table):
        facts += [
            (name, NumberFormat(extra.digits).moments(value))
            for name, value in (
                (extra.name.replace("_", " "), measured_extra(cell, extra)),
                (f"published, {extra.title}", published_extra(cell, extra)),
            )
            if value is not None
        ]
    if cell.seconds_per_epoch is not None and table.experiment.kind != "seconds":
        milliseconds = number_format("ms").moments(cell.seconds_per_epoch)
        facts.append(("milliseconds per epoch", milliseconds))
    if cell.parameters is not None:
        facts.append(("trainable parameters", str(cell.parameters)))
    facts += [
        ("budget", cell.budget),
        ("date", cell.date or ""),
        ("fingerprint", cell.fingerprint or ""),
    ]
    return [(name, value) for name, value in facts if value]


def _runs(table: TableResults, cell: Cell) -> tuple[list[str], list[list[str]]]:
    metric = table.experiment.metric
    form = number_format(metric.unit)
    splits = [
        s
        for s in ("train", "val", "test")
        if any(metric.name in r.scores.get(s, {}) for r in cell.runs)
    ]

    def line(run: Run) -> list[str]:
        scores = [
            form.plain(run.scores[split][metric.name])
            if metric.name in run.scores.get(split, {})
            else ABSENT
            for split in splits
        ]
        counts = [ABSENT if n is None else str(n) for n in (run.seed, run.split)]
        epochs = [ABSENT if n is None else str(n) for n in (run.best_epoch, run.epochs)]
        return [*counts, *scores, *epochs, duration(run.seconds)]

    names = {"train": "train", "val": "validation", "test": "test"}
    heads = ["seed", "split", *(names[split] for split in splits), "best epoch", "epochs", "time"]
    return heads, [line(run) for run in cell.runs]


def _search(cell: Cell) -> Pairs:
    search = cell.search
    if search is None:
        return []
    pairs = [("how", search.how)]
    if search.trials is not None:
        failed = f", {search.failed} failed" if search.failed else ""
        pairs.append(("trials", f"{search.trials}{failed}"))
    if search.seconds is not None:
        pairs.append(("time", duration(search.seconds)))
    return [*(pair for pair in pairs if pair[1]), *_pairs(search.space)]


def _pairs(values: Mapping[str, Any]) -> Pairs:
    return [(str(name), _value(value)) for name, value in values.items()]


def _value(value: Any) -> str:
    if isinstance(value, str):
        return value
    if value is None:
        return ABSENT
    if isinstance(value, list | tuple):
        return ", ".join(_value(item) for item in value)
    return json.dumps(value, ensure_ascii=False, default=str)
