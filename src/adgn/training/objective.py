"""What a model is asked for: the loss that trains it and the scores that judge it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from adgn._util.suggestions import unknown_name
from adgn.training.batches import LabelledBatch
from adgn.training.metrics import ClassificationMetrics, Metrics, RegressionMetrics, row_average
from adgn.training.stopping import Mode

__all__ = ["OBJECTIVES", "Objective", "resolve_objective"]


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
    """

    name: str
    loss: Callable[[Tensor, LabelledBatch], Tensor]
    metrics: Callable[[], Metrics]
    answer: Callable[[Tensor], Tensor]
    monitor: str
    modes: Mapping[str, Mode]

    def check(self, output: Tensor, batch: LabelledBatch) -> None:
        """Raises unless the scored rows of an output fit the targets."""
        check = _CHECKS.get(self.name)
        if check is not None:
            check(output, batch)


def _squared_error(output: Tensor, batch: LabelledBatch) -> Tensor:
    return row_average((output - batch.y).square(), batch.weight)


def _cross_entropy(output: Tensor, batch: LabelledBatch) -> Tensor:
    if batch.weight is None:
        return cross_entropy(output, batch.y)
    return row_average(cross_entropy(output, batch.y, reduction="none"), batch.weight)


def _check_values(output: Tensor, batch: LabelledBatch) -> None:
    if output.shape != batch.y.shape:
        # torch would broadcast [N, 1] against [N] to [N, N] without a word.
        raise ValueError(
            f"the model's output has shape {list(output.shape)}, but the targets "
            f"{list(batch.y.shape)}; regression needs equal shapes"
        )


def _check_classes(output: Tensor, batch: LabelledBatch) -> None:
    y = batch.y
    if y.dim() != 1 or y.dtype != torch.int64 or output.dim() != 2 or output.size(0) != y.size(0):
        raise ValueError(
            f"classification needs outputs [rows, classes] and int64 targets [rows]; the output "
            f"has shape {list(output.shape)}, the targets {list(y.shape)} and {y.dtype}"
        )
    if int(y.min()) < 0 or int(y.max()) >= output.size(1):
        raise ValueError(
            f"targets run from {int(y.min())} to {int(y.max())}, but the model has "
            f"{output.size(1)} outputs, for the classes 0 to {output.size(1) - 1}"
        )


_CHECKS: Mapping[str, Callable[[Tensor, LabelledBatch], None]] = {
    "regression": _check_values,
    "classification": _check_classes,
}

OBJECTIVES: Mapping[str, Objective] = {
    "regression": Objective(
        name="regression",
        loss=_squared_error,
        metrics=RegressionMetrics,
        answer=lambda output: output,
        monitor="log10_mse",
        modes={
            "loss": "min",
            "mse": "min",
            "log10_mse": "min",
            "log10_mse_paper": "min",
            "mae": "min",
        },
    ),
    "classification": Objective(
        name="classification",
        loss=_cross_entropy,
        metrics=ClassificationMetrics,
        answer=lambda output: output.argmax(dim=-1),
        monitor="accuracy",
        modes={"loss": "min", "accuracy": "max", "macro_f1": "max"},
    ),
}


def resolve_objective(objective: Any) -> Objective:
    """The objective of a name; an `Objective` stays as it is."""
    if isinstance(objective, Objective):
        return objective
    if objective not in OBJECTIVES:
        raise unknown_name("objective", objective, OBJECTIVES)
    return OBJECTIVES[objective]
