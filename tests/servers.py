"""Servers that tests need, each in a process of its own so that nothing of it leaks into tests."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_START_SECONDS = 180.0


class Served:
    """A running helper program: the first line it said, and a way to ask it for something."""

    def __init__(self, process: subprocess.Popen[str], line: str) -> None:
        self.process = process
        self.line = line

    def ask(self, request: str) -> str:
        self.process.stdin.write(f"{request}\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()


@contextmanager
def served(program: str, folder: Path) -> Iterator[Served]:
    """Runs a program of `tests/helpers` until the end of the block; it says a line when ready."""
    runtime = folder / "runtime"
    runtime.mkdir(mode=0o700)
    with (folder / f"{program}.log").open("w+") as log:
        process = subprocess.Popen(
            [sys.executable, Path(__file__).parent / "helpers" / program, folder],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env={**os.environ, "XDG_RUNTIME_DIR": str(runtime), "PYTHONFAULTHANDLER": "1"},
        )
        limit = threading.Timer(_START_SECONDS, process.kill)
        limit.start()
        try:
            line = process.stdout.readline().strip()
            limit.cancel()
            if not line:
                process.wait()
                log.seek(0)
                raise AssertionError(f"{program} did not start: {log.read()[-2000:]}")
            yield Served(process, line)
        finally:
            limit.cancel()
            process.stdin.close()
            try:
                process.wait(120)
            finally:
                process.kill()
                process.wait()
                process.stdout.close()
