"""Scores, gathered batch by batch, and whether a model beats the constant predictor."""

import math
from typing import TYPE_CHECKING, Protocol

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from adgn.training.batches import LabelledBatch

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
    for scored, known in trainer.scored("train"):
        if known.size:
            metrics.update(scored, known)
            rows = len(known.y)
            equal = torch.full((rows,), 1 / rows, device=known.y.device)
            targets.append(known.y)
            shares.append(known.size * (equal if known.weight is None else known.weight))
            largest = torch.maximum(largest, _largest(known.x))
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
    """The largest magnitude in each column of the features; zero for integers and without rows."""
    if not x.is_floating_point() or not x.size(0):
        return torch.zeros(1)
    if x.layout == torch.sparse_csr:
        none = torch.zeros(x.size(1), dtype=x.dtype, device=x.device)
        return none.scatter_reduce(0, x.col_indices().long(), x.values().abs(), "amax").cpu()
    return x.abs().amax(dim=0).cpu()


Scores = dict[str, float]


class Metrics(Protocol):
    """Gathers the scores of the batches of one pass."""

    def update(self, output: Tensor, batch: LabelledBatch) -> None:
        """Takes the scored rows of an output."""

    def compute(self) -> Scores:
        """The scores of all batches so far."""


def log10(value: float) -> float:
    """The decimal logarithm, −∞ for zero and NaN below."""
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
    """Cross-entropy, accuracy, macro F1, ROC AUC and average precision over all scored rows.

    There are as many classes as the output has columns.

    Example:
        >>> import torch
        >>> from adgn.training import LabelledBatch
        >>> metrics = ClassificationMetrics()
        >>> y = torch.tensor([0, 1, 1])
        >>> logits = torch.tensor([[9.0, 0.0], [9.0, 0.0], [0.0, 9.0]])
        >>> metrics.update(logits, LabelledBatch(x=logits, graph=logits, y=y, size=3))
        >>> {name: round(score, 4) for name, score in metrics.compute().items() if name != "loss"}
        {'accuracy': 0.6667, 'macro_f1': 0.6667, 'roc_auc': 0.75, 'average_precision': 0.8333}
    """

    def __init__(self) -> None:
        self._outputs: list[Tensor] = []
        self._labels: list[Tensor] = []
        self._losses: list[Tensor] = []

    def update(self, output: Tensor, batch: LabelledBatch) -> None:
        """Takes the scored rows of an output, `[rows, classes]`."""
        self._outputs.append(output)
        self._labels.append(batch.y)
        self._losses.append(cross_entropy(output, batch.y, reduction="sum"))

    def compute(self) -> Scores:
        """`loss`, `accuracy`, `macro_f1`, `roc_auc` and `average_precision`."""
        if not self._outputs:
            raise ValueError("no batch was scored; the split is empty")
        output, y = torch.cat(self._outputs), torch.cat(self._labels)
        rows, classes = output.shape
        cells = y * classes + output.argmax(dim=-1)
        confusion = torch.bincount(cells, minlength=classes**2).view(classes, classes).cpu()
        roc_auc, precision = ranking_scores(class_probabilities(output), y)
        return {
            "loss": float(sum(self._losses)) / rows,
            "accuracy": int(confusion.trace()) / rows,
            "macro_f1": macro_f1(confusion),
            "roc_auc": roc_auc,
            "average_precision": precision,
        }


def class_probabilities(output: Tensor) -> Tensor:
    """The probability of each class, `[rows, classes]`: the softmax, in double precision."""
    return output.double().softmax(dim=-1)


def ranking_scores(probability: Tensor, y: Tensor) -> tuple[float, float]:
    r"""ROC AUC and average precision, as scikit-learn computes them.

    With the rows in the order of a class's probability, $t_k$ and $f_k$ its true and false members
    among those down to the $k$-th distinct probability, $T$ and $F$ all of them:

    $$\text{ROC AUC} = \sum_k \frac{f_k - f_{k-1}}{F} \frac{t_k + t_{k-1}}{2T}, \qquad
    \text{AP} = \sum_k \frac{t_k - t_{k-1}}{T} \frac{t_k}{t_k + f_k}$$

    Of two classes the second one counts; of more, the mean over all (one against the rest, macro).
    A class that no row or every row belongs to has no ranking and is left out; where none is left,
    both scores are NaN.

    Args:
        probability: `[rows, classes]`.
        y: `[rows]`, the class of each row.

    Example:
        >>> import torch
        >>> probability = torch.tensor([[0.9, 0.1], [0.6, 0.4], [0.65, 0.35], [0.2, 0.8]])
        >>> ranking_scores(probability, torch.tensor([0, 0, 1, 1]))
        (0.75, 0.8333...)
    """
    classes = torch.arange(probability.size(1), device=y.device)
    classes = classes[1:] if len(classes) == 2 else classes
    member = y.view(-1, 1) == classes
    ranked = member.any(dim=0) & ~member.all(dim=0)
    if not bool(ranked.any()):
        return math.nan, math.nan
    scores, order = probability[:, classes[ranked]].sort(dim=0, descending=True)
    true = member[:, ranked].gather(0, order).cumsum(dim=0).double()
    count = torch.arange(1, len(y) + 1, device=y.device, dtype=torch.double).view(-1, 1)
    last = torch.ones_like(scores, dtype=torch.bool)  # of rows with one and the same probability
    last[:-1] = scores[1:] != scores[:-1]
    # Other rows repeat the counts of the probability before theirs, and so add nothing.
    true, count = (torch.where(last, n, 0.0).cummax(dim=0).values for n in (true, count))
    none = torch.zeros_like(true[:1])
    new_true = true.diff(dim=0, prepend=none)
    new_false = count.diff(dim=0, prepend=none) - new_true
    all_true, all_false = true[-1], len(y) - true[-1]
    area = (new_false * (true - new_true / 2)).sum(dim=0) / (all_true * all_false)
    precision = (new_true * true / count.clamp(min=1)).sum(dim=0) / all_true
    return float(area.mean()), float(precision.mean())


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
