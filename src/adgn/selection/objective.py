"""What a worker does with a trial: all its runs, in one process, on data that are loaded once."""

import shutil
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import optuna
from optuna.study import Study
from optuna.trial import FrozenTrial, Trial, TrialState

from adgn.selection.definition import StudyDefinition, params_key
from adgn.selection.halving import Entry
from adgn.selection.paused_runs import curve_epochs, train_to
from adgn.selection.protocols import Run
from adgn.selection.replicate import held, key_lock, read_scores, replicate, run_record
from adgn.selection.study import kinds, sampler_for, trial_entry
from adgn.training import DivergedError, Interrupted, TrainingError

_POLL_SECONDS = 0.5


class _KnownFailureError(TrainingError):
    """The same configuration has failed before, by divergence or by a crash."""

    def __init__(self, message: str, diverged: bool) -> None:
        super().__init__(message)
        self.diverged = diverged


def is_running(trial: Trial) -> bool:
    """Whether a trial is still this worker's: another ends the trial of a worker it thinks dead."""
    running = trial.study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
    return any(other.number == trial.number for other in running)


def _end_lost_trials(study: Study) -> None:
    """What Optuna does before each trial, and with its filter: the function is experimental."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        optuna.storages.fail_stale_trials(study)


@dataclass
class TrialObjective:
    """The objective of a study."""

    definition: StudyDefinition
    folder: Path  # the study's, for the runs
    stop: threading.Event  # set when the worker is to stop
    worker: str  # its name, for the record
    grace: float  # seconds after which a silent trial is given to another worker
    trial: Trial | None = None  # the last one that was begun

    def __call__(self, trial: Trial) -> float:
        """The validation score of the trial's configuration, by the task's rule."""
        self.trial = trial
        space = self.definition.space
        trial.study.sampler = sampler_for(self.definition, trial.number)
        params = {key: trial.suggest_categorical(key, values) for key, values in space.items()}
        key = params_key(params, space) or ""
        trial.set_user_attr("key", key)
        trial.set_user_attr("worker", self.worker)
        try:
            self._wait_for_an_earlier_one(trial, key)
            answer = self._known_answer(trial, Entry(key, trial.user_attrs.get("rung", 0)))
            if answer is not None:
                return self._repeat(trial, answer)
            with held(key_lock(self.folder, key), self.stop):
                evaluate = self._evaluate_rung if self.definition.rungs else self._evaluate
                try:
                    return evaluate(trial, params, key)
                except DivergedError:  # it never goes on
                    shutil.rmtree(self.folder / "runs" / key, ignore_errors=True)
                    raise
        except optuna.TrialPruned:
            raise
        except Interrupted:
            if is_running(trial):  # else it was taken away, and its successor is in the queue
                trial.set_user_attr("interrupted", True)
                self.stop.set()  # a signal may have reached the run before anybody else
            raise
        except Exception as error:
            trial.set_user_attr("error", f"{type(error).__name__}: {error}")
            trial.set_user_attr("traceback", traceback.format_exc())
            known = isinstance(error, _KnownFailureError) and error.diverged
            trial.set_user_attr("diverged", known or isinstance(error, DivergedError))
            raise

    def _wait_for_an_earlier_one(self, trial: Trial, key: str) -> None:
        """Where another worker is at the same configuration, its answer will do."""
        while any(
            other.number < trial.number and other.user_attrs.get("key") == key
            for other in trial.study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
        ):
            if self.stop.wait(_POLL_SECONDS):
                raise Interrupted("stopped while waiting for another worker's answer", 0)
            _end_lost_trials(trial.study)  # that worker may be dead, and nobody else about

    def _known_answer(self, trial: Trial, entry: Entry) -> FrozenTrial | None:
        for other, what in kinds(trial.study.get_trials(deepcopy=False), self.definition):
            same = other.number != trial.number and trial_entry(other, self.definition) == entry
            if same and what in ("complete", "pruned", "failed"):
                return other
        return None

    def _repeat(self, trial: Trial, answer: FrozenTrial) -> float:
        trial.set_user_attr("answered_from", answer.number)
        trial.set_user_attr("runs", answer.user_attrs.get("runs", []))
        if answer.state == TrialState.COMPLETE and answer.value is not None:
            return float(answer.value)
        if answer.state == TrialState.PRUNED:
            for step, value in answer.intermediate_values.items():
                trial.report(value, step)
            raise optuna.TrialPruned(f"as trial {answer.number} with the same values")
        raise _KnownFailureError(
            f"as trial {answer.number}: {answer.user_attrs.get('error')}",
            bool(answer.user_attrs.get("diverged", False)),
        )

    def _evaluate(self, trial: Trial, params: Mapping[str, Any], key: str) -> float:
        definition, protocol = self.definition, self.definition.protocol
        place = self.folder / "runs" / key
        scores: dict[Run, float] = {}
        records: list[dict[str, Any]] = []
        replicated = replicate(
            protocol.runs(),
            partial(definition.config, params),
            lambda run: place / run.name,
            should_stop=self._should_stop(trial),
        )
        for step, (run, result) in enumerate(replicated, start=1):
            compared = result["scores"][definition.metric_split]
            records.append(run_record(run, compared, result))
            scores[run] = read_scores(compared)[definition.metric]
            if definition.prune == "none":
                continue
            trial.report(protocol.summary(scores).mean, step)
            if step < len(protocol.runs()) and trial.should_prune():
                trial.set_user_attr("runs", records)
                shutil.rmtree(place, ignore_errors=True)
                raise optuna.TrialPruned(f"after {step} runs")
        trial.set_user_attr("runs", records)
        value = protocol.summary(scores).mean
        if not self._may_be_selected(trial.study, scores):
            shutil.rmtree(place, ignore_errors=True)
        return value

    def _evaluate_rung(self, trial: Trial, params: Mapping[str, Any], key: str) -> float:
        """Goes on with the configuration's runs up to the rung, from where they paused."""
        definition, protocol = self.definition, self.definition.protocol
        number: int = trial.user_attrs["rung"]
        rung = definition.rungs[number]
        should_stop = self._should_stop(trial)
        runs = {
            run: train_to(
                rung.epochs,
                definition.config(params, run),
                self.folder / "runs" / key / run.name,
                should_stop,
            )
            for run in protocol.runs()[: rung.runs]
        }
        split, metric = definition.metric_split, definition.metric
        before = definition.rungs[number - 1].epochs if number else 0
        if before < rung.epochs:  # in Optuna's dashboard, the way to the rung
            for epoch in curve_epochs(before, rung.epochs, definition.base.loop.evaluate_every):
                there = {run: seen.best(split, epoch)[metric] for run, seen in runs.items()}
                trial.report(protocol.summary(there).mean, epoch)
        records = [run_record(run, seen.scores(split), seen.facts) for run, seen in runs.items()]
        trial.set_user_attr("runs", records)
        final = {run: seen.best(split, rung.epochs)[metric] for run, seen in runs.items()}
        return protocol.summary(final).mean

    def _should_stop(self, trial: Trial) -> Callable[[], bool]:
        """Says when the worker is to stop, or the trial was given to another one."""
        next_look = time.monotonic() + self.grace / 2

        def should_stop() -> bool:
            nonlocal next_look
            if self.stop.is_set() or time.monotonic() < next_look:
                return self.stop.is_set()
            next_look = time.monotonic() + self.grace / 2
            return not is_running(trial)

        return should_stop

    def _may_be_selected(self, study: Study, scores: Mapping[Run, float]) -> bool:
        """Whether no configuration so far is better; weights of others need not be kept."""
        sign = 1 if self.definition.maximize else -1
        by_split = self.definition.protocol.per_split
        done = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
        others = [trial_scores(t, self.definition) for t in done if t.user_attrs.get("runs")]
        return any(
            all(sign * group_mean(scores, group) >= sign * group_mean(o, group) for o in others)
            for group in {run.split if by_split else None for run in scores}
        )


def group_mean(scores: Mapping[Run, float], split: int | None) -> float:
    """The mean over the runs on a split, or over all."""
    chosen = [score for run, score in scores.items() if split is None or run.split == split]
    return sum(chosen) / len(chosen)


def trial_scores(trial: FrozenTrial, definition: StudyDefinition) -> dict[Run, float]:
    """The score of every run of a finished trial."""
    return {
        Run(record["seed"], record["split"]): read_scores(record["scores"])[definition.metric]
        for record in trial.user_attrs["runs"]
    }
