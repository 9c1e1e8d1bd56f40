r"""Ridge regression from sums that are streamed over batches.

$$
\min_{\mathbf{W}, \mathbf{b}} \sum_i s_i \|\mathbf{W}^\top \mathbf{h}_i + \mathbf{b} -
\mathbf{y}_i\|^2 + \lambda \|\mathbf{W}\|^2
$$

The intercept is not penalised. All sums are in double precision.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor


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
        given = list(penalties)
        for penalty in given:
            if not 0 <= penalty < float("inf"):
                raise ValueError(f"penalties={given} are not valid; give numbers >= 0")
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
        unit = (float(gram.diagonal().mean()) or 1.0) if relative else 1.0
        solutions = []
        for penalty in given:
            shifted = gram.clone()
            shifted.diagonal().add_(penalty * unit)
            factor, failed = torch.linalg.cholesky_ex(shifted)
            if int(failed):
                continue
            solved = torch.cholesky_solve(right, factor)
            weight = (solved if back is None else back @ solved) / scale.view(-1, 1)
            if bool(weight.isfinite().all()):
                solutions.append(RidgeSolution(penalty, weight, target_mean - mean @ weight))
        if not solutions:
            raise ValueError(
                f"penalties={given}: none gives a solution in double precision. Features "
                "are not finite, or dependent on each other: give a larger penalty"
            )
        return solutions

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


def _scale(variance: Tensor, mean: Tensor, standardise: bool) -> Tensor:
    if not standardise:
        return torch.ones_like(variance)
    scale = variance.sqrt()
    # A constant feature has the rounding of its mean for a deviation.
    return torch.where(scale > 1e-12 * mean.abs(), scale, 1.0)
