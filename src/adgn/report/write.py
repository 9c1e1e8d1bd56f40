"""Writes a report: tables, figures and the page."""

from dataclasses import dataclass
from pathlib import Path

from matplotlib.figure import Figure

from adgn._util.figures import figure_bytes, theme_css, themed_svg
from adgn.report.charts import chart_notes, charts
from adgn.report.csvfile import csv_table
from adgn.report.drawing import panels_figure
from adgn.report.grid import grids
from adgn.report.latex import latex_grid
from adgn.report.markdown import escape_markdown, markdown_grid
from adgn.report.page import html_page, progress_text
from adgn.report.results import ReportError, Results, TableResults
from adgn.report.verdict import verdict
from adgn.training.checkpoint import write_atomically
from adgn.training.errors import RunError


@dataclass(frozen=True)
class ReportFiles:
    """What was written: the HTML page, and all files, the page included."""

    page: Path
    files: tuple[Path, ...]


def write_report(results: Results, out: Path) -> ReportFiles:
    """Writes `index.html`, `tables/` and `figures/` into a folder, each file whole.

    Args:
        results: What `read_results` gave.
        out: The folder; made if it is not there. Files of an earlier report are replaced.

    Example:
        >>> import tempfile
        >>> from adgn.report import read_results
        >>> results = read_results(Path("results/reproduction"))  # those of this project
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     files = write_report(results, Path(folder))
        ...     sorted(path.name for path in Path(folder).iterdir())
        ['figures', 'index.html', 'tables']
    """
    contents: dict[str, bytes] = {}
    for table in results.tables:
        name = table.experiment.name
        contents[f"tables/{name}.md"] = markdown_report(table).encode()
        contents[f"tables/{name}.csv"] = csv_table(table).encode()
        contents[f"tables/{name}.tex"] = "\n".join(map(latex_grid, grids(table))).encode()
        if charts(table):
            figure = experiment_figure(table)
            contents[f"figures/{name}.svg"] = figure_svg(table, figure).encode()
            contents[f"figures/{name}.png"] = figure_bytes(figure, "png")
    contents["index.html"] = html_page(results).encode()
    paths = [write_output(out / name, content) for name, content in contents.items()]
    return ReportFiles(out / "index.html", tuple(paths))


def markdown_report(table: TableResults, level: int = 1) -> str:
    """An experiment in Markdown: summary, budget, tables and notes.

    Args:
        table: The experiment.
        level: The depth of its heading.

    Example:
        >>> from adgn.report import read_results
        >>> results = read_results(Path("results/reproduction"))  # those of this project
        >>> print(markdown_report(results.tables[0], level=2).splitlines()[0])
        ## Graph property prediction
    """
    experiment = table.experiment
    parts = [f"{'#' * level} {escape_markdown(experiment.title)}"]
    if experiment.summary:
        parts.append(escape_markdown(experiment.summary))
    parts.append(f"**In short:** {escape_markdown(verdict(table))}")
    parts.append(escape_markdown(progress_text(table)))
    parts += [markdown_grid(grid).rstrip() for grid in grids(table)]
    if experiment.notes:
        parts.append("\n".join(f"- {escape_markdown(note)}" for note in experiment.notes))
    failed = [
        f"- {escape_markdown(f'{cell.row}, {cell.column}: {cell.error.message}')}"
        for cell in table.cells.values()
        if cell.error is not None
    ]
    if failed:
        parts.append("Failed:\n\n" + "\n".join(failed))
    return "\n\n".join(parts) + "\n"


def experiment_figure(table: TableResults) -> Figure:
    """All charts of an experiment in one figure."""
    drawn = charts(table)
    if not drawn:
        raise ReportError(f"experiment={table.experiment.name!r} has no measured cell to draw yet")
    return panels_figure(drawn, table.experiment.title, chart_notes(table))


def figure_svg(table: TableResults, figure: Figure) -> str:
    """That figure as a file of its own; readable in light and dark surroundings."""
    name, title = table.experiment.name, table.experiment.title
    told = " ".join(f"{chart.title}: {chart.description}" for chart in charts(table))
    return themed_svg(figure, name, title, told, theme_css()) + "\n"


def write_output(path: Path, content: bytes) -> Path:
    """Writes a file, whole or not at all, and its folder where that is missing."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, content)
        return path
    except (OSError, RunError) as error:
        cause = error if isinstance(error, OSError) else error.__cause__
        why = getattr(cause, "strerror", None) or cause
        raise ReportError(
            f"cannot write {path}: {why}; make room or give another folder with --out"
        ) from error
