"""The short table for a front page: measured values with the published ones in brackets."""

from collections.abc import Sequence

from adgn.report.extra_scores import extra_scores
from adgn.report.grid import Block, Entry, Line, grids, repeats_label, repeats_text, runs_text
from adgn.report.markdown import escape_markdown, markdown_head, markdown_table
from adgn.report.numbers import ABSENT, metric_label
from adgn.report.results import Cell, ReportError, Results, TableResults

__all__ = ["headline_table"]


def headline_table(results: Results, experiment: str = "property") -> str:
    """One line per method that was begun, one column per task, in Markdown.

    A published value stands below the measured one that it is comparable with; a further
    score of the task, such as the trees' normalised accuracy, stands below with its own. A cell
    with fewer runs than planned says so, and a failed one is shown as failed.

    Args:
        results: What `read_results` gave.
        experiment: The experiment's name.

    Example:
        >>> from pathlib import Path
        >>> from adgn.report import read_results
        >>> results = read_results(Path("results/reproduction"))  # those of this project
        >>> print(headline_table(results))
        |  | diameter (published as “Diameter”) | ...
    """
    tables = {table.experiment.name: table for table in results.tables}
    if experiment not in tables:
        raise ReportError(
            f"experiment={experiment!r} is not in {results.folder}, which has "
            f"{', '.join(tables) or 'none'}"
        )
    table = tables[experiment]
    (grid, *_) = grids(table)
    rows = []
    for block in grid.blocks:
        main = block.lines[0]
        if main.role == "constant" or (main.role == "measured" and _begun(main)):
            cells = [_place(block, index) for index in range(len(grid.heads))]
            rows.append([escape_markdown(main.label), *cells])
    head = ["", *map(markdown_head, grid.heads)]
    return f"{markdown_table(head, rows)}\n{_legend(table)}\n"


def _begun(line: Line) -> bool:
    cells = [entry.cell for entry in line.entries if entry.cell is not None]
    return any(cell.status != "waiting" for cell in cells)


def _place(block: Block, index: int) -> str:
    """What one method has in one column."""
    entries = {line.role: line.entries[index] for line in block.lines}
    main = entries.get("measured") or entries["constant"]
    text = escape_markdown(main.text)
    if main.best:
        text = f"**{text}**"
    if main.cell is not None and _is_short(main.cell):
        text += f", {runs_text(main.cell)} runs"
    parts = [text, _in_brackets(entries.get("published"))]
    labelled = {line.label: line.entries[index] for line in block.lines}
    for line in block.lines:
        if line.role == "extra" and line.entries[index].mean != ABSENT:
            parts.append(f"{line.label} {escape_markdown(line.entries[index].text)}")
            parts.append(_in_brackets(labelled.get(f"published, {line.label}")))
    return "<br>".join(filter(None, parts))


def _in_brackets(published: Entry | None) -> str:
    if published is None or published.mean == ABSENT:
        return ""
    return f"({escape_markdown(published.text)})"


def _is_short(cell: Cell) -> bool:
    return 0 < len(cell.runs) < cell.planned_runs


def _legend(table: TableResults) -> str:
    metric = table.experiment.metric
    better = "higher" if metric.higher_is_better else "lower"
    text = (
        f"{metric_label(metric)} ({better} is better): {_repeats(table)}; in brackets what the "
        "paper reports; bold the best measured value of each column."
    )
    for extra in extra_scores(table):
        text += f" {extra.title.capitalize()}: {extra.meaning}."
    return escape_markdown(text[:1].upper() + text[1:])


def _repeats(table: TableResults) -> str:
    """What a cell's numbers are."""
    short = any(map(_is_short, table.cells.values()))
    cells = [cell for cell in table.cells.values() if cell.runs and not _is_short(cell)]
    counts = {repeats_text(table, cell) for cell in cells} - {ABSENT}
    if counts == {"1"} and not short:
        return "one run each" if table.experiment.kind != "seconds" else "one epoch each"
    label = repeats_label(table)
    over = f"{_one_of(sorted(counts, key=int))} {label}" if counts else f"as many {label} as told"
    more = ", or as many as a cell tells" if short and counts else ""
    return f"mean ± standard deviation over {over}{more}"


def _one_of(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"
