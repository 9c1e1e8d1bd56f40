"""The report as one HTML page that needs nothing but a browser."""

from collections.abc import Mapping
from itertools import product
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from adgn._util.figures import theme_css
from adgn._version import __version__
from adgn.report.charts import chart_notes, curve_chart, depth_charts, dot_charts
from adgn.report.details import cell_view
from adgn.report.drawing import chart_svg
from adgn.report.grid import Grid, anchor, grids, time_grid
from adgn.report.numbers import sentence
from adgn.report.results import Results, TableResults
from adgn.report.verdict import reduced_budget, verdict


def html_page(results: Results) -> str:
    """The page as text: styles, script, tables and figures in one.

    Args:
        results: What `read_results` gave.

    Example:
        >>> from pathlib import Path
        >>> from adgn.report import read_results
        >>> page = html_page(read_results(Path("results/reproduction")))  # those of this project
        >>> page[:15]
        '<!doctype html>'
    """
    environment = Environment(
        loader=PackageLoader("adgn.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["anchor"] = anchor
    # Styles and the script are inserted as they are; they are part of the package.
    template = environment.get_template("page.html")
    return template.render(
        title="A-DGN report",
        version=__version__,
        theme=theme_css(),
        source=results.folder.name or str(results.folder),
        facts=_facts(results),
        reasons={
            anchor(cell): reduced_budget(table, cell)
            for table in results.tables
            for cell in table.cells.values()
        },
        sections=[_section(table) for table in results.tables],
    )


def state_text(counts: Mapping[str, int]) -> str:
    """How far an experiment is, in a sentence.

    Example:
        >>> state_text({"done": 3, "failed": 1})
        '4 cells: 3 done, 1 failed.'
        >>> state_text({"done": 4})
        'All 4 cells are done.'
    """
    total = sum(counts.values())
    if counts.get("done", 0) == total:
        return f"All {total} cells are done." if total != 1 else "The one cell is done."
    names = ("done", "partial", "failed", "waiting")
    parts = [f"{counts[name]} {name}" for name in names if counts.get(name)]
    return f"{total} cell{'s' if total != 1 else ''}: {', '.join(parts)}."


def table_state(table: TableResults) -> str:
    """How far an experiment is, and how many of its cells are outdated."""
    old = len(table.outdated)
    which = "1 is outdated: its" if old == 1 else f"{old} are outdated: their"
    return state_text(table.statuses) + (
        f" {which} definition or settings have changed since." if old else ""
    )


def progress_text(table: TableResults) -> str:
    """How far an experiment is and how much of it was planned."""
    budget = table.experiment.budget
    return f"{table_state(table)} {f'Budget {budget.name}: {budget.text}'.rstrip(': .')}."


def _facts(results: Results) -> list[tuple[str, str]]:
    facts = [
        ("budget", results.budget),
        ("cells", state_text(results.statuses).rstrip(".")),
        ("measured", " to ".join(dict.fromkeys([*results.dates[:1], *results.dates[-1:]]))),
        ("adgn", results.version or ""),
    ]
    return [(name, value) for name, value in facts if value]


def _section(table: TableResults) -> dict[str, Any]:
    experiment = table.experiment
    found = grids(table)
    time = time_grid(table)
    legend = []
    if any(cell.published for cell in table.cells.values()):
        legend.append("Difference: measured minus published.")
    if any(e.best for g in found for b in g.blocks for line in b for e in line.entries):
        legend.append("★ and bold: the best measured value of its column.")
    caption = chart_notes(table)
    depth = experiment.kind == "depth"
    if depth:
        title = sentence(experiment.metric.title)
        caption.insert(0, f"{title} against the number of layers, mean over the runs.")
    drawn = depth_charts(table) if depth else dot_charts(table)
    return {
        "table": table,
        "verdict": verdict(table),
        "progress": progress_text(table),
        "grids": [(grid, _widths(grid)) for grid in found],
        "legend": " ".join(legend),
        "depth": depth,
        "charts": [chart_svg(chart) for chart in drawn],
        "caption": " ".join(caption),
        "time": None if time is None else (time, _widths(time)),
        "curves": _curves(table),
        "curves_validated": any(c.curve and c.curve.val for c in table.cells.values()),
        "cells": [cell_view(table, *at) for at in product(experiment.rows, experiment.columns)],
    }


def _curves(table: TableResults) -> list[tuple[str, str, list[str]]]:
    """For each column its title, what the curves show and the charts."""
    found = []
    for column in table.experiment.columns:
        cells = [(table.cells[row.key, column.key], row.title) for row in table.experiment.rows]
        drawn = [chart for cell in cells if (chart := curve_chart(table, *cell)) is not None]
        if drawn:
            pictures = [chart_svg(chart, small=True) for chart in drawn]
            found.append((column.title, drawn[0].y_label, pictures))
    return found


def _widths(grid: Grid) -> tuple[int, str]:
    """The room for the longest mean and the longest deviation, for alignment, in CSS."""
    entries = [e for block in grid.blocks for line in block for e in line.entries]
    means = max((len(entry.mean) for entry in entries if entry.numeric), default=0)
    spread = max((len(entry.spread) for entry in entries), default=0)
    return means, f"calc({spread}ch + 0.35em)" if spread else "0px"
