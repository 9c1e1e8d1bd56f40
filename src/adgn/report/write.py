"""Writes a report: tables, figures and the page; and collects the small files of a directory."""

import json
from dataclasses import dataclass
from pathlib import Path

from matplotlib.figure import Figure

from adgn._util.figures import figure_bytes, theme_css, themed_svg
from adgn.experiments.tables import EXPERIMENTS
from adgn.report.charts import chart_notes, charts
from adgn.report.csvfile import csv_table
from adgn.report.drawing import panels_figure
from adgn.report.grid import grids
from adgn.report.latex import latex_grid
from adgn.report.markdown import escape_markdown, markdown_grid
from adgn.report.page import html_page, progress_text
from adgn.report.results import ReportError, Results, TableResults, read_results
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
    paths = [_write(out / name, content) for name, content in contents.items()]
    return ReportFiles(out / "index.html", tuple(paths))


def markdown_report(table: TableResults, level: int = 1) -> str:
    """An experiment in Markdown: summary, budget, tables and notes.

    Args:
        table: The experiment.
        level: The depth of its heading.

    Example:
        >>> results = read_results(Path("results/reproduction"))  # those of this project
        >>> print(markdown_report(results.tables[0], level=2).splitlines()[0])
        ## Graph property prediction
    """
    experiment = table.experiment
    parts = [f"{'#' * level} {escape_markdown(experiment.title)}"]
    if experiment.summary:
        parts.append(escape_markdown(experiment.summary))
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


def collect(folder: Path, out: Path) -> list[Path]:
    """Copies what a report needs, without studies and runs, so that it can be committed.

    Args:
        folder: A results directory.
        out: Where the copy goes. Cells of experiments that are copied and are no longer in
            `folder` go away; experiments that `folder` does not have stay. Whatever was copied
            first, experiments are in the order of `adgn reproduce --list`.

    Returns:
        The files of the copy.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     copied = collect(Path("results/reproduction"), Path(folder) / "copy")
        ...     len(read_results(Path(folder) / "copy").tables) >= 1, copied[-1].name
        (True, 'reproduction.json')
    """
    results = read_results(folder)  # nothing damaged is copied
    if out.resolve() == folder.resolve():
        raise ReportError(f"--collect={out} is DIR itself; give another folder")
    previous = read_results(out) if (out / "reproduction.json").exists() else None
    names = [table.experiment.name for table in results.tables]
    if previous is not None and previous.budget != results.budget:
        raise ReportError(
            f"--collect={out} has results of budget {previous.budget!r}, DIR={folder} those of "
            f"{results.budget!r}; give another folder"
        )
    copied = []
    for name in names:
        cells = sorted((folder / name / "cells").glob("*.json"))
        for path in [*cells, folder / name / "experiment.json"]:
            copied.append(_write(out / path.relative_to(folder), path.read_bytes()))
        for path in (out / name / "cells").glob("*.json"):
            if path not in copied:
                path.unlink()
    head = json.loads((folder / "reproduction.json").read_text(encoding="utf-8"))
    kept = [table.experiment.name for table in previous.tables] if previous else []
    order = [*EXPERIMENTS, *kept, *names]
    head["experiments"] = sorted({*kept, *names}, key=order.index)
    text = json.dumps(head, indent=1, ensure_ascii=False) + "\n"
    return [*copied, _write(out / "reproduction.json", text.encode())]


def _write(path: Path, content: bytes) -> Path:
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
