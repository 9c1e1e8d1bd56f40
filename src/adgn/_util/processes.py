"""The one runner of worker processes.

A worker is a fresh interpreter that calls one function, named by `"module:function"`, with every
message that it is given, and sends back what the function returns, as lines of JSON. It stops when
its input is closed, by the driver or by the driver's death, and on SIGTERM.
"""

import contextlib
import importlib
import itertools
import json
import os
import queue
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

from adgn._util.files import open_to_append

Task = TypeVar("Task")
_POLL_SECONDS = 0.5
_STOP_SECONDS = 120.0
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
_PROGRAM = "from adgn._util.processes import serve; serve()"


@dataclass(frozen=True)
class Answer:
    """What a worker says about a message."""

    worker: "Worker"
    content: Any = None  # what its function returned
    ended: bool = False  # whether the process ended instead, without an answer
    last: bool = False  # whether it was asked to stop and answers no more


class Worker:
    """A worker process, seen from the driver.

    It is in a session of its own, so that Ctrl-C reaches the driver alone.

    Args:
        function: `"module:function"`, called as `function(message, stop)` with a `threading.Event`
            that is set when the worker is to stop.
        answers: Where its answers go.
        threads: How many threads numerical libraries may use there; `None`: as many as here.
        log: The file that all it prints is appended to; `None`: standard error.
        fork: Where processes can be forked, handle each message in a new one, forked from the
            worker once it has imported everything. Messages are then given one at a time.
    """

    def __init__(
        self,
        function: str,
        answers: "queue.Queue[Answer]",
        *,
        threads: int | None = None,
        log: Path | None = None,
        fork: bool = False,
    ) -> None:
        self.answers = answers
        self.log = log
        self.forks = fork and hasattr(os, "fork")
        self._started = time.monotonic()
        count = {} if threads is None else dict.fromkeys(_THREAD_VARIABLES, str(threads))
        with contextlib.ExitStack() as stack:
            output = None
            if log is not None:
                log.parent.mkdir(parents=True, exist_ok=True)
                output = stack.enter_context(open_to_append(log))
            self.process = subprocess.Popen(
                [sys.executable, "-c", _PROGRAM],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                env={**os.environ, **count},
                text=True,
                start_new_session=True,
            )
        self.give({"function": function, "fork": self.forks})
        threading.Thread(target=self._listen, daemon=True).start()

    def give(self, message: Any) -> None:
        """Gives it a message, to be handled after those before."""
        if self.process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):  # dead already: the listener says so
                self.process.stdin.write(json.dumps(message) + "\n")
                self.process.stdin.flush()

    def _listen(self) -> None:
        if self.process.stdout is not None:
            with self.process.stdout as lines:
                for line in lines:
                    self.answers.put(Answer(self, **json.loads(line)))
        self.answers.put(Answer(self, ended=True))

    def close(self) -> None:
        """Asks it to stop."""
        if self.process.stdin is not None and not self.process.stdin.closed:
            with contextlib.suppress(BrokenPipeError):
                self.process.stdin.close()

    @property
    def code(self) -> int | None:
        """Its exit code; `None` while it lives."""
        return self.process.poll()

    @property
    def age(self) -> float:
        """Seconds since it was started."""
        return time.monotonic() - self._started

    def end(self, seconds: float = _STOP_SECONDS) -> int:
        """Asks it to stop, waits, and kills it after some seconds; gives the exit code."""
        self.close()
        try:
            return self.process.wait(max(0.0, seconds))
        except subprocess.TimeoutExpired:
            return self.kill()

    def kill(self) -> int:
        """Ends it at once, with all that it has forked."""
        self.close()
        if self.code is None:
            if hasattr(os, "killpg"):
                os.killpg(self.process.pid, signal.SIGKILL)
            else:
                self.process.kill()
        return self.process.wait()

    def last_line(self) -> str:
        """The last line of its log."""
        text = "" if self.log is None else self.log.read_text(encoding="utf-8", errors="replace")
        return (text.strip().splitlines() or ["it printed nothing"])[-1]

    @staticmethod
    def stop_all(workers: "Sequence[Worker]", seconds: float = _STOP_SECONDS) -> None:
        """Stops workers together; those that take too long are killed, and all on an interrupt."""
        for worker in workers:
            worker.close()
        limit = time.monotonic() + seconds
        try:
            for worker in workers:
                worker.end(limit - time.monotonic())
        except KeyboardInterrupt:  # asked a second time
            for worker in workers:
                worker.kill()
            raise


def run_tasks(
    function: str,
    *,
    workers: int,
    threads: int,
    logs: Path,
    next_task: Callable[[], Task | None],
    message: Callable[[Task], Any],
    done: Callable[[Task, Any], None],
    died: Callable[[Task, Worker], None],
    poll: Callable[[], None],
) -> None:
    """Has tasks done by several workers; returns when none is under way and none is left.

    `function` is as in `Worker`, `logs` the folder of their logs. `next_task` gives `None` where
    there is none at present; `message` is what a worker is told of a task. `done` is called with
    the answer to a task, `died` with the worker that died of it, `poll` about twice a second.
    Whatever a callback raises stops the workers first.
    """
    answers: queue.Queue[Answer] = queue.Queue()
    tasks: dict[Worker, Task | None] = {}

    def hand_out() -> None:
        while len(tasks) < workers or None in tasks.values():
            task = next_task()
            if task is None:
                return
            worker = next((worker for worker, given in tasks.items() if given is None), None)
            if worker is None:
                taken = {worker.log for worker in tasks}
                log = next(f for n in range(workers) if (f := logs / f"{n}.log") not in taken)
                worker = Worker(function, answers, threads=threads, log=log)
            tasks[worker] = task
            worker.give(message(task))

    try:
        while True:
            hand_out()
            for idle in [worker for worker, task in tasks.items() if task is None]:
                del tasks[idle]
                idle.end()
            if not tasks:
                break
            poll()
            try:
                answer = answers.get(timeout=_POLL_SECONDS)
            except queue.Empty:
                continue
            worker = answer.worker
            if worker not in tasks:
                continue
            task, tasks[worker] = tasks[worker], None
            if answer.ended or answer.last:
                del tasks[worker]
                worker.end()
            if task is not None and answer.ended:
                died(task, worker)
            elif task is not None:
                done(task, answer.content)
        poll()
    finally:
        Worker.stop_all(list(tasks))


def serve() -> None:
    """The program of a worker: handles messages until its input ends or it is asked to stop."""
    # Answers have a channel of their own, so that nothing printed can get in between.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the driver decides what Ctrl-C means
    lines = _lines()
    begin = json.loads(next(lines, "null"))
    if begin is None:
        return
    stop = threading.Event()
    if not begin["fork"]:
        lines = _stoppable(lines, stop)
    module, _, name = begin["function"].partition(":")
    function = getattr(importlib.import_module(module), name)

    def handle(line: str) -> None:
        content = function(json.loads(line), stop)
        with contextlib.suppress(BrokenPipeError):  # the driver died; what was done is in files
            answers.write(json.dumps({"content": content, "last": stop.is_set()}) + "\n")
            answers.flush()

    for line in lines:
        if begin["fork"]:
            _in_a_fork(handle, line)
        else:
            handle(line)
    _leave(0)


def _lines() -> Iterator[str]:
    # Not through sys.stdin: a thread that waits in it would hinder the interpreter's end.
    rest = b""
    while data := os.read(0, 65536):
        *whole, rest = (rest + data).split(b"\n")
        yield from (line.decode() for line in whole)


def _stoppable(lines: Iterator[str], stop: threading.Event) -> Iterator[str]:
    """The same lines, read in a thread; they end with SIGTERM or the input, which set the event."""
    read: queue.Queue[str | None] = queue.Queue()

    def end(number: int = 0, frame: FrameType | None = None) -> None:
        stop.set()
        read.put(None)

    def listen() -> None:
        for line in lines:
            read.put(line)
        end()

    signal.signal(signal.SIGTERM, end)
    threading.Thread(target=listen, daemon=True).start()
    whole = (line for line in iter(read.get, None) if line is not None)
    return itertools.takewhile(lambda _: not stop.is_set(), whole)


def _in_a_fork(handle: Callable[[str], None], line: str) -> None:
    """Handles a message in a process of its own; where that dies, this one ends alike."""
    child = os.fork()
    if not child:
        threading.Thread(target=_die_with_the_driver, daemon=True).start()
        try:
            handle(line)
        except BaseException:
            sys.excepthook(*sys.exc_info())
            _leave(1)
        _leave(0)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        os.kill(os.getpid(), -code)
    if code:
        _leave(code)


def _die_with_the_driver() -> None:
    ends = select.poll()
    ends.register(0, 0)  # no event but the end of the input
    ends.poll()
    _leave(0)


def _leave(code: int) -> None:
    # Taking the interpreter and torch apart would take more than a second for nothing: all files
    # are written and closed by now.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


@contextmanager
def terminate_as_interrupt() -> Iterator[threading.Event]:
    """SIGTERM interrupts as Ctrl-C does; the event says that one of them came.

    An exception that a signal raises is lost where Python happens to run a finaliser in that
    moment; who waits for long looks at the event too.
    """
    asked = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield asked
        return

    def interrupt(number: int, frame: FrameType | None) -> None:
        asked.set()
        raise KeyboardInterrupt

    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, interrupt) for number in numbers}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
