r"""Ridge regression on the features of several hops, in closed form.

$$
\mathbf{W} = \arg\min_\mathbf{W} \|\mathbf{H}\mathbf{W} - \mathbf{Y}\|^2 + \lambda \|\mathbf{W}\|^2
$$

with $\mathbf{H}$ the features of a [`HopView`][adgn.estimators.hops.HopView], less their mean, and
$\mathbf{Y}$ the values, or classes one-hot. The penalty $\lambda$ is chosen by validation. Scores
of classes become probabilities by a softmax with one temperature, chosen alike.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from adgn.estimators.hops import OPERATORS, HopView, hop_blocks, reduction
from adgn.estimators.inputs import Inputs, direction_read
from adgn.estimators.quality import Quality
from adgn.estimators.splits import Parts
from adgn.graph.direction import OPERATOR_DIRECTIONS
from adgn.training.ridge import RidgeStatistics

# Of the mean of the Gram matrix's diagonal.
PENALTIES = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)
_TEMPERATURES = tuple(2.0**power for power in range(-1, 8))
_PROBED_ROWS = 1500  # to train on, when views are compared
_PROBED_VALID = 1500


@dataclass(frozen=True, eq=False)
class RidgeModel:
    """A linear model over the hops of a view.

    Attributes:
        view: Which features it reads.
        weight: `[columns, outputs]`.
        bias: `[outputs]`.
        projection: `[F, r]` where features are projected first.
    """

    view: HopView
    weight: Tensor
    bias: Tensor
    projection: Tensor | None = None

    def outputs(self, inputs: Inputs) -> Tensor:
        """`[rows, outputs]`: logits of classes, or values."""
        outputs = self.bias.expand(inputs.num_rows, -1)
        first = 0
        for block in hop_blocks(inputs, self.view, self.projection):
            last = first + block.size(1)
            outputs = outputs + block @ self.weight[first:last]
            first = last
        return outputs

    def tensors(self) -> dict[str, Tensor]:
        """What is learnt, by name."""
        tensors = {"weight": self.weight, "bias": self.bias}
        return tensors if self.projection is None else {**tensors, "projection": self.projection}

    @classmethod
    def of(cls, view: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> "RidgeModel":
        """The model with these settings and tensors."""
        known = HopView(**{**view, "direction": direction_read(view["direction"])})
        return cls(known, tensors["weight"], tensors["bias"], tensors.get("projection"))


def fit_ridge(
    inputs: Inputs,
    y: Tensor,
    parts: Parts,
    view: HopView,
    quality: Quality,
    *,
    projection: Tensor | None = None,
    row_weight: Tensor | None = None,
) -> tuple[RidgeModel, float]:
    """Fits on the train rows; penalty and temperature are chosen on the validation rows.

    Args:
        inputs: The graph.
        y: Classes `[rows]` or values `[rows, T]`.
        parts: The rows.
        view: Which features are read.
        quality: What validation compares.
        projection: `[F, r]`, applied to the features first.
        row_weight: `[rows]`; how much a row counts.

    Returns:
        The model and its quality on the validation rows, where higher is better.
    """
    blocks = hop_blocks(inputs, view, projection)
    return _solve(blocks, y, parts.train, parts.valid, view, quality, projection, row_weight)


def _solve(
    blocks: Sequence[Tensor],
    y: Tensor,
    train: Tensor,
    valid: Tensor,
    view: HopView,
    quality: Quality,
    projection: Tensor | None,
    row_weight: Tensor | None = None,
) -> tuple[RidgeModel, float]:
    features = torch.cat([block[train] for block in blocks], dim=1)
    if len(train) < y.size(0) and features.size(1) == 0:
        raise ValueError("the graph has no feature to learn from")
    target = quality.targets(y)
    share = None if row_weight is None else row_weight[train] / row_weight[train].mean()
    statistics = RidgeStatistics(features.size(1), target.size(1))
    statistics.add(features, target[train], share)
    held_out = torch.cat([block[valid] for block in blocks], dim=1).double()
    best: tuple[float, Tensor, Tensor, Tensor] | None = None
    for solution in statistics.solve(PENALTIES, relative=True, standardise=quality.standardise):
        outputs = solution.outputs(held_out)
        score = quality.score(outputs, y[valid])
        if best is None or score > best[0]:
            best = (score, solution.weight, solution.bias, outputs)
    assert best is not None
    score, weight, bias, outputs = best
    if quality.classes:
        temperature = min(_TEMPERATURES, key=lambda t: float(cross_entropy(t * outputs, y[valid])))
        weight, bias = temperature * weight, temperature * bias
    return RidgeModel(view, weight.float(), bias.float(), projection), score


@dataclass(frozen=True, eq=False)
class Probe:
    """What closed-form models on some of the rows tell about a graph.

    Attributes:
        scores: For each view that was tried, its quality on validation rows.
        projection: What the features are projected by, where they are too many.
    """

    scores: Mapping[HopView, float]
    projection: Tensor | None

    @property
    def features_alone(self) -> float:
        """The quality without the graph."""
        return self.scores[HopView()]

    def ranked(self) -> list[HopView]:
        """The views that use the graph, the best one first."""
        views = [view for view in self.scores if view.hops]
        return sorted(views, key=lambda view: -self.scores[view])

    def best_of(self, **settings: Any) -> HopView | None:
        """The best view with these settings."""
        fits = (
            view
            for view in self.ranked()
            if all(getattr(view, name) == value for name, value in settings.items())
        )
        return next(fits, None)


def probe(inputs: Inputs, y: Tensor, parts: Parts, quality: Quality, seed: int = 0) -> Probe:
    """Compares views of a graph by closed-form models on at most 1,500 train rows.

    The features alone; then one hop by each operator in each direction; then two hops in the two
    best ways.
    """
    generator = np.random.default_rng(seed)
    train = _some(parts.train, _PROBED_ROWS, generator)
    valid = _some(parts.valid, _PROBED_VALID, generator)
    nodes = parts.train if inputs.node_ptr is None else torch.arange(inputs.num_nodes)
    projection = reduction(inputs, nodes, seed)
    scores: dict[HopView, float] = {}

    def measure(view: HopView) -> None:
        blocks = hop_blocks(inputs, view, projection)
        _, scores[view] = _solve(blocks, y, train, valid, view, quality, projection)

    measure(HopView())
    if inputs.edge_index.size(1):
        for direction in OPERATOR_DIRECTIONS if inputs.directed else OPERATOR_DIRECTIONS[:1]:
            for operator in OPERATORS:
                measure(HopView(1, direction, operator))
        for view in Probe(scores, projection).ranked()[:2]:
            measure(HopView(2, view.direction, view.operator))
    return Probe(scores, projection)


def _some(rows: Tensor, most: int, generator: np.random.Generator) -> Tensor:
    if rows.numel() <= most:
        return rows
    return rows[torch.from_numpy(np.sort(generator.permutation(rows.numel())[:most]))]
