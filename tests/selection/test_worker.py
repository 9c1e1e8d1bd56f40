import queue
import threading
from dataclasses import asdict

import pytest
from optuna.study import Study
from optuna.trial import TrialState

from adgn._util.processes import Worker
from adgn.selection import StudyFolder
from adgn.selection.objective import TrialObjective
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


def test_a_worker_stops_when_its_input_ends(tiny, spec):
    """As it does when the driver dies."""
    study, _ = planned(tiny)
    worker = Worker("adgn.selection.worker:handle", queue.Queue(), threads=1)
    worker.give(asdict(spec))
    assert worker.end(240) == 0  # the input ends before the first trial
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
