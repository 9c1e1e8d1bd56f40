import json

import pytest

from adgn.selection import Protocol, Run, SelectionError, StudyDefinition, StudyMismatchError
from adgn.selection.definition import params_key
from adgn.training import resolve_config


def definition(task="texas", **changes):
    fields = {
        "settings": resolve_config(task).model_dump(mode="json"),
        "space_name": "own",
        "space": {"optimizer.lr": [0.1, 0.01], "model.act": ["tanh", "relu"]},
        "protocol": Protocol(seeds=(0,), splits=(0, 1)),
    }
    return StudyDefinition(**{**fields, **changes})


def test_it_survives_being_written():
    original = definition(search="tpe", trials=3)
    assert StudyDefinition(**json.loads(original.model_dump_json())) == original


def test_what_is_compared():
    texas = definition()
    assert (texas.metric, texas.metric_split, texas.maximize) == ("accuracy", "val", True)
    sssp = definition("sssp", protocol=Protocol(seeds=(41,)))
    assert (sssp.metric, sssp.maximize) == ("log10_mse_paper", False)
    trees = definition("tree-neighbors-match", protocol=Protocol(seeds=(11,)))
    assert (trees.metric_split, trees.maximize) == ("train", True)


def test_the_configuration_of_a_run():
    config = definition().config({"optimizer.lr": 0.1, "model.act": "relu"}, Run(5, 1))
    assert (config.optimizer.lr, config.model.options["act"]) == (0.1, "relu")
    assert (config.seed, config.task.split) == (5, 1)


@pytest.mark.parametrize(
    ("changes", "budget"),
    [
        ({}, 4),
        ({"trials": 3}, 3),
        ({"search": "random", "trials": 2}, 2),
        ({"search": "random"}, 4),
        ({"search": "tpe", "space": {"model.hidden_channels": list(range(1, 200))}}, 50),
    ],
)
def test_how_many_trials_there_are(changes, budget):
    assert definition(**changes).budget == budget


def test_only_the_number_of_trials_may_change():
    first = definition(search="random", trials=2)
    first.check_same("s", definition(search="random", trials=9))
    other_space = {"optimizer.lr": [0.1], "model.act": ["tanh", "relu"]}
    for other in (
        definition("wisconsin", search="random"),
        definition(search="random", space=other_space),
        definition(search="random", protocol=Protocol(seeds=(0,), splits=(0,))),
        definition(search="tpe"),
    ):
        with pytest.raises(StudyMismatchError, match="the study 's' exists with other settings"):
            first.check_same("s", other)


def test_parts_that_do_not_fit():
    with pytest.raises(SelectionError, match="trials=0 is not valid"):
        definition(trials=0).check()
    with pytest.raises(SelectionError, match="a single run here"):
        definition(prune="asha", protocol=Protocol(seeds=(0,), splits=(0,))).check()


def test_a_key_tells_configurations_apart():
    space = {"a": [1, 2], "b": [True, None]}
    keys = {params_key({"a": a, "b": b}, space) for a in (1, 2) for b in (True, None)}
    assert len(keys) == 4
    assert None not in keys
    assert params_key({"a": 1}, space) is None


def test_a_setting_that_was_added_since_a_study_began_is_no_difference():
    settings = resolve_config("sssp").model_dump(mode="json")
    before = {
        **settings,
        "model": {k: v for k, v in settings["model"].items() if k != "integrator"},
    }
    fields = {
        "space_name": "own",
        "space": {"optimizer.lr": [0.1]},
        "protocol": Protocol(seeds=(0,)),
    }
    began = StudyDefinition(settings=before, **fields)
    began.check_same("s", StudyDefinition(settings=settings, **fields))
    other = resolve_config("sssp", {"model": {"integrator": "rk4"}}).model_dump(mode="json")
    with pytest.raises(StudyMismatchError, match="integrator"):
        began.check_same("s", StudyDefinition(settings=other, **fields))
