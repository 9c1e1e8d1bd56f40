"""What the figures of a report show, before any drawing: lines and dots with their labels."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, isfinite, log10

from adgn.report.numbers import NOT_FINITE, metric_label, number_format
from adgn.report.results import Cell, Column, Moments, TableResults

__all__ = [
    "Dot",
    "DotChart",
    "LineChart",
    "Series",
    "curve_chart",
    "depth_charts",
    "dot_charts",
    "limits",
    "ticks",
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
        for dot in self.dots:
            for value in (dot.measured, dot.published):
                if value is not None and value.mean is not None and value.finite:
                    spread = value.std or 0.0
                    values += [value.mean - spread, value.mean, value.mean + spread]
        if not self.log_x:
            return limits(values)
        positive = [value for value in values if value > 0]
        return min(positive) / 1.3, max(positive) * 1.3

    @property
    def open_bars(self) -> bool:
        """Whether a deviation goes beyond the axis, which is logarithmic."""
        values = [value for dot in self.dots for value in (dot.measured, dot.published)]
        return self.log_x and any(
            value.mean is not None and value.std is not None and value.std >= value.mean
            for value in values
            if value is not None
        )


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


def limits(values: Sequence[float]) -> tuple[float, float]:
    """A range with some air around the values."""
    low, high = min(values), max(values)
    air = 0.06 * (high - low) or 0.05 * abs(high) or 1.0
    return low - air, high + air


def ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Round numbers within a range, about `count` of them.

    Example:
        >>> ticks(0.13, 0.94)
        [0.2, 0.4, 0.6, 0.8]
    """
    if high <= low:
        return [low]
    rough = (high - low) / count
    power = 10.0 ** floor(log10(rough))
    # The round step whose ratio to the wished one is nearest to 1.
    step = min((s * power for s in (1, 2, 5, 10)), key=lambda s: abs(log10(s / rough)))
    digits = max(0, -floor(log10(step)))
    return [round(k * step, digits) + 0.0 for k in range(ceil(low / step), floor(high / step) + 1)]


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
