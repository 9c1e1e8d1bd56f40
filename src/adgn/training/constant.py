"""Whether a model has learnt more than the constant predictor, and what it may be due to if not."""

from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from adgn.training.trainer import Trainer

_FEW_EPOCHS = 10  # a shorter run is a trial, of which nothing is expected
_SHARE = 0.99  # an error above this share of the constant predictor's is none the better
_LARGE = 100.0  # features of a common scale are far below


class LearnedNothingWarning(UserWarning):
    """After training, the train score is no better than that of the constant predictor."""


def learned_nothing(trainer: "Trainer") -> str | None:
    """What to tell the user of a model that is no better than a constant on its own train rows.

    The constant is the most frequent class, or the mean of the targets. `None` where the model is
    better by a hundredth of the error, after less than ten epochs, or where the objective is not
    one of the package's own.
    """
    name, epochs = trainer.objective.name, trainer.progress.epoch
    if epochs < _FEW_EPOCHS or name not in ("classification", "regression"):
        return None
    metrics = trainer.objective.metrics()
    targets: list[Tensor] = []
    shares: list[Tensor] = []
    largest = torch.zeros(1)
    for output, batch in trainer.outputs("train"):
        scored, known = trainer.objective.known(output, batch)
        if known.size:
            metrics.update(scored, known)
            rows = len(known.y)
            equal = torch.full((rows,), 1 / rows, device=known.y.device)
            targets.append(known.y)
            shares.append(known.size * (equal if known.weight is None else known.weight))
            largest = torch.maximum(largest, _largest(batch.x))
    if not targets:
        return None
    scores, y, share = metrics.compute(), torch.cat(targets), torch.cat(shares).double()
    if bool((y == y[0]).all()):
        return None  # there is nothing else to learn
    if name == "classification":
        score, best = "accuracy", float(torch.bincount(y).max()) / len(y)
        error, constant = 1 - scores[score], 1 - best
        what = "of always answering the most frequent class"
    else:
        score, (error, constant) = "mse", (scores["mse"], _variance(y, share / share.sum()))
        best, what = constant, "of always answering the mean of the targets"
    if error <= _SHARE * constant:
        return None
    value, column = float(largest.max()), int(largest.argmax())
    scale = (
        f"column {column} of x has values up to {value:g}: standardise the features"
        if value > _LARGE
        else "features or targets of an unusual scale"
    )
    lr = trainer.optimizer.param_groups[0]["lr"]
    return (
        f"after {epochs} epochs the train {score} is {scores[score]:.4g}, and {best:.4g} is that "
        f"{what}: the model has learnt next to nothing from its input. Likely causes: {scale}; a "
        f"learning rate (now {lr:g}) that is too high or too low; too few epochs; fewer layers "
        "than the distance that matters; targets that do not depend on features and edges"
    )


def _variance(y: Tensor, share: Tensor) -> float:
    """The mean over the columns of the targets' variance, each row with its share."""
    values = y.double().view(len(y), -1)
    mean = share @ values
    return float((share @ (values - mean).square()).mean())


def _largest(x: Tensor) -> Tensor:
    """The largest magnitude in each column of the features; zero where they are integers."""
    if not x.is_floating_point():
        return torch.zeros(1)
    if x.layout == torch.sparse_csr:
        none = torch.zeros(x.size(1), dtype=x.dtype, device=x.device)
        return none.scatter_reduce(0, x.col_indices().long(), x.values().abs(), "amax").cpu()
    return x.abs().amax(dim=0).cpu()
