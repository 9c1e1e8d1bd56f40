"""What the page tells about one cell, one click away from its number."""

import json
from collections.abc import Mapping
from typing import Any

from adgn.experiments.records import Cell, Column, Row
from adgn.report.extra_scores import extra_scores, measured_extra, published_extra
from adgn.report.grid import cell_entry, difference_to_published, repeats_label, repeats_text
from adgn.report.numbers import ABSENT, NumberFormat, duration, metric_label, number_format
from adgn.report.results import TableResults

OUTDATED = (
    "its definition or the settings that it took over have changed since; adgn reproduce measures "
    "it anew"
)
SPLIT_NAMES = {"train": "train", "val": "validation", "test": "test"}
Pairs = list[tuple[str, str]]


def cell_view(table: TableResults, row: Row, column: Column) -> dict[str, Any]:
    """The details of a row and column, for the template."""
    cell = table.cells[row.key, column.key]
    groups = [
        ("Selected settings", _pairs(cell.settings)),
        *(
            (f"Selected settings, split {split}", _pairs(settings))
            for split, settings in cell.settings_by_split.items()
        ),
        ("Search", _search(cell)),
        ("Environment", _pairs(cell.environment)),
    ]
    return {
        "cell": cell,
        "title": f"{row.title}, {column.title}",
        "summary": _summary(table, cell),
        "facts": _facts(table, cell),
        "runs": _runs(table, cell),
        "tried": _tried(table, cell),
        "tried_by": _tried_by(cell),
        "groups": [(title, pairs) for title, pairs in groups if pairs],
    }


def _summary(table: TableResults, cell: Cell) -> str:
    score, number = table.score(cell), repeats_text(table, cell)
    text = cell_entry(number_format(table.experiment.metric.unit), cell, score).text
    if score is None or number == ABSENT:
        return text
    word = "epoch" if table.experiment.kind == "seconds" else "run"
    return f"{text}, {number} {word}{'' if number == '1' else 's'}"


def _facts(table: TableResults, cell: Cell) -> Pairs:
    metric, published = table.experiment.metric, cell.published
    form = number_format(metric.unit)
    in_paper, difference = "", ""
    if published is not None:
        place = ", ".join(f"“{name}”" for name in (published.row, published.column) if name)
        in_paper = f" ({place} in {published.source or 'the paper'})" if place else ""
        gap = difference_to_published(table, cell)
        difference = ABSENT if gap is None else form.signed(gap)
    times = None if table.experiment.kind == "seconds" else cell.seconds_per_epoch
    extras: Pairs = []
    for extra in extra_scores(table):
        shown = NumberFormat(extra.digits).moments
        extras.append((extra.name.replace("_", " "), shown(measured_extra(cell, extra))))
        extras.append((f"published, {extra.title}", shown(published_extra(cell, extra))))
    facts = [
        ("status", cell.status),
        (repeats_label(table), repeats_text(table, cell)),
        (metric.title, form.moments(table.score(cell))),
        ("published", form.moments(published) + in_paper),
        ("difference", difference),
        ("measured by", "" if published is None else published.source or ""),
        ("published otherwise", "" if published is None else " ".join(published.differences)),
        *extras,
        ("milliseconds per epoch", number_format("ms").moments(times)),
        ("trainable parameters", "" if cell.parameters is None else str(cell.parameters)),
        ("budget", cell.budget),
        ("date", cell.date or ""),
        ("fingerprint", cell.fingerprint or ""),
        ("outdated", OUTDATED if table.is_outdated(cell) else ""),
    ]
    return [(name, value) for name, value in facts if value]


def _runs(table: TableResults, cell: Cell) -> list[list[str]]:
    """A table of the runs, its heading first."""
    metric = table.experiment.metric
    form = number_format(metric.unit)
    has = {
        split for run in cell.runs for split, scores in run.scores.items() if metric.name in scores
    }
    splits = [split for split in SPLIT_NAMES if split in has]
    heading = [SPLIT_NAMES[split] for split in splits]
    lines = [["seed", "split", *heading, "best epoch", "epochs", "time"]]
    for run in cell.runs:
        found = [run.scores.get(split, {}) for split in splits]
        scores = [form.plain(s[metric.name]) if metric.name in s else ABSENT for s in found]
        seed, split, best, epochs = (
            _value(n) for n in (run.seed, run.split, run.best_epoch, run.epochs)
        )
        lines.append([seed, split, *scores, best, epochs, duration(run.seconds)])
    return lines


def _tried(table: TableResults, cell: Cell) -> list[list[str]]:
    """A table of the configurations of the search, its heading first; empty where none is known."""
    search = cell.search
    if search is None or not search.configurations:
        return []
    metric = table.experiment.metric
    same = search.metric == metric.name
    form = number_format(metric.unit if same else "")
    label = metric_label(metric) if same else search.metric or ""
    rungs = search.rungs or (label,)
    names = list(search.configurations[0].settings)
    lines = [["rank", *names, *(f"after {rung}" if search.rungs else rung for rung in rungs)]]
    for rank, tried in enumerate(search.configurations, start=1):
        scores = [form.plain(score) for score in tried.scores]
        if tried.state == "failed":
            scores[-1:] = ["failed"]
        elif tried.state == "pruned":  # by the score of a part of its runs
            scores[-1] += ", then stopped"
        missing = [ABSENT] * (len(rungs) - len(scores))
        settings = [_value(tried.settings.get(name)) for name in names]
        ranks = tried.state != "pruned" and scores[0] != "failed"
        lines.append([str(rank) if ranks else ABSENT, *settings, *scores, *missing])
    return lines


def _tried_by(cell: Cell) -> str:
    """What the configurations of a search were compared by."""
    search = cell.search
    if search is None or search.metric is None:
        return ""
    split = SPLIT_NAMES.get(search.compared_on or "", search.compared_on or "")
    return f"Configurations of the search, by {split} {search.metric}"


def _search(cell: Cell) -> Pairs:
    search = cell.search
    if search is None:
        return []
    failed = f", {search.failed} failed" if search.failed else ""
    pairs = [
        ("how", search.how),
        ("trials", "" if search.trials is None else f"{search.trials}{failed}"),
        ("time", "" if search.seconds is None else duration(search.seconds)),
    ]
    return [*(pair for pair in pairs if pair[1]), *_pairs(search.space)]


def _pairs(values: Any) -> Pairs:
    items = values.items() if isinstance(values, Mapping) else [("", values)]
    return [(str(name), _value(value)) for name, value in items]


def _value(value: Any) -> str:
    if isinstance(value, str):
        return value
    if value is None:
        return ABSENT
    if isinstance(value, list | tuple):
        return ", ".join(_value(item) for item in value)
    return json.dumps(value, ensure_ascii=False, default=str)
