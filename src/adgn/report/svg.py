"""The charts as SVG: inside the page they follow its colours, as files they carry their own.

Lines are told apart by marker and dash pattern as well as by colour, and carry their names at
their ends.
"""

from collections.abc import Callable, Sequence
from html import escape
from importlib.resources import files
from math import log10

from adgn.report.charts import Dot, DotChart, LineChart, Series, limits, ticks
from adgn.report.numbers import MINUS, NumberFormat
from adgn.report.results import Moments

__all__ = ["dot_svg", "line_svg", "panels_svg"]

WIDTH = 340
LONGEST = 22  # characters of a name before it is shortened
CHARACTER = 7.6  # a wide estimate for 11 px text: labels must not be cut off
DASHES = ("", "6 3", "2 2.5", "8 3 2 3", "1 3", "10 4", "4 2 1 2 1 2", "3 3", "12 3", "5 1.5")
MARKERS = (
    "M-3.5 0a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0 -7 0Z",
    "M-3 -3H3V3H-3Z",
    "M0 -4L4 3H-4Z",
    "M0 -4.5L4.5 0L0 4.5L-4.5 0Z",
    "M0 4L4 -3H-4Z",
    "M-1.3 -4H1.3V-1.3H4V1.3H1.3V4H-1.3V1.3H-4V-1.3H-1.3Z",
    "M-4 -2.2L-2.2 -4L0 -1.8L2.2 -4L4 -2.2L1.8 0L4 2.2L2.2 4L0 1.8L-2.2 4L-4 2.2L-1.8 0Z",
    "M0 -4.5L4.3 -1.4L2.6 3.6H-2.6L-4.3 -1.4Z",
    "M-4 -2L4 -2V2H-4Z",
    "M-2 -4H2V4H-2Z",
)


def line_svg(chart: LineChart, *, small: bool = False) -> str:
    """A line chart; a `small` one has no names at the lines and fewer ticks."""
    width, height = (220, 132) if small else (WIDTH, 236)
    longest = max(len(_short(series.label)) for series in chart.series)
    left, top, bottom = 44, 24 if small else 42, 22 if small else 34
    right = 8 if small else 18 + CHARACTER * longest
    heights = [y for series in chart.series for piece in series.pieces for _, y in piece]
    places = [x for series in chart.series for x, _ in series.points]
    parts = [_text(0, 12, chart.title, "title")]
    if not small:
        parts.append(_text(0, 28, chart.y_label, "muted"))
    if not heights:
        parts.append(_text(left, height / 2, "nothing measured yet", "muted"))
        return _svg(chart.key, width, height, chart.title, "Nothing measured yet.", parts)
    levels = [*heights, chart.reference[1]] if chart.reference else heights
    y_at = _scale(limits(levels), (height - bottom, top))
    x_at = _scale((min(places), max(places)), (left + 6, width - right - 6), log=chart.log_x)
    parts += _y_axis(limits(levels), y_at, left, width - right, 3 if small else 5)
    for x in _spread_ticks(chart.x_ticks or ticks(min(places), max(places), 3), x_at):
        parts.append(_text(x_at(x), height - bottom + 14, _tick(x), "tick", "middle"))
    if not small:
        middle = (left + width - right) / 2
        parts.append(_text(middle, height - 3, chart.x_label, "muted", "middle"))
    if chart.reference:
        parts.append(_level(y_at(chart.reference[1]), left, width - right))
    for index, series in enumerate(chart.series):
        parts += _series(series, index, x_at, y_at, markers=not small)
    if not small:
        parts += _names(chart, y_at, width - right + 4, (top, height - bottom))
    return _svg(chart.key, width, height, chart.title, _describe_lines(chart), parts)


def dot_svg(chart: DotChart) -> str:
    """Measured values as dots with their deviation, published ones as open diamonds."""
    step, top = 21, 46
    left = 10 + CHARACTER * max(len(_short(dot.label)) for dot in chart.dots)
    height = top + step * len(chart.dots) + 22
    span = chart.span
    x_at = _scale(span, (left, WIDTH - 6), log=chart.log_x)
    parts = [_text(0, 12, chart.title, "title"), _text(0, 28, chart.x_label, "muted")]
    marks = _decades(*span) if chart.log_x else ticks(*span, 4)
    for x in marks:
        parts.append(_line(x_at(x), top - 8, x_at(x), height - 22, "grid"))
    for x in _spread_ticks(marks, x_at):
        parts.append(_text(x_at(x), height - 8, _tick(x), "tick", "middle"))
    if chart.reference:
        x = x_at(chart.reference[1])
        parts.append(_line(x, top - 8, x, height - 22, "reference"))
    for index, dot in enumerate(chart.dots):
        parts += _dot(dot, top + step * index + 4, left, x_at, span[0])
    return _svg(chart.key, WIDTH, height, chart.title, _describe_dots(chart), parts)


def panels_svg(
    panels: Sequence[str], title: str, columns: int = 2, notes: Sequence[str] = ()
) -> str:
    """Several charts in one file that stands on its own, with its own colours.

    Notes stand below the title, side by side where there is room, else one below the other.
    """
    gap, pad = 28, 16
    sizes = [_size(panel) for panel in panels]
    rows = [list(range(k, min(k + columns, len(panels)))) for k in range(0, len(panels), columns)]
    columns = min(columns, len(panels))
    width = 2 * pad + columns * WIDTH + (columns - 1) * gap
    line = " ".join(notes)
    said = [line] if CHARACTER * len(line) <= width - 2 * pad else notes
    head = 35 + 15 * max(len(said), 1)
    y, placed = float(pad + head), []
    for row in rows:
        for place, index in enumerate(row):
            x = pad + place * (WIDTH + gap)
            placed.append(panels[index].replace("<svg ", f'<svg x="{x}" y="{y:g}" ', 1))
        y += max(sizes[index][1] for index in row) + gap
    parts = [
        f"<style>{_stylesheet()}</style>",
        f'<rect class="ground" width="{width}" height="{y:g}"/>',
        _text(pad, pad + 12, title, "headline"),
        *(_text(pad, pad + 30 + 15 * k, note, "muted") for k, note in enumerate(said)),
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="chart alone" role="img" '
        f'width="{width}" height="{y:g}" viewBox="0 0 {width} {y:g}">'
        f"<title>{escape(title)}</title>{''.join([*parts, *placed])}</svg>\n"
    )


def _stylesheet() -> str:
    folder = files("adgn.report").joinpath("templates")
    return folder.joinpath("colours.css").read_text(encoding="utf-8") + folder.joinpath(
        "chart.css"
    ).read_text(encoding="utf-8")


def _svg(
    key: str, width: float, height: float, title: str, description: str, parts: Sequence[str]
) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="chart" role="img" '
        f'aria-labelledby="{escape(key)}-t {escape(key)}-d" width="{width:g}" '
        f'height="{height:g}" viewBox="0 0 {width:g} {height:g}">'
        f'<title id="{escape(key)}-t">{escape(title)}</title>'
        f'<desc id="{escape(key)}-d">{escape(description)}</desc>{"".join(parts)}</svg>'
    )


def _size(panel: str) -> tuple[float, float]:
    _, _, width, height = panel.split('viewBox="', 1)[1].split('"', 1)[0].split()
    return float(width), float(height)


def _scale(
    span: tuple[float, float], to: tuple[float, float], *, log: bool = False
) -> Callable[[float], float]:
    place = log10 if log else float
    low, high = place(span[0]), place(span[1])
    # A single place sits in the middle.
    return lambda value: (
        to[0] + (to[1] - to[0]) * ((place(value) - low) / (high - low) if high > low else 0.5)
    )


def _decades(low: float, high: float) -> list[float]:
    marks = [m * 10.0**k for k in range(-6, 7) for m in (1, 2, 5)]
    inside = [mark for mark in marks if low <= mark <= high]
    tens = [mark for mark in inside if f"{mark:e}".startswith("1.0")]
    return tens if len(tens) > 2 else inside


def _spread_ticks(places: Sequence[float], at: Callable[[float], float]) -> list[float]:
    """Those that have room for their number."""
    kept: list[float] = []
    for place in places:
        if not kept or abs(at(place) - at(kept[-1])) >= 7 * len(_tick(place)) + 4:
            kept.append(place)
    return kept


def _y_axis(
    span: tuple[float, float], at: Callable[[float], float], left: float, right: float, count: int
) -> list[str]:
    parts = []
    for y in ticks(*span, count):
        parts.append(_line(left, at(y), right, at(y), "grid"))
        parts.append(_text(left - 6, at(y) + 4, _tick(y), "tick", "end"))
    return parts


def _series(
    series: Series,
    index: int,
    x_at: Callable[[float], float],
    y_at: Callable[[float], float],
    *,
    markers: bool,
) -> list[str]:
    kind = index % len(MARKERS)
    parts = []
    for piece in series.pieces:
        points = " ".join(f"{x_at(x):.1f},{y_at(y):.1f}" for x, y in piece)
        dash = f' stroke-dasharray="{DASHES[kind]}"' if DASHES[kind] else ""
        parts.append(f'<polyline class="line s{kind}" points="{points}"{dash}/>')
        if markers:
            parts += [_marker(kind, x_at(x), y_at(y)) for x, y in piece]
    return parts


def _names(
    chart: LineChart, y_at: Callable[[float], float], x: float, span: tuple[float, float]
) -> list[str]:
    """Each line's name at its end, pushed apart where lines end close to each other."""
    ends = []
    for index, series in enumerate(chart.series):
        if series.pieces:
            ends.append((y_at(series.pieces[-1][-1][1]), index, series.label))
    gap = min(14.0, (span[1] - span[0]) / max(len(ends) - 1, 1))
    ends.sort()
    places = [y for y, _, _ in ends]
    for k in range(1, len(places)):
        places[k] = max(places[k], places[k - 1] + gap)
    if places:  # what was pushed out at the bottom pushes back, as far as needed
        places[-1] = min(places[-1], span[1])
    for k in range(len(places) - 2, -1, -1):
        places[k] = min(places[k], places[k + 1] - gap)
    parts = []
    for place, (_, index, label) in zip(places, ends, strict=True):
        parts.append(_marker(index % len(MARKERS), x + 4, place))
        parts.append(_text(x + 12, place + 4, _short(label), "name"))
    return parts


def _dot(
    dot: Dot, y: float, left: float, x_at: Callable[[float], float], lowest: float
) -> list[str]:
    parts = [_text(left - 10, y + 4, _short(dot.label), "name", "end")]

    def bar(value: Moments, kind: str, level: float) -> None:
        if value.std and value.mean is not None:
            # A logarithmic axis has no place for zero and less: the bar ends where the axis does.
            low = x_at(max(value.mean - value.std, lowest))
            high = x_at(value.mean + value.std)
            parts.append(_line(low, level, high, level, kind))

    published = dot.published
    if published is not None and published.mean is not None and published.finite:
        bar(published, "deviation paper", y + 4)
        parts.append(_shape("M0 -4L4 0L0 4L-4 0Z", x_at(published.mean), y + 4, "paper"))
    measured = dot.measured
    if measured is not None and measured.mean is not None and measured.finite:
        bar(measured, "deviation", y - 3)
        parts.append(_shape(MARKERS[0], x_at(measured.mean), y - 3, "dot"))
    elif dot.word:
        parts.append(_text(left, y - 1, dot.word, "muted"))  # where the dot would be
    return parts


def _marker(kind: int, x: float, y: float) -> str:
    return _shape(MARKERS[kind], x, y, f"mark s{kind}")


def _shape(path: str, x: float, y: float, kind: str) -> str:
    return f'<path class="{kind}" d="{path}" transform="translate({x:.1f} {y:.1f})"/>'


def _level(y: float, left: float, right: float) -> str:
    return _line(left, y, right, y, "reference")


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f'<path class="{kind}" d="M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}"/>'


def _text(x: float, y: float, text: str, kind: str, anchor: str = "start") -> str:
    place = f' text-anchor="{anchor}"' if anchor != "start" else ""
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}"{place}>{escape(text)}</text>'


def _short(label: str) -> str:
    return label if len(label) <= LONGEST else f"{label[: LONGEST - 1]}…"


def _tick(value: float) -> str:
    return f"{value:g}".replace("-", MINUS)


def _describe_lines(chart: LineChart) -> str:
    parts = []
    for series in chart.series:
        if series.pieces:
            (x0, y0), (x1, y1) = series.pieces[0][0], series.pieces[-1][-1]
            parts.append(
                f"{series.label}: from {_tick(round(y0, 3))} at {_tick(x0)} to "
                f"{_tick(round(y1, 3))} at {_tick(x1)}"
            )
    return f"{chart.y_label} against {chart.x_label}. {'; '.join(parts)}."


def _describe_dots(chart: DotChart) -> str:
    written = NumberFormat(chart.decimals)  # as in the tables

    def number(value: Moments | None) -> str:
        if value is None or value.mean is None or not value.finite:
            return "none"
        return written.plain(value.mean)

    parts = [
        f"{dot.label}: measured {number(dot.measured)}, published {number(dot.published)}"
        for dot in chart.dots
    ]
    return f"{chart.x_label}. {'; '.join(parts)}."
