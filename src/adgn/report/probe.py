"""What the probe found, as pictures and as a page."""

from collections.abc import Mapping
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from matplotlib.figure import Figure

from adgn._util.figures import theme_css
from adgn._version import __version__
from adgn.analysis import DistanceProfile
from adgn.analysis.figures import save_figure
from adgn.analysis.probe import Findings, Spread
from adgn.analysis.probe.findings import TITLES
from adgn.report.charts import LineChart, Series
from adgn.report.drawing import chart_svg, panels_figure

_PERCENT = ("accuracy", "macro_f1", "roc_auc", "average_precision")
NOTES = ("Bars: 95 % interval.", "Dashed: the features alone.", "Dotted: the constant.")


def hops_chart(found: Findings) -> LineChart:
    """The score against the number of hops, a line for each direction."""
    scale = 100.0 if found.metric in _PERCENT else 1.0
    unit = ", %" if found.metric in _PERCENT else ""

    def bar(spread: Spread) -> tuple[float, float]:
        return scale * spread.low, scale * spread.high

    return LineChart(
        key="probe-hops",
        title=found.name,
        x_label="hops",
        y_label=f"{TITLES[found.metric]}{unit}",
        series=tuple(
            Series(
                curve.direction,
                tuple((float(hop), scale * s.mean) for hop, s in enumerate(curve.scores)),
                tuple(bar(spread) for spread in curve.scores),
            )
            for curve in found.curves
        ),
        x_ticks=tuple(
            float(hop) for hop in range(max((len(c.scores) for c in found.curves), default=1))
        ),
        reference=scale * found.features_only.mean,
        floor=scale * found.constant.mean,
    )


def probe_figure(found: Findings) -> Figure:
    """The chart with its title and what its lines are."""
    return panels_figure([hops_chart(found)], "Score against hops", NOTES)


def sensitivity_chart(profiles: Mapping[str, DistanceProfile]) -> LineChart:
    """The sensitivity of trained models at each distance, of its largest value."""
    lines = []
    for name, profile in profiles.items():
        largest = float(profile.mean.max()) or 1.0
        points = zip(profile.distance.tolist(), (profile.mean / largest).tolist(), strict=True)
        lines.append(Series(name, tuple((float(d), 100.0 * value) for d, value in points)))
    return LineChart(
        key="sensitivity",
        title="What the model hears",
        x_label="distance, edges",
        y_label="sensitivity, % of its largest",
        series=tuple(lines),
    )


def write_probe_figures(found: Findings, stem: Path) -> list[Path]:
    """Writes `stem.png` and `stem.svg`, and returns them."""
    return [*save_figure(probe_figure(found), stem)]


def probe_page(
    found: Findings,
    *,
    command: str = "",
    profiles: Mapping[str, DistanceProfile] | None = None,
    verdicts: Mapping[str, str] | None = None,
) -> str:
    """The findings as a page: words, picture, table and suggestion in one.

    Args:
        found: What `adgn.probe` gave.
        command: The command that made it.
        profiles: By the name of a trained model, its sensitivity against distance.
        verdicts: By the same names, what `adgn analyze` says about it.

    Example:
        >>> import adgn
        >>> x = [[float(n % 2), n] for n in range(40)]
        >>> graph = adgn.Graph.from_arrays(x, [range(39), range(1, 40)], y=[0, 1] * 20)
        >>> probe_page(adgn.probe(graph, hops=1, splits=2))[:15]
        '<!doctype html>'
    """
    environment = Environment(
        loader=PackageLoader("adgn.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    first, *lines = found.text().splitlines()
    hops = range(max((len(curve.scores) for curve in found.curves), default=0))
    rows = [
        (
            curve.direction,
            f"{curve.operator}{', last hop alone' if curve.alone else ''}",
            [found.score(curve.scores[h].mean) if h < len(curve.scores) else "" for h in hops],
        )
        for curve in found.curves
    ]
    return environment.get_template("probe.html").render(
        title=f"Probe of {found.name}",
        version=__version__,
        theme=theme_css(),
        headline=first,
        lines=[line for line in lines if not line.startswith("Suggested: ")],
        facts=[
            ("nodes", f"{found.nodes:,}"),
            ("edges", f"{found.edges:,}"),
            ("features", f"{found.features:,}"),
            ("splits", f"{found.splits}"),
            ("took", f"{found.seconds:.1f} s"),
        ],
        chart=chart_svg(hops_chart(found)) if found.curves else "",
        notes=" ".join(NOTES),
        metric=TITLES[found.metric],
        hops=list(hops),
        rows=rows,
        suggestion=found.suggestion_toml(),
        reach=[range_text(found, name, profile) for name, profile in (profiles or {}).items()],
        sensitivity=chart_svg(sensitivity_chart(profiles)) if profiles else "",
        verdicts=dict(verdicts or {}),
        command=command,
    )


def range_text(found: Findings, name: str, profile: DistanceProfile) -> str:
    """Whether a trained model hears as far as the probe found something."""
    reach, far = profile.reach(), int(profile.distance.max())
    wanted = min(found.hops, far)
    heard = f"{name} hears up to {reach} hop{'s' * (reach != 1)} (1 % of its largest sensitivity)"
    known = f"the probe found information up to {found.hops} hop{'s' * (found.hops != 1)}"
    if reach < wanted:
        return f"{heard}; {known}: it does not use the whole range."
    if found.hops == 0 and reach > 0:
        return f"{heard}; the probe found nothing in the graph beyond the features."
    return f"{heard}; {known}: it uses the whole range."
