"""The short table for a front page: measured values with the published ones in brackets."""

from adgn.report.grid import Entry, grids, runs_text
from adgn.report.markdown import escape_markdown, markdown_table
from adgn.report.numbers import ABSENT
from adgn.report.results import ReportError, Results, TableResults

__all__ = ["headline_table"]


def headline_table(results: Results, experiment: str = "property") -> str:
    """One line per method that was measured, one column per task, in Markdown.

    Args:
        results: What `read_results` gave.
        experiment: The experiment's name.
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
        lines = {line.role: line for line in block.lines}
        if "measured" not in lines and "constant" not in lines:
            continue
        main = lines.get("measured") or lines["constant"]
        if not any(entry.numeric for entry in main.entries):
            continue
        published = (
            lines["published"].entries if "published" in lines else (None,) * len(grid.heads)
        )
        cells = [_cell(entry, other) for entry, other in zip(main.entries, published, strict=True)]
        rows.append([escape_markdown(main.label), *cells])
    head = ["", *(escape_markdown(column.title) for column in grid.heads)]
    return f"{markdown_table(head, rows)}\n{_legend(table)}\n"


def _cell(entry: Entry, published: Entry | None) -> str:
    text = escape_markdown(entry.text)
    if entry.best:
        text = f"**{text}**"
    if published is not None and published.mean != ABSENT:
        text += f" ({escape_markdown(published.mean)})"
    return text


def _legend(table: TableResults) -> str:
    experiment = table.experiment
    better = "higher" if experiment.metric.higher_is_better else "lower"
    unit = f", {experiment.metric.unit}" if experiment.metric.unit else ""
    short = [
        f"{row.title} on {column.title} {runs_text(cell)}"
        for row in experiment.rows
        for column in experiment.columns
        if len((cell := table.cells[row.key, column.key]).runs) < cell.planned_runs and cell.runs
    ]
    full = {
        len(cell.runs)
        for cell in table.cells.values()
        if cell.runs and len(cell.runs) == cell.planned_runs
    }
    runs = f"over {' or '.join(map(str, sorted(full)))} runs" if full else "over the runs there are"
    text = (
        f"{experiment.metric.title}{unit} ({better} is better): mean ± standard deviation {runs}, "
        "in brackets what the paper reports, bold the best measured value of each column."
    )
    if short:
        text += f" Fewer runs: {'; '.join(short)}."
    return escape_markdown(text)
