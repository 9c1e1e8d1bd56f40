"""What a model is asked for: the loss that trains it and the scores that judge it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from adgn._util.suggestions import unknown_name
from adgn.training.batches import LabelledBatch
from adgn.training.metrics import (
    ClassificationMetrics,
    Metrics,
    RegressionMetrics,
    class_probabilities,
    row_average,
)
from adgn.training.stopping import Mode

Scored = tuple[Tensor, LabelledBatch]


@dataclass(frozen=True)
class Objective:
    """A loss, its metrics, and how an output becomes an answer.

    Attributes:
        name: What it is called in a configuration.
        loss: The mean loss of the scored rows of an output.
        metrics: Makes a new, empty set of scores.
        answer: The prediction in an output: the values, or the class of each row.
        monitor: The score that early stopping follows by default.
        modes: For each score, whether it is best at its minimum or its maximum.
        known: The rows of an output whose target is known, and the batch with these targets in the
            output's shape; raises where targets do not fit. By default both as they are.
        probability: The probability of each class in an output, where there are classes.
    """

    name: str
    loss: Callable[[Tensor, LabelledBatch], Tensor]
    metrics: Callable[[], Metrics]
    answer: Callable[[Tensor], Tensor]
    monitor: str
    modes: Mapping[str, Mode]
    known: Callable[[Tensor, LabelledBatch], Scored] = lambda output, batch: (output, batch)
    probability: Callable[[Tensor], Tensor] | None = None


def _squared_error(output: Tensor, batch: LabelledBatch) -> Tensor:
    return row_average((output - batch.y).square(), batch.weight)


def _cross_entropy(output: Tensor, batch: LabelledBatch) -> Tensor:
    if batch.weight is None:
        return cross_entropy(output, batch.y)
    return row_average(cross_entropy(output, batch.y, reduction="none"), batch.weight)


def _known_values(output: Tensor, batch: LabelledBatch) -> Scored:
    """All rows; targets `[N]` as `[N, 1]`, and `v` values of each of G graphs as `[G, v]`."""
    y = batch.y
    if output.shape == y.shape:
        return output, batch
    if output.numel() != y.numel() or 1 not in (output.dim(), y.dim()):
        # torch would broadcast [N, 1] against [1, N] to [N, N] without a word.
        raise ValueError(
            f"the model's output has shape {list(output.shape)}, but the targets "
            f"{list(y.shape)}; regression needs a target for each output: y of shape "
            f"{list(output.shape)}, or [{output.numel()}]"
        )
    batch = replace(batch, y=y.view_as(output))
    if output.size(0) == batch.num_graphs != y.size(0):  # as many values as there are nodes
        batch = replace(batch, size=batch.num_graphs, weight=None)
    return output, batch


def _known_classes(output: Tensor, batch: LabelledBatch) -> Scored:
    """The rows whose label is not −1."""
    y = batch.y
    if y.dim() != 1 or y.dtype != torch.int64 or output.dim() != 2 or output.size(0) != y.size(0):
        raise ValueError(
            f"classification needs outputs [rows, classes] and int64 targets [rows]; the output "
            f"has shape {list(output.shape)}, the targets {list(y.shape)} and {y.dtype}"
        )
    low, high = batch.label_range
    if low < -1 or high >= output.size(1):
        raise ValueError(
            f"targets run from {low} to {high}, but the model has {output.size(1)} outputs, for "
            f"the classes 0 to {output.size(1) - 1} (and -1 for an unknown class)"
        )
    if low == -1:
        kept = y >= 0
        return output[kept], batch.keep(kept)
    return output, batch


OBJECTIVES: Mapping[str, Objective] = {
    "regression": Objective(
        name="regression",
        loss=_squared_error,
        metrics=RegressionMetrics,
        answer=lambda output: output,
        monitor="log10_mse",
        modes=dict.fromkeys(("loss", "mse", "log10_mse", "log10_mse_paper", "mae"), "min"),
        known=_known_values,
    ),
    "classification": Objective(
        name="classification",
        loss=_cross_entropy,
        metrics=ClassificationMetrics,
        answer=lambda output: output.argmax(dim=-1),
        monitor="accuracy",
        modes={
            "loss": "min",
            **dict.fromkeys(("accuracy", "macro_f1", "roc_auc", "average_precision"), "max"),
        },
        known=_known_classes,
        probability=class_probabilities,
    ),
}


def resolve_objective(objective: Any) -> Objective:
    """The objective of a name; an `Objective` stays as it is."""
    if isinstance(objective, Objective):
        return objective
    if objective not in OBJECTIVES:
        raise unknown_name("objective", objective, OBJECTIVES)
    return OBJECTIVES[objective]
