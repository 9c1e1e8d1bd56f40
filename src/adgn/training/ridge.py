r"""Ridge regression from sums that are streamed over batches.

$$
\min_{\mathbf{W}, \mathbf{b}} \sum_i s_i \|\mathbf{W}^\top \mathbf{h}_i + \mathbf{b} -
\mathbf{y}_i\|^2 + \lambda \|\mathbf{W}\|^2
$$

The intercept is not penalised. All sums are in double precision.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

Scaling = Literal["none", "blocks", "columns"]


@dataclass(frozen=True, eq=False)
class RidgeSolution:
    r"""A linear map $\mathbf{H}\mathbf{W} + \mathbf{b}$.

    Attributes:
        penalty: The $\lambda$ that it belongs to, in the unit that was asked for.
        weight: `[F, T]`.
        bias: `[T]`.
    """

    penalty: float
    weight: Tensor
    bias: Tensor

    def outputs(self, features: Tensor) -> Tensor:
        """`[rows, T]`, in the precision of the features."""
        return features @ self.weight.to(features) + self.bias.to(features)


class RidgeStatistics:
    r"""What ridge regressions of all penalties need to know about their rows.

    While there are fewer rows than features the rows themselves are kept, and the dual problem is
    solved: a matrix of rows × rows. From then on only the means and the centred second moments
    $\sum_i s_i (\mathbf{h}_i - \bar{\mathbf{h}})(\mathbf{h}_i - \bar{\mathbf{h}})^\top$ are, merged
    batch by batch without cancellation. So memory never exceeds $F^2 + FT$ numbers and one batch.

    Args:
        num_features: $F$.
        num_targets: $T$.

    Example:
        >>> statistics = RidgeStatistics(num_features=1, num_targets=1)
        >>> statistics.add(torch.tensor([[0.0], [1.0]]), torch.tensor([[1.0], [3.0]]))
        >>> statistics.add(torch.tensor([[2.0]]), torch.tensor([[5.0]]))
        >>> solution = statistics.solve([0.0])[0]
        >>> [round(float(value), 6) for value in (solution.weight, solution.bias)]
        [2.0, 1.0]
    """

    def __init__(self, num_features: int, num_targets: int) -> None:
        self.num_features = num_features
        self.num_targets = num_targets
        self.rows = 0
        self._kept: list[tuple[Tensor, Tensor, Tensor]] | None = []
        # The sum of the rows' weights, the means of features and targets, and the centred second
        # moments of features with features and targets, [F, F + T].
        self._sums: tuple[float, Tensor, Tensor] | None = None

    def add(self, features: Tensor, targets: Tensor, weight: Tensor | None = None) -> None:
        """Adds rows.

        Args:
            features: `[rows, F]`.
            targets: `[rows, T]`.
            weight: `[rows]`, how much each row counts. Default: 1.
        """
        wanted = {"features": self.num_features, "targets": self.num_targets}
        for (name, columns), given in zip(wanted.items(), (features, targets), strict=True):
            if given.dim() != 2 or given.size(1) != columns or given.size(0) != features.size(0):
                raise ValueError(
                    f"{name} of shape {list(given.shape)} are not valid; give "
                    f"[{features.size(0)}, {columns}]"
                )
        if features.size(0) == 0:
            return
        share = features.new_ones(features.size(0)) if weight is None else weight
        if share.shape != (features.size(0),):
            raise ValueError(
                f"weight of shape {list(share.shape)} is not valid; give [{features.size(0)}]"
            )
        batch = (features.double(), targets.double(), share.double())
        self.rows += features.size(0)
        if self._kept is not None:
            self._kept.append(batch)
            if self.rows < self.num_features:
                return
            kept, self._kept = self._kept, None
            for rows in kept:
                self._merge(*rows)
            return
        self._merge(*batch)

    def solve(
        self, penalties: Iterable[float], *, relative: bool = False, standardise: bool = False
    ) -> list[RidgeSolution]:
        """The solutions, one for each penalty.

        Args:
            penalties: Not negative. One that is too small for a solution in double precision is
                left out; where that leaves none, an error says so.
            relative: Penalties are in units of the mean of the diagonal of the Gram matrix (of
                rows where there are fewer rows than features, else of features).
            standardise: Features are divided by their standard deviation first, so that all are
                penalised alike; constant ones are left alone.
        """
        given = _checked(penalties)
        if self.rows == 0:
            raise ValueError("there are no rows to learn from; add some first")
        if self._kept is not None:
            features, targets, share = (torch.cat(parts) for parts in zip(*self._kept, strict=True))
            total = float(share.sum())
            mean, target_mean = share @ features / total, share @ targets / total
            centred = features - mean
            scale = _scale(share @ centred.square() / total, mean, standardise)
            rows = centred / scale * share.sqrt().view(-1, 1)
            right = (targets - target_mean) * share.sqrt().view(-1, 1)
            gram, back = rows @ rows.t(), rows.t()
        else:
            assert self._sums is not None
            total, means, moments = self._sums
            mean, target_mean = means[: self.num_features], means[self.num_features :]
            square = moments[:, : self.num_features]
            scale = _scale(square.diagonal() / total, mean, standardise)
            gram = square / (scale * scale.view(-1, 1))
            right, back = moments[:, self.num_features :] / scale.view(-1, 1), None
        found = []
        for penalty, solved in _solved(gram, right, given, relative):
            weight = (solved if back is None else back @ solved) / scale.view(-1, 1)
            found.append(RidgeSolution(penalty, weight, target_mean - mean @ weight))
        return found

    def _merge(self, features: Tensor, targets: Tensor, share: Tensor) -> None:
        """Chan's update: the moments about the common mean, from those about two means."""
        rows = torch.cat([features, targets], dim=1)
        total = float(share.sum())
        mean = share @ rows / total
        left = (rows[:, : self.num_features] - mean[: self.num_features]) * share.view(-1, 1)
        moments = left.t() @ (rows - mean)
        if self._sums is not None:
            known, known_mean, known_moments = self._sums
            shift = mean - known_mean
            both = known + total
            moments += known_moments
            moments.addr_(shift[: self.num_features], shift, alpha=known * total / both)
            mean, total = known_mean + shift * (total / both), both
        self._sums = (total, mean, moments)


class GrowingRidge:
    r"""Ridge regressions on the same rows, whose features grow by a block at a time.

    What the features so far have cost is kept: a new block adds its products with them. While
    there are fewer features than rows the matrix that is solved is features × features, then
    rows × rows. Products are in the precision of the blocks, solutions in double precision.

    Args:
        targets: `[rows, T]`.
        weight: `[rows]`, how much each row counts. Default: 1.
        scaling: `"columns"`: features are divided by their standard deviation, constant ones
            are not; `"blocks"`: all features of a block by the root of their mean variance, so
            that blocks are penalised alike; `"none"`.

    Example:
        >>> ridge = GrowingRidge(torch.tensor([[1.0], [3.0], [6.0]]))
        >>> ridge.extend(torch.tensor([[0.0], [1.0], [2.0]], dtype=torch.double))
        >>> ridge.extend(torch.tensor([[0.0], [0.0], [1.0]], dtype=torch.double))
        >>> ridge.solve([0.0])[0].weight.flatten().round(decimals=6).tolist()
        [2.0, 1.0]
    """

    def __init__(
        self, targets: Tensor, weight: Tensor | None = None, *, scaling: Scaling = "none"
    ) -> None:
        if targets.dim() != 2 or targets.size(0) == 0:
            raise ValueError(
                f"targets of shape {list(targets.shape)} are not valid; give [rows, T], rows > 0"
            )
        values = targets.double()
        share = values.new_ones(len(values)) if weight is None else weight.double()
        self._share = share / share.sum()
        self._root = share.sqrt().view(-1, 1)
        self._target_mean = self._share @ values
        self._right = (values - self._target_mean) * self._root
        self._scaling: Scaling = scaling
        self._rows: list[Tensor] = []
        self._mean: list[Tensor] = []
        self._scale: list[Tensor] = []
        self._primal: Tensor | None = values.new_empty(0, 0)
        self._dual: Tensor | None = None

    @property
    def num_features(self) -> int:
        """How many features there are so far."""
        return sum(rows.size(1) for rows in self._rows)

    def extend(self, block: Tensor) -> None:
        """Adds features, `[rows, F]`."""
        count = len(self._right)
        if block.dim() != 2 or block.size(0) != count:
            raise ValueError(f"block of shape {list(block.shape)} is not valid; give [{count}, F]")
        share = self._share.to(block)
        mean = share @ block
        centred = block - mean
        variance = share @ centred.square()
        scale = _scale(variance, mean, self._scaling == "columns")
        if self._scaling == "blocks":
            size = float(variance.mean().sqrt()) if variance.numel() else 0.0
            scale = torch.full_like(variance, size or 1.0)
        rows = centred.div_(scale).mul_(self._root.to(block))
        self._rows.append(rows)
        self._mean.append(mean.double())
        self._scale.append(scale.double())
        if self._primal is not None and self.num_features <= count:
            cross = torch.cat([(old.t() @ rows).double() for old in self._rows])
            above = torch.cat([self._primal, cross[: len(self._primal)]], dim=1)
            self._primal = torch.cat([above, cross.t()])
            return
        self._primal = None
        new = self._rows if self._dual is None else [rows]
        self._dual = self._right.new_zeros(count, count) if self._dual is None else self._dual
        for part in new:
            self._dual += part @ part.t()

    def solve(self, penalties: Iterable[float], *, relative: bool = False) -> list[RidgeSolution]:
        """The solutions, one for each penalty; as `RidgeStatistics.solve`."""
        if not self._rows:
            raise ValueError("there are no features to learn from; extend by some first")
        dual, primal = self._dual, self._primal
        if dual is not None:
            gram, right = dual, self._right
        else:
            assert primal is not None
            gram = primal
            right = torch.cat([rows.t().double() @ self._right for rows in self._rows])
        mean, scale = torch.cat(self._mean), torch.cat(self._scale).view(-1, 1)
        solved = _solved(gram, right, _checked(penalties), relative)
        weights = torch.cat([each for _, each in solved], dim=1)
        if dual is not None:  # all penalties in one pass over the rows
            weights = torch.cat([(rows.t() @ weights.to(rows)).double() for rows in self._rows])
        return [
            RidgeSolution(penalty, weight, self._target_mean - mean @ weight)
            for (penalty, _), weight in zip(
                solved, torch.split(weights / scale, right.size(1), dim=1), strict=True
            )
        ]


def _checked(penalties: Iterable[float]) -> list[float]:
    given = list(penalties)
    for penalty in given:
        if not 0 <= penalty < float("inf"):
            raise ValueError(f"penalties={given} are not valid; give numbers >= 0")
    return given


def _solved(
    gram: Tensor, right: Tensor, penalties: list[float], relative: bool
) -> list[tuple[float, Tensor]]:
    """The penalties that have a solution in double precision, each with it."""
    unit = (float(gram.diagonal().mean()) or 1.0) if relative else 1.0
    found = []
    for penalty in penalties:
        shifted = gram.clone()
        shifted.diagonal().add_(penalty * unit)
        factor, failed = torch.linalg.cholesky_ex(shifted)
        if int(failed):
            continue
        solved = torch.cholesky_solve(right, factor)
        if bool(solved.isfinite().all()):
            found.append((penalty, solved))
    if not found:
        raise ValueError(
            f"penalties={penalties}: none gives a solution in double precision. Features "
            "are not finite, or dependent on each other: give a larger penalty"
        )
    return found


def _scale(variance: Tensor, mean: Tensor, standardise: bool) -> Tensor:
    if not standardise:
        return torch.ones_like(variance)
    scale = variance.sqrt()
    # A constant feature has the rounding of its mean for a deviation.
    rounding = max(1e-12, 10 * torch.finfo(scale.dtype).eps)
    return torch.where(scale > rounding * mean.abs(), scale, 1.0)
