"""Closed-form models on the features of some hops: how well each predicts."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from adgn.analysis.probe.hops import (
    OPERATORS,
    HopOperator,
    HopView,
    dense_features,
    pooled,
    powers,
    reduction,
)
from adgn.analysis.probe.question import Question
from adgn.analysis.probe.shells import COLUMNS, shell_features
from adgn.data.own.inputs import Inputs
from adgn.data.own.splits import Parts
from adgn.graph import Direction, OperatorDirection
from adgn.training.quality import Quality
from adgn.training.ridge import GrowingRidge, KernelRidge, RidgeSolution, Scaling

# Of the mean of the Gram matrix's diagonal. Values may be exact functions of the features.
CLASS_PENALTIES = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)
VALUE_PENALTIES = (1e-10, 1e-8, 1e-6, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)
NARROW = 128  # features: up to here all arithmetic is in double precision, and cheap
_ADDS = 0.005  # of the error that is left: what a hop has to take away to add something
_PRODUCTS = 30_000_000  # inner products of rows at one hop that are kept for all splits
_MOST = 0.7  # the share of rows that train from which on products are symmetric
_UNEVEN = 100.0  # the largest row's square, of their mean: above, products are in double precision
_BLOCK = 512  # rows whose products are made at a time
PATIENCE = 2  # hops that add nothing before the search for more ends


@dataclass(frozen=True)
class Way:
    """A way from features to predictions; with a number of hops it is a view."""

    direction: Direction
    operator: HopOperator
    alone: bool

    @property
    def sides(self) -> tuple[OperatorDirection, ...]:
        """The directions of its operators: one, or in and out side by side."""
        return ("in", "out") if self.direction == "both" else (self.direction,)

    def view(self, hops: int) -> HopView:
        """The view with so many hops."""
        return HopView(hops, self.direction, self.operator, self.alone)


@dataclass(frozen=True)
class Rows:
    """How many rows are looked at, at most."""

    train: int
    valid: int
    test: int


@dataclass(frozen=True, eq=False)
class Fit:
    """A closed-form model.

    Attributes:
        valid: Its quality on the validation rows, higher is better.
        penalty: The place of the chosen penalty in the list of all.
        outputs: `[rows, outputs]` of the test rows.
    """

    valid: float
    penalty: int
    outputs: Tensor


class HopStore:
    """The features of hops, at the rows that are needed.

    Args:
        inputs: The graph.
        rows: Those that are needed.
        projection: Of the features, or `None`.
        hops: How many hops there may be.
        train: Positions among the rows of those that train, in any split.
    """

    def __init__(
        self,
        inputs: Inputs,
        rows: Tensor,
        projection: Tensor | None,
        hops: int,
        train: Tensor,
    ) -> None:
        self.inputs = inputs
        self.rows = rows
        self.hops = hops
        self._x = dense_features(inputs, projection)
        self._streams: dict[tuple[OperatorDirection, HopOperator], Iterator[Tensor]] = {}
        self._blocks: dict[tuple[OperatorDirection, HopOperator], list[Tensor]] = {}
        self._own = self._kept(self._x)
        self._train = train
        self._column = torch.full((len(rows),), -1)
        self._column[train] = torch.arange(len(train))
        self._products: dict[tuple[OperatorDirection, HopOperator, int], Tensor] = {}

    @property
    def wide(self) -> bool:
        """Whether models are solved by inner products of rows: many features, and few rows."""
        return self.width > NARROW and len(self.rows) * len(self._train) <= _PRODUCTS

    @property
    def width(self) -> int:
        """The columns of a block."""
        return self._own.size(1)

    def blocks(self, way: Way, hop: int) -> list[Tensor]:
        """What hop `hop` adds: one block, or two where in and out are side by side."""
        if hop == 0:
            return [self._own]
        return [self._block(side, way.operator, hop) for side in way.sides]

    def forget(self, operator: HopOperator) -> None:
        """Frees the memory of an operator's blocks."""
        for key in [key for key in self._blocks if key[1] == operator]:
            del self._blocks[key], self._streams[key]
        for place in [place for place in self._products if place[1] == operator and place[2]]:
            del self._products[place]

    def products(self, way: Way, hop: int) -> list[tuple[Tensor, int]]:
        """Inner products of what hop `hop` adds, and the number of its features.

        Each is `[rows, train]`, of features less their mean over all rows. They are made once, in
        double precision where a few rows (hubs, by sums) are so large that the rounding of their
        products would hide all others.
        """
        sides = way.sides if hop else ("in",)
        keys = [(side, way.operator if hop else OPERATORS[0], hop) for side in sides]
        blocks = self.blocks(way, hop)
        for key, block in zip(keys, blocks, strict=True):
            if key not in self._products:
                centred = block - block.mean(0)
                size = centred.square().sum(1)
                if float(size.max()) > _UNEVEN * float(size.mean()):
                    centred = centred.double()
                self._products[key] = _inner(centred, self._train)
        return [(self._products[k], b.size(1)) for k, b in zip(keys, blocks, strict=True)]

    def columns(self, train: Tensor) -> Tensor:
        """Where the products with these rows are."""
        return self._column[train]

    def _block(self, side: OperatorDirection, operator: HopOperator, hop: int) -> Tensor:
        key = (side, operator)
        if key not in self._blocks:
            self._blocks[key] = []
            if operator == "shell":
                self._streams[key] = iter(self._shells(side))
            else:
                self._streams[key] = powers(self.inputs, side, operator, self._x)
        blocks = self._blocks[key]
        while len(blocks) < hop:
            blocks.append(self._kept(next(self._streams[key])))
        return blocks[hop - 1]

    def _shells(self, side: OperatorDirection) -> list[Tensor]:
        x = self._x
        if x.size(1) > COLUMNS:
            few = reduction(replace(self.inputs, x=x), torch.arange(len(x)), most=COLUMNS)
            x = x if few is None else x @ few
        return shell_features(self.inputs, side, x, self.hops)

    def _kept(self, block: Tensor) -> Tensor:
        rows: Tensor = pooled(block, self.inputs)[self.rows]
        return rows.double() if rows.size(1) <= NARROW else rows


def _inner(block: Tensor, train: Tensor) -> Tensor:
    """`[rows, train]`: inner products; where most rows train, only a half is multiplied."""
    if len(train) < _MOST * len(block):
        return block @ block[train].t()
    found = block.new_empty(len(block), len(block))
    for first in range(0, len(block), _BLOCK):
        last = min(first + _BLOCK, len(block))
        part = block[first:last] @ block[:last].t()
        found[first:last, :last] = part
        found[:last, first:last] = part.t()
    return found if len(train) == len(block) else found[:, train]


def fits(
    store: HopStore,
    way: Way,
    y: Tensor,
    parts: Parts,
    quality: Quality,
    *,
    weight: Tensor | None = None,
    near: Mapping[int, int] | None = None,
    coarse: bool = False,
    first: int = 1,
) -> Iterator[tuple[int, Fit]]:
    """A model for each number of hops, each when it is asked for.

    Args:
        store: The features.
        way: How they are read.
        y: `[rows of the store]`.
        parts: Positions among the rows of the store.
        quality: What validation compares.
        weight: `[rows of the store]`; how much each counts.
        near: By the number of hops the place of a penalty, around which to look; all by default.
        coarse: Only every other penalty is tried, and of wide features from the middle on only
            as long as they validate better.
        first: The number of hops to begin with.
    """
    everything = range(len(CLASS_PENALTIES if quality.classes else VALUE_PENALTIES))

    def choice(hop: int) -> Sequence[int]:
        if near is None or hop not in near:
            return everything[:: 2 if coarse else 1]
        return everything[max(0, near[hop] - 1) : near[hop] + 2]

    targets = quality.targets(y)[parts.train]
    share = None if weight is None else weight[parts.train]
    readers = _ByProducts if store.wide else _ByFeatures
    reader: _ByProducts | _ByFeatures | None = None
    for hop in range(store.hops + 1):
        if reader is None or (way.alone and hop):
            reader = readers(store, way, parts, targets, share)
        if way.alone and hop < first:
            continue
        reader.extend(hop)
        if hop >= first:
            climbing = coarse and store.wide and quality.classes > 0
            yield hop, _best(reader, y, parts, quality, weight, choice(hop), climbing)


class _ByFeatures:
    """Models by the features themselves, or by products of features."""

    def __init__(
        self, store: HopStore, way: Way, parts: Parts, targets: Tensor, share: Tensor | None
    ) -> None:
        self._store, self._way, self._parts = store, way, parts
        scaling: Scaling = "columns" if store.width <= NARROW else "blocks"
        self._ridge = GrowingRidge(targets, share, scaling=scaling)
        self._blocks: list[Tensor] = []

    def extend(self, hop: int) -> None:
        """Reads a hop more."""
        for block in self._store.blocks(self._way, hop):
            self._ridge.extend(block[self._parts.train])
            self._blocks.append(block)

    def solve(self, penalties: Sequence[float]) -> list[tuple[float, Tensor, Callable[[], Tensor]]]:
        """For each penalty the outputs of the validation rows, and what gives those of the test."""
        solutions = self._ridge.solve(penalties, relative=True)
        valid = _outputs(solutions, self._blocks, self._parts.valid)

        def tested(solution: RidgeSolution) -> Callable[[], Tensor]:
            return lambda: _outputs([solution], self._blocks, self._parts.test)[0]

        return [(s.penalty, v, tested(s)) for s, v in zip(solutions, valid, strict=True)]


class _ByProducts:
    """The same models by inner products of rows, which all splits share."""

    def __init__(
        self, store: HopStore, way: Way, parts: Parts, targets: Tensor, share: Tensor | None
    ) -> None:
        self._store, self._way, self._valid = store, way, len(parts.valid)
        self._train, self._columns = parts.train, store.columns(parts.train)
        self._held = torch.cat([parts.valid, parts.test])
        self._ridge = KernelRidge(targets, share)

    def extend(self, hop: int) -> None:
        """Reads a hop more."""
        for products, features in self._store.products(self._way, hop):
            inner, cross = (
                products.index_select(0, rows).index_select(1, self._columns)
                for rows in (self._train, self._held)
            )
            self._ridge.extend(inner, cross, features)

    def solve(self, penalties: Sequence[float]) -> list[tuple[float, Tensor, Callable[[], Tensor]]]:
        """For each penalty the outputs of the validation rows, and what gives those of the test."""

        def tested(outputs: Tensor) -> Callable[[], Tensor]:
            return lambda: outputs[self._valid :]

        solved = self._ridge.solve(penalties, relative=True)
        return [(penalty, o[: self._valid], tested(o)) for penalty, o in solved]


def _best(
    reader: _ByFeatures | _ByProducts,
    y: Tensor,
    parts: Parts,
    quality: Quality,
    weight: Tensor | None,
    places: Sequence[int],
    climbing: bool = False,
) -> Fit:
    """The model whose penalty validates best; climbing: from the middle on while it is better."""
    penalties = CLASS_PENALTIES if quality.classes else VALUE_PENALTIES
    share = None if weight is None else weight[parts.valid]
    found: dict[int, tuple[float, Callable[[], Tensor]]] = {}

    def best_with(more: Sequence[int]) -> int:
        for penalty, outputs, tested in reader.solve([penalties[place] for place in more]):
            score = quality.score(outputs, y[parts.valid], share)
            found[penalties.index(penalty)] = (score, tested)
        return max(sorted(found), key=lambda place: found[place][0])

    upper = len(places) // 2
    best = best_with(places[upper - 1 : upper + 1] if climbing else places)
    while climbing:
        step = 1 if best >= places[upper] else -1
        beyond = places.index(best) + step
        if not 0 <= beyond < len(places):
            break
        before = best
        with suppress(ValueError):  # a penalty too small for a solution is no better one
            best = best_with([places[beyond]])
        climbing = best != before
    score, tested = found[best]
    return Fit(score, best, tested())


def _outputs(
    solutions: Sequence[RidgeSolution], blocks: Sequence[Tensor], rows: Tensor
) -> list[Tensor]:
    """`[rows, outputs]` of each solution, by one pass over the blocks."""
    outputs = torch.cat([solution.bias for solution in solutions]).expand(len(rows), -1)
    weights = torch.cat([solution.weight for solution in solutions], dim=1)
    first = 0
    for block in blocks:
        last = first + block.size(1)
        outputs = outputs + (block[rows] @ weights[first:last].to(block)).double()
        first = last
    return list(torch.split(outputs, solutions[0].bias.numel(), dim=1))


def sampled(parts: Parts, most: Rows, seed: int) -> Parts:
    """Some rows of each part, at random where there are more."""
    generator = np.random.default_rng(seed)

    def some(rows: Tensor, count: int) -> Tensor:
        if rows.numel() <= count:
            return rows
        return rows[torch.from_numpy(np.sort(generator.permutation(rows.numel())[:count]))]

    train, valid = some(parts.train, most.train), some(parts.valid, most.valid)
    return Parts(train, valid, some(parts.test, most.test), parts.rule)


def within(parts: Parts, rows: Tensor) -> Parts:
    """The parts as positions among sorted rows."""
    train, valid, test = (
        torch.searchsorted(rows, part) for part in (parts.train, parts.valid, parts.test)
    )
    return Parts(train, valid, test, parts.rule)


@dataclass(frozen=True, eq=False)
class Screening:
    """What closed-form models on some of the rows of one split tell about a graph.

    Attributes:
        scores: For each view that was tried, its quality on validation rows, higher is better.
        projection: What the features are projected by, where they are too many.
    """

    scores: dict[HopView, float]
    projection: Tensor | None

    @property
    def features_alone(self) -> float:
        """The quality without the graph."""
        return self.scores[HopView()]

    def ranked(self) -> list[HopView]:
        """The views that use the graph, the best one first; of equal ones that with fewer hops."""
        views = [view for view in self.scores if view.hops]
        return sorted(views, key=lambda view: (-self.scores[view], view.hops))

    def best_of(self, **settings: Any) -> HopView | None:
        """The best view with these settings."""
        fitting = (
            view
            for view in self.ranked()
            if all(getattr(view, name) == value for name, value in settings.items())
        )
        return next(fitting, None)


def screen(
    question: Question,
    directions: Sequence[Direction],
    operators: Sequence[HopOperator],
    *,
    hops: int,
    most: Rows,
    projection: Tensor | None,
    alone: bool | None = None,
    patient: bool = True,
    seed: int = 0,
    progress: Callable[[str], None] = lambda text: None,
) -> Screening:
    """Compares views of a graph on some rows of the first split.

    Args:
        question: What is asked.
        directions: Those that are compared.
        operators: Likewise.
        hops: How many at most.
        most: How many rows are looked at.
        projection: Of the features.
        alone: Read the last hop alone, or all hops; `None`: compare both.
        patient: Go on to `hops`, whether more of them add something or not.
        seed: Of the choice of rows.
        progress: Told what is being done.
    """
    parts = sampled(question.splits[0], most, seed)
    rows = torch.unique(torch.cat([parts.train, parts.valid]))
    places = within(Parts(parts.train, parts.valid, parts.valid[:0], ""), rows)
    store = HopStore(question.inputs, rows, projection, hops, places.train)
    given = (question.y[rows], places, question.quality)
    weight = question.share(rows)
    own = next(fits(store, Way("in", "mean", False), *given, weight=weight, coarse=True, first=0))[
        1
    ]
    scores = {HopView(): own.valid}
    for operator in operators if question.inputs.edge_index.size(1) else ():
        progress(f"looking at neighbours by {operator}")
        for direction in directions:
            for last_only in (True, False) if alone is None else (alone,):
                way = Way(direction, operator, last_only)
                best, since = own.valid, 0
                for hop, fit in fits(store, way, *given, weight=weight, coarse=True):
                    scores[way.view(hop)] = fit.valid
                    left = (1.0 if question.quality.classes else 0.0) - best
                    since = 0 if fit.valid > best + _ADDS * left else since + 1
                    best = max(best, fit.valid)
                    if since >= PATIENCE and not patient:
                        break
        store.forget(operator)
    return Screening(scores, projection)
