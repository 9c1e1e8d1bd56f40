"""What the probe found: numbers, and the words and the advice that follow from them."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from adgn._util.files import finite_or_none
from adgn.analysis.probe.hops import HopOperator, HopView
from adgn.analysis.probe.spread import Spread
from adgn.analysis.probe.structure import Agreement, Extent, LabelDistances
from adgn.graph import Direction

TITLES = {
    "accuracy": "accuracy",
    "macro_f1": "macro F1",
    "roc_auc": "ROC AUC",
    "average_precision": "average precision",
    "log_loss": "log loss",
    "r2": "R²",
    "mse": "mean squared error",
    "mae": "mean absolute error",
    "log10_mse": "log10 of the mean squared error",
}
_HEARD = {
    "in": "the sources of its incoming edges",
    "out": "the targets of its outgoing edges",
    "both": "incoming and outgoing neighbours, told apart",
    "undirected": "all its neighbours",
}


@dataclass(frozen=True)
class Curve:
    """The scores of a direction against the number of hops.

    Attributes:
        direction: Where a node listens.
        operator: The one that validated best in this direction.
        alone: Whether the features of the last hop alone are read, or those of all hops.
        scores: On the test rows, from 0 hops (the features alone) on.
        valid: The mean quality on the validation rows, higher is better.
    """

    direction: Direction
    operator: HopOperator
    alone: bool
    scores: tuple[Spread, ...]
    valid: tuple[float, ...]


@dataclass(frozen=True)
class LeakWarning:
    """Something that makes scores look better than they are, or rows that cannot be reached.

    Attributes:
        kind: `"twins"`, `"computable"`, `"shell"`, `"isolated"`, `"unlabelled_parts"`,
            `"features"` or `"feature"`.
        text: In words, with numbers.
    """

    kind: str
    text: str


@dataclass(frozen=True, eq=False)
class Findings:
    """What the probe found.

    Attributes:
        name: The task or the file.
        level: Whether nodes or graphs are predicted.
        metric: What the scores are.
        higher_is_better: Whether a higher score is better.
        nodes, edges, features, graphs: Sizes.
        directed: Whether the direction of edges means something.
        rows: How many rows train, validate and test, in the first split.
        splits: How many splits.
        helps: Whether the graph helps over the features alone.
        gain: How much better the best way is than the features alone, paired; positive is better.
        direction, operator, alone: The best way.
        hops: How many hops carry information; 0 where the graph does not help.
        costs_from: From how many hops on the score is worse again; `None`: not seen.
        constant: The score of always answering the mean or the most frequent class.
        features_only: That of the features alone.
        curves: A curve for each direction.
        screened: For each view that was tried on the first split, its quality there.
        agreement, extent, label_distances: What the graph is like; `None` where it does not apply.
        warnings: What to be careful about.
        notes: What was left out, assumed or estimated.
        suggestion: Sections of a configuration.
        seconds: How long it took.
    """

    name: str
    level: str
    metric: str
    higher_is_better: bool
    nodes: int
    edges: int
    features: int
    graphs: int
    directed: bool
    rows: tuple[int, int, int]
    splits: int
    helps: bool
    gain: Spread | None
    direction: Direction | None
    operator: HopOperator | None
    alone: bool
    hops: int
    costs_from: int | None
    constant: Spread
    features_only: Spread
    curves: tuple[Curve, ...]
    screened: Mapping[HopView, float]
    agreement: Agreement | None
    extent: Extent
    label_distances: LabelDistances | None
    warnings: tuple[LeakWarning, ...]
    notes: tuple[str, ...]
    suggestion: Mapping[str, Mapping[str, Any]]
    seconds: float

    def curve(self, direction: Direction | None = None) -> Curve:
        """The curve of a direction; `None`: of the best one."""
        wanted = direction or self.direction
        for curve in self.curves:
            if curve.direction == wanted:
                return curve
        known = ", ".join(curve.direction for curve in self.curves) or "none"
        raise ValueError(f"direction={wanted!r} was not probed; there are: {known}")

    def score(self, value: float) -> str:
        """A score as it is written: shares in percent."""
        if self.metric in ("accuracy", "macro_f1", "roc_auc", "average_precision"):
            return f"{100 * value:.1f} %"
        return f"{value:.3f}" if abs(value) < 1e4 else f"{value:.3g}"

    def _gain(self, value: float) -> str:
        return self.score(value).replace(" %", " points")

    def text(self) -> str:
        """The findings in words with numbers, one per line."""
        lines = [self._helps_line(), *self._hop_lines(), *self._structure_lines()]
        lines += [f"Warning: {warning.text}." for warning in self.warnings]
        lines += [f"Note: {note}." for note in self.notes]
        lines.append(f"Suggested: {self.suggestion_line()}")
        return "\n".join(lines)

    def suggestion_line(self) -> str:
        """The suggestion as settings of a command."""
        return " ".join(
            f"--set {section}.{key}={value}"
            for section, values in self.suggestion.items()
            for key, value in values.items()
        )

    def suggestion_toml(self) -> str:
        """The suggestion as a file for `--config`."""
        lines = []
        for section, values in self.suggestion.items():
            lines += [f"[{section}]", *(f"{k} = {json.dumps(v)}" for k, v in values.items()), ""]
        return "\n".join(lines)

    def _helps_line(self) -> str:
        title = TITLES[self.metric]
        alone = f"features alone {self.score(self.features_only.mean)}"
        constant = f"the constant {self.score(self.constant.mean)}"
        over = f"{self.splits} splits" if self.splits > 1 else "resamples of the test rows"
        if self.gain is None:
            return f"The graph has no edges: {alone}, {constant} ({title})."
        best = self._best_score()
        numbers = (
            f"{title} {self.score(best.mean)}, {alone}, {constant}; better by "
            f"{self._gain(self.gain.mean)} (95 % over {over}: {self._gain(self.gain.low)} to "
            f"{self._gain(self.gain.high)})."
        )
        if self.helps:
            return f"The graph helps: {numbers}"
        if self.gain.low > 0:
            return f"The graph hardly helps: {numbers}"
        if self.gain.high > 0 and self.gain.mean > 0:
            return f"It is not sure that the graph helps: {numbers}"
        return f"The graph does not help: {numbers}"

    def _best_score(self) -> Spread:
        curve = self.curve()
        best = max(range(1, len(curve.valid)), key=lambda hop: curve.valid[hop])
        return curve.scores[self.hops or best]

    def _hop_lines(self) -> list[str]:
        if self.direction is None or not self.helps:
            return []
        lines = []
        if self.directed:
            others = [
                f"{curve.direction} {self.score(self._peak(curve))}"
                for curve in self.curves
                if curve.direction != self.direction
            ]
            heard = _HEARD[self.direction]
            beside = f"; {', '.join(others)}" if others else ""
            lines.append(
                f"Direction: {self.direction}, a node hears {heard} "
                f"({self.score(self._peak(self.curve()))}{beside})."
            )
        how = "the last one alone" if self.curve().alone else "all together"
        hops = f"{self.hops} hop{'s' * (self.hops > 1)}"
        line = f"Range: {hops} carry information ({self.operator}, {how})"
        if self.hops == 1:
            line = line.replace("carry", "carries").replace(f", {how}", "")
        last = len(self.curve().scores) - 1
        if self.costs_from is not None:
            line += (
                f"; from {self.costs_from} hops on it costs "
                f"({self.score(self.curve().scores[self.costs_from].mean)} there)"
            )
        elif last > self.hops:
            line += f"; up to {last} hops more add nothing and cost nothing"
        elif last == self.hops:
            line += "; that is as far as was looked: more may add something"
        return [*lines, f"{line}."]

    def _peak(self, curve: Curve) -> float:
        """The test score at the number of hops that validates best."""
        best = max(range(1, len(curve.valid)), key=lambda hop: curve.valid[hop])
        return curve.scores[self.hops if curve.direction == self.direction else best].mean

    def _structure_lines(self) -> list[str]:
        lines = []
        if self.agreement is not None:
            lines.append(_agreement_line(self.agreement))
        far = self.label_distances
        if far is not None:
            near = far.shares[1] if len(far.shares) > 1 else 0.0
            line = (
                f"Labels: {100 * near:.0f} % of the test nodes have a train node as a neighbour, "
                f"the median is {far.median:g} hop{'s' * (far.median != 1)} away"
            )
            if far.unreachable:
                line += f", {100 * far.unreachable:.1f} % have no way to any"
            lines.append(f"{line}.")
        size = self.extent
        many = f", the largest of {size.components:,} parts," if size.components > 1 else ""
        bound = "" if size.exact else "at least "
        how = "exact" if size.exact else f"estimated on {size.pairs} random pairs"
        lines.append(
            f"Size: {size.largest:,} nodes{many} have a diameter of {bound}{size.diameter} and an "
            f"effective resistance of {size.mean_resistance:.3g} on average, up to "
            f"{size.largest_resistance:.3g} ({how})."
        )
        return lines

    def to_json(self) -> dict[str, Any]:
        """The findings for programs."""
        found: dict[str, Any] = {
            "name": self.name,
            "level": self.level,
            "metric": self.metric,
            "higher_is_better": self.higher_is_better,
            "helps": self.helps,
            "gain": None if self.gain is None else self.gain.to_json(),
            "direction": self.direction,
            "operator": self.operator,
            "last_hop_alone": self.alone,
            "hops": self.hops,
            "costs_from": self.costs_from,
            "scores": {
                curve.direction: {
                    str(hop): score.to_json() for hop, score in enumerate(curve.scores)
                }
                for curve in self.curves
            },
            "ways": {
                curve.direction: {"operator": curve.operator, "last_hop_alone": curve.alone}
                for curve in self.curves
            },
            "constant": self.constant.to_json(),
            "features_only": self.features_only.to_json(),
            "warnings": [asdict(warning) for warning in self.warnings],
            "suggestion": {section: dict(values) for section, values in self.suggestion.items()},
            "nodes": self.nodes,
            "edges": self.edges,
            "features": self.features,
            "graphs": self.graphs,
            "directed": self.directed,
            "rows": dict(zip(("train", "valid", "test"), self.rows, strict=True)),
            "splits": self.splits,
            "agreement": None if self.agreement is None else asdict(self.agreement),
            "extent": asdict(self.extent),
            "label_distances": (
                None if self.label_distances is None else asdict(self.label_distances)
            ),
            "screened": [
                {**view.to_json(), "valid": score} for view, score in self.screened.items()
            ],
            "notes": list(self.notes),
            "seconds": round(self.seconds, 3),
        }
        cleaned: dict[str, Any] = finite_or_none(found)
        return cleaned


def _agreement_line(found: Agreement) -> str:
    if found.homophily is None:
        return f"Neighbours: their values have a correlation of {found.adjusted:.2f}."
    word = (
        "agree more often than chance"
        if found.adjusted > 0.1
        else "agree less often than chance"
        if found.adjusted < -0.1
        else "agree about as often as by chance"
    )
    return (
        f"Neighbours {word}: {100 * found.homophily:.0f} % of edges join nodes of one class, "
        f"adjusted homophily {found.adjusted:.2f}, label informativeness "
        f"{found.informativeness:.2f}."
    )
