"""The figure of the front pages, a number that crosses a line, and the sentences below it."""

import json
from math import log10
from pathlib import Path
from statistics import median
from typing import Any

from adgn._util.figures import theme_css, themed_svg
from adgn.experiments.transfer import CONTENDERS, contender_title
from adgn.report.charts import LineChart, Series
from adgn.report.drawing import panels_figure

NAME = "A number sent along a line"


def read(path: Path) -> dict[str, Any] | None:
    """The measurements, where they are there."""
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def _rows(found: dict[str, Any], model: str) -> list[dict[str, Any]]:
    rows = [row for row in found["rows"] if row["model"] == model]
    return sorted(rows, key=lambda row: row["distance"])


def chart(found: dict[str, Any]) -> LineChart:
    """Error by distance: the median over the seeds, and bars from the least to the greatest."""
    lines = []
    for model in CONTENDERS:
        rows = _rows(found, model)
        points = tuple((float(row["distance"]), log10(median(row["errors"]))) for row in rows)
        bars = tuple((log10(min(row["errors"])), log10(max(row["errors"]))) for row in rows)
        lines.append(Series(contender_title(model), points, bars))
    distances = sorted({float(row["distance"]) for row in found["rows"]})
    return LineChart(
        key="transfer",
        title="Error at the other end",
        x_label="edges between the two ends",
        y_label="log10 of the mean squared error (lower is better)",
        series=tuple(lines),
        x_ticks=tuple(distances),
        log_x=True,
        reference=log10(found["rows"][0]["constant"]),
    )


def svg(found: dict[str, Any]) -> str:
    """The figure as a file."""
    drawn = chart(found)
    figure = panels_figure([drawn], NAME, ["Dashed: always answering the mean."])
    return themed_svg(figure, "transfer", NAME, drawn.description, theme_css()) + "\n"


def sentences(found: dict[str, Any]) -> str:
    """What the figure says, and how it was made."""
    farthest = max(row["distance"] for row in found["rows"])
    reached = {}
    for model in CONTENDERS:
        # Arrived: nine tenths of the constant answer's error are gone, for the median seed.
        good = [r for r in _rows(found, model) if median(r["errors"]) < 0.1 * r["constant"]]
        reached[model] = max((row["distance"] for row in good), default=0)
    last = {model: _rows(found, model)[-1] for model in CONTENDERS}
    layers = last["adgn"]["num_layers"]
    told = "; ".join(
        f"{contender_title(model)} {median(row['errors']):.2g}, "
        + (f"it arrives up to {reached[model]} edges" if reached[model] else "it never arrives")
        for model, row in last.items()
    )
    tried = max(row["tried"] for row in found["rows"])
    return (
        f"A number is put on one end of a line and asked for at the other. Mean squared error over "
        f"{farthest} edges with {layers} layers each ({last['adgn']['constant']:.2g} is what a "
        f"constant answer has): {told}. Arriving means a tenth of that error or less. "
        f"Medians and ranges of {len(found['seeds'])} seeds, {found['epochs']} epochs each; every "
        f"model chose its learning rate, and the GCN with residual connections its normalisation, "
        f"by validation among up to {tried} settings. Measured on {found['date']} by "
        f"`{found['command']}`; a short version to run: `adgn demo transfer`."
    )
