"""Studies as people run them: processes that are killed, databases, and wrong input."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest
from typer.testing import CliRunner

from adgn.cli.app import app
from adgn.selection import (
    ExecutorError,
    SelectionError,
    SpaceError,
    StorageError,
    StudyFolder,
    StudyMismatchError,
    select,
)
from adgn.selection.study import kind
from adgn.training import ConfigError
from tests import warm
from tests.selection.studies import (
    LONG,
    ONE,
    TOTAL,
    InProcess,
    Nowhere,
    arguments,
    finished,
    held,
    key_of,
    wait_until,
)
from tests.servers import served


@contextmanager
def driver_of(folder, start=warm.Popen, **more):
    """`adgn select` in a process of its own: two workers of one thread each."""
    space = folder.with_suffix(".toml")
    space.write_text("\n".join(f"{key} = {value}" for key, value in LONG["space"].items()))
    settings = [
        f"--set={section}.{key}={value}"
        for section, values in LONG["settings"].items()
        for key, value in values.items()
    ]
    options = {
        "space": space,
        "seeds": "0,1",
        "study": "long",
        "folder": folder,
        "workers": 2,
        "threads": 1,
        "heartbeat": 1,
        "grace": 6,
        **more,
    }
    arguments = [f"--{key.replace('_', '-')}={value}" for key, value in options.items()]
    program = [sys.executable, "-c", "from adgn.cli import main; main()", "select"]
    process = start(
        [*program, "graph-transfer", *settings, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        env={**os.environ, "PYTHONFAULTHANDLER": "1"},  # for `end`
    )
    try:
        yield process
    finally:  # nothing is left behind by a test that fails
        if process.returncode is None:
            process.kill()
            process.communicate(timeout=60)  # somebody else may hold its output open


def trials_of(folder, storage=None):
    try:
        study, _ = StudyFolder("long", folder).open(storage)
    except SelectionError:
        return []  # not there yet
    return study.get_trials(deepcopy=False)


def done(folder):
    return [t for t in trials_of(folder) if kind(t) in ("complete", "pruned", "failed")]


def workers_at_work(folder):
    """The process ids of workers in the middle of a trial."""
    running = (t for t in trials_of(folder) if kind(t) == "running")
    return [int(t.user_attrs["worker"].split(":")[1]) for t in running if "worker" in t.user_attrs]


def workers_seen(folder):
    return {t.user_attrs["worker"] for t in trials_of(folder) if "worker" in t.user_attrs}


def alive(process_id):
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return False
    return True


def end(process, folder=None, seconds=300):
    """The output of a driver that comes to its end; where it does not, all stacks are told.

    Workers write theirs into their logs, of which those in the folder of the study are told too.
    """
    try:
        output, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        for number in (*(workers_at_work(folder) if folder else ()), process.pid):
            if alive(number):
                os.kill(number, signal.SIGABRT)  # Python's fault handler prints the stacks
        output, _ = process.communicate(timeout=60)
        logs = [log.read_text() for log in sorted(folder.glob("workers/*.log"))] if folder else []
        told = "\n".join([output, *logs])
        raise AssertionError(f"it did not end within {seconds} s:\n{told}") from None
    assert process.returncode == 0, output
    return output


def test_a_driver_that_does_not_end_tells_where_it_is(tmp_path):
    folder = tmp_path / "stuck"
    with driver_of(folder) as driver, held(folder, 0):
        wait_until(lambda: workers_at_work(folder), "worker at work", driver)
        with pytest.raises(AssertionError, match="did not end within 2 s") as told:
            end(driver, folder, seconds=2)
    stacks = str(told.value)
    assert "executors.py" in stacks  # the driver's
    assert "objective.py" in stacks  # a worker's


@pytest.mark.long
def test_two_workers_find_what_one_finds(tmp_path, undisturbed):
    scores, result = undisturbed
    folder = tmp_path / "two"
    with driver_of(folder, subprocess.Popen) as driver:  # and all as a user starts it
        with held(folder, 0):  # until the second worker is there, so that it finds work to do
            wait_until(lambda: len(workers_seen(folder)) == 2, "second worker", driver)
        output = end(driver)
    assert finished(folder, "long") == scores
    assert f"{TOTAL} trials: {TOTAL} complete, 0 pruned, 0 failed" in output
    record = json.loads((folder / "selection.json").read_text())
    assert record["runs"] == result.record["runs"]
    assert len(workers_seen(folder)) == 2


@pytest.mark.long
def test_killed_workers_and_drivers_lose_nothing(tmp_path, undisturbed):
    scores, result = undisturbed
    folder = tmp_path / "killed"
    with held(folder, -1), driver_of(folder) as driver:
        wait_until(lambda: done(folder), "first trial", driver)
        victim = wait_until(lambda: workers_at_work(folder), "worker at work", driver)[0]
        os.kill(victim, signal.SIGKILL)
        more = min(len(done(folder)) + 2, TOTAL - 1)
        wait_until(lambda: len(done(folder)) >= more, "trial after the worker's death", driver)
        others = {int(name.split(":")[1]) for name in workers_seen(folder)} - {victim}
        driver.send_signal(signal.SIGKILL)
        driver.communicate()
        wait_until(lambda: not any(map(alive, others)), "end of the workers without a driver")
    before = {t.number: (t.value, t.datetime_complete) for t in done(folder)}
    assert 0 < len(before) < TOTAL
    # Going on needs no more than the name.
    resumed = select(study="long", folder=folder, executor=InProcess(), heartbeat=1, grace=6)
    assert finished(folder, "long") == scores
    assert resumed.record["runs"] == result.record["runs"]
    after = {t.number: (t.value, t.datetime_complete) for t in done(folder)}
    assert {number: after[number] for number in before} == before
    assert len(after) == TOTAL


@pytest.mark.long
def test_an_interrupted_driver_says_how_to_go_on(tmp_path, undisturbed):
    folder = tmp_path / "stopped"
    with held(folder, -1), driver_of(folder) as driver:
        wait_until(
            lambda: done(folder) and workers_at_work(folder), "worker at a later trial", driver
        )
        driver.send_signal(signal.SIGINT)
        output, _ = driver.communicate(timeout=300)
    assert driver.returncode == 130, output
    assert "nothing is lost" in output
    # What was under way went back to the queue at once, without waiting for silence.
    kinds = [kind(trial) for trial in trials_of(folder)]
    assert "running" not in kinds
    assert kinds.count("waiting") + len(done(folder)) == TOTAL
    assert kinds.count("waiting") > 0
    select(study="long", folder=folder, executor=InProcess())
    assert finished(folder, "long") == undisturbed[0]


@pytest.mark.long
def test_a_study_in_postgresql(tmp_path, undisturbed):
    pytest.importorskip("pgserver", reason="pgserver, which brings a PostgreSQL, is not installed")
    pytest.importorskip("psycopg", reason="the PostgreSQL driver, adgn[postgresql], is missing")
    folder = tmp_path / "postgres"
    with served("postgres_server.py", tmp_path) as server:
        url = server.line.replace("postgresql://", "postgresql+psycopg://", 1)
        with driver_of(folder, storage=url, trials=4) as driver:
            end(driver)
        first = [key_of(number) for number in range(4)]
        assert finished(folder, "long", url) == {key: undisturbed[0][key] for key in first}
        # The folder knows where the study is.
        record = json.loads((folder / "selection.json").read_text())
        again = select(study="long", folder=folder, executor=Nowhere())
        assert again.record == record
        with pytest.raises(StudyMismatchError):
            select("texas", study="long", folder=tmp_path / "elsewhere", storage=url)
    assert not (folder / "study.db").exists()


class AfterTheServer:
    """Stops a database server, then looks at the study as a driver does."""

    def __init__(self, server):
        self.server = server

    def run(self, spec, poll):
        self.server.process.stdin.close()
        self.server.process.wait(60)
        poll()


def test_a_database_that_stops_in_the_middle_is_told(tiny, tmp_path):
    pytest.importorskip("pgserver", reason="pgserver, which brings a PostgreSQL, is not installed")
    pytest.importorskip("psycopg", reason="the PostgreSQL driver, adgn[postgresql], is missing")
    with served("postgres_server.py", tmp_path) as server:
        url = server.line.replace("postgresql://", "postgresql+psycopg://", 1)
        tiny |= {
            "executor": AfterTheServer(server),
            "storage": url,
            "callback": lambda status: None,
        }
        with pytest.raises(StorageError, match=r"server runs .*goes on with the same command"):
            select(**tiny)


def test_a_damaged_database_is_told(tiny):
    tiny |= {"space": {"optimizer.lr": [0.1]}, "seeds": [0]}
    select(**tiny)
    file = tiny["folder"] / "study.db"
    data = bytearray(file.read_bytes())
    data[8192:] = b"\xa5" * (len(data) - 8192)  # all but the first pages
    file.write_bytes(data)
    for command in ("show", "export"):
        command_line = ["study", command, "tiny", "--folder", str(tiny["folder"])]
        result = CliRunner().invoke(app, command_line)
        assert isinstance(result.exception, StorageError), result.output
        assert "move it away and start the study anew" in str(result.exception)
    with pytest.raises(StorageError, match="move it away and start the study anew"):
        select(**tiny)
    # Which is what it says.
    file.rename(file.with_suffix(".damaged"))
    assert select(**tiny).counts["complete"] == 1


# Wrong input.


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"task": "graph-transfr"}, ValueError, "Did you mean 'graph-transfer'"),
        ({"model": "agdn"}, ValueError, "Did you mean 'adgn'"),
        ({"space": {"optimizer.lrs": [1.0]}}, SpaceError, "Did you mean 'lr'"),
        ({"space": {"optimizer.lr": []}}, SpaceError, "empty list"),
        ({"search": "gird"}, ValueError, "Did you mean 'grid'"),
        ({"prune": "ahsa"}, ValueError, "Did you mean 'asha'"),
        ({"trials": 0}, SelectionError, "trials=0 is not valid"),
        ({"executor": "local", "workers": 0}, ExecutorError, "workers=0 is not valid"),
        ({"executor": "ray", "workers": 0}, ExecutorError, "workers=0 is not valid"),
        ({"executor": "rya"}, ValueError, "Did you mean 'ray'"),
        ({"executor": "local", "threads": 0}, ExecutorError, "threads=0 is not valid"),
        ({"executor": "local", "ray_address": "h:1"}, SelectionError, "without executor='ray'"),
        ({"storage": "sqlite:////no/where/s.db"}, StorageError, "cannot use the storage"),
        ({"executor": "local", "settings": {"device": "cuda:99"}}, ConfigError, "torch sees"),
        ({"study": "a/b"}, SelectionError, "is not a name"),
        ({"study": "a" * 300}, SelectionError, "has 300 bytes; use at most 200"),
        ({"folder": __file__}, SelectionError, r"folder=.*File exists; give another --folder"),
        ({"folder": f"{__file__}/below"}, SelectionError, "Not a directory; give another --folder"),
        ({"folder": "a" * 300}, SelectionError, "File name too long"),
        ({"storage": "postgresql://h:x/d"}, StorageError, "its port is not a number"),
        ({"prune": "asha", "seeds": [1]}, SelectionError, "is a single run"),
        ({"task": None}, SelectionError, "task is missing"),
    ],
)
def test_wrong_input(tiny, changes, error, message):
    with pytest.raises(error, match=message):
        select(**{**tiny, **changes})


def test_nothing_to_start_or_go_on_with(tmp_path):
    with pytest.raises(SelectionError, match="give a task to start a study"):
        select()
    with pytest.raises(SelectionError, match="there is no study in"):
        select(study="nothing", folder=tmp_path / "nothing")


def test_a_name_used_for_something_else(tiny):
    select(**{**tiny, "trials": 1})
    with pytest.raises(StudyMismatchError, match=r"settings\.task\.name"):
        select(**{**tiny, "task": "diameter", "settings": None})
    with pytest.raises(StudyMismatchError, match=r"space\.optimizer\.lr"):
        select(**{**tiny, "space": {"optimizer.lr": [0.5]}})
    with pytest.raises(SelectionError, match="is the folder of the study 'tiny', not 'other'"):
        select(**{**tiny, "study": "other"})


def test_everything_crashing_stops_the_study(tiny, monkeypatch):
    def broken(*arguments, **options):
        raise OSError("no space left on the device")

    tiny["space"] = {"optimizer.lr": [0.1, 0.01, 0.001, 0.0001, 0.00001]}
    with monkeypatch.context() as patch:
        patch.setattr("adgn.selection.replicate.train", broken)
        with pytest.raises(SelectionError, match="all trials crash") as error:
            select(**tiny)
    assert "OSError: no space left on the device" in str(error.value)
    assert "Traceback" in str(error.value)
    study, _ = StudyFolder("tiny", tiny["folder"]).open()
    kinds = [kind(trial) for trial in study.get_trials()]
    assert kinds == ["failed"] * 3 + ["waiting"] * 2
    # Once the cause is mended, the study goes on.
    result = select(**tiny, retry_failed=True)
    assert result.counts == {"complete": 5, "pruned": 0, "failed": 0, "total": 5}


def test_all_configurations_diverging_is_told(tiny):
    tiny["space"] = {"optimizer.lr": [1e30, 1e31]}
    with pytest.raises(SelectionError, match=r"no trial .* \(2 failed\).* DivergedError"):
        select(**tiny)


def test_passwords_are_not_written(tmp_path):
    place = StudyFolder("s", tmp_path)
    place.write("postgresql+psycopg://me:secret@host/db")
    assert "secret" not in place.about.read_text()
    with pytest.raises(SelectionError, match="whose password is not kept"):
        place.storage(None)
    assert place.storage("postgresql://me:secret@host/db").endswith("@host/db")
    place.write("postgresql+psycopg://host/db?user=me&password=secret")
    assert "secret" not in place.about.read_text()
    with pytest.raises(SelectionError, match=r"password=\*\*\*.*whose password is not kept"):
        place.storage(None)


@pytest.mark.parametrize(
    "content",
    [b"", b"\x00garbage\xff", b"[1]", b"{}", b"3", b"[" * 100_000, b'{"study": "s"}'],
    ids=lambda content: repr(content[:9]),
)
def test_a_damaged_study_json_is_told(tmp_path, content):
    place = StudyFolder("s", tmp_path)
    place.about.write_bytes(content)
    with pytest.raises(SelectionError, match=r"study\.json cannot be read .*give the study's"):
        place.storage(None)
    with pytest.raises(SelectionError, match=r"study\.json cannot be read"):
        select("graph-transfer", study="s", folder=tmp_path, executor=Nowhere())
    assert place.storage("sqlite:///other.db") == "sqlite:///other.db"
    place.about.unlink()
    for make in (os.mkfifo, os.mkdir):
        make(place.about)
        with pytest.raises(SelectionError, match=r"study\.json cannot be read .*not a file"):
            place.storage(None)
        (os.unlink if make is os.mkfifo else os.rmdir)(place.about)


def test_a_study_can_be_moved_with_its_folder(tiny):
    tiny |= ONE
    first = select(**tiny)
    moved = tiny["folder"].rename(tiny["folder"].with_name("moved"))
    again = select(study="tiny", folder=moved, executor=Nowhere())
    assert again.record == first.record


def test_an_interrupt_that_python_swallowed_still_stops_the_study(tmp_path, monkeypatch):
    swallowed = []
    monkeypatch.setattr(sys, "unraisablehook", lambda about: swallowed.append(about.exc_type))

    class Finalised:
        def __del__(self):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.01)  # the handler raises here, where nobody hears it

    class Waits:
        def run(self, spec, poll):
            Finalised()
            assert swallowed == [KeyboardInterrupt]
            poll()
            raise AssertionError("the interrupt was lost")

    with pytest.raises(KeyboardInterrupt):
        select(**arguments(tmp_path, Waits()))
