"""Scores of predictions, as users read them."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from adgn.training.metrics import macro_f1, ranking_scores


def class_scores(probability: Tensor, y: Tensor) -> dict[str, float]:
    """Accuracy, macro F1, ROC AUC, average precision and log loss.

    Args:
        probability: `[rows, classes]`.
        y: `[rows]`, the class of each row.

    Example:
        >>> class_scores(torch.tensor([[0.9, 0.1], [0.4, 0.6]]), torch.tensor([0, 1]))["accuracy"]
        1.0
    """
    classes = probability.size(1)
    predicted = probability.argmax(-1)
    confusion = torch.bincount(y * classes + predicted, minlength=classes**2)
    roc_auc, precision = ranking_scores(probability, y)
    own = probability.gather(1, y.view(-1, 1)).clamp(min=1e-12)
    return {
        "accuracy": float((predicted == y).double().mean()),
        "macro_f1": macro_f1(confusion.view(classes, classes)),
        "roc_auc": roc_auc,
        "average_precision": precision,
        "log_loss": -float(own.log().mean()),
    }


def value_scores(predicted: NDArray[np.float64], true: NDArray[np.float64]) -> dict[str, float]:
    """R², mean squared and mean absolute error, in the unit of the target; means over columns.

    They are scikit-learn's, without its checks of each call: resamples ask thousands of times.

    Args:
        predicted: `[rows, columns]`.
        true: `[rows, columns]`.

    Example:
        >>> value_scores(np.array([[1.0], [2.0]]), np.array([[1.0], [3.0]]))
        {'r2': 0.5, 'mse': 0.5, 'mae': 0.5}
    """
    error = true - predicted
    squared = np.square(error)
    left = squared.sum(axis=0)
    spread = np.square(true - true.mean(axis=0)).sum(axis=0)
    varies = spread > 0  # a column of one value is predicted exactly, or not at all
    r2 = np.where(varies, 1 - left / np.where(varies, spread, 1), left == 0).mean()
    return {
        "r2": float(r2) if len(true) > 1 else float("nan"),
        "mse": float(squared.mean()),
        "mae": float(np.abs(error).mean()),
    }
