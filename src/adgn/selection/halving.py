"""Successive halving over epochs: the rungs of a study, and which configurations climb them.

A rung is a number of epochs and of runs. All configurations train to the first; the best of each
rung go on to the next, from the state in which they paused. The decisions depend on scores
alone and not on when they came in, so a search that was killed ends like one that was not.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict

from adgn.selection.errors import SelectionError
from adgn.training import TrainConfig

FACTOR = 3  # one of so many goes on
FEWEST = 3  # configurations in the last rung, where the protocol's runs decide: not one alone
_FIRST_SHARE = 27  # the first rung is this part of the epochs, unless half the patience is less
# Where a run has trained this many times the patience, most others have stopped by themselves:
# the rest of the epochs is one rung.
_PATIENCES = 4


class Rung(BaseModel):
    """How far configurations train before they are compared.

    Attributes:
        epochs: Up to which epoch, from the beginning of the run.
        runs: How many of the protocol's runs; the first ones.
        share: One of so many configurations gets there.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    epochs: int
    runs: int = 1
    share: int = 1

    def __str__(self) -> str:
        several = f", {self.runs} runs" if self.runs > 1 else ""
        return f"{self.epochs} epoch{'s' if self.epochs > 1 else ''}{several}"


class Entry(NamedTuple):
    """A configuration, by its key, in a rung, by its number."""

    key: str
    rung: int


def rungs_of(
    max_epochs: int,
    patience: int | None,
    runs: int,
    *,
    evaluate_every: int = 1,
    first: int | None = None,
) -> tuple[Rung, ...]:
    """The rungs that follow from a protocol: more epochs for fewer configurations, then more runs.

    The first has 1/27 of the epochs, or half the patience where that is less: it weeds out what
    does not learn. The best third goes on to nine times as many. Between the two, configurations
    that learn fast and end badly are ahead of those that learn slowly and end well (a large and a
    small step ε in property prediction), so nothing is decided there. Then one of nine goes on to
    all epochs. A run that stops early is done with all rungs. Seeds and splits are added when all
    epochs are there.

    Args:
        max_epochs: Of the protocol.
        patience: Of its early stopping; `None`: none.
        runs: Seeds times splits of the protocol.
        evaluate_every: Epochs between two measurements; rungs lie on them.
        first: Epochs of the first rung, instead of the rule's.

    Example:
        >>> print(*rungs_of(1500, 100, 4), sep="; ")
        50 epochs; 450 epochs; 1500 epochs; 1500 epochs, 4 runs
        >>> print(*rungs_of(10000, 50, 25), sep="; ")  # doctest: +NORMALIZE_WHITESPACE
        25 epochs; 225 epochs; 10000 epochs; 10000 epochs, 3 runs; 10000 epochs, 9 runs;
        10000 epochs, 25 runs
    """
    if first is not None and not 1 <= first <= max_epochs:
        raise SelectionError(
            f"first_rung={first} is not valid; give 1 to {max_epochs} epochs, the protocol's most"
        )
    epochs = first or -(-max_epochs // _FIRST_SHARE)
    if first is None and patience is not None:
        epochs = max(1, min(epochs, patience // 2))
    levels: list[tuple[int, int]] = []  # epochs and runs
    while 2 * epochs <= max_epochs:
        measured = -(-epochs // evaluate_every) * evaluate_every
        if 2 * measured <= max_epochs and (measured, 1) not in levels:
            levels.append((measured, 1))
        if patience is not None and epochs >= _PATIENCES * patience:
            break
        epochs *= FACTOR if len(levels) > 1 else FACTOR**2
    count = 1
    while 2 * count <= runs:
        levels.append((max_epochs, count))
        count *= FACTOR
    levels.append((max_epochs, runs))
    # The second rung has nine times the epochs for a third; the third makes up for it.
    shares = [FACTOR ** (number + (number > 1)) for number in range(len(levels))]
    return tuple(
        Rung(epochs=epochs, runs=runs, share=share)
        for (epochs, runs), share in zip(levels, shares, strict=True)
    )


def rungs_for(
    config: TrainConfig, runs: int, first: int | None = None, *, max_epochs: int | None = None
) -> tuple[Rung, ...]:
    """The rungs of a configuration's protocol with so many runs, or with other `max_epochs`."""
    return rungs_of(
        max_epochs or config.loop.max_epochs,
        config.stopping.patience,
        runs,
        evaluate_every=config.loop.evaluate_every,
        first=first,
    )


def planned_counts(configurations: int, rungs: Sequence[Rung]) -> list[int]:
    """How many configurations each rung has, should none diverge.

    Example:
        >>> planned_counts(192, rungs_of(1500, 100, 4))
        [192, 64, 8, 3]
    """
    fewest = min(configurations, FEWEST)
    return [max(-(-configurations // rung.share), fewest) for rung in rungs]


def planned_epochs(configurations: int, rungs: Sequence[Rung]) -> list[int]:
    """How many epochs are trained in each rung, at most: early stopping makes it less.

    Example:
        >>> planned_epochs(192, rungs_of(1500, 100, 4))
        [9600, 25600, 8400, 13500]
    """
    counts = planned_counts(configurations, rungs)
    reached = [0, *(rung.epochs * rung.runs for rung in rungs)]
    return [
        count * (after - before)
        for count, before, after in zip(counts, reached, reached[1:], strict=False)
    ]


def wanted_entries(
    keys: Sequence[str],
    scores: Mapping[Entry, float | None],
    rungs: Sequence[Rung],
    *,
    maximize: bool,
) -> tuple[list[list[str]], bool]:
    """Which configurations belong into each rung, as far as that is decided.

    A rung is decided when all of the one before are over. The best go on; in the place of one that
    fails there, the next best does. Where a rung has nobody left to give, the one below
    gets more.

    Args:
        keys: All configurations.
        scores: Of what is over; `None`: it failed. What is missing is waiting or under way.
        rungs: The rungs.
        maximize: Whether a higher score is better.

    Returns:
        The keys by rung, the best of the rung before first, and whether that is all.

    Example:
        >>> rungs = [Rung(epochs=1), Rung(epochs=3, share=3)]
        >>> scores = {Entry(key, 0): value for key, value in zip("abcd", [0.1, 0.4, 0.2, 0.3])}
        >>> wanted_entries("abcd", scores, rungs, maximize=True)
        ([['a', 'b', 'c', 'd'], ['b', 'd', 'c']], False)
    """
    sign = -1 if maximize else 1
    counts = planned_counts(len(keys), rungs)
    while True:
        wanted = [list(keys)]
        pools = [list(keys)]
        for number in range(1, len(rungs)):
            below = [Entry(key, number - 1) for key in wanted[-1]]
            if any(entry not in scores for entry in below):
                return wanted, False
            scored = [(sign * score, e.key) for e in below if (score := scores[e]) is not None]
            pools.append([key for _, key in sorted(scored)])
            chosen, good = [], 0
            for key in pools[-1]:
                if good == counts[number]:
                    break
                chosen.append(key)
                good += scores.get(Entry(key, number), 0.0) is not None
            wanted.append(chosen)
            lacking = counts[number] - good
            if lacking and number > 1 and len(wanted[number - 1]) < len(pools[number - 1]):
                counts[number - 1] += lacking
                break
        else:
            last = [Entry(key, len(rungs) - 1) for key in wanted[-1]]
            return wanted, all(entry in scores for entry in last)
