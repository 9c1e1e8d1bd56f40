"""What validation compares: one number for the outputs of a model, higher is better."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, one_hot

from adgn._util.suggestions import unknown_name
from adgn.training.metrics import log10, macro_f1, ranking_scores, row_average

# What can be followed, and what the training loop calls it.
METRICS: Mapping[str, Mapping[str, str]] = {
    "classification": {
        "accuracy": "accuracy",
        "macro_f1": "macro_f1",
        "roc_auc": "roc_auc",
        "average_precision": "average_precision",
        "log_loss": "loss",
    },
    "regression": {"r2": "mse", "mse": "mse", "mae": "mae"},
}
_RANKINGS = ("roc_auc", "average_precision")
_RARE = 0.1  # a class with less than this share is told by its ranking rather than by accuracy


def choose_metric(kind: str, wanted: str | None, train: Tensor, valid: Tensor) -> str:
    """The metric to follow: the one that is wanted, or by the balance of two classes.

    Args:
        kind: `"classification"` or `"regression"`.
        wanted: A name, or `None`.
        train: The classes of the train rows.
        valid: Those of the validation rows; a ranking needs two of them.

    Example:
        >>> choose_metric("classification", None, torch.tensor([0] * 30 + [1]), torch.arange(2))
        'average_precision'
    """
    metrics = METRICS[kind]
    if wanted is not None:
        if wanted not in metrics:
            raise unknown_name("metric", wanted, metrics)
        if wanted in _RANKINGS and not bool((valid != valid[0]).any()):
            raise ValueError(
                f"metric={wanted!r} compares classes, and the {len(valid)} validation rows are all "
                "of one class; label more rows, or follow 'accuracy'"
            )
        return wanted
    if kind == "regression":
        return "r2"
    members = torch.bincount(train)
    rare = len(members) == 2 and float(members.min()) < _RARE * len(train)
    return "average_precision" if rare and bool((valid != valid[0]).any()) else "accuracy"


@dataclass(frozen=True)
class Quality:
    """How outputs are judged.

    Attributes:
        metric: One of `METRICS`.
        classes: How many classes there are; 0 for regression.
    """

    metric: str
    classes: int = 0

    def targets(self, y: Tensor) -> Tensor:
        """What a linear model fits: classes one-hot, zero where unknown, or values."""
        if not self.classes:
            return y
        return one_hot(y.clamp(min=0), self.classes) * (y >= 0).view(-1, 1)

    def score(self, outputs: Tensor, y: Tensor, weight: Tensor | None = None) -> float:
        """The quality of logits or values; higher is better.

        Args:
            outputs: `[rows, classes]` or `[rows, T]`.
            y: Classes `[rows]` or values `[rows, T]`.
            weight: `[rows]`; how much each row counts in the error of values.
        """
        if not self.classes:
            return -float(row_average(self.row_errors(outputs, y), _shares(weight)))
        if self.metric == "log_loss":
            return -float(cross_entropy(outputs, y))
        if self.metric in _RANKINGS:
            roc_auc, precision = ranking_scores(outputs.double().softmax(-1), y)
            return roc_auc if self.metric == "roc_auc" else precision
        if self.metric == "macro_f1":
            return self._macro_f1(outputs.argmax(-1), y)
        return float((outputs.argmax(-1) == y).double().mean())

    @property
    def higher_is_better(self) -> bool:
        """Whether a higher value of the metric is better."""
        return self.metric not in ("log_loss", "mse", "mae", "log10_mse")

    def row_errors(self, outputs: Tensor, y: Tensor) -> Tensor:
        """`[rows]`: 1 for a wrong class, or the error of values, squared unless it is `mae`."""
        if self.classes:
            return (outputs.argmax(-1) != y).double()
        error = (outputs - y).double()
        return (error.abs() if self.metric == "mae" else error.square()).flatten(1).mean(1)

    def shown(self, outputs: Tensor, y: Tensor, weight: Tensor | None = None) -> float:
        """The metric as tables have it; arguments as in `score`.

        Example:
            >>> y = torch.tensor([[0.0], [2.0]])
            >>> Quality("r2").shown(y + 0.5, y), Quality("log10_mse").shown(y + 0.1, y)
            (0.75, -2.0...)
        """
        score = self.score(outputs, y, weight)
        if self.metric == "r2":
            share = _shares(weight)
            values = y.double().flatten(1)
            mean = values.mean(0) if share is None else share @ values
            spread = float(row_average((values - mean).square(), share))
            return 1 + score / spread if spread else float("nan")
        if self.metric == "log10_mse":
            return log10(-score)
        return score if self.higher_is_better else -score

    def standard_error(self, score: float, rows: int) -> float:
        """How far a share of rows may be from the truth by chance; 0 for other metrics."""
        if self.metric != "accuracy":
            return 0.0
        return float((max(score * (1 - score), 0.0) / rows) ** 0.5)

    def _macro_f1(self, predicted: Tensor, y: Tensor) -> float:
        cells = y * self.classes + predicted
        count = torch.bincount(cells, minlength=self.classes**2)
        return macro_f1(count.view(self.classes, self.classes))


def _shares(weight: Tensor | None) -> Tensor | None:
    return None if weight is None else weight.double() / weight.double().sum()
