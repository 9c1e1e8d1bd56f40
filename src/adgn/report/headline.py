"""The short table for a front page: measured values with the published ones in brackets."""

from collections.abc import Sequence

from adgn.experiments.records import Cell
from adgn.report.extra_scores import extra_scores
from adgn.report.grid import Entry, Line, grids, repeats_label, repeats_text, runs_text
from adgn.report.markdown import escape_markdown, markdown_entry, markdown_head, markdown_table
from adgn.report.numbers import ABSENT, metric_label, sentence
from adgn.report.results import TableResults


def headline_table(table: TableResults) -> str:
    """One line per method that was begun, one column per task, in Markdown.

    A published value stands below the measured one that it is comparable with; a further
    score of the task, such as the trees' normalised accuracy, stands below with its own. A cell
    with fewer runs than planned or an older definition says so, a failed one is shown as failed and
    one that waits as a dash; `table.complete()` has no cells but whole ones and those that wait.

    Args:
        table: One of the tables that `read_results` gave.

    Example:
        >>> from pathlib import Path
        >>> from adgn.report import read_results
        >>> results = read_results(Path("results/reproduction"))  # those of this project
        >>> print(headline_table(results.tables[0]))
        | method | diameter (published as “Diameter”) | ...
    """
    (grid, *_) = grids(table)
    rows = []
    for block in grid.blocks:
        main = block[0]
        begun = any(entry.cell and entry.cell.status != "waiting" for entry in main.entries)
        if begun or main.role == "constant":
            places = (_place(table, block, index) for index in range(len(grid.heads)))
            rows.append([escape_markdown(main.label), *places])
    head = ["method", *map(markdown_head, grid.heads)]
    return f"{markdown_table(head, rows)}\n{_legend(table)}\n"


def _place(table: TableResults, block: Sequence[Line], index: int) -> str:
    """What one method has in one column."""
    main = block[0].entries[index]
    entries = {line.role: line.entries[index] for line in block}
    waits = main.cell is not None and main.cell.status == "waiting"
    parts = [ABSENT if waits else markdown_entry(main), _in_brackets(entries.get("published"))]
    if main.cell is not None and _is_short(main.cell):
        parts.append(f"{runs_text(main.cell)} runs")
    if main.cell is not None and table.is_outdated(main.cell):
        parts.append("outdated")
    labelled = {line.label: line.entries[index] for line in block}
    for line in block:
        if line.role == "extra" and line.entries[index].mean != ABSENT:
            parts.append(f"{line.label} {escape_markdown(line.entries[index].text)}")
            parts.append(_in_brackets(labelled.get(f"published, {line.label}")))
    return "<br>".join(filter(None, parts))


def _in_brackets(entry: Entry | None) -> str:
    return f"({escape_markdown(entry.text)})" if entry and entry.mean != ABSENT else ""


def _is_short(cell: Cell) -> bool:
    return 0 < len(cell.runs) < cell.planned_runs


def _legend(table: TableResults) -> str:
    metric = table.experiment.metric
    better = "higher" if metric.higher_is_better else "lower"
    text = (
        f"{metric_label(metric)} ({better} is better): {_repeats(table)}; in brackets the "
        "published value; bold the best measured value of each column."
    )
    if table.outdated:
        text += " Outdated: measured with another definition or other settings than now."
    for extra in extra_scores(table):
        text += f" {extra.title.capitalize()}: {extra.meaning}."
    return escape_markdown(sentence(text))


def _repeats(table: TableResults) -> str:
    """What a cell's numbers are."""
    short = any(map(_is_short, table.cells.values()))
    cells = [cell for cell in table.cells.values() if cell.runs and not _is_short(cell)]
    counts = {repeats_text(table, cell) for cell in cells} - {ABSENT}
    if counts == {"1"} and not short:
        return "one run each" if table.experiment.kind != "seconds" else "one epoch each"
    label = repeats_label(table)
    numbers = " or ".join(sorted(counts, key=int)) or "as many"
    over = f"{numbers} {label}{'' if counts else ' as told'}"
    more = ", or as many as a cell tells" if short and counts else ""
    return f"mean ± standard deviation over {over}{more}"
