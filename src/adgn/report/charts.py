"""What the figures of a report show, before any drawing: lines and dots with their labels."""

from dataclasses import dataclass
from math import isfinite

from adgn.report.numbers import NOT_FINITE, NumberFormat, metric_label, number_format, tick
from adgn.report.results import Cell, Column, Moments, TableResults

__all__ = [
    "Dot",
    "DotChart",
    "LineChart",
    "Series",
    "charts",
    "curve_chart",
    "depth_charts",
    "dot_charts",
]


@dataclass(frozen=True)
class Series:
    """A line: its label and its points; a point without a height is a gap."""

    label: str
    points: tuple[tuple[float, float | None], ...]

    @property
    def pieces(self) -> list[list[tuple[float, float]]]:
        """The stretches between gaps."""
        pieces: list[list[tuple[float, float]]] = [[]]
        for x, y in self.points:
            if y is None or not isfinite(y):
                pieces.append([])
            else:
                pieces[-1].append((x, y))
        return [piece for piece in pieces if piece]


@dataclass(frozen=True)
class LineChart:
    """Lines over a common axis.

    Attributes:
        x_ticks: The marked places; empty for a choice by the range.
        log_x: Whether equal ratios are equal distances.
        reference: A level to compare with, and its label.
    """

    key: str
    title: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    x_ticks: tuple[float, ...] = ()
    log_x: bool = False
    reference: tuple[str, float] | None = None

    @property
    def description(self) -> str:
        """The chart in words: where each line begins and ends."""
        parts = []
        for series in self.series:
            if series.pieces:
                (x0, y0), (x1, y1) = series.pieces[0][0], series.pieces[-1][-1]
                parts.append(
                    f"{series.label}: from {tick(round(y0, 3))} at {tick(x0)} to "
                    f"{tick(round(y1, 3))} at {tick(x1)}"
                )
        if not parts:
            return "Nothing measured yet."
        return f"{self.y_label} against {self.x_label}. {'; '.join(parts)}."


@dataclass(frozen=True)
class Dot:
    """A method's measured and published value."""

    label: str
    measured: Moments | None
    published: Moments | None
    word: str = ""


@dataclass(frozen=True)
class DotChart:
    """Measured next to published, one line per method."""

    key: str
    title: str
    x_label: str
    dots: tuple[Dot, ...]
    reference: tuple[str, float] | None = None
    log_x: bool = False
    decimals: int = 3

    @property
    def span(self) -> tuple[float, float]:
        """The range of the axis: all means with their deviations, and some air.

        On a logarithmic axis a deviation that reaches zero or less has no end to make room for.
        """
        values = [] if self.reference is None else [self.reference[1]]
        for mean, std in self._shown:
            values += [mean - std, mean, mean + std]
        if self.log_x:
            positive = [value for value in values if value > 0]
            return min(positive) / 1.3, max(positive) * 1.3
        low, high = min(values), max(values)
        air = 0.06 * (high - low) or 0.05 * abs(high) or 1.0
        return low - air, high + air

    @property
    def open_bars(self) -> bool:
        """Whether a deviation goes beyond the axis, which is logarithmic."""
        return self.log_x and any(std >= mean for mean, std in self._shown)

    @property
    def description(self) -> str:
        """The chart in words, with the numbers as the tables have them."""
        written = NumberFormat(self.decimals)

        def number(value: Moments | None) -> str:
            return written.plain(value.mean) if value is not None and value.finite else "none"

        parts = [
            f"{dot.label}: measured {number(dot.measured)}, published {number(dot.published)}"
            for dot in self.dots
        ]
        return f"{self.x_label}. {'; '.join(parts)}."

    @property
    def _shown(self) -> list[tuple[float, float]]:
        """Mean and deviation of all that is drawn."""
        return [
            (value.mean, value.std or 0.0)
            for dot in self.dots
            for value in (dot.measured, dot.published)
            if value is not None and value.mean is not None and value.finite
        ]


def charts(table: TableResults) -> list[LineChart | DotChart]:
    """The charts of an experiment that have something to show."""
    lines = [c for c in depth_charts(table) if any(series.pieces for series in c.series)]
    return [*lines, *dot_charts(table)]


def depth_charts(table: TableResults) -> list[LineChart]:
    """The score against the number of layers, one chart per data set, one line per method."""
    experiment = table.experiment
    if experiment.kind != "depth":
        return []
    charts = []
    for group in table.groups:
        columns = group.columns
        lines = []
        for row in experiment.rows:
            points = tuple(
                (float(column.layers or 0), _shown(table, table.cells[row.key, column.key]))
                for column in columns
            )
            lines.append(Series(row.title, points))
        layers = [float(column.layers or 0) for column in columns]
        charts.append(
            LineChart(
                key=group.key,
                title=group.title or experiment.title,
                x_label="layers",
                y_label=metric_label(experiment.metric),
                series=tuple(lines),
                x_ticks=tuple(layers),
                log_x=min(layers) > 0 and max(layers) >= 10 * min(layers),
                reference=_reference(table, columns[0]),
            )
        )
    return charts


def dot_charts(table: TableResults) -> list[DotChart]:
    """Measured and published values, one chart per column."""
    experiment = table.experiment
    if experiment.kind == "depth":
        return []
    charts = []
    for column in experiment.columns:
        dots = []
        for row in experiment.rows:
            cell = table.cells[row.key, column.key]
            score = _scaled(table, table.score(cell))
            word: str = "" if score is not None and score.finite else cell.status
            if score is not None and not score.finite:
                word = NOT_FINITE
            dots.append(Dot(row.title, score, _scaled(table, cell.published), word))
        shown = [
            value.mean
            for dot in dots
            for value in (dot.measured, dot.published)
            if value is not None and value.mean is not None and value.finite
        ]
        if not shown:
            continue
        title = f"{column.title}, {column.note}" if column.note else column.title
        wide = experiment.kind == "seconds" and min(shown) > 0 and max(shown) > 20 * min(shown)
        charts.append(
            DotChart(
                key=f"{experiment.name}--{column.key}",
                title=title,
                x_label=metric_label(experiment.metric),
                dots=tuple(dots),
                reference=_reference(table, column),
                log_x=wide,
                decimals=number_format(experiment.metric.unit).decimals,
            )
        )
    return charts


def curve_chart(table: TableResults, cell: Cell, title: str) -> LineChart | None:
    """Train and validation score by epoch, of a cell's first run."""
    curve = cell.curve
    if curve is None or not curve.epochs:
        return None
    known = curve.metric == table.experiment.metric.name
    train = tuple(zip(map(float, curve.epochs), curve.train, strict=False))
    val = tuple(zip(map(float, curve.epochs), curve.val, strict=False))
    return LineChart(
        key=f"curve-{cell.experiment}--{cell.row}--{cell.column}",
        title=title,
        x_label="epoch",
        # As they are stored: shares, not percent.
        y_label=table.experiment.metric.title if known else curve.metric,
        series=(Series("train", train), Series("validation", val)),
    )


def _scaled(table: TableResults, value: Moments | None) -> Moments | None:
    if value is None:
        return None
    scale = number_format(table.experiment.metric.unit).scale
    return Moments(
        mean=None if value.mean is None else scale * value.mean,
        std=None if value.std is None else scale * value.std,
    )


def _shown(table: TableResults, cell: Cell) -> float | None:
    score = _scaled(table, table.score(cell))
    return score.mean if score is not None and score.finite else None


def _reference(table: TableResults, column: Column) -> tuple[str, float] | None:
    constant = _scaled(table, table.constant(column))
    if constant is None or constant.mean is None or not constant.finite:
        return None
    return "constant predictor", constant.mean
