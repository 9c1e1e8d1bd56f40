import threading

import pytest
from filelock import FileLock, Timeout

from adgn.selection import Run
from adgn.selection.replicate import held, read_scores, replicate
from adgn.training import Interrupted, RunDirectory, RunError, resolve_config

RUNS = [Run(0), Run(1)]


def config_of(run):
    task = {"name": "graph-transfer", "distance": 2, "train": 12, "val": 6, "test": 6}
    settings = {"task": task, "loop": {"max_epochs": 2, "batch_size": 6}}
    return resolve_config(settings, run.settings())


@pytest.fixture
def places(tmp_path):
    return lambda run: tmp_path / run.name


def test_each_seed_is_trained_once_and_then_read(places, monkeypatch):
    first = dict(replicate(RUNS, config_of, places))
    assert [result["seed"] for result in first.values()] == [0, 1]
    assert all("test" not in result["scores"] for result in first.values())
    assert not any(RunDirectory(places(run)).states.folder.exists() for run in RUNS)
    monkeypatch.setattr("adgn.selection.replicate.train", None)  # training would fail
    assert dict(replicate(RUNS, config_of, places)) == first


def test_the_test_split_is_looked_at_where_that_is_asked_for(places):
    ((_, result),) = replicate(RUNS[:1], config_of, places, evaluate_test=True)
    assert "test" in result["scores"]


def test_a_finished_run_looks_at_the_test_split_without_training_again(places, tmp_path):
    ((_, before),) = replicate(RUNS[:1], config_of, places)
    ((_, after),) = replicate(RUNS[:1], config_of, places, evaluate_test=True)
    elsewhere = replicate(RUNS[:1], config_of, lambda run: tmp_path / "other", evaluate_test=True)
    ((_, whole),) = elsewhere
    assert after["scores"] == whole["scores"]
    assert {key: after[key] for key in before if key != "scores"} == {
        key: before[key] for key in before if key != "scores"
    }


def test_a_stopped_run_goes_on_to_the_same_result(places, tmp_path):
    whole = dict(replicate(RUNS, config_of, lambda run: tmp_path / "whole" / run.name))
    asked = []

    def stop_in_the_second_run():
        asked.append(1)
        return len(asked) > 8  # once before each run, and after each of four steps

    done = []
    with pytest.raises(Interrupted):
        done.extend(replicate(RUNS, config_of, places, should_stop=stop_in_the_second_run))
    assert RunDirectory(places(RUNS[1])).states.exists()
    resumed = dict(replicate(RUNS, config_of, places))
    assert {run: result["scores"] for run, result in resumed.items()} == {
        run: result["scores"] for run, result in whole.items()
    }


def test_the_result_of_another_configuration_is_refused(places):
    dict(replicate(RUNS[:1], config_of, places))
    with pytest.raises(RunError, match="another configuration"):
        dict(replicate(RUNS[1:], config_of, lambda run: places(RUNS[0])))


@pytest.mark.parametrize("damage", ["no config.toml", "a damaged one", "a damaged result.json"])
def test_a_run_whose_files_are_damaged_starts_again(places, damage):
    first = dict(replicate(RUNS, config_of, places))
    directory = RunDirectory(places(RUNS[0]))
    if damage == "no config.toml":
        directory.config_file.unlink()
    elif damage == "a damaged one":
        directory.config_file.write_text("seed = [")
    else:
        directory.result_file.write_text("{}")
    with pytest.warns(
        UserWarning, match=r"(config.toml|result.json) .*seed-0 starts again"
    ) as told:
        again = dict(replicate(RUNS, config_of, places))
    assert len(told) == 1
    assert again[RUNS[0]]["scores"] == first[RUNS[0]]["scores"]
    assert again[RUNS[1]] == first[RUNS[1]]  # its times too: it was read


def test_a_lock_that_another_worker_holds(tmp_path):
    file = tmp_path / "locks" / "one.lock"
    stop = threading.Event()
    with held(file, stop), pytest.raises(Timeout):
        FileLock(file).acquire(timeout=0)
    with FileLock(file):
        with pytest.raises(Timeout), held(file, stop, seconds=0):
            pass
        stop.set()
        with pytest.raises(Interrupted), held(file, stop):
            pass


def test_the_logarithm_of_no_error_is_read_back():
    assert read_scores({"mse": 0, "log10_mse": None}) == {"mse": 0.0, "log10_mse": float("-inf")}
