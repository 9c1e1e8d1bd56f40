"""A study as tables: the best configurations, what mattered, and what went wrong."""

import csv
import io
import json
from typing import Any

from optuna.importance import FanovaImportanceEvaluator, get_param_importances
from optuna.study import Study, create_study
from optuna.trial import FrozenTrial, TrialState

from adgn._util.files import finite_or_none
from adgn._util.suggestions import unknown_name
from adgn.selection.definition import StudyDefinition
from adgn.selection.status import ranked
from adgn.selection.study import kind, kinds, rung_of, trial_params

Table = tuple[list[str], list[list[str]]]
FORMATS = ("csv", "json")


def best_table(study: Study, definition: StudyDefinition, count: int = 10) -> Table:
    """The best configurations; keys with a single value in the space are left out."""
    keys = [key for key, values in definition.space.items() if len(values) > 1]
    trained = ["trained"] if definition.rungs else []
    columns = ["trial", f"{definition.metric_split} {definition.metric}", *trained, *keys]
    columns.append("minutes")
    rows = []
    for trial in ranked(study.get_trials(deepcopy=False), definition)[:count]:
        params = trial_params(trial)
        minutes = "" if trial.duration is None else f"{trial.duration.total_seconds() / 60:.1f}"
        score = "" if trial.value is None else f"{trial.value:.4f}"
        rung = [str(definition.rungs[rung_of(trial)])] if definition.rungs else []
        shown = [str(params[key]) for key in keys]
        rows.append([str(trial.number), score, *rung, *shown, minutes])
    return columns, rows


def importances(study: Study) -> dict[str, float]:
    """The share of each setting in the variance of scores (fANOVA); empty while there are few.

    fANOVA fits a forest of trees to settings and scores and splits its variance up. With halving,
    to the scores of the first rung, which all configurations have.
    """
    complete = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    values = [trial.value for trial in complete if rung_of(trial) == 0]
    if len(values) < 4 or len(set(values)) < 2 or finite_or_none(values) != values:
        return {}
    if len(values) < len(complete):
        study = create_study(direction=study.direction)
        study.add_trials([trial for trial in complete if rung_of(trial) == 0])
    shares: dict[str, float] = get_param_importances(
        study, evaluator=FanovaImportanceEvaluator(seed=0)
    )
    return shares


def failure_table(study: Study, definition: StudyDefinition) -> Table:
    """The trials that crashed or diverged, with the first line of why."""
    rows = [
        [str(trial.number), trial.user_attrs["error"].splitlines()[0], _text(trial_params(trial))]
        for trial, what in kinds(study.get_trials(deepcopy=False), definition)
        if what == "failed"
    ]
    return ["trial", "error", "settings"], rows


def _text(params: dict[str, Any]) -> str:
    return ", ".join(f"{key}={value}" for key, value in params.items())


def trial_records(study: Study, definition: StudyDefinition) -> list[dict[str, Any]]:
    """Every trial as a record, those that were replaced by a successor left out."""
    return [
        _record(trial, definition)
        for trial, what in kinds(study.get_trials(deepcopy=False), definition)
        if what != "replaced"
    ]


def _record(trial: FrozenTrial, definition: StudyDefinition) -> dict[str, Any]:
    params = trial_params(trial)
    return {
        "trial": trial.number,
        "state": kind(trial),
        definition.metric: finite_or_none(trial.value),
        "settings": {key: params.get(key) for key in definition.space},
        "seconds": None if trial.duration is None else round(trial.duration.total_seconds(), 3),
        "answered_from": trial.user_attrs.get("answered_from"),
        "worker": trial.user_attrs.get("worker"),
        "error": trial.user_attrs.get("error"),
        "traceback": trial.user_attrs.get("traceback"),
        "rung": trial.user_attrs.get("rung"),
        "runs": trial.user_attrs.get("runs", []),
    }


def export(study: Study, definition: StudyDefinition, form: str) -> str:
    """All trials as CSV (a line per trial) or JSON (with every run)."""
    if form not in FORMATS:
        raise unknown_name("format", form, FORMATS)
    records = trial_records(study, definition)
    if form == "json":
        about = {"study": study.study_name, "definition": definition.model_dump(mode="json")}
        return json.dumps({**about, "trials": records}, indent=2, allow_nan=False) + "\n"
    text = io.StringIO()
    columns = ["trial", "state", definition.metric, *definition.space, "runs", "seconds", "error"]
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    for record in records:
        shown = {"trial", "state", definition.metric, "seconds", "error"}
        row = {key: value for key, value in record.items() if key in shown}
        writer.writerow({**row, **record["settings"], "runs": len(record["runs"])})
    return text.getvalue()
