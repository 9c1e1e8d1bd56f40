"""Python programs in processes of their own that begin with all imports done.

Importing torch and PyG takes seconds of a processor, most programs of the tests take less. So one
process per session imports the package, and programs run in processes forked from it. Each has
signals, files and an environment of its own, as one that is started anew; what it loads, registers
or sets ends with it. Tests of a start itself use `subprocess`.
"""

import faulthandler
import multiprocessing
import os
import subprocess
import sys
from collections.abc import Sequence
from multiprocessing import forkserver, reduction
from pathlib import Path
from typing import Any
from unittest.mock import patch

from adgn._util import processes

_CONTEXT = multiprocessing.get_context("forkserver" if hasattr(os, "fork") else None)
_ROOT = Path(__file__).parents[1]


def _start_server() -> None:
    """Starts the process that others are forked from, where it does not run yet."""
    _CONTEXT.set_forkserver_preload(["tests.helpers.every_module"])
    places = os.pathsep.join([str(_ROOT), *filter(None, sys.path)])
    # A pool of threads does not live on in a fork, and plugins are the business of each program.
    changed = {"OMP_NUM_THREADS": "1", "ADGN_PLUGINS": "", "PYTHONPATH": places}
    with patch.dict(os.environ, changed):
        forkserver._forkserver.ensure_running()


class Popen(subprocess.Popen):
    """`subprocess.Popen` for `[sys.executable, …, "-c", program, *arguments]`.

    Its interface is that of the standard library; the methods here make, ask and await the process.
    """

    def _execute_child(self, args: Sequence[Any], *rest: Any) -> None:
        cwd, env, ends, session = rest[4], rest[5], rest[9:15], rest[20]
        inner = (ends[0], ends[3], ends[5])  # of standard input, output and error; -1: as here
        files = [number if end == -1 else end for number, end in enumerate(inner)]
        place = args.index("-c")
        _start_server()
        ready, tells = os.pipe()
        self._process = _CONTEXT.Process(
            target=_run,
            args=(
                args[place + 1],
                ["-c", *map(os.fspath, args[place + 2 :])],
                [_Descriptor(number) for number in (*files, tells)],
                str(cwd or Path.cwd()),
                dict(os.environ if env is None else env),
                session,
            ),
        )
        try:
            self._process.start()
        finally:
            os.close(tells)
            self._close_pipe_fds(*ends)
        os.read(ready, 1)  # from now on it is in its session, and signals reach the program
        os.close(ready)
        self.pid = self._process.pid
        self._child_created = True

    def _internal_poll(self, _deadstate: int | None = None) -> int | None:
        if self.returncode is None:
            self.returncode = self._process.exitcode
        return self.returncode

    def _wait(self, timeout: float | None) -> int:
        self._process.join(timeout)
        if self._internal_poll() is None:
            raise subprocess.TimeoutExpired(self.args, timeout)
        return self.returncode


class _Descriptor:
    """A file descriptor that is handed on to the new process."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __reduce__(self) -> tuple[Any, ...]:
        return _receive, (reduction.DupFd(self.number),)


def _receive(given: Any) -> int:
    return given.detach()


def _run(
    program: str,
    arguments: list[str],
    files: list[int],
    cwd: str,
    environment: dict[str, str],
    session: bool,
) -> None:
    *standard, tells = files
    for number, file in enumerate(standard):
        os.dup2(file, number)
        os.close(file)
    sys.stdin = sys.__stdin__ = os.fdopen(0, closefd=False)
    sys.stdout = sys.__stdout__ = os.fdopen(1, "w", closefd=False)
    sys.stderr = sys.__stderr__ = os.fdopen(2, "w", 1, closefd=False)
    if session:
        os.setsid()
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environment)
    if environment.get("PYTHONFAULTHANDLER"):
        faulthandler.enable()
    sys.argv = arguments
    sys.path.insert(0, "")
    # Its workers come from the same server, which is this process's parent and not its child.
    forkserver._forkserver.ensure_running = lambda: None
    processes.subprocess = WARM
    os.write(tells, b"!")
    os.close(tells)
    exec(compile(program, "<string>", "exec"), {"__name__": "__main__"})


class _Warm:
    """The module `subprocess`, but for how processes are made."""

    Popen = Popen

    def __getattr__(self, name: str) -> Any:
        return getattr(subprocess, name)


WARM = _Warm()


def script(file: Path, *arguments: object) -> list[str]:
    """The command that runs a script."""
    program = "import runpy, sys; runpy.run_path(sys.argv.pop(1), run_name='__main__')"
    return [sys.executable, "-c", program, str(file), *map(str, arguments)]


def run(command: Sequence[Any], **options: Any) -> "subprocess.CompletedProcess[str]":
    """`subprocess.run` that captures what the program prints, as text."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with Popen(command, **pipes, **options) as process:
        out, err = process.communicate(timeout=1800)
    return subprocess.CompletedProcess(command, process.returncode, out, err)
