import optuna
import pytest
from optuna.distributions import CategoricalDistribution

from adgn.selection import Protocol, StudyDefinition, StudyFolder, select, study_status
from adgn.selection.definition import params_key
from adgn.selection.halving import Rung
from adgn.selection.status import compared_configurations, ranked
from adgn.training import resolve_config
from tests.selection.studies import SPACE, Nowhere


def test_counts_and_best(tiny):
    with pytest.raises(StopIteration):
        select(**{**tiny, "executor": Nowhere()})
    before = study_status(*StudyFolder("tiny", tiny["folder"]).open())
    assert (before.total, before.waiting, before.done, before.best) == (4, 4, 0, None)
    assert not before.finished
    result = select(**tiny)
    study, definition = StudyFolder("tiny", tiny["folder"]).open()
    after = study_status(study, definition)
    assert (after.total, after.waiting, after.done, after.finished) == (4, 0, 4, True)
    assert after.best == result.validation["log10_mse"].mean
    assert after.best_params == result.settings
    assert after.seconds is not None
    assert after.seconds > 0


def test_the_best_come_first(tiny):
    select(**tiny)
    study, definition = StudyFolder("tiny", tiny["folder"]).open()
    scores = [trial.value for trial in ranked(study.get_trials(), definition)]
    assert scores == sorted(scores)
    assert len(scores) == 4


def test_configurations_that_fail_or_are_stopped_are_told(tiny):
    space = {**SPACE, "optimizer.lr": [0.1, 1e30]}
    select(**{**tiny, "space": space})
    told = compared_configurations(*StudyFolder("tiny", tiny["folder"]).open())
    assert [one["state"] for one in told] == ["complete"] * 2 + ["failed"] * 2
    assert [one["settings"]["optimizer.lr"] for one in told] == [0.1] * 2 + [1e30] * 2
    assert told[0]["scores"] < told[1]["scores"]
    assert told[2]["scores"] == told[3]["scores"] == [None]


def test_a_pruned_configuration_has_its_last_score():
    about = StudyDefinition(
        settings=resolve_config("graph-transfer").model_dump(mode="json"),
        space_name="own",
        space={"optimizer.lr": [0.1, 0.01], "model.num_layers": [3]},
        protocol=Protocol(seeds=(0, 1, 2, 3)),
        prune="asha",
    )
    study = optuna.create_study()
    for rate, state in ((0.1, "PRUNED"), (0.01, "COMPLETE")):
        study.add_trial(
            optuna.trial.create_trial(
                state=optuna.trial.TrialState[state],
                value=0.5 if state == "COMPLETE" else None,
                params={"optimizer.lr": rate, "model.num_layers": 3},
                distributions={k: CategoricalDistribution(v) for k, v in about.space.items()},
                intermediate_values={1: 0.9, 3: 0.7},
            )
        )
    assert compared_configurations(study, about) == [
        {"settings": {"optimizer.lr": 0.01}, "scores": [0.5], "state": "complete"},
        {"settings": {"optimizer.lr": 0.1}, "scores": [0.7], "state": "pruned"},
    ]


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_of_equals_the_same_configuration_is_first_whichever_was_queued_again(order):
    name, values = next((name, values) for name, values in SPACE.items() if len(values) > 1)
    rest = {key: others[0] for key, others in SPACE.items() if key != name}
    about = StudyDefinition(
        settings=resolve_config("graph-transfer").model_dump(mode="json"),
        space_name="own",
        space=SPACE,
        protocol=Protocol(seeds=(0,)),
        prune="halving",
        rungs=(Rung(epochs=1),),
    )
    study = optuna.create_study()
    for position in order:
        study.add_trial(
            optuna.trial.create_trial(
                value=0.5,
                params={**rest, name: values[position]},
                distributions={k: CategoricalDistribution(v) for k, v in SPACE.items()},
                user_attrs={"rung": 0},
            )
        )
    first, _ = ranked(study.get_trials(), about)
    smaller = min(params_key({**rest, name: value}, SPACE) for value in values[:2])
    assert params_key(first.params, SPACE) == smaller
