"""How numbers are written. Every table, page and figure of a report takes them from here."""

from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Context, Decimal
from math import isfinite

from adgn.experiments.records import Metric, Moments

ABSENT = "–"
NOT_FINITE = "not finite"
MINUS = "−"
_ALL_DIGITS = Context(prec=400)  # enough for every float


@dataclass(frozen=True)
class NumberFormat:
    """A fixed number of decimals, so that columns align.

    Args:
        decimals: Digits behind the point.
        scale: What values are multiplied by before they are shown.
        label: The unit as a heading names it.

    Example:
        >>> percent = number_format("%")
        >>> percent.plain(0.8895), percent.spread(0.0031), percent.signed(-0.012)
        ('88.95', '± 0.31', '−1.20')
        >>> percent.moments(Moments(mean=0.8895, std=0.0031))
        '88.95 ± 0.31'
    """

    decimals: int
    scale: float = 1.0
    label: str = ""

    def plain(self, value: float | None) -> str:
        """A value on its own."""
        if value is None or not isfinite(value):
            return NOT_FINITE
        # Halves go up, as people round: 3.125 is 3.13, which is also how the paper has it.
        digit = Decimal(1).scaleb(-self.decimals)
        rounded = Decimal(repr(float(self.scale * value))).quantize(
            digit, ROUND_HALF_UP, _ALL_DIGITS
        )
        return f"{abs(rounded) if rounded == 0 else rounded:f}".replace("-", MINUS)

    def spread(self, std: float | None) -> str:
        """A standard deviation; empty where there is none."""
        return "" if std is None or not isfinite(std) else f"± {self.plain(std)}"

    def signed(self, value: float) -> str:
        """A difference, with its sign unless it rounds to zero."""
        text = self.plain(value)
        positive = text[0] != MINUS and any(digit in text for digit in "123456789")
        return f"+{text}" if positive else text

    def moments(self, value: Moments | None) -> str:
        """Mean ± standard deviation in one piece; empty where there is none."""
        if value is None:
            return ""
        spread = self.spread(value.std) if value.finite else ""
        return f"{self.plain(value.mean)} {spread}".rstrip()


_FORMATS = {
    "": NumberFormat(3),
    "%": NumberFormat(2, 100.0, "%"),
    "s": NumberFormat(3, label="s"),
    "ms": NumberFormat(1, 1000.0, "ms"),  # for times stored in seconds
}


def number_format(unit: str) -> NumberFormat:
    """The format for a metric's unit: `""`, `"%"` or `"s"`; or `"ms"` for short times."""
    return _FORMATS[unit]


def metric_label(metric: Metric) -> str:
    """A metric as axes and captions name it, with the unit that its values are shown in.

    Example:
        >>> from adgn.experiments.records import Metric
        >>> metric_label(Metric(name="a", title="test accuracy", higher_is_better=True, unit="%"))
        'test accuracy, %'
    """
    unit = number_format(metric.unit).label
    return f"{metric.title}, {unit}" if unit and unit not in metric.title else metric.title


def sentence(text: str) -> str:
    """A text that begins with a capital letter."""
    return text[:1].upper() + text[1:]


def tick(value: float) -> str:
    """A number of an axis.

    Example:
        >>> tick(-0.50), tick(3.0)
        ('−0.5', '3')
    """
    return f"{value:g}".replace("-", MINUS)


def duration(seconds: float | None) -> str:
    """A stretch of time, to be read rather than compared.

    Example:
        >>> duration(0.25), duration(312.4), duration(9000)
        ('0.25 s', '5 min 12 s', '2 h 30 min')
    """
    if seconds is None or not isfinite(seconds):
        return ABSENT
    if seconds < 60:
        return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
