"""Writes a report: tables, figures and the page; and collects the small files of a directory."""

import json
from dataclasses import dataclass
from pathlib import Path

from adgn.experiments.tables import EXPERIMENTS
from adgn.report.charts import DotChart, LineChart, depth_charts, dot_charts
from adgn.report.csvfile import csv_table
from adgn.report.grid import grids
from adgn.report.latex import latex_grid
from adgn.report.markdown import escape_markdown, markdown_grid
from adgn.report.page import html_page, state_text
from adgn.report.pictures import panels_png
from adgn.report.results import ReportError, Results, TableResults, read_results
from adgn.report.svg import dot_svg, line_svg, panels_svg
from adgn.training.errors import RunError
from adgn.training.files import write_atomically

__all__ = ["ReportFiles", "collect", "figure_svg", "markdown_report", "write_report"]

LEGEND, CONSTANT = "Filled: measured. Open: published.", "Dashed: constant predictor."
OPEN_BARS = "A bar that ends at the left edge goes on to zero."


@dataclass(frozen=True)
class ReportFiles:
    """What was written.

    Attributes:
        page: The HTML page.
        files: All files, the page included.
    """

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
        latex = "\n".join(latex_grid(grid) for grid in grids(table))
        contents[f"tables/{name}.tex"] = latex.encode()
        charts = _charts(table)
        if charts:
            contents[f"figures/{name}.svg"] = figure_svg(table).encode()
            contents[f"figures/{name}.png"] = panels_png(charts)
    contents["index.html"] = html_page(results).encode()
    paths = []
    for name, content in contents.items():
        path = out / name
        _write(path, content)
        paths.append(path)
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
    budget = f"Budget {experiment.budget.name}: {experiment.budget.text}".rstrip(": ")
    parts = [f"{'#' * level} {escape_markdown(experiment.title)}"]
    if experiment.summary:
        parts.append(escape_markdown(experiment.summary))
    parts.append(escape_markdown(f"{state_text(table.statuses)} {budget}"))
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


def figure_svg(table: TableResults) -> str:
    """An experiment's figure as a file of its own; readable in light and dark surroundings."""
    charts = _charts(table)
    if not charts:
        raise ReportError(f"experiment={table.experiment.name!r} has no measured cell to draw yet")
    panels = [dot_svg(c) if isinstance(c, DotChart) else line_svg(c) for c in charts]
    notes = [] if table.experiment.kind == "depth" else [LEGEND]
    if table.experiment.constant:
        notes.append(CONSTANT)
    if any(isinstance(chart, DotChart) and chart.open_bars for chart in charts):
        notes.append(OPEN_BARS)
    return panels_svg(panels, table.experiment.title, notes=notes)


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
            target = out / path.relative_to(folder)
            _write(target, path.read_bytes())
            copied.append(target)
        for path in (out / name / "cells").glob("*.json"):
            if path not in copied:
                path.unlink()
    head = (folder / "reproduction.json").read_text(encoding="utf-8")
    _write(out / "reproduction.json", _merged_head(head, previous, names))
    return [*copied, out / "reproduction.json"]


def _merged_head(head: str, previous: Results | None, names: list[str]) -> bytes:
    content = json.loads(head)
    kept = [] if previous is None else [t.experiment.name for t in previous.tables]
    known = list(EXPERIMENTS)
    content["experiments"] = sorted(
        dict.fromkeys([*kept, *names]),
        key=lambda name: known.index(name) if name in known else len(known),
    )
    return (json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode()


def _charts(table: TableResults) -> list[DotChart | LineChart]:
    lines = [c for c in depth_charts(table) if any(series.pieces for series in c.series)]
    return [*lines, *dot_charts(table)]


def _write(path: Path, content: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, content)
    except (OSError, RunError) as error:
        cause = error if isinstance(error, OSError) else error.__cause__
        why = getattr(cause, "strerror", None) or cause
        raise ReportError(
            f"cannot write {path}: {why}; make room or give another folder with --out"
        ) from error
