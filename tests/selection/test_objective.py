import json
import threading

import pytest
from optuna.trial import TrialState

import adgn.training.preparation
from adgn.selection import StudyFolder, select
from adgn.selection.definition import params_key
from adgn.selection.objective import TrialObjective
from adgn.selection.storage import open_storage, sqlite_url
from adgn.selection.study import kind, open_study, requeue, trial_params
from adgn.selection.worker import CRASHES_TO_GIVE_UP, first_cause
from adgn.training import Trainer
from adgn.training.tasks import shared_data
from tests.selection.studies import planned


def objective_for(study, definition, arguments, stop=None):
    stop = stop or threading.Event()
    return TrialObjective(definition, arguments["folder"], stop, "test", grace=60)


def run_one(study, objective):
    with shared_data():
        study.optimize(objective, n_trials=1, catch=(Exception,))


def test_a_trial_is_all_its_runs_and_their_mean(tiny):
    study, definition = planned(tiny)
    run_one(study, objective_for(study, definition, tiny))
    trial = study.get_trials()[0]
    runs = trial.user_attrs["runs"]
    assert [(run["seed"], run["split"]) for run in runs] == [(0, None), (1, None)]
    scores = [run["scores"]["log10_mse"] for run in runs]
    assert trial.value == sum(scores) / 2


def test_a_trial_does_not_wait_for_one_whose_worker_is_dead(tiny):
    _, definition = planned(tiny)
    url = sqlite_url(tiny["folder"])
    storage = open_storage(url, heartbeat=1, grace=2, on_stale=requeue)
    study, _ = open_study("tiny", storage)
    with pytest.warns(UserWarning, match="Heartbeat"):  # which is the point
        dead = study.ask()  # nobody will ever work on it, or say that it lives
    values = trial_params(study.get_trials()[dead.number + 1])
    dead.set_user_attr("key", params_key(values, definition.space))  # the next one's values
    stop = threading.Event()
    too_long = threading.Timer(60, stop.set)
    too_long.start()
    try:
        run_one(study, objective_for(study, definition, tiny, stop))
    finally:
        too_long.cancel()
    trials = study.get_trials()
    assert trials[dead.number].state == TrialState.FAIL
    assert trials[dead.number + 1].state == TrialState.COMPLETE


def test_the_test_split_is_not_looked_at(tiny, monkeypatch):
    seen = []
    evaluate = Trainer.evaluate

    def watched(self, split="val", source=None):
        seen.append(split)
        return evaluate(self, split, source)

    monkeypatch.setattr(Trainer, "evaluate", watched)
    study, definition = planned(tiny)
    run_one(study, objective_for(study, definition, tiny))
    assert set(seen) == {"train", "val"}
    (results,) = {f.parent.parent for f in tiny["folder"].glob("runs/*/*/result.json")}
    for file in results.glob("*/result.json"):
        assert set(json.loads(file.read_text())["scores"]) == {"train", "val"}


def test_data_are_loaded_once_for_all_runs_and_trials(tiny, monkeypatch):
    built = []
    entry = adgn.training.preparation.task_entry

    def counting(name):
        known = entry(name)
        monkeypatch.setattr(adgn.training.preparation, "task_entry", entry)
        object.__setattr__(known, "build", _counted(known.build, built))
        return known

    original = entry("graph-transfer").build
    monkeypatch.setattr(adgn.training.preparation, "task_entry", counting)
    try:
        select(**{**tiny, "trials": 2})
    finally:
        object.__setattr__(entry("graph-transfer"), "build", original)
    # Once for the trials and once for the test scores, which come from another `shared_data`.
    assert len(built) == 2


def _counted(build, calls):
    def counted(*arguments):
        calls.append(1)
        return build(*arguments)

    return counted


def test_a_repeated_configuration_is_answered_from_the_study(tiny, monkeypatch):
    study, definition = planned({**tiny, "trials": 1})
    run_one(study, objective_for(study, definition, tiny))
    first = study.get_trials()[0]
    study.enqueue_trial(first.params)
    monkeypatch.setattr("adgn.selection.replicate.train", None)  # training would fail
    run_one(study, objective_for(study, definition, tiny))
    again = study.get_trials()[1]
    assert (again.value, again.user_attrs["answered_from"]) == (first.value, 0)
    assert again.user_attrs["runs"] == first.user_attrs["runs"]


def test_an_interrupted_trial_goes_on_where_it_was(tiny):
    whole = select(**tiny)
    stopped = {**tiny, "study": "stopped", "folder": tiny["folder"].with_name("stopped")}
    study, definition = planned(stopped)
    stop = threading.Event()
    objective = objective_for(study, definition, stopped, stop)
    steps = []

    def stop_in_the_second_run(self, trainer):
        steps.append(trainer.seed)
        if steps.count(1) == 2:
            trainer.request_stop()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("adgn.selection.replicate.StopCallback.on_step", stop_in_the_second_run)
        run_one(study, objective)
    trial = study.get_trials()[0]
    assert (kind(trial), trial.user_attrs["interrupted"]) == ("replaced", True)
    assert stop.is_set()
    steps.clear()

    def count(self, trainer):
        steps.append(trainer.seed)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("adgn.selection.replicate.StopCallback.on_step", count)
        resumed = select(**stopped, trials=None)
    # Three configurations from the beginning, and one from the second step of its second run.
    assert steps.count(0) == 3 * 6
    assert steps.count(1) == 3 * 6 + 4
    assert resumed.record["runs"] == whole.record["runs"]
    assert resumed.validation == whole.validation


def test_a_crash_is_recorded_and_the_study_goes_on(tiny):
    tiny["space"] = {"optimizer.lr": [1e30, 0.01]}
    result = select(**tiny)
    assert result.counts == {"complete": 1, "pruned": 0, "failed": 1, "total": 2}
    study, _ = StudyFolder("tiny", tiny["folder"]).open()
    failed = study.get_trials()[0]
    assert failed.state == TrialState.FAIL
    assert failed.user_attrs["error"].startswith("DivergedError: ")
    assert "Traceback (most recent call last)" in failed.user_attrs["traceback"]
    assert failed.user_attrs["diverged"]


def test_a_repeated_configuration_that_diverged_has_diverged_again(tiny):
    tiny["space"] = {"optimizer.lr": [1e30]}
    study, definition = planned(tiny)
    run_one(study, objective_for(study, definition, tiny))
    for _ in range(CRASHES_TO_GIVE_UP):
        study.enqueue_trial(study.get_trials()[0].params)
        run_one(study, objective_for(study, definition, tiny))
    first, *repeats = study.get_trials()
    assert first.user_attrs["diverged"]
    assert [t.user_attrs["answered_from"] for t in repeats] == [0] * CRASHES_TO_GIVE_UP
    assert all(t.user_attrs["diverged"] for t in repeats)
    assert first_cause(study, definition) is None  # no crash among them


def test_bad_trials_are_pruned_after_some_runs(tiny):
    tiny |= {"prune": "asha", "seeds": [0, 1, 2]}
    tiny["space"] = {"optimizer.lr": [0.03, 1e-9, 1e-8, 1e-7]}
    result = select(**tiny)
    assert result.settings == {"optimizer.lr": 0.03}
    assert result.counts == {"complete": 1, "pruned": 3, "failed": 0, "total": 4}
    study, _ = StudyFolder("tiny", tiny["folder"]).open()
    assert [len(trial.user_attrs["runs"]) for trial in study.get_trials()] == [3, 1, 1, 1]


def test_weights_of_configurations_that_are_not_selected_are_removed(tiny):
    kept = set()

    def look(status):
        if status.finished:  # and nothing is selected yet
            kept.update(folder.name for folder in (tiny["folder"] / "runs").iterdir())

    result = select(**tiny, callback=look)
    study, _ = StudyFolder("tiny", tiny["folder"]).open()
    best_so_far = []
    for trial in study.get_trials():
        if not best_so_far or trial.value <= best_so_far[-1].value:
            best_so_far.append(trial)
    assert kept == {trial.user_attrs["key"] for trial in best_so_far}
    assert len(kept) > 1
    (selected,) = (tiny["folder"] / "runs").iterdir()
    assert selected.name == study.best_trial.user_attrs["key"]
    assert study.best_trial.params == result.settings
    assert not list(tiny["folder"].glob("runs/*/*/state"))


def test_a_guided_search_chooses_from_the_space(tiny):
    result = select(**{**tiny, "search": "tpe", "trials": 4, "seed": 1})
    assert result.counts["total"] == 4
    study, _ = StudyFolder("tiny", tiny["folder"]).open()
    for trial in study.get_trials():
        assert set(trial_params(trial)) == set(tiny["space"])
    answered = [t for t in study.get_trials() if "answered_from" in t.user_attrs]
    trained = [t for t in study.get_trials() if "answered_from" not in t.user_attrs]
    assert len({tuple(t.params.values()) for t in trained}) == len(trained)
    for trial in answered:
        assert trial.params == study.get_trials()[trial.user_attrs["answered_from"]].params
