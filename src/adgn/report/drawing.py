"""The charts of a report, drawn once: the same figure becomes an SVG, a PNG or a part of the page.

Lines are told apart by marker and dashes as well as by colour, and carry their names at their ends.
"""

from collections.abc import Iterable, Sequence
from math import isfinite, nan
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from adgn._util.figures import LIGHT, STYLE, line_style, themed_svg
from adgn.report.charts import DotChart, LineChart, ScatterChart
from adgn.report.numbers import tick

WIDTH, SMALL = 340, (220, 132)  # all lengths in points, which are the units of the SVG
STEP = 21  # between two lines of dots
LONGEST = 22  # characters of a name before it is shortened
CHARACTER = 7.6  # a wide estimate for a letter in any font: labels must not be cut off
INK, MUTED, GROUND = LIGHT["ink"], LIGHT["muted"], LIGHT["ground"]
PANEL = STYLE | {
    **{"lines.markersize": 7, "lines.markeredgecolor": GROUND, "lines.markeredgewidth": 0.75},
    **{"text.color": MUTED, "figure.facecolor": GROUND},
    "text.parse_math": False,  # labels come from data: a dollar sign is no formula
}
RULE: dict[str, Any] = {"color": LIGHT["rule"], "linewidth": 1, "zorder": 0}
REFERENCE = RULE | {"color": MUTED, "linewidth": 1.5, "linestyle": (0, (5, 4)), "zorder": 1}
OPEN: dict[str, Any] = {
    **{"marker": "D", "markersize": 5.5, "markerfacecolor": GROUND, "markeredgewidth": 1.5},
    "markeredgecolor": LIGHT["s1"],
}
Point = tuple[float, float]
Chart = LineChart | DotChart | ScatterChart


def chart_svg(chart: Chart, *, small: bool = False) -> str:
    """A chart for the page; a `small` one has no names at the lines and fewer ticks."""
    width, height = _size(chart, small)
    with mpl.rc_context(PANEL):
        figure = Figure(figsize=(width / 72, height / 72), dpi=72)
        figure.patch.set_visible(False)
        _draw(figure, chart, (0, 0), small)
        return themed_svg(figure, chart.key, chart.title, chart.description)


def panels_figure(charts: Sequence[Chart], title: str, notes: Sequence[str] = ()) -> Figure:
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
        figure = Figure(figsize=(width / 72, y / 72), dpi=72)
        sheet = _axes(figure, 0, 0, width, y)
        _text(sheet, title, (0, 1), (pad, -pad - 12), color=INK, size=16, weight="bold")
        for k, note in enumerate(said):
            _text(sheet, note, (0, 1), (pad, -pad - 30 - 15 * k))
        for chart, place in zip(charts, places, strict=True):
            _draw(figure, chart, place)
    return figure


def _size(chart: Chart, small: bool = False) -> Point:
    if isinstance(chart, DotChart):
        return WIDTH, 68 + STEP * len(chart.dots)
    if isinstance(chart, ScatterChart):
        return WIDTH, WIDTH
    return SMALL if small else (WIDTH, 236)


def _draw(figure: Figure, chart: Chart, place: Point, small: bool = False) -> None:
    (x, y), (width, height) = place, _size(chart, small)
    left, top, right, bottom = 44.0, 24.0 if small else 42.0, 8.0, 22.0 if small else 34.0
    if isinstance(chart, DotChart):
        left, top, right, bottom = _room(dot.label for dot in chart.dots) + 10, 38, 6, 22
    elif isinstance(chart, LineChart) and not small:
        right = _room(series.label for series in chart.series) + 18
    axes = _axes(figure, x + left, y + top, width - left - right, height - top - bottom)
    if chart.log_x:
        axes.set_xscale("log")
    _text(axes, chart.title, (0, 1), (-left, top - 12), color=INK, size=13, weight="bold")
    if isinstance(chart, DotChart):
        _text(axes, chart.x_label, (0, 1), (-left, top - 28))
        _draw_dots(axes, chart)
    elif isinstance(chart, ScatterChart):
        _draw_points(axes, chart)
        _text(axes, chart.y_label, (0, 1), (-left, top - 28))
        _text(axes, chart.x_label, (0.5, 0), (0, 3 - bottom), ha="center")
    elif not any(series.measured for series in chart.series):
        _text(axes, "nothing measured yet", (0, 0.5), (0, 0))
    else:
        _draw_lines(axes, chart, small)
        if not small:
            _text(axes, chart.y_label, (0, 1), (-left, top - 28))
            _text(axes, chart.x_label, (0.5, 0), (0, 3 - bottom), ha="center")
            _name_lines(axes, chart)
    for artist in axes.get_children():
        artist.set_clip_on(False)


def _draw_lines(axes: Axes, chart: LineChart, small: bool) -> None:
    axes.margins(0.03, 0.06)
    for index, series in enumerate(chart.series):
        xs = [x for x, _ in series.points]
        ys = [nan if y is None or not isfinite(y) else y for _, y in series.points]
        style = line_style(index)
        if small and len(xs) > 1:  # a line of one point is only seen by its marker
            style["marker"] = ""
        axes.plot(xs, ys, linewidth=1.5 if small else 1.75, **style)
        aside = 0.04 * (index - (len(chart.series) - 1) / 2)  # bars side by side
        for x, ends in zip(xs, series.intervals, strict=False):
            if all(map(isfinite, ends)):
                axes.plot([x + aside] * 2, ends, color=style["color"], linewidth=1, alpha=0.6)
    places = [x for series in chart.series for x, _ in series.points]
    # Those where nothing is measured yet have their room as well.
    axes.update_datalim([(min(places), 0.0), (max(places), 0.0)], updatey=False)
    if chart.reference is not None:
        axes.axhline(chart.reference, **REFERENCE)
    if chart.floor is not None:
        axes.axhline(chart.floor, **REFERENCE | {"linestyle": (0, (1, 3))})
    for y in _round_numbers(axes.get_ylim(), 4 if small else 6):
        axes.axhline(y, **RULE)
        _text(axes, tick(y), (0, y), (-6, -4), axes.get_yaxis_transform(), ha="right")
    _number_x_axis(axes, chart.x_ticks or _round_numbers((min(places), max(places)), 4))


def _name_lines(axes: Axes, chart: LineChart) -> None:
    """Each line's name at its end, pushed apart where lines end close to each other."""
    box = axes.bbox
    ends = sorted(
        (axes.transData.transform((1.0, series.measured[-1][1]))[1] - box.y0, index)
        for index, series in enumerate(chart.series)
        if series.measured
    )
    steps = min(14.0, box.height / max(len(ends) - 1, 1)) * np.arange(len(ends))
    # Upwards by a step each where needed; what would leave the chart stays below its top.
    pushed = np.maximum.accumulate([end for end, _ in ends] - steps) + steps
    for y, (_, index) in zip(np.minimum(pushed, box.height - steps[::-1]), ends, strict=True):
        at = (1 + 8 / box.width, y / box.height)
        style = line_style(index) | {"linestyle": "", "transform": axes.transAxes}
        axes.plot(*at, **style)
        _text(axes, _short(chart.series[index].label), at, (8, -4), color=INK)


def _draw_dots(axes: Axes, chart: DotChart) -> None:
    axes.set_ylim(axes.bbox.height, 0)  # down the page, in points
    low, high = chart.span
    axes.set_xlim(low, high)
    marks = _decades(low, high) if chart.log_x else _round_numbers((low, high), 6)
    for x in marks:
        axes.axvline(x, **RULE)
    _number_x_axis(axes, marks)
    if chart.reference is not None:
        axes.axvline(chart.reference, **REFERENCE)
    across = axes.get_yaxis_transform()
    for y, dot in zip(range(12, 12 + STEP * len(chart.dots), STEP), chart.dots, strict=True):
        _text(axes, _short(dot.label), (0, y), (-10, -4), across, ha="right", color=INK)
        for value, place, colour, width, style in (
            (dot.published, y + 4, LIGHT["s1"], 1, OPEN),
            (dot.measured, y - 3, LIGHT["s0"], 2, {"marker": "o", "markeredgewidth": 0}),
        ):
            if value is None or value.mean is None:
                continue
            if value.std:
                # A logarithmic axis has no place for zero and less: the bar ends where it does.
                ends = [max(value.mean - value.std, low), value.mean + value.std]
                axes.plot(ends, [place] * 2, color=colour, linewidth=width)
            axes.plot(value.mean, place, linestyle="", color=colour, **style)
        if dot.word:
            drawn = [value for value in (dot.published, dot.measured) if value is not None]
            spans = [(v.mean, v.std or 0.0) for v in drawn if v.mean is not None]
            lines = [] if chart.reference is None else [(chart.reference, 0.0)]
            at = _free_place(axes, dot.word, [*spans, *lines])
            _text(axes, dot.word, (0, y), (at, 1), across)


def _free_place(axes: Axes, word: str, taken: Sequence[Point]) -> float:
    """Where a word is not across a mark or line, in points from the left: as far left as it can.

    `taken` are the places of marks with half their width, both in data.
    """
    room, width, aside = CHARACTER * len(word), axes.bbox.width, 6.0

    def point(x: float) -> float:
        # A logarithmic axis has no place for zero and less.
        inside = min(max(x, axes.get_xlim()[0]), axes.get_xlim()[1])
        return float(axes.transData.transform((inside, 1.0))[0] - axes.bbox.x0)

    spans = [(point(x - half) - aside, point(x + half) + aside) for x, half in taken]
    for start in sorted([5.0, *(end for _, end in spans)]):
        if start + room <= width and all(start + room <= a or start >= b for a, b in spans):
            return start
    return width - room  # there is no free place: the right end, where least is drawn


def _draw_points(axes: Axes, chart: ScatterChart) -> None:
    low, high = chart.span
    axes.set_xlim(low, high)
    axes.set_ylim(low, high)
    marks = _round_numbers((low, high), 5)
    for mark in marks:
        axes.axhline(mark, **RULE)
        _text(axes, tick(mark), (0, mark), (-6, -4), axes.get_yaxis_transform(), ha="right")
    _number_x_axis(axes, marks)
    axes.plot([low, high], [low, high], **REFERENCE)
    xs, ys = zip(*chart.points, strict=True)
    style = line_style(0) | {"linestyle": "", "markersize": 4.5, "markeredgewidth": 0.5}
    axes.plot(xs, ys, **style)


def _axes(figure: Figure, left: float, top: float, width: float, height: float) -> Axes:
    """Axes at a place, without matplotlib's own ticks and labels, which take long to draw."""
    wide, high = figure.bbox.size
    axes = figure.add_axes((left / wide, 1 - (top + height) / high, width / wide, height / high))
    axes.set_axis_off()
    return axes


def _text(
    axes: Axes, words: str, at: Point, shift: Point, coords: Any = "axes fraction", **style: Any
) -> None:
    """Words at a place and some points away; where they are does not depend on a font."""
    axes.annotate(words, at, shift, coords, "offset points", annotation_clip=False, **style)


def _number_x_axis(axes: Axes, places: Sequence[float]) -> None:
    """Writes the numbers that have room."""
    last = -1e9
    for place in places:
        at = axes.transData.transform((place, 1.0))[0]
        if at - last >= 7 * len(tick(place)) + 4:
            _text(axes, tick(place), (place, 0), (0, -14), axes.get_xaxis_transform(), ha="center")
            last = at


def _round_numbers(span: tuple[float, float], count: int) -> list[float]:
    found = MaxNLocator(count, steps=[1, 2, 5, 10]).tick_values(*span)
    return [round(float(x), 12) for x in found if span[0] <= x <= span[1]]


def _decades(low: float, high: float) -> list[float]:
    tens = [10.0**k for k in range(-6, 7)]
    inside = [mark for mark in tens if low <= mark <= high]
    if len(inside) > 2:
        return inside
    return [mark for ten in tens for m in (1, 2, 5) if low <= (mark := m * ten) <= high]


def _room(labels: Iterable[str]) -> float:
    return CHARACTER * max(len(_short(label)) for label in labels)


def _short(label: str) -> str:
    return label if len(label) <= LONGEST else f"{label[: LONGEST - 1]}…"
