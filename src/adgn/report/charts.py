"""What the figures of a report show, before any drawing: lines and dots with their labels."""

from dataclasses import dataclass, replace
from math import isfinite

from adgn.experiments.records import Cell, Column, Moments
from adgn.report.numbers import NOT_FINITE, NumberFormat, metric_label, number_format, tick
from adgn.report.results import TableResults


@dataclass(frozen=True)
class Series:
    """A line: its label and its points; a point without a height is a gap."""

    label: str
    points: tuple[tuple[float, float | None], ...]
    intervals: tuple[tuple[float, float], ...] = ()  # of the points, or none

    @property
    def measured(self) -> list[tuple[float, float]]:
        """The points that have a height."""
        return [(x, y) for x, y in self.points if y is not None and isfinite(y)]


@dataclass(frozen=True)
class LineChart:
    """Lines over a common axis."""

    key: str
    title: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    x_ticks: tuple[float, ...] = ()  # the marked places; empty for a choice by the range
    log_x: bool = False  # whether equal ratios are equal distances
    reference: float | None = None  # a level to compare with: the constant predictor's
    floor: float | None = None  # a second one

    @property
    def description(self) -> str:
        """The chart in words: where each line begins and ends."""
        parts = []
        for line in self.series:
            ends = [f"{tick(round(y, 3))} at {tick(x)}" for x, y in line.measured]
            if ends:
                parts.append(f"{line.label}: from {ends[0]} to {ends[-1]}")
        words = f"{self.y_label} against {self.x_label}. {'; '.join(parts)}."
        return words if parts else "Nothing measured yet."


@dataclass(frozen=True)
class ScatterChart:
    """Points with a line of equality: what was predicted against what is true."""

    key: str
    title: str
    x_label: str
    y_label: str
    points: tuple[tuple[float, float], ...]
    log_x: bool = False

    @property
    def span(self) -> tuple[float, float]:
        """The range of both axes."""
        values = [value for point in self.points for value in point]
        low, high = min(values), max(values)
        air = 0.04 * (high - low) or 0.05 * abs(high) or 1.0
        return low - air, high + air

    @property
    def description(self) -> str:
        """The chart in words."""
        ends = [
            [tick(float(f"{end(axis):.4g}")) for end in (min, max)]
            for axis in zip(*self.points, strict=True)
        ]
        return (
            f"{self.y_label}, from {ends[1][0]} to {ends[1][1]}, against {self.x_label}, "
            f"from {ends[0][0]} to {ends[0][1]}; {len(self.points)} points."
        )


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
    reference: float | None = None
    log_x: bool = False
    decimals: int = 3

    @property
    def span(self) -> tuple[float, float]:
        """The range of the axis: all means with their deviations, and some air.

        On a logarithmic axis a deviation that reaches zero or less has no end to make room for.
        """
        values = [] if self.reference is None else [self.reference]
        for mean, std in self.shown:
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
        return self.log_x and any(std >= mean for mean, std in self.shown)

    @property
    def description(self) -> str:
        """The chart in words, with the numbers as the tables have them."""
        written = NumberFormat(self.decimals)

        def number(value: Moments | None) -> str:
            return written.plain(value.mean) if value is not None and value.finite else "none"

        parts = (
            f"{dot.label}: measured {number(dot.measured)}, published {number(dot.published)}"
            for dot in self.dots
        )
        return f"{self.x_label}. {'; '.join(parts)}."

    @property
    def shown(self) -> list[tuple[float, float]]:
        """Mean and deviation of all that is drawn."""
        return [
            (value.mean, value.std or 0.0)
            for dot in self.dots
            for value in (dot.measured, dot.published)
            if value is not None and value.mean is not None
        ]


def charts(table: TableResults) -> list[LineChart | DotChart]:
    """The charts of an experiment that have something to show."""
    lines = [c for c in depth_charts(table) if any(series.measured for series in c.series)]
    return [*lines, *dot_charts(table)]


def chart_notes(table: TableResults) -> list[str]:
    """How the charts of an experiment are read."""
    dots, notes = dot_charts(table), []
    if dots:
        notes += ["Filled dots: measured, with standard deviation.", "Open diamonds: published."]
    if table.experiment.constant:
        notes.append("Dashed line: constant predictor.")
    if any(chart.open_bars for chart in dots):
        notes.append("A bar that ends at the left edge goes on to zero.")
    return notes


def depth_charts(table: TableResults) -> list[LineChart]:
    """The score against the number of layers, one chart per data set, one line per method."""
    experiment = table.experiment
    if experiment.kind != "depth":
        return []
    found = []
    for group in table.groups:
        layers = [float(column.layers or 0) for column in group.columns]
        lines = []
        for row in experiment.rows:
            cells = [table.cells[row.key, column.key] for column in group.columns]
            scores = [_drawn(table, cell) for cell in cells]
            heights = [score.mean if score else None for score in scores]
            lines.append(Series(row.title, tuple(zip(layers, heights, strict=True))))
        found.append(
            LineChart(
                key=group.key,
                title=group.title or experiment.title,
                x_label="layers",
                y_label=metric_label(experiment.metric),
                series=tuple(lines),
                x_ticks=tuple(layers),
                log_x=min(layers) > 0 and max(layers) >= 10 * min(layers),
                reference=_reference(table, group.columns[0]),
            )
        )
    return found


def dot_charts(table: TableResults) -> list[DotChart]:
    """Measured and published values, one chart per column where there are any."""
    experiment = table.experiment
    if experiment.kind == "depth":
        return []
    found = []
    for column in experiment.columns:
        dots = []
        for row in experiment.rows:
            cell = table.cells[row.key, column.key]
            score = _drawn(table, cell)
            word = "" if score and score.finite else NOT_FINITE if score else cell.status
            if table.is_outdated(cell):
                word = "outdated"
            dots.append(Dot(row.title, score, _scaled(table, cell.published), word))
        chart = DotChart(
            key=f"{experiment.name}--{column.key}",
            title=f"{column.title}, {column.note}" if column.note else column.title,
            x_label=metric_label(experiment.metric),
            dots=tuple(dots),
            reference=_reference(table, column),
            decimals=number_format(experiment.metric.unit).decimals,
        )
        means = [mean for mean, _ in chart.shown]
        if means:
            wide = experiment.kind == "seconds" and 0 < 20 * min(means) < max(means)
            found.append(replace(chart, log_x=wide))
    return found


def curve_chart(table: TableResults, cell: Cell, title: str) -> LineChart | None:
    """Train and validation score by epoch, of a cell's first run."""
    curve = cell.curve
    if curve is None or not curve.epochs:
        return None
    metric, epochs = table.experiment.metric, [float(epoch) for epoch in curve.epochs]
    lines = {"train": curve.train, "validation": curve.val}
    return LineChart(
        key=f"curve-{cell.experiment}--{cell.row}--{cell.column}",
        title=title,
        x_label="epoch",
        # As they are stored: shares, not percent.
        y_label=metric.title if curve.metric == metric.name else curve.metric,
        series=tuple(
            Series(name, tuple(zip(epochs, scores, strict=False))) for name, scores in lines.items()
        ),
    )


def _drawn(table: TableResults, cell: Cell) -> Moments | None:
    """The score of a cell as it is drawn; an outdated one is not, it would be compared."""
    return None if table.is_outdated(cell) else _scaled(table, table.score(cell))


def _scaled(table: TableResults, value: Moments | None) -> Moments | None:
    if value is None:
        return None
    scale = number_format(table.experiment.metric.unit).scale
    mean, std = (None if x is None else scale * x for x in (value.mean, value.std))
    return Moments(mean=mean, std=std)


def _reference(table: TableResults, column: Column) -> float | None:
    constant = _scaled(table, table.constant(column))
    return constant.mean if constant is not None else None
