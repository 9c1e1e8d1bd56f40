import os
import queue
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

from adgn._util.processes import Worker, run_tasks, terminate_as_interrupt

ADD = "tests._util.worker_functions:add"


def wait_until(condition, what):
    limit = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < limit, f"there is still no {what}"
        time.sleep(0.05)


@pytest.fixture
def start(tmp_path):
    workers = []

    def call(function=ADD, **options):
        worker = Worker(function, queue.Queue(), log=tmp_path / "log" / "0.log", **options)
        workers.append(worker)
        return worker

    yield call
    for worker in workers:
        worker.kill()


def answer_of(worker):
    return worker.answers.get(timeout=120)


@pytest.mark.parametrize("fork", [False, True])
def test_messages_are_answered_in_turn_and_prints_go_to_the_log(start, fork):
    worker = start(threads=3, fork=fork)
    found = []
    for numbers in ([1, 2], [3, 4]):
        worker.give({"numbers": numbers})
        found.append(answer_of(worker).content)
    assert [content["sum"] for content in found] == [3, 7]
    assert [content["threads"] for content in found] == ["3", "3"]
    handled_by = {content["process"] for content in found}
    assert handled_by == {worker.process.pid} or (fork and len(handled_by) == 2)
    assert worker.end() == 0
    assert worker.last_line() == "working on {'numbers': [3, 4]}"


@pytest.mark.parametrize("fork", [False, True])
def test_a_death_is_told_with_its_code(start, fork):
    worker = start(fork=fork)
    worker.give({"code": 7})
    assert answer_of(worker).ended
    assert worker.end() == 7


@pytest.mark.parametrize("fork", [False, True])
def test_an_error_ends_the_worker_and_its_log_says_why(start, fork):
    worker = start(fork=fork)
    worker.give({"error": "on purpose"})
    assert answer_of(worker).ended
    assert worker.end() == 1
    assert worker.last_line() == "ValueError: on purpose"


@pytest.mark.parametrize("ask", [Worker.close, lambda worker: worker.process.terminate()])
def test_a_worker_stops_when_asked(start, ask):
    worker = start()
    worker.give({"sleep": 120})
    wait_until(lambda: "working" in worker.log.read_text(), "message under way")
    ask(worker)
    answer = answer_of(worker)
    assert (answer.content, answer.last) == ({"stopped": True}, True)
    assert worker.end() == 0


def test_a_worker_that_does_not_stop_is_killed(start):
    worker = start(function="time:sleep")
    assert worker.end(seconds=0) == -signal.SIGKILL


def test_a_second_interrupt_kills(start, monkeypatch):
    workers = [start(), start()]

    def interrupted(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(Worker, "end", interrupted)
    with pytest.raises(KeyboardInterrupt):
        Worker.stop_all(workers)
    assert [worker.process.returncode for worker in workers] == [-signal.SIGKILL] * 2


@pytest.mark.parametrize("fork", [False, True])
def test_workers_stop_when_the_driver_dies(tmp_path, fork):
    code = f"""
        import pathlib, queue, time
        from adgn._util.processes import Worker
        worker = Worker("{ADD}", queue.Queue(), log=pathlib.Path("log"), fork={fork})
        worker.give({{"sleep": 120}})
        print(worker.process.pid, flush=True)
        time.sleep(120)
    """
    path = os.pathsep.join([str(Path.cwd()), *sys.path])
    driver = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path},
    )
    group = int(driver.stdout.readline())
    log = tmp_path / "log"
    wait_until(lambda: log.exists() and "working" in log.read_text(), "message under way")
    driver.kill()
    driver.communicate()

    def gone():
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        return False

    wait_until(gone, "end of the workers")


def run(tmp_path, tasks, workers, died=None):
    done = {}
    run_tasks(
        ADD,
        workers=workers,
        threads=1,
        logs=tmp_path,
        next_task=lambda: tasks.pop(0) if tasks else None,
        message=lambda task: task,
        done=lambda task, content: done.update({str(task): content}),
        # At once: the log goes on with the worker that takes its place.
        died=died
        or (lambda task, about: done.update({str(task): (about.code, about.last_line())})),
        poll=lambda: None,
    )
    return done


def test_tasks_are_shared_out_and_one_death_costs_one_task(tmp_path):
    tasks = [{"numbers": [number]} for number in range(5)]
    done = run(tmp_path, [tasks[0], {"code": 5}, *tasks[1:]], 2)
    assert done.pop("{'code': 5}") == (5, "working on {'code': 5}")
    assert sorted(content["sum"] for content in done.values()) == list(range(5))
    assert {file.name for file in tmp_path.iterdir()} == {"0.log", "1.log"}


def test_what_a_callback_raises_stops_the_workers_first(tmp_path):
    def died(task, about):
        raise RuntimeError("enough")

    before = threading.active_count()
    with pytest.raises(RuntimeError, match="enough"):
        run(tmp_path, [{"sleep": 60}, {"code": 1}], 2, died)
    wait_until(lambda: threading.active_count() <= before, "end of the workers")


def test_sigterm_is_an_interrupt():
    with pytest.raises(KeyboardInterrupt), terminate_as_interrupt() as asked:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(5)
    assert asked.is_set()
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
