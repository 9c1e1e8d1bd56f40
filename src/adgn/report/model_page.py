"""One page about a fitted model: the data, what was tried, scores, and what it depends on."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from jinja2 import Environment, PackageLoader, StrictUndefined

from adgn._util.figures import theme_css
from adgn._version import __version__
from adgn.estimators import ComparedModel, GraphEstimator
from adgn.estimators.explanation import explain_row
from adgn.estimators.rows import row_name
from adgn.report.charts import LineChart, ScatterChart, Series
from adgn.report.drawing import chart_svg
from adgn.report.explanation import distance_chart
from adgn.report.numbers import ABSENT, NumberFormat, duration

_UNCERTAIN = 10  # rows
_EXPLAINED = 8  # nodes whose sensitivity is averaged, fewer on large graphs
_LARGE = 2_000_000  # edges
_POINTS = 600  # of a scatter chart
_CLASSES = 15  # of a confusion matrix
_SCORE = NumberFormat(3)
_TITLES = {
    "accuracy": "Accuracy",
    "macro_f1": "Macro F1",
    "roc_auc": "ROC AUC",
    "average_precision": "Average precision",
    "log_loss": "Log loss",
    "r2": "R²",
    "mse": "Mean squared error",
    "mae": "Mean absolute error",
}
_LOWER_IS_BETTER = ("log_loss", "mse", "mae")


def model_page(
    estimator: GraphEstimator,
    compared: Sequence[ComparedModel] = (),
    *,
    command: str = "",
    predictions: str = "",
) -> str:
    """The page as text: styles, script, tables and figures in one.

    Args:
        estimator: Fitted in this process.
        compared: What `adgn.estimators.compare` gave; empty where no rows were held out.
        command: The command that made it.
        predictions: The name of the file with the predictions, for a link.

    Example:
        >>> import adgn
        >>> x = [[float(n % 2), n] for n in range(40)]
        >>> graph = adgn.Graph.from_arrays(x, [range(39), range(1, 40)], y=[0, 1] * 20)
        >>> model = adgn.NodeClassifier(model="mlp", settings={"loop": {"max_epochs": 3}})
        >>> model_page(model.fit(graph), command="adgn fit …")[:15]
        '<!doctype html>'
    """
    environment = Environment(
        loader=PackageLoader("adgn.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    graph, target = estimator.graph_, ", ".join(estimator.encoder_.names)
    shown, where = _shown_rows(estimator)
    return environment.get_template("model.html").render(
        title=f"Model of {target}",
        version=__version__,
        theme=theme_css(),
        headline=_headline(estimator, compared),
        facts=_facts(estimator),
        metric=_TITLES[estimator.quality_.metric],
        compared=_compared(compared),
        rows=compared[0].rows if compared else 0,
        level=estimator.level,
        scores=_scores(estimator),
        where=where,
        confusion=_confusion(estimator, shown),
        scatter=_scatter(estimator, shown),
        tried=_tried(estimator),
        compared_by=_compared_by(estimator),
        curves=[chart_svg(chart, small=True) for chart in _curves(estimator)],
        distances=_distances(estimator, shown),
        uncertain=_uncertain(estimator, shown),
        data=estimator.data_,
        notes=estimator.notes_,
        decisions=estimator.preprocessing_.decisions(),
        features=estimator.n_features_in_,
        to_predict=graph.num_rows - graph.labelled.numel(),
        split=estimator.split_rule_,
        command=command,
        predictions=predictions,
    )


def _number(value: float | None) -> str:
    if value is None or value != value:
        return ABSENT
    return _SCORE.plain(value) if abs(value) < 1e4 else f"{value:.3g}"


def _time(seconds: float) -> str:
    return duration(seconds) if seconds >= 0.1 else "< 0.1 s"


def _headline(estimator: GraphEstimator, compared: Sequence[ComparedModel]) -> str:
    """The outcome in a sentence or two."""
    title = _TITLES[estimator.quality_.metric]
    if not compared:
        value = _number(estimator.validation_scores_[estimator.quality_.metric])
        return (
            f"{title} {value} on the rows that validated; models were chosen by them, so this is "
            "a little too good. No rows were held out."
        )
    own, *others = compared
    if own.score != own.score:
        return (
            f"{title} is not defined on the {own.rows:,} {estimator.level}(s) held out; hold out "
            "more, or see the other scores."
        )
    sign = -1 if own.metric in _LOWER_IS_BETTER else 1
    best = max((row for row in others if row.score == row.score), key=lambda row: sign * row.score)
    better = sign * (own.score - best.score)
    word = "above" if better > 0 else "below" if better < 0 else "level with"
    if own.metric in _LOWER_IS_BETTER:
        word = "better than" if better > 0 else "worse than" if better < 0 else "level with"
    gap = f"{_number(abs(better))} {word}" if better else word
    return (
        f"{title} {_number(own.score)} on {own.rows:,} {estimator.level}s that no model has seen "
        f"(95 % interval {_number(own.low)} to {_number(own.high)}), {gap} the best of the simple "
        f"models, {best.name} ({_number(best.score)})."
    )


def _facts(estimator: GraphEstimator) -> list[tuple[str, str]]:
    train, valid, test = estimator.sizes_
    facts = [
        ("trained on", f"{train:,}"),
        ("validated on", f"{valid:,}"),
        ("held out", f"{test:,}"),
        ("features", f"{estimator.n_features_in_:,}"),
        ("fitted in", duration(estimator.seconds_)),
    ]
    if estimator.kind == "classification":
        facts.insert(3, ("classes", f"{len(estimator.encoder_.classes):,}"))
    return facts


def _compared(rows: Sequence[ComparedModel]) -> list[dict[str, Any]]:
    """Each model with its interval as a part of a common axis, in percent of its width."""
    if not rows:
        return []
    ends = [v for row in rows for v in (row.low, row.high, row.score) if v == v] or [0.0]
    low, high = min(ends), max(ends)
    width = (high - low) or 1.0

    def place(value: float) -> float:
        return round(2 + 96 * (value - low) / width, 2) if value == value else 2.0

    return [
        {
            "name": "this model" if number == 0 else row.name,
            "score": _number(row.score),
            "interval": f"{_number(row.low)} to {_number(row.high)}",
            "seconds": _time(row.seconds),
            "left": place(row.low),
            "width": round(place(row.high) - place(row.low), 2),
            "dot": place(row.score),
        }
        for number, row in enumerate(rows)
    ]


def _scores(estimator: GraphEstimator) -> list[tuple[str, str, str]]:
    return [
        (_TITLES[name], _number(value), _number(estimator.test_scores_.get(name)))
        for name, value in estimator.validation_scores_.items()
    ]


def _shown_rows(estimator: GraphEstimator) -> tuple[torch.Tensor, str]:
    """The rows that figures are about: those held out, else those that validated."""
    parts = estimator.parts_
    if parts.test.numel():
        return parts.test, f"the {parts.test.numel():,} held-out {estimator.level}s"
    return parts.valid, f"the {parts.valid.numel():,} {estimator.level}s that validated"


def _confusion(estimator: GraphEstimator, rows: torch.Tensor) -> dict[str, Any] | None:
    """True classes down, predicted ones across, each with its share of the true class."""
    if estimator.kind != "classification" or len(estimator.encoder_.classes) > _CLASSES:
        return None
    classes = [str(label) for label in estimator.encoder_.classes]
    true = estimator.problem_.y[rows]
    predicted = estimator._outputs(rows).argmax(-1)
    counts = torch.bincount(true * len(classes) + predicted, minlength=len(classes) ** 2)
    table = counts.view(len(classes), -1).tolist()
    lines = []
    for label, line in zip(classes, table, strict=True):
        total = sum(line) or 1
        lines.append((label, [(count, round(45 * count / total)) for count in line]))
    return {"classes": classes, "lines": lines}


def _scatter(estimator: GraphEstimator, rows: torch.Tensor) -> list[str]:
    """Predicted against true values, a chart for each target."""
    if estimator.kind != "regression":
        return []
    if rows.numel() > _POINTS:
        rows = rows[torch.linspace(0, rows.numel() - 1, _POINTS).long()]
    decode = estimator.encoder_.decode
    true = np.asarray(decode(estimator.problem_.y[rows]))
    predicted = np.asarray(decode(estimator._outputs(rows)))
    charts = []
    for number, name in enumerate(estimator.encoder_.names):
        pairs = zip(true[:, number].tolist(), predicted[:, number].tolist(), strict=True)
        points = tuple(pair for pair in pairs if all(np.isfinite(pair)))
        if points:
            key = f"scatter-{number}"
            charts.append(chart_svg(ScatterChart(key, name, "true", "predicted", points)))
    return charts


def _compared_by(estimator: GraphEstimator) -> str:
    """What the validation score of a model is."""
    metric = estimator.quality_.metric
    if estimator.kind == "regression":
        error = "absolute" if metric == "mae" else "squared"
        return f"Minus the mean {error} error of the standardised target"
    return "Minus the log loss" if metric == "log_loss" else _TITLES[metric]


def _tried(estimator: GraphEstimator) -> list[dict[str, str]]:
    return [
        {
            "name": row["name"],
            "direction": row["direction"],
            "score": _number(row["score"]),
            "weight": f"{100 * row['weight']:.0f} %" if row["weight"] else ABSENT,
            "epochs": f"{row['epochs'] or ABSENT}",
            "seconds": _time(row["seconds"]),
            "note": row["note"],
        }
        for row in estimator.tried()
    ]


def _curves(estimator: GraphEstimator) -> list[LineChart]:
    """The loss by epoch of each network that was trained."""
    charts = []
    for number, attempt in enumerate(estimator.attempts_):
        if not attempt.history:
            continue
        epochs = [float(line["epoch"]) for line in attempt.history]
        train = [line["train_loss"] for line in attempt.history]
        valid = [line.get("val", {}).get("loss") for line in attempt.history]
        series = [
            Series(label, tuple(zip(epochs, values, strict=True)))
            for label, values in (("train", train), ("validation", valid))
        ]
        found = tuple(line for line in series if line.measured)
        charts.append(LineChart(f"curve-{number}", attempt.name, "epoch", "loss", found))
    return charts


def _distances(estimator: GraphEstimator, rows: torch.Tensor) -> dict[str, Any] | None:
    """The mean share of the sensitivity at each distance, over some nodes."""
    graph = estimator.graph_
    if estimator.level != "node" or not graph.num_edges:
        return None
    count = min(_EXPLAINED if graph.num_edges < _LARGE else 2, rows.numel())
    chosen = rows[torch.linspace(0, rows.numel() - 1, count).long()]
    total: dict[int, float] = {}
    for row in chosen.tolist():
        found = explain_row(
            graph, estimator.inputs_, estimator.members_, estimator._average, row, probes=4
        )
        for distance, share in found.by_distance().items():
            total[distance] = total.get(distance, 0.0) + share / count
    shares = {d: total[d] for d in sorted(total) if d >= 0}
    if not shares:
        return None
    far = sum(share for distance, share in total.items() if distance > 1)
    return {
        "chart": chart_svg(distance_chart(shares, "Share of the sensitivity", "distance")),
        "count": count,
        "own": f"{100 * total.get(0, 0.0):.0f} %",
        "near": f"{100 * total.get(1, 0.0):.0f} %",
        "far": f"{100 * far:.0f} %",
    }


def _uncertain(estimator: GraphEstimator, shown: torch.Tensor) -> dict[str, Any]:
    """The rows whose class is least certain, or whose value is most wrong."""
    graph = estimator.graph_
    unknown = torch.ones(graph.num_rows, dtype=torch.bool)
    unknown[graph.labelled] = False
    if estimator.kind == "classification":
        rows = unknown.nonzero().view(-1) if unknown.any() else shown
        output = estimator._outputs(rows)
        top, place = output.topk(2, dim=-1)
        order = top[:, 0].argsort(stable=True)[:_UNCERTAIN].tolist()
        labels = [str(label) for label in estimator.encoder_.classes]
        lines = [
            [
                str(row_name(graph, int(rows[k]))),
                *(f"{labels[int(place[k, n])]}, {float(top[k, n]):.2f}" for n in (0, 1)),
            ]
            for k in order
        ]
        of = f"the {rows.numel():,} {estimator.level}s to be predicted"
        return {
            "title": f"The {len(lines)} most uncertain {estimator.level}s",
            "text": f"Of {of if unknown.any() else _shown_rows(estimator)[1]}, with the two most "
            "probable classes.",
            "heads": ["id", "prediction", "second"],
            "words": True,
            "lines": lines,
        }
    decode, names = estimator.encoder_.decode, estimator.encoder_.names
    true = np.asarray(decode(estimator.problem_.y[shown]))[:, 0]
    predicted = np.asarray(decode(estimator._outputs(shown)))[:, 0]
    order = np.argsort(-np.abs(predicted - true), kind="stable")[:_UNCERTAIN].tolist()
    lines = [
        [str(row_name(graph, int(shown[k]))), f"{predicted[k]:.4g}", f"{true[k]:.4g}"]
        for k in order
    ]
    return {
        "title": f"The {len(lines)} {estimator.level}s with the largest error",
        "text": f"{names[0]}, of {_shown_rows(estimator)[1]}.",
        "heads": ["id", "predicted", "true"],
        "words": False,
        "lines": lines,
    }
