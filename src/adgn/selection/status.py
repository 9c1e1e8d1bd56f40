"""How far a study is."""

import math
from collections import Counter
from dataclasses import dataclass
from typing import Any

from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from adgn.selection.definition import StudyDefinition
from adgn.selection.study import kind, kinds, trial_params


@dataclass(frozen=True)
class StudyStatus:
    """Counts of a study's trials, and the best of them.

    Attributes:
        total: Trials of the plan.
        complete: Trials with a score.
        pruned: Trials that were stopped because others were better.
        failed: Trials that crashed or diverged.
        running: Trials under way.
        waiting: Trials nobody has begun.
        best: The best score so far.
        best_params: The values that have it.
        seconds: What finished trials took on average; `None` before the first.
    """

    total: int
    complete: int
    pruned: int
    failed: int
    running: int
    waiting: int
    best: float | None
    best_params: dict[str, Any]
    seconds: float | None

    @property
    def done(self) -> int:
        """Trials that are over."""
        return self.complete + self.pruned + self.failed

    @property
    def finished(self) -> bool:
        """Whether the whole plan is done."""
        return self.running == 0 and self.waiting == 0


def study_status(study: Study, definition: StudyDefinition) -> StudyStatus:
    """How far a study is."""
    trials = study.get_trials(deepcopy=False)
    counts = Counter(what for _, what in kinds(trials, definition))
    best = next(iter(ranked(trials, definition)), None)
    times = [
        trial.duration.total_seconds()
        for trial in trials
        if trial.duration is not None
        and kind(trial) in ("complete", "pruned")
        and "answered_from" not in trial.user_attrs
    ]
    return StudyStatus(
        total=sum(counts.values()) - counts["replaced"],
        **{what: counts[what] for what in ("complete", "pruned", "failed", "running", "waiting")},
        best=None if best is None else best.value,
        best_params={} if best is None else trial_params(best),
        seconds=sum(times) / len(times) if times else None,
    )


def ranked(trials: list[FrozenTrial], definition: StudyDefinition) -> list[FrozenTrial]:
    """The trials with a score, each configuration once, the best first; the earlier of equals."""
    sign = -1 if definition.maximize else 1
    complete = [
        trial
        for trial in trials
        if trial.state == TrialState.COMPLETE and "answered_from" not in trial.user_attrs
    ]
    return sorted(complete, key=lambda t: (sign * _value(t), t.number))


def _value(trial: FrozenTrial) -> float:
    return math.nan if trial.value is None else float(trial.value)
