"""A worker: does steps of cells, one after the other, in a process of its own.

As a program, `main`, it reads lines of JSON: first how many threads it has, then `StepOrder`s, each
of which it answers with a line. The end of its standard input, by the driver or by its death, asks
it to stop; a run under way then stops at a place from which it can go on.
"""

import json
import os
import queue
import signal
import threading
import time
import traceback
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from filelock import FileLock, Timeout
from pydantic import TypeAdapter

from adgn.experiments.cells import Cell, new_cell, write_cell
from adgn.experiments.plan import plan_cell
from adgn.experiments.results import ResultsDirectory
from adgn.experiments.steps import StepFailedError, do_step
from adgn.training import Interrupted, shared_data

__all__ = ["StepOrder", "carry_out", "failed_cell"]

_LOCK_SECONDS = 300.0  # the worker of a driver that was killed may still be writing


@dataclass(frozen=True)
class StepOrder:
    """A step of a cell, by names."""

    out: str
    experiment: str
    row: str
    column: str
    budget: str
    step: int
    retry: bool = False

    def to_json(self) -> str:
        """As a line of JSON."""
        return TypeAdapter(StepOrder).dump_json(self).decode()


def failed_cell(cell: Cell, message: str, trace: str, run: str | None) -> Cell:
    """The cell with the mark of a failure; what it has measured stays."""
    error = {"message": message, "traceback": trace, "run": run}
    return {**cell, "status": "failed", "error": error}


def carry_out(order: StepOrder, stop: threading.Event) -> dict[str, Any]:
    """Does a step; a failure is written into the cell.

    Returns:
        `{"outcome": "done" | "failed" | "interrupted"}`.
    """
    plan = plan_cell(order.experiment, order.row, order.column, order.budget)
    results = ResultsDirectory(order.out)
    folder, file = results.claim_work(plan), results.cell_file(plan)
    with _held(folder / ".lock", stop) as held:
        if not held:
            return {"outcome": "interrupted"}
        cell = results.cell(plan) or new_cell(plan)

        def save(now: Cell) -> None:
            nonlocal cell
            cell = now
            write_cell(file, now)

        try:
            with shared_data():
                do_step(plan, cell, order.step, folder, stop, save, retry=order.retry)
        except Interrupted:
            return {"outcome": "interrupted"}
        except StepFailedError as error:
            _write_failure(file, cell, error.__cause__ or error, error.run)
            return {"outcome": "failed"}
        except Exception as error:
            _write_failure(file, cell, error, "search" if order.step == 0 else None)
            return {"outcome": "failed"}
    return {"outcome": "done"}


def _write_failure(file: Path, cell: Cell, error: BaseException, run: str | None) -> None:
    trace = "".join(traceback.format_exception(error))
    write_cell(file, failed_cell(cell, f"{type(error).__name__}: {error}", trace, run))


class _held:  # noqa: N801 - used as a function
    """Holds a cell's folder; gives `False` where it was asked to stop before it could."""

    def __init__(self, path: Path, stop: threading.Event) -> None:
        self.lock = FileLock(path)
        self.stop = stop

    def __enter__(self) -> bool:
        limit = time.monotonic() + _LOCK_SECONDS
        while True:
            try:
                self.lock.acquire(timeout=0)
                return True
            except Timeout:
                if time.monotonic() > limit:
                    raise
                if self.stop.wait(0.2):
                    return False

    def __exit__(self, *error: object) -> None:
        self.lock.release()


def main() -> None:
    """Runs a worker as a process of its own."""
    # Answers have a channel of their own, so that nothing printed can get in between.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    stop = threading.Event()
    lines: queue.Queue[str | None] = queue.Queue()

    def ask(number: int, frame: FrameType | None) -> None:
        stop.set()
        lines.put(None)

    signal.signal(signal.SIGTERM, ask)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the driver decides what Ctrl-C means
    threading.Thread(target=_read, args=(lines, stop), daemon=True).start()
    first = lines.get()
    if first is None:
        return
    torch.set_num_threads(int(json.loads(first)["threads"]))
    while (line := lines.get()) is not None and not stop.is_set():
        answer = carry_out(TypeAdapter(StepOrder).validate_json(line), stop)
        try:
            answers.write(json.dumps(answer) + "\n")
            answers.flush()
        except BrokenPipeError:  # the driver died; what was done is in files
            return


def _read(lines: "queue.Queue[str | None]", stop: threading.Event) -> None:
    # Not through sys.stdin: a thread that waits in it would hinder the interpreter's end.
    rest = b""
    while data := os.read(0, 65536):
        *whole, rest = (rest + data).split(b"\n")
        for line in whole:
            lines.put(line.decode())
    stop.set()
    lines.put(None)
