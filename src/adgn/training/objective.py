"""The loss, the scores, the optimiser and early stopping of a run."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.optim.lr_scheduler import CosineAnnealingLR, LRScheduler, ReduceLROnPlateau, StepLR

from adgn._util.suggestions import unknown_name
from adgn.training.batches import LabelledBatch
from adgn.training.config import OptimizerConfig, ScheduleConfig
from adgn.training.metrics import (
    ClassificationMetrics,
    Metrics,
    RegressionMetrics,
    class_probabilities,
    row_average,
)

Mode = Literal["min", "max"]


@dataclass
class EarlyStopping:
    """Follows one score over the epochs.

    Args:
        mode: `"min"`: a lower score is better; `"max"`: a higher one.
        patience: Stop when the best epoch is more than this many epochs ago; `None`: never.
        ties: Whether a score equal to the best counts as better.
        target: Stop as soon as the score is at least this good.

    Attributes:
        best: The best score so far; `None` before the first.
        best_epoch: The epoch that had it.

    Example:
        >>> stopping = EarlyStopping("min", patience=1)
        >>> [stopping.update(epoch, score) for epoch, score in enumerate([3.0, 2.0, 2.0, 5.0])]
        [True, True, True, False]
        >>> stopping.best_epoch, stopping.reason(3), stopping.reason(4)
        (2, None, 'patience')
    """

    mode: Mode
    patience: int | None = None
    ties: bool = True
    target: float | None = None
    best: float | None = None
    best_epoch: int | None = None

    def __post_init__(self) -> None:
        if self.mode not in ("min", "max"):
            raise unknown_name("mode", self.mode, ("min", "max"))
        if self.patience is not None and self.patience < 0:
            raise ValueError(f"patience={self.patience} is negative; give epochs, or None")

    def update(self, epoch: int, score: float) -> bool:
        """Takes the score of an epoch; whether it is the best so far."""
        if math.isnan(score):
            raise ValueError(f"the score of epoch {epoch} is NaN, which cannot be compared")
        sign = 1 if self.mode == "max" else -1
        better = (
            self.best is None
            or sign * score > sign * self.best
            or (self.ties and score == self.best)
        )
        if better:
            self.best, self.best_epoch = score, epoch
        return better

    def reason(self, epoch: int) -> Literal["target", "patience"] | None:
        """Why to stop after this epoch; `None`: go on."""
        if self.best is None or self.best_epoch is None:
            return None
        sign = 1 if self.mode == "max" else -1
        if self.target is not None and sign * self.best >= sign * self.target:
            return "target"
        if self.patience is not None and epoch - self.best_epoch > self.patience:
            return "patience"
        return None

    def state_dict(self) -> dict[str, Any]:
        """What changes over the epochs."""
        return {"best": self.best, "best_epoch": self.best_epoch}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Goes back to a state that `state_dict` gave."""
        self.best, self.best_epoch = state["best"], state["best_epoch"]


def build_optimizer(
    parameters: Iterable[nn.Parameter],
    config: OptimizerConfig,
    undecayed: Iterable[nn.Parameter] = (),
) -> torch.optim.Optimizer:
    """The optimiser of a configuration, over those parameters that are trained.

    Those that are `undecayed` too are a group of their own, without weight decay.
    """
    trained = [parameter for parameter in parameters if parameter.requires_grad]
    if not trained:
        raise ValueError("the model has no parameters to train; all of them are frozen")
    groups = _parameter_groups(trained, undecayed)
    common: dict[str, Any] = {"lr": config.lr, "weight_decay": config.weight_decay}
    if config.name in ("adam", "adamw"):
        kind = torch.optim.Adam if config.name == "adam" else torch.optim.AdamW
        # One fused pass over all weights: for small models the step is a large part of an epoch.
        fused = all(p.is_floating_point() and p.device.type in ("cpu", "cuda") for p in trained)
        return kind(groups, fused=fused, **common)
    kind_with_momentum = torch.optim.SGD if config.name == "sgd" else torch.optim.RMSprop
    return kind_with_momentum(groups, momentum=config.momentum, **common)


def _parameter_groups(
    trained: list[nn.Parameter], undecayed: Iterable[nn.Parameter]
) -> list[dict[str, Any]]:
    without = {id(parameter) for parameter in undecayed}
    decayed = [parameter for parameter in trained if id(parameter) not in without]
    rest = [parameter for parameter in trained if id(parameter) in without]
    groups: list[dict[str, Any]] = [{"params": decayed}] if decayed else []
    return groups + ([{"params": rest, "weight_decay": 0.0}] if rest else [])


def build_schedule(
    optimizer: torch.optim.Optimizer, config: ScheduleConfig, *, mode: Mode, max_epochs: int
) -> LRScheduler | ReduceLROnPlateau | None:
    """The learning-rate schedule of a configuration; `None` where the rate stays as it is."""
    if config.name == "plateau":
        return ReduceLROnPlateau(
            optimizer,
            mode=mode,
            factor=config.factor,
            patience=config.patience,
            threshold=config.threshold,
            threshold_mode="abs",
            min_lr=config.min_lr,
        )
    if config.name == "cosine":
        return CosineAnnealingLR(optimizer, T_max=max_epochs, eta_min=config.min_lr)
    if config.name == "step":
        return StepLR(optimizer, step_size=config.every, gamma=config.factor)
    return None


def step_schedule(schedule: LRScheduler | ReduceLROnPlateau, score: float | None) -> None:
    """Tells a schedule that an epoch is over; a plateau needs the score, if there is one."""
    if not isinstance(schedule, ReduceLROnPlateau):
        schedule.step()
    elif score is not None:
        schedule.step(score)


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
        # torch would broadcast [N, 1] against [1, N] to [N, N] without a warning.
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
