"""The end of a study: the selected configuration, its test scores, and the files that say so."""

import json
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from optuna.study import Study
from optuna.trial import FrozenTrial

from adgn._util.environment import environment
from adgn._util.files import finite_or_none
from adgn._util.progress import ProgressCallback
from adgn.selection.definition import StudyDefinition
from adgn.selection.errors import SelectionError
from adgn.selection.objective import group_mean, trial_scores
from adgn.selection.protocols import Run, Summary
from adgn.selection.replicate import read_scores, replicate, with_restart
from adgn.selection.status import (
    compared_configurations,
    ranked,
    spent_seconds,
    study_status,
    tie_break,
)
from adgn.selection.study import kinds, rung_of, trial_key, trial_params
from adgn.training import ConfigError, evaluate, shared_data, to_toml
from adgn.training.checkpoint import RUN_AGAIN, write_atomically
from adgn.training.seeding import resolve_device
from adgn.training.tasks import task_entry


@dataclass(frozen=True)
class SelectionResult:
    """What a study found.

    Attributes:
        study: Its name.
        folder: Where everything is kept.
        metric: The score that configurations were compared by.
        settings: The selected values; where each split selects for itself, those with the best
            mean over splits.
        by_split: Where each split selects for itself, its values.
        validation: Each score on the split of the comparison, by the task's rule.
        test: Each test score, by the task's rule.
        counts: Trials by what became of them.
        record: The content of selection.json.
    """

    study: str
    folder: Path
    metric: str
    settings: dict[str, Any]
    by_split: dict[int, dict[str, Any]]
    validation: dict[str, Summary]
    test: dict[str, Summary]
    counts: dict[str, int]
    record: dict[str, Any]


def choose(study: Study, definition: StudyDefinition) -> dict[int | None, FrozenTrial]:
    """The selected trial: by its mean score, or for each split by the split's own (`per_split`).

    The key `None` has the best trial over all runs.
    """
    trials = study.get_trials(deepcopy=False)
    candidates = ranked(trials, definition)
    if definition.rungs:  # only there configurations have all the runs of the protocol
        last = len(definition.rungs) - 1
        candidates = [trial for trial in candidates if rung_of(trial) == last]
    if not candidates:
        failed = [trial for trial, what in kinds(trials, definition) if what == "failed"]
        cause = f" The first failure: {failed[0].user_attrs['error']}" if failed else ""
        raise SelectionError(
            f"no trial of {study.study_name!r} has a score ({len(failed)} failed).{cause}"
        )
    chosen: dict[int | None, FrozenTrial] = {None: candidates[0]}
    if definition.protocol.per_split:
        sign = -1 if definition.maximize else 1
        scores = {trial.number: trial_scores(trial, definition) for trial in candidates}
        for split in definition.protocol.splits or ():

            def rank(trial: FrozenTrial, split: int = split) -> tuple[float, str, int]:
                score = group_mean(scores[trial.number], split)
                return sign * score, *tie_break(trial, definition)

            chosen[split] = min(candidates, key=rank)
    return chosen


def conclude(
    study: Study,
    definition: StudyDefinition,
    folder: Path,
    progress: ProgressCallback | None = None,
    evaluate_test: bool = True,
) -> SelectionResult:
    """Selects, looks at the test split once, and writes selected.toml and selection.json.

    Where selection.json is there already for the same selection, it is read and nothing is
    computed. With `evaluate_test=False` the test split is left alone.
    """
    chosen = choose(study, definition)
    status = study_status(study, definition)
    counts = {name: getattr(status, name) for name in ("complete", "pruned", "failed", "total")}
    selected = {
        "all splits" if split is None else str(split): trial.number
        for split, trial in chosen.items()
    }
    times = map(spent_seconds, study.get_trials(deepcopy=False))
    tried = {
        "trials": counts,
        "trial_seconds": round(sum(s for s in times if s is not None), 1),
        "configurations": compared_configurations(study, definition),
    }
    before = _earlier(folder)
    enough = before is not None and (bool(before["test"]) or not evaluate_test)
    if before is not None and enough and before["selected_trials"] == selected:
        now = {**before, **tried}
        if now != before:
            _write(folder / "selection.json", now)
        return _result(study, definition, folder, now)
    per_split = definition.protocol.per_split
    trials = {run: chosen[run.split if per_split else None] for run in definition.protocol.runs()}
    if evaluate_test:
        runs = _final_runs(definition, folder, trials, progress)
    else:
        runs = _recorded_runs(definition, trials)
    best = trial_params(chosen[None])
    first = definition.protocol.runs()[0]
    published = task_entry(definition.task).published(definition.config(best, first))
    tested = [] if before is None else list(before["tested_before"])
    if before is not None and before["test"]:
        tested.append(before["selected_trials"])
    record = {
        "study": study.study_name,
        "task": definition.task,
        "model": definition.base.model.name,
        "space": definition.space_name,
        "search": definition.search,
        "prune": definition.prune,
        "rungs": [rung.model_dump() for rung in definition.rungs],
        "protocol": definition.protocol.model_dump(mode="json"),
        "metric": definition.metric,
        "compared_on": definition.metric_split,
        "rule": _rule(definition),
        **tried,
        "selected_trials": selected,
        "settings": best,
        "settings_by_split": {
            str(split): trial_params(trial) for split, trial in chosen.items() if split is not None
        },
        "validation": _summaries(definition, runs, definition.metric_split),
        "test": _summaries(definition, runs, "test") if evaluate_test else {},
        "published": None if published is None else asdict(published),
        "runs": [
            {
                "seed": run.seed,
                "split": run.split,
                "scores": finite_or_none(scores),
                "folder": str(_run_folder(definition, trials[run], run)),
            }
            for run, scores in runs.items()
        ],
        # Looking at the test split again for another selection makes its score less honest.
        "tested_before": tested,
        "environment": environment(),
    }
    for split, trial in chosen.items():
        name = "selected.toml" if split is None else f"selected-split-{split}.toml"
        run = first if split is None else Run(first.seed, split)
        text = to_toml(definition.config(trial_params(trial), run))
        write_atomically(folder / name, text.encode(), RUN_AGAIN)
    _write(folder / "selection.json", record)
    shutil.rmtree(folder / "locks", ignore_errors=True)
    every = kinds(study.get_trials(deepcopy=False), definition)
    failed = [trial for trial, what in every if what == "failed"]  # a crash may be tried again
    needed = {trial_key(trial, definition) for trial in (*chosen.values(), *failed)}
    for runs_of_one in (folder / "runs").glob("*"):
        if runs_of_one.name not in needed:
            shutil.rmtree(runs_of_one, ignore_errors=True)
    return _result(study, definition, folder, record)


def _final_runs(
    definition: StudyDefinition,
    folder: Path,
    trials: Mapping[Run, FrozenTrial],
    progress: ProgressCallback | None,
) -> dict[Run, dict[str, dict[str, float]]]:
    """Scores of every selected run; where weights are lost or damaged, they are trained again."""
    device = definition.base.device
    try:
        resolve_device(device)
    except ConfigError:  # workers had that GPU, and this machine has none
        device = "cpu"

    def scores_of(run: Run, place: Path) -> dict[str, dict[str, float]]:
        config = definition.config(trial_params(trials[run]), run)
        ((_, result),) = replicate([run], lambda _: config, lambda _: place)
        return {
            definition.metric_split: read_scores(result["scores"][definition.metric_split]),
            "test": evaluate(place, ["test"], device=device)["test"],
        }

    tell = progress or (lambda done, total: None)
    scores: dict[Run, dict[str, dict[str, float]]] = {}
    tell(0, len(trials))
    with shared_data():
        for run, trial in trials.items():
            place = folder / _run_folder(definition, trial, run)
            scores[run] = with_restart(place, partial(scores_of, run, place))
            tell(len(scores), len(trials))
    return scores


def _run_folder(definition: StudyDefinition, trial: FrozenTrial, run: Run) -> Path:
    """Where a run of a trial lies within the study's folder."""
    return Path("runs") / (trial_key(trial, definition) or "") / run.name


def _recorded_runs(
    definition: StudyDefinition, trials: Mapping[Run, FrozenTrial]
) -> dict[Run, dict[str, dict[str, float]]]:
    """The scores that the selected trials were compared by; nothing is computed."""
    return {
        run: {definition.metric_split: read_scores(record["scores"])}
        for run, trial in trials.items()
        for record in trial.user_attrs["runs"]
        if Run(record["seed"], record["split"]) == run
    }


def _summaries(
    definition: StudyDefinition, runs: Mapping[Run, Mapping[str, Mapping[str, float]]], split: str
) -> dict[str, dict[str, float | None]]:
    def summary(name: str) -> Summary:
        return definition.protocol.summary({run: by[split][name] for run, by in runs.items()})

    return {
        name: finite_or_none(asdict(summary(name))) for name in next(iter(runs.values()))[split]
    }


def _rule(definition: StudyDefinition) -> str:
    protocol = definition.protocol
    if protocol.splits is None or len(protocol.splits) == 1:
        return "mean and sample standard deviation over initialisations"
    own = ", a configuration selected for each split" if protocol.per_split else ""
    return f"mean over initialisations, then mean and sample standard deviation over splits{own}"


def _write(path: Path, record: Mapping[str, Any]) -> None:
    text = json.dumps(record, indent=2, allow_nan=False) + "\n"
    write_atomically(path, text.encode(), RUN_AGAIN)


def _earlier(folder: Path) -> dict[str, Any] | None:
    path = folder / "selection.json"
    if not path.exists():
        return None
    try:
        record: dict[str, Any] = json.loads(path.read_bytes())
    except ValueError as error:
        raise SelectionError(f"{path} is damaged ({error}); remove it to write it anew") from error
    return record


def _result(
    study: Study, definition: StudyDefinition, folder: Path, record: dict[str, Any]
) -> SelectionResult:
    def summaries(which: str) -> dict[str, Summary]:
        return {
            name: Summary(read_scores({name: both["mean"]})[name], both["std"])
            for name, both in record[which].items()
        }

    return SelectionResult(
        study=study.study_name,
        folder=folder,
        metric=definition.metric,
        settings=record["settings"],
        by_split={int(split): values for split, values in record["settings_by_split"].items()},
        validation=summaries("validation"),
        test=summaries("test"),
        counts=record["trials"],
        record=record,
    )
