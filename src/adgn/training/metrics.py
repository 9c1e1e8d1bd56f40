"""Scores, gathered batch by batch without waiting for the device until they are asked for."""

import math
from typing import Protocol

import torch
from torch import Tensor

from adgn.training.batches import LabelledBatch

__all__ = [
    "ClassificationMetrics",
    "Metrics",
    "RegressionMetrics",
    "log10",
    "macro_f1",
    "row_average",
]

Scores = dict[str, float]


class Metrics(Protocol):
    """Gathers the scores of the batches of one pass."""

    def update(self, output: Tensor, batch: LabelledBatch) -> None:
        """Takes the scored rows of an output."""
        ...

    def compute(self) -> Scores:
        """The scores of all batches so far."""
        ...


def log10(value: float) -> float:
    """The decimal logarithm, −∞ for zero.

    Example:
        >>> log10(100.0), log10(0.0)
        (2.0, -inf)
    """
    return math.log10(value) if value > 0 else (-math.inf if value == 0 else math.nan)


def row_average(rows: Tensor, weight: Tensor | None) -> Tensor:
    """The average of `[rows]` or `[rows, columns]` values, each row with its share."""
    if weight is None:
        return rows.mean()
    if rows.dim() > 1:
        rows = rows.flatten(1).mean(dim=1)
    return torch.dot(weight, rows)


class RegressionMetrics:
    r"""Squared and absolute errors, averaged over each graph's nodes and then over graphs.

    With $e_b$ the mean over the graphs of batch $b$ of the mean squared error within each:

    - `mse`: the mean over all graphs, $\sum_b G_b e_b / \sum_b G_b$; `log10_mse` its logarithm;
    - `log10_mse_paper`: the logarithm of the plain mean of $e_b$ over batches, which counts a
      short last batch as much as a full one. The paper's tables have this;
    - `mae`: as `mse`, of absolute errors.

    A single graph with labelled nodes counts each node once.

    Example:
        >>> import torch
        >>> from adgn.training import LabelledBatch
        >>> metrics = RegressionMetrics()
        >>> for error, graphs in ((1.0, 3), (3.0, 1)):
        ...     y = torch.zeros(graphs, 1)
        ...     metrics.update(y + error, LabelledBatch(x=y, graph=y, y=y, size=graphs))
        >>> scores = metrics.compute()
        >>> scores["mse"], scores["mae"], round(10 ** scores["log10_mse_paper"], 6)
        (3.0, 1.5, 5.0)
    """

    def __init__(self) -> None:
        self._sums: Tensor | None = None
        self._size = 0
        self._batches = 0

    def update(self, output: Tensor, batch: LabelledBatch) -> None:
        """Takes the scored rows of an output."""
        error = (output - batch.y).double()
        weight = None if batch.weight is None else batch.weight.double()
        squared = row_average(error.square(), weight)
        absolute = row_average(error.abs(), weight)
        sums = torch.stack([squared * batch.size, squared, absolute * batch.size])
        self._sums = sums if self._sums is None else self._sums + sums
        self._size += batch.size
        self._batches += 1

    def compute(self) -> Scores:
        """`loss`, `mse`, `log10_mse`, `log10_mse_paper` and `mae`."""
        if self._sums is None:
            raise ValueError("no batch was scored; the split is empty")
        squared, by_batch, absolute = self._sums.tolist()
        mse = squared / self._size
        return {
            "loss": mse,
            "mse": mse,
            "log10_mse": log10(mse),
            "log10_mse_paper": log10(by_batch / self._batches),
            "mae": absolute / self._size,
        }


class ClassificationMetrics:
    """Cross-entropy, accuracy and macro F1 over all scored rows.

    There are as many classes as the output has columns.

    Example:
        >>> import torch
        >>> from adgn.training import LabelledBatch
        >>> metrics = ClassificationMetrics()
        >>> y = torch.tensor([0, 1, 1])
        >>> logits = torch.tensor([[9.0, 0.0], [9.0, 0.0], [0.0, 9.0]])
        >>> metrics.update(logits, LabelledBatch(x=logits, graph=logits, y=y, size=3))
        >>> {name: round(score, 4) for name, score in metrics.compute().items() if name != "loss"}
        {'accuracy': 0.6667, 'macro_f1': 0.6667}
    """

    def __init__(self) -> None:
        self._confusion: Tensor | None = None
        self._loss: Tensor | None = None

    def update(self, output: Tensor, batch: LabelledBatch) -> None:
        """Takes the scored rows of an output, `[rows, classes]`."""
        classes = output.size(-1)
        cells = batch.y * classes + output.argmax(dim=-1)
        confusion = torch.bincount(cells, minlength=classes * classes).view(classes, classes)
        loss = torch.nn.functional.cross_entropy(output, batch.y, reduction="sum")
        if self._confusion is None or self._loss is None:
            self._confusion, self._loss = confusion, loss
        else:
            self._confusion = self._confusion + confusion
            self._loss = self._loss + loss

    def compute(self) -> Scores:
        """`loss`, `accuracy` and `macro_f1`."""
        if self._confusion is None or self._loss is None:
            raise ValueError("no batch was scored; the split is empty")
        confusion = self._confusion.cpu()
        rows = int(confusion.sum())
        return {
            "loss": float(self._loss) / rows,
            "accuracy": int(confusion.trace()) / rows,
            "macro_f1": macro_f1(confusion),
        }


def macro_f1(confusion: Tensor) -> float:
    r"""The mean over classes of $F_1 = 2h / (t + p)$: hits, true and predicted members.

    Classes that neither occur nor were predicted are left out.

    Args:
        confusion: `[true, predicted]` counts.

    Example:
        >>> import torch
        >>> macro_f1(torch.tensor([[3, 1, 0], [0, 1, 0], [0, 0, 0]]))  # F₁ is 6/7 and 2/3
        0.7619...
    """
    hits = confusion.diagonal()
    seen = confusion.sum(dim=0) + confusion.sum(dim=1)
    occurring = seen > 0
    return float((2 * hits[occurring] / seen[occurring].double()).mean())
