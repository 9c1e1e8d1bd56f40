import queue
import threading
from dataclasses import asdict

import pytest
from filelock import FileLock
from optuna.study import Study
from optuna.trial import TrialState

from adgn._util.processes import Worker
from adgn.selection import StudyFolder, worker
from adgn.selection.objective import TrialObjective
from adgn.selection.replicate import key_lock
from adgn.selection.study import kind
from adgn.selection.worker import WorkerSpec, first_cause, work
from tests.selection.studies import planned


@pytest.fixture
def spec(tiny):
    """Of a worker for the tiny study, one thread."""
    folder = tiny["folder"].resolve()
    url = StudyFolder("tiny", folder).storage(None)
    return WorkerSpec("tiny", url, str(folder), 1, 1, 5)


def test_a_worker_runs_all_that_waits(tiny, spec):
    study, _ = planned(tiny)
    work(spec, threading.Event())
    assert [kind(trial) for trial in study.get_trials()] == ["complete"] * 4


def test_a_stopped_worker_takes_no_trial(tiny, spec):
    study, _ = planned(tiny)
    stop = threading.Event()
    stop.set()
    work(spec, stop)
    assert {trial.state for trial in study.get_trials()} == {TrialState.WAITING}


def test_a_worker_stops_when_its_input_ends(tiny, spec, warm_workers):
    """As it does when the driver dies."""
    study, _ = planned(tiny)
    process = Worker("adgn.selection.worker:handle", queue.Queue(), threads=1)
    process.give(asdict(spec))
    assert process.end(240) == 0  # the input ends before the first trial
    kinds = {kind(trial) for trial in study.get_trials()}
    assert "waiting" in kinds
    assert kinds <= {"waiting", "replaced", "complete"}


@pytest.mark.parametrize("error", [ValueError("an error of the sampler"), None])
def test_a_trial_that_was_ended_by_another_worker_is_left_to_it(tiny, monkeypatch, spec, error):
    """Another one does so with the trial of a worker that it thinks dead."""
    study, _ = planned({**tiny, "trials": 1})
    call = TrialObjective.__call__

    def taken_away(self, trial):
        study.tell(trial.number, state=TrialState.FAIL)
        return call(self, trial)

    def broken(*arguments, **options):
        raise error

    if error is None:
        monkeypatch.setattr(TrialObjective, "__call__", taken_away)
        work(spec, threading.Event())
        assert study.get_trials()[0].value is None
    else:  # has nothing to do with it
        monkeypatch.setattr(Study, "ask", broken)
        with pytest.raises(ValueError, match="of the sampler"):
            work(spec, threading.Event())


def test_runs_that_somebody_is_at_are_not_removed(tmp_path, monkeypatch):
    """A worker that was thought dead may still be writing into them."""
    rungs = [["best", "stayed"], ["best"], ["best"]]  # the rung above the first is over
    monkeypatch.setattr(worker, "plan", lambda *_: 0)
    monkeypatch.setattr(worker, "wanted", lambda *_: (rungs, False))
    for key in rungs[0]:
        (tmp_path / "runs" / key).mkdir(parents=True)
    key_lock(tmp_path, "stayed").parent.mkdir()
    with FileLock(key_lock(tmp_path, "stayed")):
        worker._plan_next_rung(None, None, tmp_path, threading.Event())
        assert (tmp_path / "runs" / "stayed").exists()
    worker._plan_next_rung(None, None, tmp_path, threading.Event())
    assert [place.name for place in (tmp_path / "runs").iterdir()] == ["best"]


def test_a_worker_that_waits_to_plan_can_be_stopped(tiny):
    study, definition = planned({**tiny, "prune": "halving"})
    stop = threading.Event()
    threading.Timer(0.5, stop.set).start()
    with FileLock(tiny["folder"] / ".lock"):
        assert worker._plan_next_rung(study, definition, tiny["folder"], stop) == 0
    assert stop.is_set()


def test_a_study_is_given_up_after_three_crashes_and_nothing_else(tiny, monkeypatch, spec):
    def broken(*arguments, **options):
        raise OSError("no space left on the device")

    study, definition = planned(tiny)
    assert first_cause(study, definition) is None
    monkeypatch.setattr("adgn.selection.replicate.train", broken)
    work(spec, threading.Event())
    assert [kind(trial) for trial in study.get_trials()] == ["failed"] * 3 + ["waiting"]
    crash = first_cause(study, definition)
    assert crash is not None
    assert (crash.number, crash.user_attrs["error"]) == (0, "OSError: no space left on the device")
