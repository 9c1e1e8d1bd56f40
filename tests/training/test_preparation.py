"""What a run needs before it can begin."""

import pytest

from adgn.training import ConfigError, TrainConfig, prepare, train


def test_settings_that_do_not_fit_the_task(tiny):
    with pytest.raises(ConfigError, match=r"stopping.monitor='accuracy' is not a score"):
        train(tiny, stopping={"monitor": "accuracy"})
    with pytest.raises(ConfigError, match=r"stopping.split='val' is not there"):
        train("tree-neighbors-match", task={"radius": 2}, stopping={"split": "val"})


def test_a_split_that_a_task_does_not_have_is_told_with_those_it_has():
    task = {"name": "tree-neighbors-match", "radius": 2, "permutations": 5}
    prepared = prepare(TrainConfig(task=task, stopping={"split": "train"}))
    with pytest.raises(ConfigError, match=r"split='val' is not there; choose from train, test"):
        prepared.scores("val")
