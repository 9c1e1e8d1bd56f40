"""How far a study is."""

import math
from collections import Counter
from dataclasses import dataclass
from typing import Any

from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from adgn._util.files import finite_or_none
from adgn.selection.definition import StudyDefinition
from adgn.selection.halving import planned_counts, planned_epochs
from adgn.selection.study import (
    kind,
    kinds,
    rung_of,
    trial_entry,
    trial_key,
    trial_params,
    wanted,
)


@dataclass(frozen=True)
class RungStatus:
    """How far a rung of halving is.

    Attributes:
        epochs: Up to which its configurations train.
        runs: How many runs each of them has.
        planned: How many configurations it has, should none fail.
        done: How many have a score.
        failed: How many crashed or diverged in it; each is replaced by the next best.
        work: Epochs that it costs at most.
    """

    epochs: int
    runs: int
    planned: int
    done: int
    failed: int
    work: int


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
        rungs: With halving, how far each rung is.
        decided: Whether nothing can come into the queue any more.
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
    rungs: tuple[RungStatus, ...] = ()
    decided: bool = True

    @property
    def done(self) -> int:
        """Trials that are over."""
        return self.complete + self.pruned + self.failed

    @property
    def finished(self) -> bool:
        """Whether the whole plan is done."""
        return self.running == 0 and self.waiting == 0 and self.decided

    @property
    def work(self) -> tuple[float, float]:
        """How much is done, and how much there is: trials, or epochs where rungs differ in them."""
        if not self.rungs:
            return self.done, self.total
        done = sum(rung.work * min(rung.done / rung.planned, 1.0) for rung in self.rungs)
        return done, sum(rung.work for rung in self.rungs)


def study_status(study: Study, definition: StudyDefinition) -> StudyStatus:
    """How far a study is."""
    trials = study.get_trials(deepcopy=False)
    counts = Counter(what for _, what in kinds(trials, definition))
    best = next(iter(ranked(trials, definition)), None)
    ended = [spent_seconds(trial) for trial in trials if kind(trial) in ("complete", "pruned")]
    times = [seconds for seconds in ended if seconds is not None]
    rungs, decided = _rungs(study, definition)
    return StudyStatus(
        total=sum(counts.values()) - counts["replaced"],
        **{what: counts[what] for what in ("complete", "pruned", "failed", "running", "waiting")},
        best=None if best is None else best.value,
        best_params={} if best is None else trial_params(best),
        seconds=sum(times) / len(times) if times else None,
        rungs=rungs,
        decided=decided,
    )


def spent_seconds(trial: FrozenTrial) -> float | None:
    """What a trial took; `None` where that is not known.

    The time of a trial whose worker died lasts until somebody noticed, which may be days; that of
    one that repeats another's answer was spent waiting.
    """
    died = kind(trial) == "replaced" and not trial.user_attrs.get("interrupted", False)
    if trial.duration is None or died or "answered_from" in trial.user_attrs:
        return None
    return trial.duration.total_seconds()


def _rungs(study: Study, definition: StudyDefinition) -> tuple[tuple[RungStatus, ...], bool]:
    if not definition.rungs:
        return (), True
    trials = kinds(study.get_trials(deepcopy=False), definition)
    found = Counter((trial.user_attrs.get("rung", 0), what) for trial, what in trials)
    counts = planned_counts(definition.budget, definition.rungs)
    work = planned_epochs(definition.budget, definition.rungs)
    rungs = tuple(
        RungStatus(
            epochs=rung.epochs,
            runs=rung.runs,
            planned=counts[number],
            done=found[number, "complete"],
            failed=found[number, "failed"],
            work=work[number],
        )
        for number, rung in enumerate(definition.rungs)
    )
    return rungs, wanted(study, definition)[1]


def ranked(trials: list[FrozenTrial], definition: StudyDefinition) -> list[FrozenTrial]:
    """The trials with a score, each configuration once, the best first; the earlier of equals.

    With halving, those of a higher rung come before all others.
    """
    sign = -1 if definition.maximize else 1
    complete = [
        trial
        for trial in trials
        if trial.state == TrialState.COMPLETE and "answered_from" not in trial.user_attrs
    ]
    highest: dict[str, FrozenTrial] = {}
    for trial in complete if definition.rungs else ():
        entry = trial_entry(trial, definition)
        if entry is not None and entry.rung >= rung_of(highest.get(entry.key, trial)):
            highest[entry.key] = trial
    chosen = list(highest.values()) if definition.rungs else complete
    return sorted(chosen, key=lambda t: (-rung_of(t), sign * _value(t), *tie_break(t, definition)))


def compared_configurations(study: Study, definition: StudyDefinition) -> list[dict[str, Any]]:
    """Every configuration that was tried, in the order of `ranked`, then those without a score.

    Each with what sets it apart from the others (`"settings"`), its score after each rung that it
    reached, one without rungs (`"scores"`; of a pruned one the last that was reported, `None` where
    it failed), and what became of it at last (`"state"`).
    """
    trials = study.get_trials(deepcopy=False)
    varied = [key for key, values in definition.space.items() if len(values) > 1]
    found: dict[str, list[tuple[FrozenTrial, str]]] = {}
    for trial, what in kinds(trials, definition):
        entry = trial_entry(trial, definition)
        over = what in ("complete", "pruned", "failed") and "answered_from" not in trial.user_attrs
        if entry is not None and over:
            found.setdefault(entry.key, []).append((trial, what))
    first = [trial_key(trial, definition) or "" for trial in ranked(trials, definition)]
    told = []
    for key in dict.fromkeys([*first, *found]):
        by_rung = sorted(found[key], key=lambda pair: (rung_of(pair[0]), pair[0].number))
        params = trial_params(by_rung[-1][0])
        scores = [finite_or_none(_reported(trial)) for trial, _ in by_rung]
        settings = {name: params[name] for name in varied}
        told.append({"settings": settings, "scores": scores, "state": by_rung[-1][1]})
    return told


def _reported(trial: FrozenTrial) -> float | None:
    """The score of a trial, of a pruned one the last before it ended."""
    if trial.state == TrialState.PRUNED and trial.intermediate_values:
        return trial.intermediate_values[max(trial.intermediate_values)]
    return trial.value if trial.state == TrialState.COMPLETE else None


def tie_break(trial: FrozenTrial, definition: StudyDefinition) -> tuple[str, int]:
    """Which of two equal trials is first.

    In a search by halving the smaller key, as between rungs: numbers change where trials were
    killed and queued again.
    """
    key = trial_key(trial, definition) if definition.rungs else None
    return key or "", trial.number


def _value(trial: FrozenTrial) -> float:
    return math.nan if trial.value is None else float(trial.value)
