"""Studies with halving as people run them: undisturbed, killed, damaged, and with wrong input."""

import json
import os
import shutil
import signal
import subprocess

import pytest

from adgn.selection import (
    SelectionError,
    StudyFolder,
    StudyMismatchError,
    objective,
    paused_runs,
    select,
    worker,
)
from adgn.selection.definition import params_key
from adgn.selection.halving import Entry, Rung, planned_epochs
from adgn.selection.study import kind, rung_of, trial_entry
from adgn.training import Callback, DivergedError, RunDirectory, train
from tests.crossing import exhaustive
from tests.selection.studies import (
    LONG,
    TOTAL,
    InProcess,
    held,
    key_of,
    planned,
    wait_until,
)
from tests.selection.test_api import alive, driver_of, end, trials_of, workers_at_work
from tests.servers import served

# The same with a fraction of the epochs: rungs of 1, 9 and 27 epochs, then two runs.
SMALL = {
    **LONG,
    "settings": {
        "task": {"distance": 2, "train": 12, "val": 6, "test": 6},
        "loop": {"max_epochs": 27, "batch_size": 6},
        "stopping": {"patience": "none"},
    },
}
RUNGS = [(1, 1, 8), (9, 1, 3), (20, 1, 3), (20, 2, 3)]  # epochs, runs, configurations


def entries(folder):
    """The scores of what is over, by configuration and rung."""
    study, definition = StudyFolder("long", folder).open()
    found = {}
    for trial in study.get_trials(deepcopy=False):
        if kind(trial) in ("complete", "failed") and "answered_from" not in trial.user_attrs:
            found.setdefault(trial_entry(trial, definition), []).append(trial.value)
    return found


@pytest.fixture(scope="module")
def calm(tmp_path_factory):
    """What halving finds in the long study when nothing happens to it."""
    folder = tmp_path_factory.mktemp("calm")
    seen = []
    result = select(
        **LONG, prune="halving", folder=folder, executor=InProcess(), callback=seen.append
    )
    return entries(folder), result, seen


class Count(Callback):
    """Counts the epochs of all runs."""

    def __init__(self):
        self.epochs = 0

    def on_epoch(self, trainer, line):
        self.epochs += 1


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """The same of the small study, and the epochs that are trained on the way to a rung."""
    folder, counted = tmp_path_factory.mktemp("small"), Count()

    def counting(config, *, callbacks, **options):
        return train(config, callbacks=[*callbacks, counted], **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paused_runs, "train", counting)
        result = select(**SMALL, prune="halving", folder=folder, executor=InProcess())
    return entries(folder), result, counted.epochs


@pytest.mark.long
def test_no_epoch_is_trained_twice(small):
    """Who goes on does so from where it paused."""
    _, result, epochs = small
    rungs = [Rung(**rung) for rung in result.record["rungs"]]
    assert epochs == sum(planned_epochs(8, rungs)) == 8 + 3 * 8 + 3 * 18 + 3 * 27


@pytest.mark.long
def test_the_rungs_are_filled_and_the_last_one_decides(calm, undisturbed):
    scores, result, seen = calm
    assert [(r.epochs, r.runs, r.planned) for r in seen[-1].rungs] == RUNGS
    assert [rung.done for rung in seen[-1].rungs] == [8, 3, 3, 3]
    assert all(len(values) == 1 for values in scores.values())
    # In the last rung a configuration has what the full search gives it, bit for bit.
    full, _ = undisturbed
    last = {entry.key: values for entry, values in scores.items() if entry.rung == 3}
    assert last == {key: full[key] for key in last}
    assert result.validation["log10_mse_paper"].mean == min(v for (v,) in last.values())
    assert [run["seed"] for run in result.record["runs"]] == [0, 1]
    assert result.test
    # Only the selected configuration keeps its runs.
    assert len(list((result.folder / "runs").iterdir())) == 1


def test_scores_on_the_way_are_in_the_study(calm):
    study, _ = StudyFolder("long", calm[1].folder).open()
    (trial, *_) = [trial for trial in study.get_trials() if rung_of(trial) == 1]
    reported = trial.intermediate_values
    assert max(reported) == 9
    assert len(reported) == 5
    assert list(reported.values()) == sorted(reported.values(), reverse=True)  # the best so far
    assert reported[9] == trial.value


@pytest.mark.long
def test_workers_and_drivers_that_are_killed_in_a_rung(tmp_path, calm):
    scores, result, _ = calm
    folder = tmp_path / "killed"
    best = next(entry.key for entry in scores if entry.rung == 3)
    number = next(n for n in range(TOTAL) if best == key_of(n))
    with driver_of(folder, prune="halving") as driver:
        with held(folder, number):
            victim = wait_until(lambda: workers_at_work(folder), "worker at work", driver)[0]
            os.kill(victim, signal.SIGKILL)
        wait_until(lambda: _rungs_over(folder) >= {0, 1}, "second rung", driver)
        others = workers_at_work(folder)
        driver.send_signal(signal.SIGKILL)
        driver.communicate()
        wait_until(lambda: not any(map(alive, others)), "end of the workers without a driver")
    again = select(study="long", folder=folder, executor=InProcess(), heartbeat=1, grace=6)
    # A worker that was only slow may end a trial that another one was given as well: the set of
    # what is finished is compared, and every score of it.
    finished = {entry: set(values) for entry, values in entries(folder).items()}
    assert finished == {entry: set(values) for entry, values in scores.items()}
    assert again.settings == result.settings
    assert again.record["runs"] == result.record["runs"]


def _rungs_over(folder):
    return {rung_of(trial) for trial in trials_of(folder) if kind(trial) == "complete"}


class UntilRung(InProcess):
    """Works until a rung is planned, as if everything was killed in this moment."""

    def __init__(self, monkeypatch, number):
        self.monkeypatch = monkeypatch
        self.number = number

    def run(self, spec, poll):
        original = worker._plan_next_rung

        def stop_after(study, *arguments):
            added = original(study, *arguments)
            if any(rung_of(trial) == self.number for trial in study.get_trials(deepcopy=False)):
                raise StopIteration
            return added

        self.monkeypatch.setattr(worker, "_plan_next_rung", stop_after)
        try:
            super().run(spec, poll)
        finally:
            self.monkeypatch.setattr(worker, "_plan_next_rung", original)


def test_states_that_are_gone_change_nothing(tmp_path, small, monkeypatch):
    stopped = UntilRung(monkeypatch, number=1)
    with pytest.raises(StopIteration):
        select(**SMALL, prune="halving", folder=tmp_path, executor=stopped)
    lost, damaged, _ = [entry.key for entry in small[0] if entry.rung == 1]
    shutil.rmtree(tmp_path / "runs" / lost)
    run = RunDirectory(tmp_path / "runs" / damaged / "seed-0")
    assert len(run.history()) == 1
    (tensors,) = run.states.folder.glob("*.safetensors")
    tensors.write_bytes(b"damaged")
    with pytest.warns(UserWarning, match=rf"damaged.*{damaged}.* starts again"):
        result = select(study="long", folder=tmp_path, executor=InProcess())
    assert entries(tmp_path) == small[0]
    assert result.record["runs"] == small[1].record["runs"]


def test_one_that_diverges_is_replaced_by_the_next_best(tmp_path, small, monkeypatch):
    original = objective.train_to
    order = sorted((values[0], e.key) for e, values in small[0].items() if e.rung == 0)
    best, *following = [key for _, key in order[:4]]

    def diverges(epochs, config, folder, should_stop):
        if folder.parent.name == best and epochs == 9:
            assert folder.exists()
            raise DivergedError("on purpose", 7)
        assert not (epochs > 9 and (tmp_path / "runs" / best).exists())  # it never goes on
        return original(epochs, config, folder, should_stop)

    monkeypatch.setattr(objective, "train_to", diverges)
    result = select(**SMALL, prune="halving", folder=tmp_path, executor=InProcess())
    found = entries(tmp_path)
    assert found.pop(Entry(best, 1)) == [None]
    for number in (1, 2, 3):
        assert {entry.key for entry in found if entry.rung == number} == set(following)
    assert result.counts["failed"] == 1


@exhaustive  # Ray and halving are each tested without the other
def test_on_ray(tmp_path, calm):
    pytest.importorskip("ray", reason="Ray, adgn[ray], is not installed")
    folder = tmp_path / "ray"
    with served("ray_cluster.py", tmp_path) as cluster:
        options = {"executor": "ray", "ray_address": cluster.line, "prune": "halving"}
        with driver_of(folder, subprocess.Popen, **options) as driver:
            output = end(driver, folder)
    assert "rungs: 8 to 1 epoch, 3 to 9 epochs" in output
    assert entries(folder) == calm[0]


@pytest.mark.long
def test_a_study_goes_on_with_more_configurations(tmp_path, small):
    options = {**SMALL, "prune": "halving", "search": "random", "folder": tmp_path}
    few = select(**options, trials=4, executor=InProcess())
    assert few.counts["total"] == 4 + 3 + 3 + 3
    select(**options, trials=8, executor=InProcess())
    found = entries(tmp_path)
    assert {entry: found.get(entry) for entry in small[0]} == small[0]  # and those of before


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"search": "tpe"}, "use search='grid' or 'random'"),
        ({"first_rung": 9}, "first_rung=9 is not valid; give 1 to 3 epochs"),
        ({"space": {"loop.max_epochs": [1, 2]}}, "take loop.max_epochs out of the space"),
        ({"prune": "none", "first_rung": 2}, "first_rung=2 has no effect with prune='none'"),
    ],
)
def test_wrong_input(tiny, changes, message):
    with pytest.raises(SelectionError, match=message):
        select(**{**tiny, "prune": "halving", **changes})


def test_another_first_rung_is_another_study(tiny):
    planned({**tiny, "prune": "halving"})
    with pytest.raises(StudyMismatchError, match="first_rung"):
        select(**{**tiny, "prune": "halving", "first_rung": 2})


def test_selection_json_says_how_it_was_searched(calm):
    record = json.loads((calm[1].folder / "selection.json").read_text())
    assert record["prune"] == "halving"
    assert [(r["epochs"], r["runs"]) for r in record["rungs"]] == [r[:2] for r in RUNGS]


def test_selection_json_has_every_configuration_with_its_score_after_each_rung(calm):
    scores, result, _ = calm
    told = json.loads((result.folder / "selection.json").read_text())["configurations"]
    assert told[0]["settings"] == result.settings
    assert [len(one["scores"]) for one in told] == [4] * 3 + [1] * 5
    by_key = {params_key(one["settings"], LONG["space"]): one["scores"] for one in told}
    assert by_key == {
        key: [scores[Entry(key, rung)][0] for rung in range(4) if Entry(key, rung) in scores]
        for key in {entry.key for entry in scores}
    }
    last = [one["scores"][-1] for one in told]
    assert last[:3] == sorted(last[:3])
    assert last[3:] == sorted(last[3:])
