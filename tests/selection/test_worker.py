import json
import os
import subprocess
import sys
import threading

import pytest
from optuna.trial import TrialState

from adgn.selection import StudyFolder
from adgn.selection.study import kind
from adgn.selection.worker import WorkerSpec, first_cause, work
from tests.selection.studies import planned


@pytest.fixture
def spec(tiny):
    """Of a worker for the tiny study, one thread."""
    folder = tiny["folder"].resolve()
    url = StudyFolder("tiny", folder).storage(None)
    return WorkerSpec("tiny", url, str(folder), 1, 1, 5)


def test_a_spec_is_a_line_of_json(spec):
    text = spec.to_json()
    assert "\n" not in text
    assert json.loads(text)["study"] == "tiny"
    assert WorkerSpec.from_json(text) == spec


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
    program = [sys.executable, "-c", "from adgn.selection.worker import main; main()"]
    # The input has ended before the first trial, whenever the worker gets to look.
    done = subprocess.run(
        program,
        input=spec.to_json() + "\n",
        text=True,
        stderr=subprocess.PIPE,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    kinds = {kind(trial) for trial in study.get_trials()}
    assert "waiting" in kinds
    assert kinds <= {"waiting", "replaced", "complete"}


def test_three_crashes_and_nothing_else_are_hopeless(tiny, monkeypatch, spec):
    def broken(*arguments, **options):
        raise OSError("no space left on the device")

    study, definition = planned(tiny)
    assert first_cause(study, definition) is None
    monkeypatch.setattr("adgn.selection.objective.train", broken)
    work(spec, threading.Event())
    assert [kind(trial) for trial in study.get_trials()] == ["failed"] * 3 + ["waiting"]
    crash = first_cause(study, definition)
    assert crash is not None
    assert (crash.number, crash.user_attrs["error"]) == (0, "OSError: no space left on the device")
