"""Which labelled rows train, which validate and, where wanted, which are held out."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from numpy.typing import NDArray
from torch import Tensor

from adgn.data import Graph, GraphInputError

Rows = NDArray[np.int64]
_VALID = ("valid", "val", "validation")


@dataclass(frozen=True, eq=False)
class Parts:
    """Rows (positions of nodes or graphs) in ascending order.

    Attributes:
        train: Those that weights are learnt from.
        valid: Those that stop training and choose among models.
        test: Those that are looked at once, if at all; may be empty.
        rule: How they were chosen, in words.
        notes: What is worth saying about them.
    """

    train: Tensor
    valid: Tensor
    test: Tensor
    rule: str
    notes: tuple[str, ...] = ()

    @property
    def sizes(self) -> tuple[int, int, int]:
        """How many rows train, validate and test."""
        return self.train.numel(), self.valid.numel(), self.test.numel()


def split_rows(
    graph: Graph,
    labels: Tensor | None,
    *,
    rows: Tensor | None = None,
    validation_size: float = 0.2,
    test_size: float = 0.0,
    seed: int = 0,
) -> Parts:
    """Splits the labelled rows of a graph.

    In this order: the user's column `split`, if there is one; the latest rows by the column
    `time`; whole groups of the column `groups`; else at random, with the same share of each class.

    Args:
        graph: Its target says which rows are labelled.
        labels: `[rows]`, the class of each row, by which the random split is stratified; `None`
            for regression.
        rows: The rows that may be used; by default all that are labelled.
        validation_size: The share of the rows that validates, of those that are no test rows.
        test_size: The share that is held out.
        seed: Of the random choice.

    Raises:
        GraphInputError: A part would be empty.

    Example:
        >>> graph = Graph.from_arrays([[0.0]] * 10, [[0], [1]], y=[0, 1] * 5)
        >>> parts = split_rows(graph, torch.tensor([0, 1] * 5))
        >>> parts.sizes, parts.rule
        ((8, 2, 0), 'at random, the same share of each class')
    """
    for name, share in (("validation_size", validation_size), ("test_size", test_size)):
        if not 0 <= share < 1 or (name == "validation_size" and share == 0):
            raise ValueError(f"{name}={share!r} is not valid; give a share between 0 and 1")
    known = graph.labelled if rows is None else rows
    usable: Rows = np.intersect1d(known.numpy(), graph.labelled.numpy())
    if len(usable) < 4:
        raise GraphInputError(
            f"{graph.origin} has {len(usable)} labelled {graph.level}(s) to learn from; give at "
            "least 4, two to train on and two to validate with"
        )
    generator = np.random.default_rng(seed)
    stratify = None if labels is None else labels.numpy()

    def part(of: Rows, share: float, parts: int = 2) -> tuple[Rows, Rows, str]:
        if graph.time is not None:
            return *_latest(graph.time, of, share), "the latest, by the column of times"
        if graph.groups is not None:
            chosen = _whole_groups(graph.groups, of, share, generator, parts)
            return *chosen, "whole groups, by the column of groups"
        if stratify is not None:
            rule = "at random, the same share of each class"
            return *_stratified(stratify, of, share, generator), rule
        return *_random(of, share, generator), "at random"

    if graph.split is not None:
        return _by_column(graph, usable, validation_size, part)
    rest, test, rule = part(usable, test_size, 3) if test_size else (usable, usable[:0], "")
    train, valid, rule = part(rest, validation_size)
    return _parts(graph, train, valid, test, rule)


def _by_column(
    graph: Graph,
    usable: Rows,
    validation_size: float,
    part: Callable[[Rows, float], tuple[Rows, Rows, str]],
) -> Parts:
    words = pc.utf8_lower(pc.cast(graph.split, pa.string()))
    named = np.asarray(words.to_pylist(), dtype=object)[usable]
    train, test = usable[named == "train"], usable[named == "test"]
    valid = usable[np.isin(named.astype(str), _VALID)]
    rule = "by the column of splits"
    if not len(train):
        raise GraphInputError(
            f"the column of splits of {graph.origin} names no labelled {graph.level} 'train'; it "
            "has 'train', 'valid' and 'test'"
        )
    if not len(valid):
        train, valid, how = part(train, validation_size)
        rule = f"{rule}; of its train rows some validate, chosen {how}"
    lost = len(usable) - len(train) - len(valid) - len(test)
    notes = (
        f"the column of splits of {graph.origin} is empty for {lost:,} of {len(usable):,} labelled "
        f"{graph.level}s; they neither train nor validate and are not held out",
    )
    return _parts(graph, train, valid, test, rule, notes if lost else ())


def _parts(
    graph: Graph, train: Rows, valid: Rows, test: Rows, rule: str, notes: tuple[str, ...] = ()
) -> Parts:
    if not len(train) or not len(valid):
        raise GraphInputError(
            f"{graph.origin} leaves {len(train)} {graph.level}s to train on and {len(valid)} to "
            "validate with; label more, or give other shares"
        )
    parts = {"train": train, "valid": valid, "test": test}
    ordered = {name: torch.from_numpy(np.sort(rows)) for name, rows in parts.items()}
    return Parts(**ordered, rule=rule, notes=notes)


def _count(rows: int, share: float) -> int:
    return min(max(1, round(rows * share)), rows - 1)


def _random(rows: Rows, share: float, generator: np.random.Generator) -> tuple[Rows, Rows]:
    order = generator.permutation(rows)
    taken = _count(len(rows), share)
    return order[taken:], order[:taken]


def _stratified(
    labels: NDArray[np.int64], rows: Rows, share: float, generator: np.random.Generator
) -> tuple[Rows, Rows]:
    """The share of each class, rounded so that the sum is right; none of a class of one row."""
    order = generator.permutation(rows)
    classes, members = np.unique(labels[order], return_counts=True)
    exact = np.where(members > 1, members * share, 0.0)
    taken = np.floor(exact).astype(int)
    lacking = _count(len(rows), share) - int(taken.sum())
    # The largest remainders first; a class keeps at least one row to train on.
    for place in np.argsort(-(exact - taken), kind="stable"):
        if lacking > 0 and taken[place] < members[place] - 1:
            taken[place] += 1
            lacking -= 1
    chosen = np.concatenate(
        [order[labels[order] == c][:count] for c, count in zip(classes, taken, strict=True)]
    )
    return np.setdiff1d(rows, chosen), chosen


def _latest(time: pa.Array, rows: Rows, share: float) -> tuple[Rows, Rows]:
    """Rows without a time are taken as early ones."""
    times = time.take(pa.array(rows))
    order = pc.sort_indices(times).to_numpy()  # with those without a time last
    ordered = rows[np.roll(order, times.null_count)]
    cut = len(rows) - _count(len(rows), share)
    return ordered[:cut], ordered[cut:]


def _whole_groups(
    groups: pa.Array, rows: Rows, share: float, generator: np.random.Generator, parts: int
) -> tuple[Rows, Rows]:
    """Groups for one of some parts; each other part is left one at least."""
    codes = groups.take(pa.array(rows)).dictionary_encode(null_encoding="encode").indices
    numbers = codes.to_numpy(zero_copy_only=False)
    names, members = np.unique(numbers, return_counts=True)
    if len(names) < parts:
        which = "train, validate and are held out" if parts == 3 else "train and validate"
        less = ", hold nothing out (test_size=0)" if parts == 3 else ""
        raise GraphInputError(
            f"the column of groups has {len(names)} group(s) among the {len(rows):,} labelled rows "
            f"to be split, and whole groups {which}: give at least {parts}{less}, or leave the "
            "column out"
        )
    order = generator.permutation(len(names))
    reached = np.cumsum(members[order])
    wanted = _count(len(rows), share)
    taken = min(int(np.searchsorted(reached, wanted)) + 1, len(names) - parts + 1)
    inside = np.isin(numbers, names[order[:taken]])
    return rows[~inside], rows[inside]
