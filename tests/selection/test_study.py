import optuna
import pytest
from optuna.trial import TrialState

from adgn.selection import Protocol, SelectionError, StudyDefinition, StudyMismatchError
from adgn.selection.storage import open_storage, sqlite_url
from adgn.selection.study import (
    DEFINITION,
    MAX_LOST,
    kind,
    open_study,
    plan,
    requeue,
    start_study,
    stored_definition,
    trial_params,
)
from adgn.training import resolve_config
from tests.selection.studies import SPACE


@pytest.fixture
def storage(tmp_path):
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return open_storage(sqlite_url(tmp_path), on_stale=requeue)


def definition(**changes):
    fields = {
        "settings": resolve_config("graph-transfer").model_dump(mode="json"),
        "space_name": "own",
        "space": SPACE,
        "protocol": Protocol(seeds=(0, 1)),
    }
    return StudyDefinition(**{**fields, **changes})


def planned(storage, about):
    study = start_study("s", storage, about)
    plan(study, about)
    return study


def values(study, *kinds):
    chosen = (t for t in study.get_trials() if kind(t) in kinds)
    return sorted(tuple(trial_params(trial).values()) for trial in chosen)


GRID = [(0.01, 2), (0.01, 4), (0.1, 2), (0.1, 4)]


def stop(study, **attributes):
    """Takes the next trial and ends it without a score, as an interruption or a crash does."""

    def end(trial):
        for key, choices in SPACE.items():
            trial.suggest_categorical(key, choices)
        for name, value in attributes.items():
            trial.set_user_attr(name, value)
        raise RuntimeError

    study.optimize(end, n_trials=1, catch=(RuntimeError,))


def test_plugins_are_stored_and_a_study_from_before_is_read(storage, monkeypatch):
    about = definition()
    study = start_study("s", storage, about)
    old = about.model_dump(mode="json")
    del old["plugins"]  # as a version without them wrote it
    study.set_user_attr(DEFINITION, old)
    assert open_study("s", storage)[1].plugins == ()
    for loaded, stored in (
        (["a/own.py", "module"], ("a/own.py", "module")),
        (["b/own.py"], ("b/own.py", "module")),  # it was moved
        ([], ("b/own.py", "module")),
    ):
        monkeypatch.setattr("adgn.selection.study.loaded_plugins", lambda names=loaded: names)
        assert stored_definition(start_study("s", storage, about)).plugins == stored


def test_a_grid_is_planned_once(storage):
    about = definition()
    study = planned(storage, about)
    assert values(study, "waiting") == GRID
    assert plan(study, about) == 0
    assert len(study.get_trials()) == 4


def test_more_trials_are_added_to_those_there(storage):
    about = definition(search="random", trials=2)
    first = values(planned(storage, about), "waiting")
    more = planned(storage, about.model_copy(update={"trials": 3}))
    assert len(values(more, "waiting")) == 3
    assert set(first) < set(values(more, "waiting"))
    assert stored_definition(more).trials == 3


def test_a_guided_search_plans_trials_without_values(storage):
    about = definition(search="tpe", trials=3)
    study = planned(storage, about)
    assert [trial_params(trial) for trial in study.get_trials()] == [{}, {}, {}]
    assert plan(study, about) == 0


def test_what_was_lost_between_end_and_successor_comes_back(storage):
    about = definition()
    study = planned(storage, about)
    stop(study, interrupted=True)  # and the worker dies before it puts a successor into the queue
    assert len(values(study, "waiting")) == 3
    assert plan(study, about) == 1
    assert values(study, "waiting") == GRID


def test_a_crash_stays_unless_asked_for(storage):
    about = definition()
    study = planned(storage, about)
    stop(study, error="OSError: no space left on the device")
    stop(study, error="DivergedError: too large a step", diverged=True)
    assert plan(study, about) == 0
    assert plan(study, about, retry_failed=True) == 1
    assert plan(study, about, retry_failed=True) == 0
    assert len(values(study, "waiting")) == 3
    again = study.get_trials()[-1]
    assert again.user_attrs == {"retry": True}
    assert trial_params(again) == trial_params(study.get_trials()[0])


def test_a_trial_goes_back_to_the_queue(storage):
    study = planned(storage, definition())
    stop(study, interrupted=True)
    requeue(study, study.get_trials()[0])
    assert kind(study.get_trials()[0]) == "replaced"
    assert values(study, "waiting") == GRID


def test_a_configuration_that_kills_its_workers_fails(storage):
    about = definition(space={"optimizer.lr": [0.1]})
    study = planned(storage, about)
    for _ in range(MAX_LOST):
        study.optimize(_die, n_trials=1, catch=(RuntimeError,))
        requeue(study, study.get_trials()[-1])
    last = study.get_trials()[-1]
    assert kind(last) == "failed"
    assert last.params == {"optimizer.lr": 0.1}
    assert "3 workers died" in last.user_attrs["error"]
    assert values(study, "waiting") == []
    assert plan(study, about) == 0


def _die(trial):
    trial.suggest_categorical("optimizer.lr", [0.1])
    raise RuntimeError


def test_interruptions_are_not_held_against_a_configuration(storage):
    study = planned(storage, definition(space={"optimizer.lr": [0.1]}))

    def interrupted(trial):
        trial.set_user_attr("interrupted", True)
        _die(trial)

    for _ in range(MAX_LOST + 2):
        study.optimize(interrupted, n_trials=1, catch=(RuntimeError,))
        requeue(study, study.get_trials()[-1])
    assert values(study, "waiting") == [(0.1,)]


def test_a_trial_that_died_before_its_values_were_chosen(storage):
    study = planned(storage, definition(search="tpe", trials=1))

    def die(trial):
        raise RuntimeError

    study.optimize(die, n_trials=1, catch=(RuntimeError,))
    requeue(study, study.get_trials()[0])
    assert study.get_trials()[1].state == TrialState.WAITING


def test_a_name_that_is_taken(storage):
    planned(storage, definition())
    with pytest.raises(StudyMismatchError, match=r"space\.optimizer\.lr: \[0\.1, 0\.01\], not"):
        start_study("s", storage, definition(space={"optimizer.lr": [0.5]}))
    optuna.create_study(study_name="foreign", storage=storage).enqueue_trial({})
    with pytest.raises(SelectionError, match="was not made by adgn"):
        start_study("foreign", storage, definition())
    with pytest.raises(SelectionError, match="was not made by adgn"):
        open_study("foreign", storage)


def test_a_name_that_is_not_there(storage):
    with pytest.raises(SelectionError, match=r"no study 'nothing' in the storage \(it has none"):
        open_study("nothing", storage)
    planned(storage, definition())
    with pytest.raises(SelectionError, match=r"\(it has 's'\)"):
        open_study("nothing", storage)
