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
_RESIDUAL = 1e-9  # of the targets: what a refined solution may leave
_LARGE = 512  # rows from which on factors in single precision are worth their refinement
_SHRINKS = 0.1  # of a residual, by one refinement; where it shrinks less, it is given up


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
        for penalty, solved in _solved(gram, right, given, _unit(gram, relative)):
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
        share, self._root, self._target_mean, self._right = _centred_targets(targets, weight)
        self._share = share
        self._scaling: Scaling = scaling
        self._rows: list[Tensor] = []
        self._mean: list[Tensor] = []
        self._scale: list[Tensor] = []
        self._primal: Tensor | None = self._right.new_empty(0, 0)
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
        # Products of rows have errors of single precision already where features are many.
        quick = dual is not None and len(gram) >= _LARGE
        solved = _solved(gram, right, _checked(penalties), _unit(gram, relative), quick)
        weights = torch.cat([each for _, each in solved], dim=1)
        if dual is not None:  # all penalties in one pass over the rows
            weights = torch.cat([(rows.t() @ weights.to(rows)).double() for rows in self._rows])
        return [
            RidgeSolution(penalty, weight, self._target_mean - mean @ weight)
            for (penalty, _), weight in zip(
                solved, torch.split(weights / scale, right.size(1), dim=1), strict=True
            )
        ]


class KernelRidge:
    r"""Ridge regressions of features that are known by their inner products alone.

    As [`GrowingRidge`][adgn.training.ridge.GrowingRidge] with `scaling="blocks"`, for rows that
    are fewer than their features: products of rows, $\mathbf{X}\mathbf{X}^\top$, that were made
    once serve all splits of the rows. Centring needs no features:
    $(\mathbf{x}_i - \bar{\mathbf{x}})^\top(\mathbf{x}_j - \bar{\mathbf{x}}) = k_{ij} - r_i - r_j
    + q$ with $r_i = \sum_j s_j k_{ij}$ and $q = \sum_i s_i r_i$ for weights $s$ of sum 1.

    Factors are in single precision. Residuals in double precision correct the solutions until
    these are small; where they do not become so, factors are in double precision too.

    Args:
        targets: `[rows, T]` of the train rows.
        weight: `[rows]`, how much each train row counts. Default: 1.

    Example:
        >>> x = torch.tensor([[0.0], [1.0], [2.0], [3.0]])
        >>> ridge = KernelRidge(torch.tensor([[1.0], [3.0], [5.0]]))
        >>> ridge.extend(x[:3] @ x[:3].t(), x[3:] @ x[:3].t(), 1)
        >>> ridge.solve([1e-9])[0][1].round(decimals=4).tolist()  # 2 x + 1 at the fourth row
        [[7.0]]
    """

    def __init__(self, targets: Tensor, weight: Tensor | None = None) -> None:
        share, self._root, self._target_mean, self._right = _centred_targets(targets, weight)
        self._share = share
        self._features = 0
        self._gram: Tensor | None = None
        self._cross: Tensor | None = None

    def extend(self, inner: Tensor, cross: Tensor, features: int) -> None:
        """Adds features by their inner products.

        Args:
            inner: `[rows, rows]`, of train rows with train rows.
            cross: `[held, rows]`, of the rows that are predicted with the train rows.
            features: How many features were summed over.
        """
        count = len(self._right)
        if inner.shape != (count, count) or cross.dim() != 2 or cross.size(1) != count:
            raise ValueError(
                f"inner products of shapes {list(inner.shape)} and {list(cross.shape)} are not "
                f"valid; give [{count}, {count}] and [held, {count}]"
            )
        share = self._share.to(inner)
        middle = inner @ share
        offset = share @ middle
        own = inner.diagonal() - 2 * middle + offset
        spread = max(float(share @ own) / max(features, 1), 0.0) or 1.0
        root = self._root.to(inner).view(-1)
        gram = (inner - (middle - offset).view(-1, 1)).sub_(middle)
        gram.mul_((root / spread).view(-1, 1)).mul_(root)
        apart = (cross - (cross @ share - offset).view(-1, 1)).sub_(middle).mul_(root / spread)
        self._gram = gram if self._gram is None else self._gram + gram
        self._cross = apart if self._cross is None else self._cross + apart
        self._features += features

    def solve(
        self, penalties: Iterable[float], *, relative: bool = False
    ) -> list[tuple[float, Tensor]]:
        """For each penalty that has a solution, the outputs of the held rows, `[held, T]`.

        Args:
            penalties: As of `RidgeStatistics.solve`.
            relative: Penalties are in units of the mean of the diagonal of the Gram matrix, of
                features where these are fewer than the rows, else of rows.
        """
        if self._gram is None or self._cross is None:
            raise ValueError("there are no features to learn from; extend by some first")
        given, gram = _checked(penalties), self._gram
        unit = 1.0
        if relative:
            unit = float(gram.diagonal().double().sum()) / min(self._features, len(gram)) or 1.0
        found = _solved(gram, self._right, given, unit, quick=True)
        weights = torch.cat([solved for _, solved in found], dim=1)
        outputs = (self._cross @ weights.to(self._cross)).double()
        split = torch.split(outputs, self._right.size(1), dim=1)
        return [(p, part + self._target_mean) for (p, _), part in zip(found, split, strict=True)]


def _refined(gram: Tensor, right: Tensor, penalties: list[float]) -> list[Tensor | None]:
    """For each penalty x in (gram + penalty) x = right; `None` where double precision has none.

    Args:
        gram: `[n, n]`.
        right: `[n, T]`.
        penalties: Not negative.
    """
    single, exact = gram.float(), gram.double()
    tried: dict[int, Tensor] = {}
    for place, penalty in enumerate(penalties):
        factor, failed = _factor(single, penalty)
        if not failed:
            tried[place] = factor
    found: list[Tensor | None] = [None] * len(penalties)
    residual, solved = dict.fromkeys(tried, right), dict.fromkeys(tried, torch.zeros_like(right))
    size = dict.fromkeys(tried, float(right.norm()) or 1.0)
    least = _RESIDUAL * (float(right.norm()) or 1.0)
    while tried:
        for place, factor in tried.items():
            step = torch.cholesky_solve(residual[place].to(factor), factor)
            solved[place] = solved[place] + step.double()
        # One pass over the matrix for all penalties.
        heard = torch.split(exact @ torch.cat([solved[p] for p in tried], dim=1), right.size(1), 1)
        for place, product in zip(list(tried), heard, strict=True):
            residual[place] = right - product - penalties[place] * solved[place]
            left = float(residual[place].norm())
            if left <= least:
                found[place] = solved[place]
            if not least < left <= _SHRINKS * size[place]:
                del tried[place]
            size[place] = left
    for place, penalty in enumerate(penalties):
        if found[place] is None:
            found[place] = _solution(exact, right, penalty)
    return found


def _solution(gram: Tensor, right: Tensor, penalty: float) -> Tensor | None:
    """x in (gram + penalty) x = right, `None` where there is none in this precision."""
    factor, failed = _factor(gram, penalty)
    solved = torch.cholesky_solve(right, factor)
    return None if failed or not bool(solved.isfinite().all()) else solved


def _factor(gram: Tensor, penalty: float) -> tuple[Tensor, bool]:
    """The Cholesky factor of gram + penalty, and whether it failed."""
    shifted = gram.clone()
    shifted.diagonal().add_(penalty)
    factor, failed = torch.linalg.cholesky_ex(shifted)
    return factor, bool(failed)


def _centred_targets(
    targets: Tensor, weight: Tensor | None
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Shares of rows, roots of their weights, the mean of targets, and what is left, weighted."""
    if targets.dim() != 2 or targets.size(0) == 0:
        raise ValueError(
            f"targets of shape {list(targets.shape)} are not valid; give [rows, T], rows > 0"
        )
    values = targets.double()
    weights = values.new_ones(len(values)) if weight is None else weight.double()
    share, root = weights / weights.sum(), weights.sqrt().view(-1, 1)
    mean = share @ values
    return share, root, mean, (values - mean) * root


def _checked(penalties: Iterable[float]) -> list[float]:
    given = list(penalties)
    for penalty in given:
        if not 0 <= penalty < float("inf"):
            raise ValueError(f"penalties={given} are not valid; give numbers >= 0")
    return given


def _solved(
    gram: Tensor, right: Tensor, penalties: list[float], unit: float, quick: bool = False
) -> list[tuple[float, Tensor]]:
    """The penalties that have a solution in double precision, each with it.

    Args:
        gram: `[n, n]`.
        right: `[n, T]`.
        penalties: In this unit.
        unit: What a penalty is a multiple of.
        quick: Factor in single precision, and refine.
    """
    shifts = [penalty * unit for penalty in penalties]
    every = _refined(gram, right, shifts) if quick else [_solution(gram, right, s) for s in shifts]
    found = [(p, solved) for p, solved in zip(penalties, every, strict=True) if solved is not None]
    if not found:
        raise ValueError(
            f"penalties={penalties}: none gives a solution in double precision. Features "
            "are not finite, or dependent on each other: give a larger penalty"
        )
    return found


def _unit(gram: Tensor, relative: bool) -> float:
    """What penalties are multiples of: 1, or the mean of the diagonal."""
    return (float(gram.diagonal().mean()) or 1.0) if relative else 1.0


def _scale(variance: Tensor, mean: Tensor, standardise: bool) -> Tensor:
    if not standardise:
        return torch.ones_like(variance)
    scale = variance.sqrt()
    # A constant feature has the rounding of its mean for a deviation.
    rounding = max(1e-12, 10 * torch.finfo(scale.dtype).eps)
    return torch.where(scale > rounding * mean.abs(), scale, 1.0)
