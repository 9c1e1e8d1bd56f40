"""The graph-transfer experiment as a table and a picture."""

from collections.abc import Sequence

from matplotlib.figure import Figure

from adgn._util.figures import line_style
from adgn.experiments.transfer import TransferOutcome

TRANSFER_COLUMNS = (
    *("model", "distance", "layers", "test error", "constant answer", "arrived?"),
    "gradient, first / last layer",
)


def transfer_rows(outcomes: Sequence[TransferOutcome]) -> list[list[str]]:
    """One row per outcome, in the order of `TRANSFER_COLUMNS`."""
    return [
        [
            outcome.title,
            str(outcome.distance),
            str(outcome.num_layers),
            f"{outcome.error:.2g}",
            f"{outcome.constant:.2g}",
            "yes" if outcome.solved else "no",
            f"{outcome.gradient[0] / outcome.gradient[-1]:.2g}",
        ]
        for outcome in outcomes
    ]


def transfer_figure(outcomes: Sequence[TransferOutcome]) -> Figure:
    """Error against distance, and the gradient at each layer of the deepest networks."""
    figure = Figure(figsize=(10.5, 4.4), layout="constrained")
    error, gradient = figure.subplots(1, 2)
    models = list(dict.fromkeys(outcome.model for outcome in outcomes))
    deepest = max(outcome.num_layers for outcome in outcomes)
    for index, model in enumerate(models):
        mine = [outcome for outcome in outcomes if outcome.model == model]
        style = line_style(index) | {"label": mine[0].title}
        error.plot([o.distance for o in mine], [o.error for o in mine], **style)
        style["marker"] = ""
        for outcome in mine:
            if outcome.num_layers == deepest:
                layers = range(1, deepest + 1)
                gradient.plot(layers, outcome.gradient / outcome.gradient[-1], **style)
    constant = sum(outcome.constant for outcome in outcomes) / len(outcomes)
    error.axhline(constant, color="black", linestyle="--", label="constant answer")
    error.set(
        title="A number sent along a line",
        xlabel="distance (edges)",
        ylabel="mean squared error at the other end",
        yscale="log",
        xticks=sorted({outcome.distance for outcome in outcomes}),
    )
    gradient.set(
        title=f"What reaches each of {deepest} layers",
        xlabel="layer",
        ylabel="gradient in its weights (last layer = 1)",
        yscale="log",
    )
    for axes in (error, gradient):
        axes.grid(alpha=0.3)
        axes.legend(frameon=False)
    return figure
