import json
import shutil
from datetime import timedelta

import pytest
from optuna.distributions import CategoricalDistribution
from optuna.trial import TrialState, create_trial

from adgn.selection import Protocol, SelectionError, StudyDefinition, StudyFolder, select
from adgn.selection.results import choose
from adgn.selection.storage import open_storage, sqlite_url
from adgn.selection.study import DEFINITION, start_study
from adgn.training import Callback, read_config, resolve_config, train
from tests.selection.studies import ONE, Nowhere


def test_the_best_validation_score_is_selected(tiny):
    result = select(**tiny)
    study, _ = StudyFolder("tiny", tiny["folder"]).open()
    best = min(study.get_trials(), key=lambda trial: trial.value)
    assert result.settings == best.params
    assert result.validation["log10_mse"].mean == best.value
    assert result.record["selected_trials"] == {"all splits": best.number}


def test_the_selected_configuration_trains_to_the_reported_score(tiny):
    result = select(**tiny)
    config = resolve_config(read_config(tiny["folder"] / "selected.toml"))
    assert {key: _setting(config, key) for key in result.settings} == result.settings
    run = train(config)
    scores = [r["scores"]["test"]["log10_mse"] for r in result.record["runs"]]
    assert run.scores["test"]["log10_mse"] == pytest.approx(scores[0], rel=1e-6)
    assert result.test["log10_mse"].mean == pytest.approx(sum(scores) / 2)


def _setting(config, key):
    section, name = key.split(".")
    return getattr(getattr(config, section), name)


def test_the_test_split_is_looked_at_once(tiny, monkeypatch):
    tiny |= ONE
    first = select(**tiny)
    written = (tiny["folder"] / "selection.json").read_bytes()
    monkeypatch.setattr("adgn.selection.results.evaluate", None)  # a second look would fail
    assert select(**tiny).record == first.record
    assert (tiny["folder"] / "selection.json").read_bytes() == written


def test_the_time_until_a_death_was_noticed_is_not_spent(tiny):
    select(**{**tiny, "trials": 2})
    study, _ = StudyFolder("tiny", tiny["folder"]).open()
    dead, stopped = (
        create_trial(state=TrialState.FAIL, user_attrs=marks)
        for marks in ({}, {"interrupted": True})
    )
    dead.datetime_start -= timedelta(hours=9)  # the whole program was killed, and went on later
    stopped.datetime_start -= timedelta(seconds=50)
    study.add_trials([dead, stopped])
    crashed = create_trial(state=TrialState.FAIL, user_attrs={"error": "E", "traceback": ""})
    crashed.datetime_start -= timedelta(seconds=200)
    study.add_trial(crashed)
    result = select(**tiny)
    times = [t.duration for t in study.get_trials() if t.state == TrialState.COMPLETE]
    spent = 250 + sum(time.total_seconds() for time in times)
    assert result.record["trial_seconds"] == pytest.approx(spent, abs=0.1)


def test_more_trials_are_told_where_the_same_one_is_selected(tiny):
    """As a file that an earlier version wrote, which had no list of configurations."""
    first = select(**{**tiny, "search": "random", "trials": 2}).record
    file = tiny["folder"] / "selection.json"
    file.write_text(json.dumps({k: v for k, v in first.items() if k != "configurations"}))
    again = select(**{**tiny, "search": "random", "trials": 2}).record
    assert again["configurations"] == first["configurations"]
    more = select(**{**tiny, "search": "random", "trials": 4})
    written = json.loads(file.read_text())
    assert len(first["configurations"]) == 2
    assert len(written["configurations"]) == written["trials"]["total"] == 4
    assert written["configurations"][0]["settings"] == more.settings


def test_only_runs_that_may_be_needed_are_kept(tiny, monkeypatch):
    """Of those that were the best for a time, only the selected one; and crashes, to go on with."""

    class Crash(Callback):
        def on_epoch(self, trainer, line):
            raise OSError("no space left on the device")

    def sometimes(config, *, callbacks, **options):
        crash = [Crash()] if config.optimizer.lr == 1.0 else []
        return train(config, callbacks=[*callbacks, *crash], **options)

    monkeypatch.setattr("adgn.selection.replicate.train", sometimes)
    tiny["space"] = {"optimizer.lr": [1e-9, 0.03, 1.0, 1e30]}  # each better than before, or bad
    tiny["settings"]["optimizer"] = {"name": "sgd"}
    result = select(**tiny)
    assert result.settings == {"optimizer.lr": 0.03}
    assert (result.counts["complete"], result.counts["failed"]) == (2, 2)
    files = (tiny["folder"] / "runs").glob("*/seed-0/config.toml")
    assert {read_config(file)["optimizer"]["lr"] for file in files} == {0.03, 1.0}


def test_another_selection_later_is_owned_up_to(tiny):
    tiny["space"] = {"optimizer.lr": [1e-9, 0.03]}
    assert select(**{**tiny, "trials": 1}).record["tested_before"] == []
    later = select(**{**tiny, "trials": 2}).record
    assert later["selected_trials"] == {"all splits": 1}
    assert later["tested_before"] == [{"all splits": 0}]


def test_weights_that_are_not_there_are_trained_again(tiny):
    tiny |= ONE
    first = select(**tiny)
    shutil.rmtree(tiny["folder"] / "runs")
    (tiny["folder"] / "selection.json").unlink()
    again = select(**tiny)
    assert again.record["runs"] == first.record["runs"]


@pytest.mark.long
@pytest.mark.parametrize("name", ["best.safetensors", "result.json", "config.toml"])
@pytest.mark.parametrize("how", ["damaged", "lost"])
def test_a_selected_run_that_is_damaged_is_trained_again(tiny, name, how):
    tiny |= ONE
    first = select(**tiny)
    (tiny["folder"] / "selection.json").unlink()
    file = tiny["folder"] / first.record["runs"][1]["folder"] / name
    if how == "damaged":
        file.write_bytes(b"damaged")
    else:
        file.unlink()
    if (name, how) == ("result.json", "lost"):  # a run that was stopped: it goes on
        again = select(**tiny)
    else:
        with pytest.warns(UserWarning, match=rf"{name} .*seed-1 starts again"):
            again = select(**tiny)
    assert again.record["runs"] == first.record["runs"]


def test_a_damaged_result_is_not_overwritten(tiny):
    tiny |= ONE
    select(**tiny)
    (tiny["folder"] / "selection.json").write_text("{")
    with pytest.raises(SelectionError, match=r"selection\.json is damaged"):
        select(**tiny)


@pytest.fixture
def per_split(tmp_path):
    """Two finished trials of a 20/30 data set, each the best on one of two splits."""
    definition = StudyDefinition(
        settings=resolve_config("photo").model_dump(mode="json"),
        space_name="own",
        space={"optimizer.lr": [0.1, 0.01, 0.5]},
        protocol=Protocol(seeds=(1, 2), splits=(0, 1), per_split=True),
    )
    study = start_study("s", open_storage(sqlite_url(tmp_path)), definition)
    for lr, scores in ((0.1, (0.9, 0.5)), (0.01, (0.6, 0.7)), (0.5, (0.6, 0.7))):
        runs = [
            {"seed": run.seed, "split": run.split, "scores": {"accuracy": scores[run.split]}}
            for run in definition.protocol.runs()
        ]
        study.add_trial(
            create_trial(
                state=TrialState.COMPLETE,
                value=sum(scores) / 2,
                params={"optimizer.lr": lr},
                distributions={
                    "optimizer.lr": CategoricalDistribution(definition.space["optimizer.lr"])
                },
                user_attrs={"runs": runs},
            )
        )
    return study, definition


def test_each_split_selects_for_itself(per_split):
    chosen = choose(*per_split)
    assert {split: trial.number for split, trial in chosen.items()} == {None: 0, 0: 0, 1: 1}


def test_files_and_scores_of_a_selection_per_split(per_split, tmp_path, monkeypatch):
    tested = {0.1: 0.8, 0.01: 0.4, 0.5: 0.0}

    places = {}

    def trained(runs, config_of, folder_of):
        for run in runs:
            places[folder_of(run)] = config_of(run).optimizer.lr
            yield run, {"scores": {"val": {"accuracy": 0.0}}}

    def scored(folder, splits, **_):
        return {"test": {"accuracy": tested[places[folder]]}}

    monkeypatch.setattr("adgn.selection.results.replicate", trained)
    monkeypatch.setattr("adgn.selection.results.evaluate", scored)
    from adgn.selection.results import conclude

    result = conclude(*per_split, tmp_path)
    # Split 0 was scored with lr 0.1 (0.8), split 1 with lr 0.01 (0.4).
    assert result.test["accuracy"].mean == pytest.approx(0.6)
    assert result.test["accuracy"].std == pytest.approx(0.282842712)
    assert result.by_split == {0: {"optimizer.lr": 0.1}, 1: {"optimizer.lr": 0.01}}
    for split, lr in ((0, 0.1), (1, 0.01)):
        config = resolve_config(read_config(tmp_path / f"selected-split-{split}.toml"))
        assert (config.optimizer.lr, config.task.split) == (lr, split)
    assert resolve_config(read_config(tmp_path / "selected.toml")).optimizer.lr == 0.1
    assert json.loads((tmp_path / "selection.json").read_text()) == result.record


def test_nothing_to_select_from(tiny):
    with pytest.raises(StopIteration):
        select(**{**tiny, "executor": Nowhere()})
    with pytest.raises(SelectionError, match=r"no trial of 'tiny' has a score \(0 failed\)"):
        choose(*StudyFolder("tiny", tiny["folder"]).open())


def test_without_the_test_split(tiny):
    first = select(**tiny, evaluate_test=False)
    assert first.test == {}
    assert first.record["tested_before"] == []
    assert all("test" not in run["scores"] for run in first.record["runs"])
    again = select(**tiny)  # looked at now, with the same selection
    assert again.settings == first.settings
    assert again.validation == first.validation
    assert again.test["log10_mse"].mean is not None
    assert again.record["tested_before"] == []
    assert select(**tiny, evaluate_test=False).test == again.test


def test_a_driver_without_a_gpu_scores_what_workers_with_one_trained(tiny):
    tiny |= ONE
    result = select(**tiny)
    folder = tiny["folder"]
    for config in folder.glob("runs/*/*/config.toml"):
        config.write_text(config.read_text().replace('device = "cpu"', 'device = "cuda:99"'))
    study, definition = StudyFolder("tiny", folder).open()
    settings = {**definition.settings, "device": "cuda:99"}
    there = definition.model_copy(update={"settings": settings})
    study.set_user_attr(DEFINITION, there.model_dump(mode="json"))
    (folder / "selection.json").unlink()
    again = select(study="tiny", folder=folder, executor=tiny["executor"])
    assert again.test == result.test
