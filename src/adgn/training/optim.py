"""Optimisers and learning-rate schedules by name, from their part of the configuration."""

from collections.abc import Iterable
from typing import Any

import torch
from torch import nn
from torch.optim.lr_scheduler import CosineAnnealingLR, LRScheduler, ReduceLROnPlateau, StepLR

from adgn.training.config import OptimizerConfig, ScheduleConfig
from adgn.training.stopping import Mode


def build_optimizer(
    parameters: Iterable[nn.Parameter], config: OptimizerConfig
) -> torch.optim.Optimizer:
    """The optimiser of a configuration, over those parameters that are trained."""
    trained = [parameter for parameter in parameters if parameter.requires_grad]
    if not trained:
        raise ValueError("the model has no parameters to train; all of them are frozen")
    common: dict[str, Any] = {"lr": config.lr, "weight_decay": config.weight_decay}
    if config.name in ("adam", "adamw"):
        kind = torch.optim.Adam if config.name == "adam" else torch.optim.AdamW
        # One fused pass over all weights: for small models the step is a large part of an epoch.
        fused = all(p.is_floating_point() and p.device.type in ("cpu", "cuda") for p in trained)
        return kind(trained, fused=fused, **common)
    kind_with_momentum = torch.optim.SGD if config.name == "sgd" else torch.optim.RMSprop
    return kind_with_momentum(trained, momentum=config.momentum, **common)


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
