r"""Ridge regression on the features of several hops, in closed form.

$$
\mathbf{W} = \arg\min_\mathbf{W} \|\mathbf{H}\mathbf{W} - \mathbf{Y}\|^2 + \lambda \|\mathbf{W}\|^2
$$

with $\mathbf{H}$ the features of a [`HopView`][adgn.analysis.probe.hops.HopView], less their mean
and scaled, and $\mathbf{Y}$ the values, or classes one-hot. The penalty $\lambda$ is chosen by
validation. Scores of classes become probabilities by a softmax with one temperature, chosen alike.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from adgn.analysis.probe.hops import LAYER_OPERATORS, HopView, hop_blocks, reduction
from adgn.analysis.probe.measure import CLASS_PENALTIES as PENALTIES
from adgn.analysis.probe.measure import NARROW, Rows, Screening, screen
from adgn.analysis.probe.question import Question
from adgn.data.own.inputs import Inputs, direction_read
from adgn.data.own.splits import Parts
from adgn.graph.direction import OPERATOR_DIRECTIONS
from adgn.training.quality import Quality
from adgn.training.ridge import GrowingRidge

_TEMPERATURES = tuple(2.0**power for power in range(-1, 8))
_PROBED_ROWS = Rows(train=1500, valid=1500, test=0)
_PROBED_HOPS = 2


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
    width = sum(block.size(1) for block in blocks)
    if width == 0:
        raise ValueError("the graph has no feature to learn from")
    share = None if row_weight is None else row_weight[parts.train]
    narrow = blocks[0].size(1) <= NARROW
    ridge = GrowingRidge(
        quality.targets(y)[parts.train], share, scaling="columns" if narrow else "blocks"
    )
    for block in blocks:
        ridge.extend(block[parts.train].double() if narrow else block[parts.train])
    held_out = torch.cat([block[parts.valid] for block in blocks], dim=1).double()
    best: tuple[float, Tensor, Tensor, Tensor] | None = None
    for solution in ridge.solve(PENALTIES, relative=True):
        outputs = solution.outputs(held_out)
        score = quality.score(outputs, y[parts.valid])
        if best is None or score > best[0]:
            best = (score, solution.weight, solution.bias, outputs)
    assert best is not None
    score, weight, bias, outputs = best
    if quality.classes:
        known = y[parts.valid]
        temperature = min(_TEMPERATURES, key=lambda t: float(cross_entropy(t * outputs, known)))
        weight, bias = temperature * weight, temperature * bias
    return RidgeModel(view, weight.float(), bias.float(), projection), score


def quick_probe(
    inputs: Inputs, y: Tensor, parts: Parts, quality: Quality, seed: int = 0
) -> Screening:
    """What closed-form models on at most 1,500 train rows tell: the quick form of `adgn.probe`."""
    nodes = parts.train if inputs.node_ptr is None else torch.arange(inputs.num_nodes)
    return screen(
        Question("", inputs, y, (parts,), quality),
        OPERATOR_DIRECTIONS if inputs.directed else OPERATOR_DIRECTIONS[:1],
        LAYER_OPERATORS,
        hops=_PROBED_HOPS,
        most=_PROBED_ROWS,
        projection=reduction(inputs, nodes, seed),
        seed=seed,
    )
