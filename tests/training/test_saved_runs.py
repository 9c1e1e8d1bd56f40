"""Runs on disk: their results without their data, and files that do not belong together."""

import shutil
from unittest.mock import ANY

import pytest

from adgn.training import DamagedRunError, Interrupted, evaluate, open_run, predict, resume, train
from adgn.training.checkpoint import load_weights, save_weights
from adgn.training.saved_runs import finished_run
from tests.helpers.callbacks import StopAfter


@pytest.mark.parametrize("evaluate_test", [True, False])
def test_a_finished_run_is_there_without_its_data(tiny, tmp_path, monkeypatch, evaluate_test):
    result = train(tiny, run_dir=tmp_path / "run", evaluate_test=evaluate_test)
    monkeypatch.setattr("adgn.training.saved_runs.prepare", None)  # nothing reads data
    found = finished_run(tmp_path / "run")
    for name in ("config", "scores", "constant", "published", "notes", "transforms", "history"):
        assert getattr(found, name) == getattr(result, name), name
    # result.json has milliseconds.
    assert found.to_dict() == {**result.to_dict(), "seconds_per_epoch": ANY}
    assert found.run_dir == result.run_dir
    weights = found.model.state_dict()
    assert all(weights[key].equal(value) for key, value in result.model.state_dict().items())


def test_a_run_that_is_not_over_has_no_result(tiny, tmp_path):
    with pytest.raises(Interrupted):
        train(tiny, run_dir=tmp_path / "run", callbacks=[StopAfter(2)])
    assert finished_run(tmp_path / "run") is None


def test_best_weights_of_another_model_are_refused(tiny, tmp_path):
    train(tiny, run_dir=tmp_path / "run")
    other = {**tiny, "model": {"name": "gcn", "hidden_channels": 4}}
    train(other, run_dir=tmp_path / "other")
    (tmp_path / "other" / "best.safetensors").replace(tmp_path / "run" / "best.safetensors")
    with pytest.raises(DamagedRunError, match=r"does not belong to.*model.name: 'adgn', not 'gcn'"):
        evaluate(tmp_path / "run")


def test_a_configuration_changed_after_the_run_is_refused(tiny, tmp_path):
    folder = tmp_path / "run"
    train(tiny, run_dir=folder)
    shutil.rmtree(folder / "state")
    config = folder / "config.toml"
    original = config.read_text()
    config.write_text(original.replace("train = 12", "train = 13").replace("lr = 0.0", "lr = 0.1"))
    named = r"config.toml does not belong to .*best.safetensors \(task.train: 13, not 12; optimizer"
    for use in (evaluate, open_run, resume, lambda run: next(predict(run))):
        with pytest.raises(DamagedRunError, match=named):
            use(folder)
    config.write_text(original.replace("every_seconds = 30.0", "every_seconds = 60.0"))
    evaluate(folder)  # what the scores do not depend on


def test_weights_of_an_earlier_version_have_no_configuration_to_compare(tiny, tmp_path):
    result = train(tiny, run_dir=tmp_path / "run")
    best = tmp_path / "run" / "best.safetensors"
    weights, about = load_weights(best)
    del about["config"]
    save_weights(best, weights, about)
    assert evaluate(tmp_path / "run") == dict(result.scores)
