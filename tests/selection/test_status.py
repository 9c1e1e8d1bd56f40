import optuna
import pytest
from optuna.distributions import CategoricalDistribution

from adgn.selection import Protocol, StudyDefinition, StudyFolder, select, study_status
from adgn.selection.definition import params_key
from adgn.selection.halving import Rung
from adgn.selection.status import ranked
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
