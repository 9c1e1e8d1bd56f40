"""What one trial is: which initialisations on which splits, and how their scores become one."""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict

from adgn.selection.errors import SelectionError
from adgn.training import TrainConfig
from adgn.training.tasks import task_entry


@dataclass(frozen=True)
class Run:
    """One training run of a trial; `split` is `None` where a task has just one."""

    seed: int
    split: int | None = None

    @property
    def name(self) -> str:
        """The name of its folder."""
        return f"seed-{self.seed}" + ("" if self.split is None else f"-split-{self.split}")

    def settings(self) -> dict[str, Any]:
        """What it changes in the configuration of its trial."""
        return {"seed": self.seed} | ({} if self.split is None else {"task": {"split": self.split}})


@dataclass(frozen=True)
class Summary:
    """Mean and sample standard deviation (`None` of a single number)."""

    mean: float
    std: float | None


class Protocol(BaseModel):
    """The runs of a trial and the rule for their scores.

    Attributes:
        seeds: Of the initialisations.
        splits: Of the data; `None` where the task has just one.
        per_split: Whether a configuration is selected for each split by itself.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    seeds: tuple[int, ...]
    splits: tuple[int, ...] | None = None
    per_split: bool = False

    def runs(self) -> list[Run]:
        """All runs, a whole round of splits before the next initialisation."""
        return [Run(seed, split) for seed in self.seeds for split in self.splits or (None,)]

    def summary(self, scores: Mapping[Run, float]) -> Summary:
        """Mean and spread of one score by the task's rule.

        With several splits: the mean over initialisations within each, then mean and standard
        deviation over splits; with one: both over initialisations.

        Example:
            >>> protocol = Protocol(seeds=(1, 2), splits=(0, 1))
            >>> scores = dict(zip(protocol.runs(), [0.5, 0.7, 0.7, 0.9]))
            >>> round(protocol.summary(scores).mean, 6), round(protocol.summary(scores).std, 6)
            (0.7, 0.141421)
        """
        by_split: dict[int | None, list[float]] = {}
        for run, score in scores.items():
            by_split.setdefault(run.split, []).append(score)
        groups = [sum(group) / len(group) for group in by_split.values()]
        if len(groups) == 1:
            (groups,) = by_split.values()
        mean = sum(groups) / len(groups)
        finite = all(math.isfinite(group) for group in groups)
        return Summary(mean, statistics.stdev(groups) if len(groups) > 1 and finite else None)


def protocol_of(
    config: TrainConfig, seeds: Sequence[int] | None = None, splits: Sequence[int] | None = None
) -> Protocol:
    """The protocol of a task, or of some of its seeds and splits.

    Example:
        >>> from adgn.training import resolve_config
        >>> len(protocol_of(resolve_config("photo")).runs())
        25
    """
    entry, name = task_entry(config.task.name), config.task.name
    count = entry.splits(config.task)
    usual = None if count is None else tuple(range(count))
    for argument, given in (("seeds", seeds), ("splits", splits)):
        if given is not None and (not given or len(set(given)) < len(given)):
            raise SelectionError(f"{argument}={list(given)} is empty or has a number twice")
    if splits is not None and usual is None:
        raise SelectionError(f"splits={list(splits)} does not fit {name!r}, which has one split")
    for split in splits or ():
        if split not in (usual or ()):
            raise SelectionError(f"splits has {split}; {name!r} has the splits {list(usual or ())}")
    if any(seed < 0 or seed >= 2**32 for seed in seeds or ()):
        raise SelectionError(f"seeds={list(seeds or ())} are not all in 0 … 2³² − 1")
    return Protocol(
        seeds=(entry.seeds or (config.seed,)) if seeds is None else tuple(seeds),
        splits=usual if splits is None else tuple(splits),
        per_split=entry.per_split and count is not None,
    )
