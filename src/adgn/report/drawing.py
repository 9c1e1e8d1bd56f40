"""The charts of a report, drawn once: the same figure becomes an SVG, a PNG or a part of the page.

Lines are told apart by marker and dashes as well as by colour, and carry their names at their ends.
"""

from collections.abc import Sequence
from math import isfinite, nan
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from adgn._util.figures import LIGHT, STYLE, line_style, themed_svg
from adgn.report.charts import DotChart, LineChart
from adgn.report.numbers import tick

__all__ = ["chart_svg", "panels_figure"]

WIDTH, SMALL = 340, (220, 132)  # all lengths in points, which are the units of the SVG
LONGEST = 22  # characters of a name before it is shortened
CHARACTER = 7.6  # a wide estimate for a letter in any font: labels must not be cut off
WORD = len("not finite")  # the longest that stands in for a dot
STEP = 21  # between two lines of dots
PANEL = STYLE | {"text.parse_math": False}  # labels come from data: a dollar sign is no formula
MUTED = LIGHT["muted"]
MEASURED: dict[str, Any] = {
    "color": LIGHT["s0"],
    "marker": "o",
    "markersize": 7,
    "markeredgewidth": 0,
}
PUBLISHED: dict[str, Any] = {
    **{"color": LIGHT["s1"], "marker": "D", "markersize": 5.5, "markeredgewidth": 1.5},
    "markerfacecolor": LIGHT["ground"],
}


def chart_svg(chart: LineChart | DotChart, *, small: bool = False) -> str:
    """A chart for the page; a `small` one has no names at the lines and fewer ticks."""
    with mpl.rc_context(PANEL):
        figure = _figure(*_size(chart, small))
        figure.patch.set_visible(False)
        _draw(figure, chart, (0, 0), small)
        return themed_svg(figure, chart.key, chart.title, chart.description)


def panels_figure(
    charts: Sequence[LineChart | DotChart], title: str, notes: Sequence[str] = ()
) -> Figure:
    """Several charts in two columns with a title.

    Notes stand below the title, side by side where there is room, else one below the other.
    """
    gap, pad, columns = 28, 16, min(2, len(charts))
    width = 2 * pad + columns * WIDTH + (columns - 1) * gap
    line = " ".join(notes)
    said = [line] if CHARACTER * len(line) <= width - 2 * pad else notes
    places, y = [], pad + 35.0 + 15 * max(len(said), 1)
    for k in range(0, len(charts), columns):
        row = charts[k : k + columns]
        places += [(pad + place * (WIDTH + gap), y) for place in range(len(row))]
        y += max(_size(chart)[1] for chart in row) + gap
    with mpl.rc_context(PANEL):
        figure = _figure(width, y)
        figure.patch.set_facecolor(LIGHT["ground"])
        sheet = _axes(figure, (0, 0, width, y))
        _text(sheet, title, (0, 1), (pad, -pad - 12), color=LIGHT["ink"], size=16, weight="bold")
        for k, note in enumerate(said):
            _text(sheet, note, (0, 1), (pad, -pad - 30 - 15 * k))
        for chart, place in zip(charts, places, strict=True):
            _draw(figure, chart, place)
    return figure


def _size(chart: LineChart | DotChart, small: bool = False) -> tuple[float, float]:
    if isinstance(chart, DotChart):
        return WIDTH, 68 + STEP * len(chart.dots)
    return SMALL if small else (WIDTH, 236)


def _figure(width: float, height: float) -> Figure:
    return Figure(figsize=(width / 72, height / 72), dpi=72)


def _axes(figure: Figure, box: tuple[float, float, float, float]) -> Axes:
    """Axes at (left, top, right, bottom), without matplotlib's ticks, which take long to draw."""
    width, height = figure.bbox.size
    left, top, right, bottom = box
    axes = figure.add_axes(
        (left / width, 1 - bottom / height, (right - left) / width, (bottom - top) / height)
    )
    axes.set_axis_off()
    return axes


def _draw(
    figure: Figure, chart: LineChart | DotChart, place: tuple[float, float], small: bool = False
) -> None:
    width, height = _size(chart, small)
    if isinstance(chart, DotChart):
        left, top, right, bottom = _room(dot.label for dot in chart.dots) + 10, 38.0, 6.0, 22.0
    elif small:
        left, top, right, bottom = 44, 24, 8, 22
    else:
        left, top, bottom = 44, 42, 34
        right = _room(series.label for series in chart.series) + 18
    x, y = place
    axes = _axes(figure, (x + left, y + top, x + width - right, y + height - bottom))
    _text(axes, chart.title, (0, 1), (-left, top - 12), color=LIGHT["ink"], size=13, weight="bold")
    if isinstance(chart, DotChart):
        _text(axes, chart.x_label, (0, 1), (-left, top - 28))
        _draw_dots(axes, chart, height - top - bottom)
    elif not any(series.pieces for series in chart.series):
        _text(axes, "nothing measured yet", (0, 0.5), (0, 0))
    else:
        _draw_lines(axes, chart, small)
        if not small:
            _text(axes, chart.y_label, (0, 1), (-left, top - 28))
            _text(axes, chart.x_label, (0.5, 0), (0, 3 - bottom), ha="center")


def _draw_lines(axes: Axes, chart: LineChart, small: bool) -> None:
    axes.margins(0.03, 0.06)
    if chart.log_x:
        axes.set_xscale("log")
    width = 1.5 if small else 1.75
    for index, series in enumerate(chart.series):
        xs = [x for x, _ in series.points]
        ys = [nan if y is None or not isfinite(y) else y for _, y in series.points]
        alone = len(series.points) == 1  # a line of one point is only seen by its marker
        _plot(axes, xs, ys, line_style(index), linewidth=width, marked=alone or not small)
    places = [x for series in chart.series for x, _ in series.points]
    # Those where nothing is measured yet have their room as well.
    axes.update_datalim([(min(places), 0.0), (max(places), 0.0)], updatey=False)
    if chart.reference:
        _level(axes.axhline, chart.reference[1])
    for y in _round_numbers(axes.get_ylim(), 4 if small else 6):
        axes.axhline(y, color=LIGHT["rule"], linewidth=1, zorder=0, clip_on=False)
        at = axes.get_yaxis_transform()
        _text(axes, tick(y), (0, y), (-6, -4), xycoords=at, ha="right")
    _number_x_axis(axes, chart.x_ticks or _round_numbers((min(places), max(places)), 4))
    if not small:
        _name_lines(axes, chart)


def _name_lines(axes: Axes, chart: LineChart) -> None:
    """Each line's name at its end, pushed apart where lines end close to each other."""
    box = axes.bbox
    ends = sorted(
        (axes.transData.transform((1.0, series.pieces[-1][-1][1]))[1] - box.y0, index)
        for index, series in enumerate(chart.series)
        if series.pieces
    )
    gap = min(14.0, box.height / max(len(ends) - 1, 1))
    places = [place for place, _ in ends]
    for k in range(1, len(places)):
        places[k] = max(places[k], places[k - 1] + gap)
    places[-1] = min(places[-1], box.height)  # what was pushed out at the top pushes back
    for k in range(len(places) - 2, -1, -1):
        places[k] = min(places[k], places[k + 1] - gap)
    for place, (_, index) in zip(places, ends, strict=True):
        style = line_style(index)
        at = (1 + 8 / box.width, place / box.height)
        _plot(axes, [at[0]], [at[1]], style, linestyle="", transform=axes.transAxes)
        label = _short(chart.series[index].label)
        _text(axes, label, at, (8, -4), color=LIGHT["ink"])


def _draw_dots(axes: Axes, chart: DotChart, height: float) -> None:
    axes.set_ylim(height, 0)  # down the page, in points
    if chart.log_x:
        axes.set_xscale("log")
    low, high = chart.span
    axes.set_xlim(low, high)
    marks = _decades(low, high) if chart.log_x else _round_numbers((low, high), 6)
    for x in marks:
        axes.axvline(x, color=LIGHT["rule"], linewidth=1, zorder=0, clip_on=False)
    _number_x_axis(axes, marks)
    word_at = low  # at the left, but not across the line of the reference
    if chart.reference:
        level = chart.reference[1]
        _level(axes.axvline, level)
        if axes.transData.transform((level, 1.0))[0] - axes.bbox.x0 < CHARACTER * WORD:
            word_at = level
    across = axes.get_yaxis_transform()
    for index, dot in enumerate(chart.dots):
        y = 12 + STEP * index
        _text(
            axes,
            _short(dot.label),
            (0, y),
            (-10, -4),
            xycoords=across,
            ha="right",
            color=LIGHT["ink"],
        )
        for value, level, style, width in (
            (dot.published, y + 4, PUBLISHED, 1),
            (dot.measured, y - 3, MEASURED, 2),
        ):
            if value is None or value.mean is None or not value.finite:
                continue
            if value.std:
                # A logarithmic axis has no place for zero and less: the bar ends where it does.
                ends = [max(value.mean - value.std, low), value.mean + value.std]
                axes.plot(ends, [level] * 2, color=style["color"], linewidth=width, clip_on=False)
            axes.plot([value.mean], [level], linestyle="", clip_on=False, **style)
        if dot.word:
            _text(axes, dot.word, (word_at, y), (5, 1), xycoords="data")


def _plot(
    axes: Axes,
    xs: Sequence[float],
    ys: Sequence[float],
    style: dict[str, Any],
    *,
    marked: bool = True,
    **more: Any,
) -> None:
    if not marked:
        style = style | {"marker": ""}
    edge = {"markeredgecolor": LIGHT["ground"], "markeredgewidth": 0.75, "markersize": 7}
    axes.plot(xs, ys, clip_on=False, **(style | edge | more))


def _level(draw: Any, level: float) -> None:
    draw(level, color=MUTED, linewidth=1.5, linestyle=(0, (5, 4)), zorder=1, clip_on=False)


def _text(
    axes: Axes,
    words: str,
    at: tuple[float, float],
    shift: tuple[float, float],
    xycoords: Any = "axes fraction",
    color: str = MUTED,
    **style: Any,
) -> None:
    """Words at a place and points away from it; nothing depends on how wide a font is."""
    axes.annotate(
        words,
        at,
        shift,
        xycoords=xycoords,
        textcoords="offset points",
        annotation_clip=False,
        color=color,
        **style,
    )


def _number_x_axis(axes: Axes, places: Sequence[float]) -> None:
    """Writes the numbers that have room."""
    last, across = -1e9, axes.get_xaxis_transform()
    for place in places:
        at = axes.transData.transform((place, 1.0))[0]
        if at - last >= 7 * len(tick(place)) + 4:
            _text(axes, tick(place), (place, 0), (0, -14), xycoords=across, ha="center")
            last = at


def _round_numbers(span: tuple[float, float], count: int) -> list[float]:
    found = MaxNLocator(count, steps=[1, 2, 5, 10]).tick_values(*span)
    air = 1e-9 * (span[1] - span[0])
    return [round(float(x), 12) for x in found if span[0] - air <= x <= span[1] + air]


def _decades(low: float, high: float) -> list[float]:
    tens = [10.0**k for k in range(-6, 7)]
    inside = [mark for mark in tens if low <= mark <= high]
    if len(inside) > 2:
        return inside
    return [mark for ten in tens for m in (1, 2, 5) if low <= (mark := m * ten) <= high]


def _room(labels: Any) -> float:
    return CHARACTER * max(len(_short(label)) for label in labels)


def _short(label: str) -> str:
    return label if len(label) <= LONGEST else f"{label[: LONGEST - 1]}…"
