"""A study: its plan (a queue of trials), its answers, and how it gets over deaths of workers."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import optuna
from optuna.distributions import CategoricalDistribution
from optuna.pruners import BasePruner, NopPruner, SuccessiveHalvingPruner
from optuna.samplers import BaseSampler, RandomSampler, TPESampler
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState, create_trial

from adgn._util.registry import PluginError, load_plugin, load_plugins, loaded_plugins
from adgn.selection.definition import StudyDefinition, params_key
from adgn.selection.errors import SelectionError
from adgn.selection.halving import Entry, wanted_entries
from adgn.selection.spaces import grid_points, random_points
from adgn.selection.storage import QueueStorage
from adgn.training.seeding import derived_seed

DEFINITION = "adgn"  # the study's attribute that holds its definition
MAX_LOST = 3  # workers that one configuration may take with it
PROMOTED = 3  # of this many configurations ASHA lets one go on

TrialKind = Literal["waiting", "running", "complete", "pruned", "failed", "replaced"]


def start_study(name: str, storage: QueueStorage, definition: StudyDefinition) -> Study:
    """The study of this name, made if it is not there."""
    study = optuna.create_study(
        study_name=name,
        storage=storage,
        direction="maximize" if definition.maximize else "minimize",
        load_if_exists=True,
        pruner=pruner_for(definition),
    )
    if DEFINITION not in study.user_attrs:
        if study.get_trials(deepcopy=False):
            raise SelectionError(
                f"the storage has a study {name!r} that was not made by adgn; give another name"
            )
        known = definition
    else:
        known = stored_definition(study)
        known.check_same(name, definition)
    # A plugin that was moved has the file name that it had.
    plugins = {Path(file).name: file for file in (*known.plugins, *loaded_plugins())}
    # Rungs begin with all of a grid, or with as many as were asked for: workers must know.
    changed = definition.trials is not None or known.rungs
    trials = definition.trials if changed else known.trials
    update = {"plugins": tuple(plugins.values()), "trials": trials}
    stored = known.model_copy(update=update).model_dump(mode="json")
    if stored != study.user_attrs.get(DEFINITION):
        study.set_user_attr(DEFINITION, stored)
    return study


def open_study(name: str, storage: QueueStorage) -> tuple[Study, StudyDefinition]:
    """A study that is there, and what it is about."""
    try:
        study = optuna.load_study(study_name=name, storage=storage)
    except KeyError:
        known = optuna.get_all_study_names(storage)
        there = f"it has {', '.join(map(repr, known))}" if known else "it has none yet"
        raise SelectionError(
            f"there is no study {name!r} in the storage ({there}); start it with `adgn select TASK "
            f"--study {name}`"
        ) from None
    definition = stored_definition(study)
    _load_plugins(name, definition.plugins)
    study.pruner = pruner_for(definition)
    return study, definition


def _load_plugins(study: str, plugins: Sequence[str]) -> None:
    """Loads the plugins that a study was started with, but none that was given from elsewhere."""
    load_plugins()
    loaded = {Path(file).name for file in loaded_plugins()}
    for plugin in plugins:
        if Path(plugin).name not in loaded:
            try:
                load_plugin(plugin)
            except PluginError as error:
                raise SelectionError(
                    f"the study {study!r} was started with a plugin that is missing now: {error}; "
                    f"put it back, or give --plugin with where {Path(plugin).name} is"
                ) from error


def stored_definition(study: Study) -> StudyDefinition:
    """What a study is about."""
    stored = study.user_attrs.get(DEFINITION)
    if stored is None:
        raise SelectionError(f"the study {study.study_name!r} was not made by adgn")
    try:
        return StudyDefinition(**stored)
    except (TypeError, ValueError) as error:
        why = (str(error) or type(error).__name__).splitlines()[0]
        raise SelectionError(
            f"the definition of the study {study.study_name!r} in the storage is damaged or of "
            f"another version of adgn ({why}); give another --study name"
        ) from error


def pruner_for(definition: StudyDefinition) -> BasePruner:
    """ASHA over the runs of a trial (rungs at 1, 3, 9, … runs), or none."""
    if definition.prune == "asha":
        return SuccessiveHalvingPruner(min_resource=1, reduction_factor=PROMOTED)
    return NopPruner()


def sampler_for(definition: StudyDefinition, number: int) -> BaseSampler:
    """What chooses the values of trial `number`, whichever worker runs it."""
    seed = derived_seed(definition.seed, "trial", number)
    if definition.search != "tpe":
        return RandomSampler(seed=seed)  # never asked: the plan has all values
    return TPESampler(seed=seed, constant_liar=True)


def trial_params(trial: FrozenTrial) -> dict[str, Any]:
    """The values of a trial, those it will have once it runs included."""
    planned: Mapping[str, Any] = trial.system_attrs.get("fixed_params", {})
    return {**planned, **trial.params}


def trial_key(trial: FrozenTrial, definition: StudyDefinition) -> str | None:
    """Which configuration a trial is; `None` while that is open."""
    return params_key(trial_params(trial), definition.space)


def rung_of(trial: FrozenTrial) -> int:
    """The number of a trial's rung; 0 where there are none."""
    number: int = trial.user_attrs.get("rung", 0)
    return number


def trial_entry(trial: FrozenTrial, definition: StudyDefinition) -> Entry | None:
    """Which configuration a trial is, and with halving in which rung; `None` while that is open."""
    key = trial_key(trial, definition)
    return None if key is None else Entry(key, rung_of(trial))


def kind(trial: FrozenTrial) -> TrialKind:
    """What became of a trial.

    `"failed"` is a crash, which stays on record. `"replaced"` is a trial that was stopped or whose
    worker died; another one with the same values has taken its place.
    """
    if trial.state == TrialState.FAIL:
        return "failed" if "error" in trial.user_attrs else "replaced"
    names: dict[TrialState, TrialKind] = {
        TrialState.WAITING: "waiting",
        TrialState.RUNNING: "running",
        TrialState.COMPLETE: "complete",
        TrialState.PRUNED: "pruned",
    }
    return names[trial.state]


def kinds(
    trials: Sequence[FrozenTrial], definition: StudyDefinition
) -> Iterator[tuple[FrozenTrial, TrialKind]]:
    """What became of each trial; a crash that is run again counts as replaced.

    So does, in a rung, one that only repeats another's answer: two machines may both have planned.
    """
    last_retry: dict[Entry | None, int] = {}
    for trial in trials:
        if trial.user_attrs.get("retry", False):
            last_retry[trial_entry(trial, definition)] = trial.number
    for trial in trials:
        what = kind(trial)
        if what == "failed" and last_retry:
            again = last_retry.get(trial_entry(trial, definition), -1)
            what = "replaced" if again > trial.number else what
        if definition.rungs and "answered_from" in trial.user_attrs:
            what = "replaced"
        yield trial, what


def _enqueue(study: Study, params: Mapping[str, Any], **attributes: Any) -> None:
    study.enqueue_trial(dict(params), user_attrs=attributes or None)


def plan(study: Study, definition: StudyDefinition, *, retry_failed: bool = False) -> int:
    """Makes the queue complete, and says how many trials that added.

    Every configuration of the plan is then done, running or waiting. Safe to call at any time: what
    is there is left alone, and what got lost between a trial's end and its successor comes back.
    """
    trials = list(kinds(study.get_trials(deepcopy=False), definition))
    present: dict[Entry, list[FrozenTrial]] = {}
    added = 0
    for trial, what in trials:
        entry = trial_entry(trial, definition)
        if what != "replaced" and entry is not None:
            present.setdefault(entry, []).append(trial)

    def add(params: Mapping[str, Any], **attributes: Any) -> None:
        nonlocal added
        key = params_key(params, definition.space)
        if key is None:
            return
        entry = Entry(key, attributes.get("rung", 0))
        if entry not in present:
            _enqueue(study, params, **attributes)
            present[entry] = []
            added += 1

    for trial, what in trials:
        if what == "replaced":
            add(trial_params(trial), **_marks(trial))
    for entry in list(present):
        if retry_failed and present[entry] and all(_can_be_retried(t) for t in present[entry]):
            failed = present.pop(entry)[0]
            add(trial_params(failed), **_marks(failed, retry=True))
    if definition.search == "tpe":
        there = sum(1 for _, what in trials if what != "replaced") + added
        for _ in range(definition.budget - there):
            study.add_trial(create_trial(state=TrialState.WAITING))
            added += 1
        return added
    points = list(_points(definition))
    if not definition.rungs:
        for params in points:
            add(params)
        return added
    by_key = {params_key(params, definition.space): params for params in points}
    for number, keys in enumerate(wanted(study, definition)[0]):
        for key in keys:
            add(by_key[key], rung=number)
    return added


def wanted(study: Study, definition: StudyDefinition) -> tuple[list[list[str]], bool]:
    """The configurations of each rung of halving, as far as that is decided; whether that is all.

    See `wanted_entries`. The first rung has the whole plan.
    """
    scores: dict[Entry, float | None] = {}
    for trial, what in kinds(study.get_trials(deepcopy=False), definition):
        entry = trial_entry(trial, definition)
        if entry is not None and what in ("complete", "failed"):
            scores[entry] = trial.value if what == "complete" else None
    keys = [params_key(params, definition.space) or "" for params in _points(definition)]
    return wanted_entries(keys, scores, definition.rungs, maximize=definition.maximize)


def _marks(trial: FrozenTrial, **more: Any) -> dict[str, Any]:
    """What a successor takes over from a trial besides its values."""
    there = {name: trial.user_attrs.get(name) for name in ("retry", "rung")}
    return {name: value for name, value in there.items() if value is not None} | more


def _can_be_retried(trial: FrozenTrial) -> bool:
    return kind(trial) == "failed" and not trial.user_attrs.get("diverged", False)


def _points(definition: StudyDefinition) -> Iterable[dict[str, Any]]:
    if definition.search == "random":
        return random_points(definition.space, definition.budget, definition.seed)
    points = grid_points(definition.space)
    return (point for _, point in zip(range(definition.budget), points, strict=False))


def requeue(study: Study, trial: FrozenTrial) -> None:
    """Puts the values of a trial that was stopped, or whose worker died, back into the queue.

    A configuration that has taken several workers with it is recorded as failed instead.
    """
    definition = stored_definition(study)
    params = trial_params(trial)
    entry = trial_entry(trial, definition)
    if entry is None:  # it died before its values were chosen
        fixed = {"fixed_params": dict(params)} if params else None
        study.add_trial(create_trial(state=TrialState.WAITING, system_attrs=fixed))
        return
    lost = [
        other
        for other in study.get_trials(deepcopy=False)
        if kind(other) == "replaced"
        and not other.user_attrs.get("interrupted", False)
        and trial_entry(other, definition) == entry
    ]
    if len(lost) < MAX_LOST:
        _enqueue(study, params, **_marks(trial))
        return
    study.add_trial(
        create_trial(
            state=TrialState.FAIL,
            params=params,
            distributions={k: CategoricalDistribution(v) for k, v in definition.space.items()},
            user_attrs={
                **_marks(trial),
                "key": entry.key,
                "error": f"WorkerDied: {len(lost)} workers died while running this configuration; "
                "it may need more memory than there is",
                "traceback": "",
            },
        )
    )
