"""What a prediction depends on, as a picture."""

from matplotlib.figure import Figure

from adgn.estimators import Explanation
from adgn.experiments.records import Moments
from adgn.report.charts import Dot, DotChart, LineChart, Series
from adgn.report.drawing import panels_figure

_NODES = 12


def distance_chart(shares: dict[int, float], title: str, key: str = "distance") -> LineChart:
    """The share of the sensitivity at each distance; what has no way is left out."""
    points = tuple((float(d), 100 * share) for d, share in shares.items() if d >= 0)
    return LineChart(
        key=key,
        title=title,
        x_label="distance, edges",
        y_label="share of the sensitivity, %",
        series=(Series("share", points),),
        x_ticks=tuple(x for x, _ in points),
    )


def explanation_figure(found: Explanation) -> Figure:
    """The share of each distance, and of the nodes that matter most."""
    dots = tuple(
        Dot(str(name), Moments(mean=100 * share), None)
        for name, share in zip(found.nodes.to_pylist()[:_NODES], found.share.tolist(), strict=False)
    )
    charts: list[LineChart | DotChart] = []
    shares = found.by_distance()
    if shares.keys() - {0}:
        charts.append(distance_chart(shares, "By distance"))
    if dots:
        charts.append(
            DotChart("nodes", f"The {len(dots)} nodes that matter most", "share, %", dots)
        )
    return panels_figure(charts, f"What the prediction of {found.id} depends on")
