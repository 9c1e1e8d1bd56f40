"""The report as one HTML page that needs nothing but a browser."""

from collections.abc import Mapping
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from adgn._version import __version__
from adgn.report.charts import curve_chart, depth_charts, dot_charts
from adgn.report.details import CellView, cell_view
from adgn.report.grid import Grid, anchor, grids, time_grid
from adgn.report.results import Results, TableResults
from adgn.report.svg import dot_svg, line_svg

__all__ = ["html_page", "state_text"]

TITLE = "A-DGN reproduction report"
DOTS_CAPTION = (
    "Filled dots: measured, with the standard deviation as a bar. Open diamonds: published."
)
CONSTANT = "Dashed line: the constant predictor."
OPEN_BARS = "The axis is logarithmic: a bar that ends at its left edge goes on to zero."


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
        title=TITLE,
        version=__version__,
        source=results.folder.name or str(results.folder),
        facts=_facts(results),
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
    names = [(name, counts.get(name, 0)) for name in ("done", "partial", "failed", "waiting")]
    parts = [f"{count} {name}" for name, count in names if count]
    return f"{total} cell{'s' if total != 1 else ''}: {', '.join(parts)}."


def _facts(results: Results) -> list[tuple[str, str]]:
    dates = results.dates
    when = "" if not dates else dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    facts = [
        ("budget", results.budget),
        ("cells", state_text(results.statuses).rstrip(".")),
        ("measured", when),
        ("adgn", results.version or ""),
    ]
    return [(name, value) for name, value in facts if value]


def _section(table: TableResults) -> dict[str, Any]:
    experiment = table.experiment
    mine = grids(table)
    dots = dot_charts(table)
    time = time_grid(table)
    any_best = any(e.best for g in mine for b in g.blocks for line in b.lines for e in line.entries)
    legend = "★ and bold: the best measured value of its column." if any_best else ""
    if any(cell.published for cell in table.cells.values()):
        legend = f"Difference: measured minus published. {legend}".rstrip()
    return {
        "name": experiment.name,
        "title": experiment.title,
        "summary": experiment.summary,
        "budget": f"Budget {experiment.budget.name}: {experiment.budget.text}".rstrip(": .") + ".",
        "state": state_text(table.statuses),
        "grids": [(grid, _widths(grid)) for grid in mine],
        "legend": legend,
        "notes": experiment.notes,
        "dots": [dot_svg(chart) for chart in dots],
        "dots_caption": " ".join(
            [
                DOTS_CAPTION,
                *([CONSTANT] if experiment.constant else []),
                *([OPEN_BARS] if any(chart.open_bars for chart in dots) else []),
            ]
        ),
        "lines": [line_svg(chart) for chart in depth_charts(table)],
        "lines_caption": f"{_sentence(experiment.metric.title)} against the number of layers, mean "
        f"over the runs.{f' {CONSTANT}' if experiment.constant else ''}",
        "time": None if time is None else (time, _widths(time)),
        "curves": _curves(table),
        "curves_validated": any(c.curve and c.curve.val for c in table.cells.values()),
        "cells": _cells(table),
    }


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _curves(table: TableResults) -> list[tuple[str, str, list[str]]]:
    found = []
    for column in table.experiment.columns:
        charts = [
            curve_chart(table, table.cells[row.key, column.key], row.title)
            for row in table.experiment.rows
        ]
        drawn = [chart for chart in charts if chart is not None]
        if drawn:
            pictures = [line_svg(chart, small=True) for chart in drawn]
            found.append((column.title, drawn[0].y_label, pictures))
    return found


def _cells(table: TableResults) -> list[CellView]:
    return [
        cell_view(table, row, column)
        for row in table.experiment.rows
        for column in table.experiment.columns
    ]


def _widths(grid: Grid) -> tuple[int, str]:
    """The room for the longest mean and the longest deviation, for alignment, in CSS."""
    entries = [e for block in grid.blocks for line in block.lines for e in line.entries]
    means = max((len(entry.mean) for entry in entries if entry.numeric), default=0)
    spread = max((len(entry.spread) for entry in entries), default=0)
    return means, f"calc({spread}ch + 0.35em)" if spread else "0px"
