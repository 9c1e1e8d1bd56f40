"""The charts as PNG, for slides and papers that take no SVG."""

import io
from collections.abc import Sequence
from itertools import cycle
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from adgn.analysis.figures import COLOURS, MARKERS
from adgn.report.charts import DotChart, LineChart

__all__ = ["panels_png"]

LINES = ("-", "--", ":", "-.", (0, (8, 2)), (0, (1, 3)), (0, (4, 1, 1, 1, 1, 1)))
# Any: matplotlib's stubs type the keys as a literal of all settings. Labels come from data: a
# dollar sign in one is no formula.
STYLE: dict[Any, Any] = {
    "font.size": 10.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "text.parse_math": False,
}


def panels_png(charts: Sequence[LineChart | DotChart], columns: int = 2) -> bytes:
    """Several charts in one picture, on white."""
    columns = min(columns, len(charts))
    rows = -(-len(charts) // columns)
    lines = max(len(chart.dots) if isinstance(chart, DotChart) else 11 for chart in charts)
    with mpl.rc_context(STYLE):
        size = (5.4 * columns, (1.4 + 0.25 * lines) * rows)
        figure = Figure(figsize=size, layout="constrained")
        FigureCanvasAgg(figure)
        places = list(figure.subplots(rows, columns, squeeze=False).flat)
        for axes, chart in zip(places, charts, strict=False):
            if isinstance(chart, DotChart):
                _draw_dots(axes, chart)
            else:
                _draw_lines(axes, chart)
            axes.set_title(chart.title, loc="left", fontweight="bold")
        for axes in places[len(charts) :]:
            axes.set_axis_off()
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", dpi=150, metadata={"Software": None})
    return buffer.getvalue()


def _draw_lines(axes: Axes, chart: LineChart) -> None:
    styles = zip(cycle(COLOURS), cycle(MARKERS), strict=False)
    # Colours and markers repeat together after seven lines; from there on the dashes differ.
    for index, (series, (colour, marker)) in enumerate(zip(chart.series, styles, strict=False)):
        dash = LINES[(index + index // len(COLOURS)) % len(LINES)]
        xs = [x for x, _ in series.points]
        ys = [float("nan") if y is None else y for _, y in series.points]
        axes.plot(xs, ys, color=colour, marker=marker, linestyle=dash, label=series.label)
    if chart.log_x:
        axes.set_xscale("log")
    if chart.x_ticks:
        axes.set_xticks(chart.x_ticks, [f"{x:g}" for x in chart.x_ticks], minor=False)
        axes.set_xticks([], minor=True)
    if chart.reference:
        axes.axhline(chart.reference[1], color="0.4", linestyle=(0, (5, 4)), linewidth=1)
    axes.set_xlabel(chart.x_label)
    axes.set_ylabel(chart.y_label)
    axes.grid(alpha=0.3)
    axes.legend(frameon=False, fontsize="small")


def _draw_dots(axes: Axes, chart: DotChart) -> None:
    styles: tuple[tuple[str, float, dict[str, Any]], ...] = (
        ("measured", -0.14, {"color": COLOURS[0], "marker": "o"}),
        ("published", 0.14, {"color": COLOURS[1], "marker": "D", "markerfacecolor": "white"}),
    )
    for kind, shift, style in styles:
        found = [
            (value.mean, value.std or 0.0, place + shift)
            for place, dot in enumerate(chart.dots)
            if (value := getattr(dot, kind)) is not None and value.finite
        ]
        if found:
            means, deviations, places = zip(*found, strict=True)
            axes.errorbar(means, places, xerr=deviations, linestyle="", label=kind, **style)
    if chart.log_x:
        axes.set_xscale("log")
        axes.set_xlim(*chart.span)
    if chart.reference:
        label, level = chart.reference
        axes.axvline(level, color="0.4", linestyle=(0, (5, 4)), linewidth=1, label=label)
    axes.set_yticks(range(len(chart.dots)), [dot.label for dot in chart.dots])
    axes.set_ylim(len(chart.dots) - 0.5, -0.5)
    axes.set_xlabel(chart.x_label)
    axes.grid(axis="x", alpha=0.3)
    axes.legend(frameon=False, fontsize="small")
