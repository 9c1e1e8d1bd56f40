"""What a table says, in sentences made from its numbers."""

from collections.abc import Callable, Sequence
from math import hypot
from statistics import fmean

from adgn.experiments.records import Cell, Column, Row
from adgn.report.grid import difference_to_published, runs_text
from adgn.report.numbers import number_format
from adgn.report.results import TableResults

OURS = "adgn"
COMBINED = 2.0  # published and measured agree within so many of their joint standard deviations


def verdict(table: TableResults) -> str:
    """Which method is best where, beside the strongest other one, and how near the paper is.

    Outdated cells do not count.

    Example:
        >>> from pathlib import Path
        >>> from adgn.report import read_results
        >>> results = read_results(Path("results/reproduction"))  # those of this project
        >>> print(verdict(results.tables[0]))
        Lowest log10 of the mean squared error: ...
    """
    depth = table.experiment.kind == "depth"
    said = [_depth(table)] if depth else [_best(table), _beside(table), _quoted(table)]
    said.append(_agreement(table))
    nothing = "All that was measured is outdated." if table.outdated else "Nothing is measured yet."
    return " ".join(filter(None, said)) or nothing


def _scores(table: TableResults, column: Column) -> list[tuple[float, Row]]:
    """The measured means of a column, the best first."""
    means = ((table.compared(row, column), row) for row in table.experiment.rows)
    found = [(mean, row) for mean, row in means if mean is not None]
    return sorted(found, key=lambda pair: pair[0], reverse=table.experiment.metric.higher_is_better)


def _best(table: TableResults) -> str:
    """The winner of each column, those of one method together."""
    experiment = table.experiment
    shown = _shown(table)
    winners: dict[str, list[str]] = {}
    for column in experiment.columns:
        scores = _scores(table, column)
        if len(scores) > 1:
            value, row = scores[0]
            winners.setdefault(row.title, []).append(f"{column.title} ({shown(value)})")
    if not winners:
        alone = [_scores(table, column) for column in experiment.columns]
        rows = list(dict.fromkeys(scores[0][1].title for scores in alone if scores))
        return f"Measured here: {_listed(rows)} alone." if rows else ""
    word = "Highest" if experiment.metric.higher_is_better else "Lowest"
    parts = [f"{title} on {_listed(columns)}" for title, columns in winners.items()]
    return f"{word} {experiment.metric.title}: {'; '.join(parts)}."


def _beside(table: TableResults) -> str:
    """A-DGN beside the best of the other methods, column by column."""
    metric = table.experiment.metric
    ahead, gaps = [], []
    for column in table.experiment.columns:
        scores = _scores(table, column)
        ours = [pair for pair in scores if pair[1].model == OURS]
        others = [pair for pair in scores if pair[1].model != OURS]
        if ours and others:
            gap = ours[0][0] - others[0][0]
            gaps.append((gap, column, others[0][1]))
            if gap != 0 and (gap > 0) == metric.higher_is_better:
                ahead.append(column)
    if not gaps:
        return ""
    form = number_format(metric.unit)
    low, high = (f(gaps, key=lambda item: item[0]) for f in (min, max))
    ends = [low] if low is high else [low, high]
    told = " to ".join(
        f"{form.signed(gap)} ({column.title}, {row.title})" for gap, column, row in ends
    )
    best = "The best A-DGN" if sum(r.model == OURS for r in table.experiment.rows) > 1 else "A-DGN"
    return (
        f"{best} is ahead of the best other method measured in {len(ahead)} of {len(gaps)} "
        f"columns; the difference between them is {told}."
    )


def _quoted(table: TableResults) -> str:
    """Published values of what was not measured here, where they are better."""
    metric = table.experiment.metric
    sign, found = 1 if metric.higher_is_better else -1, []
    columns = [(column, _scores(table, column)) for column in table.experiment.columns]
    compared = [(column, scores[0][0]) for column, scores in columns if scores]
    for column, best in compared:
        values = [
            (moments.mean, quoted.title)
            for quoted in table.experiment.quoted
            if not quoted.group  # set apart: no comparison
            and (moments := quoted.values.get(column.key)) is not None
            and moments.mean is not None
        ]
        for row in table.experiment.rows:
            cell = table.cells[row.key, column.key]
            unknown = cell.status == "waiting" or table.is_outdated(cell)
            if unknown and cell.published and cell.published.mean is not None:
                values.append((cell.published.mean, row.title))
        if values:
            value, title = max(values, key=lambda pair: sign * pair[0])
            if sign * value > sign * best:
                found.append((sign * (value - best), f"{title}, {_shown(table)(value)}", column))
    if not found:
        return ""
    _, told, column = max(found, key=lambda item: item[0])
    return (
        f"Published values of what is not measured here, or outdated, are better in {len(found)} "
        f"of {len(compared)} columns, most on {column.title} ({told})."
    )


def _agreement(table: TableResults) -> str:
    """How many cells agree with the paper, and which is farthest from it."""
    found = []
    for cell in table.cells.values():
        gap = difference_to_published(table, cell)
        if gap is not None and not table.is_outdated(cell):
            found.append((gap, cell))
    if not found or table.experiment.kind == "seconds":
        return ""
    near = sum(agrees(table, cell) for _, cell in found)
    gap, cell = max(found, key=lambda pair: abs(pair[0]))
    rows = {row.key: row.title for row in table.experiment.rows}
    columns = {column.key: column.title for column in table.experiment.columns}
    far = (
        f"farthest is {rows[cell.row]} on {columns[cell.column]}, "
        f"{number_format(table.experiment.metric.unit).signed(gap)}"
    )
    short = sum(1 for _, cell in found if 0 < len(cell.runs) < cell.planned_runs)
    have = "has" if short == 1 else "have"
    runs = f"; {short} of these cells {have} fewer runs than planned" if short else ""
    quoted = any(cell.published and cell.published.source for _, cell in found)
    whom = "their published values" if quoted else "the paper"
    return (
        f"{near} of {len(found)} cells agree with {whom} within {COMBINED:g} standard "
        f"deviations; {far}{runs}."
    )


def agrees(table: TableResults, cell: Cell) -> bool:
    """Whether a cell is within two joint standard deviations of the published value."""
    gap, score = difference_to_published(table, cell), table.score(cell)
    if gap is None or score is None or cell.published is None:
        return False
    spread = hypot(score.std or 0.0, cell.published.std or 0.0)
    # What differs by less than is shown differs by nothing.
    form = number_format(table.experiment.metric.unit)
    return form.scale * abs(gap) <= max(form.scale * COMBINED * spread, 0.1**form.decimals)


def reduced_budget(table: TableResults, cell: Cell) -> str:
    """What a cell had less of than the paper, where that may be why it is behind; else nothing."""
    gap = difference_to_published(table, cell)
    behind = gap is not None and gap != 0 and (gap < 0) == table.experiment.metric.higher_is_better
    if cell.budget == "paper" or not behind or agrees(table, cell):
        return ""
    had = []
    if cell.search is not None and cell.search.trials:
        had.append(f"{cell.search.trials} settings tried")
    if 0 < len(cell.runs) < cell.planned_runs:
        had.append(f"{runs_text(cell)} runs")
    return ", ".join(had) or "a smaller budget"


def _depth(table: TableResults) -> str:
    """What becomes of each method from its fewest to its most layers, over the data sets."""
    told = []
    for row in table.experiment.rows:
        pairs, layers, titles = [], set(), []
        for group in table.groups:
            scores = [
                (column.layers or 0, mean)
                for column in group.columns
                if (mean := table.compared(row, column)) is not None
            ]
            if len(scores) > 1:
                first, last = min(scores), max(scores)
                pairs.append((first[1], last[1]))
                layers.add((first[0], last[0]))
                titles.append(group.title or table.experiment.title)
        if pairs and len(layers) == 1:
            shown, ((fewest, most),) = _shown(table), layers
            start, end = (fmean(pair[side] for pair in pairs) for side in (0, 1))
            some = f" ({_listed(titles)} alone)" if len(titles) < len(table.groups) else ""
            ends = f"{shown(start)} with {fewest} and {shown(end)} with {most} layers"
            told.append(f"{row.title} {ends}{some}")
    title = table.experiment.metric.title.capitalize()
    return f"{title}, mean over the data sets: {'; '.join(told)}." if told else ""


def _shown(table: TableResults) -> Callable[[float], str]:
    unit = table.experiment.metric.unit
    form = number_format(unit)
    return lambda value: f"{form.plain(value)}{f' {unit}' if unit else ''}"


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
