"""Means with intervals: over splits, or over the test rows of a single one."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.stats import t as student
from torch import Tensor

from adgn.training.quality import Quality

_RESAMPLES = 200
Values = NDArray[np.float64]


@dataclass(frozen=True)
class Spread:
    """A mean with a 95 % interval.

    Attributes:
        mean: Over splits.
        deviation: The standard deviation over splits; of a single split the standard error, by
            resampling its test rows.
        low, high: The interval.
    """

    mean: float
    deviation: float
    low: float
    high: float

    def to_json(self) -> dict[str, float]:
        """Its numbers."""
        return dict(vars(self))


def over_splits(values: Sequence[float]) -> Spread:
    """Mean, deviation and Student's interval over splits.

    Example:
        >>> over_splits([1.0, 2.0, 3.0]).deviation
        1.0
    """
    mean, count = float(np.mean(values)), len(values)
    deviation = float(np.std(values, ddof=1))
    reach = float(student.ppf(0.975, count - 1)) * deviation / count**0.5
    return Spread(mean, deviation, mean - reach, mean + reach)


def over_rows(mean: float, resampled: Values) -> Spread:
    """Mean, standard error and interval from values on resampled rows."""
    low, high = np.nanpercentile(resampled, [2.5, 97.5])
    return Spread(mean, float(np.nanstd(resampled, ddof=1)), float(low), float(high))


class Resampling:
    """The test rows of a split, drawn with replacement the same way for every model.

    Args:
        y: `[rows]` or `[rows, T]`.
        quality: What is shown.
        weight: `[rows]`; how much each counts.
        cluster: `[rows]`; rows of one number are drawn together.
        seed: Of the draws.
    """

    def __init__(
        self,
        y: Tensor,
        quality: Quality,
        weight: Tensor | None,
        cluster: Tensor | None,
        seed: int,
    ) -> None:
        self._y, self._quality, self._weight = y, quality, weight
        rows = torch.arange(len(y))
        unit = rows if cluster is None else torch.unique(cluster, return_inverse=True)[1]
        units = int(unit.max()) + 1
        generator = np.random.default_rng(seed)
        draws = generator.multinomial(units, np.full(units, 1 / units), size=_RESAMPLES)
        self._counts = torch.from_numpy(draws)[:, unit]

    def shown(self, outputs: Tensor) -> Values:
        """The metric on each resample."""
        quality, y = self._quality, self._y
        if quality.metric in ("accuracy", "mse", "mae", "log10_mse"):
            errors = quality.row_errors(outputs, y)
            share = self._counts.double()
            share = share if self._weight is None else share * self._weight.double()
            mean = (share @ errors / share.sum(1)).numpy()
            if quality.metric == "accuracy":
                return 1 - mean
            return np.log10(mean) if quality.metric == "log10_mse" else mean
        found = []
        for count in self._counts:
            rows = torch.repeat_interleave(torch.arange(len(y)), count)
            weight = None if self._weight is None else self._weight[rows]
            found.append(quality.shown(outputs[rows], y[rows], weight))
        return np.asarray(found)
