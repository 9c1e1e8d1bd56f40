"""Kills a run at random moments, resumes it each time, and compares it with one that ran through.

Called as `python killed_runs.py CONFIG FOLDER KILLS SEED`. When to kill is told by the progress of
the run: a clock would miss it on a machine that is faster or busier than thought. Each attempt is a
process of its own, forked from this one: importing the package anew each time would take longer
than the run.
"""

import os
import random
import signal
import sys
import time
from pathlib import Path

import torch

torch.set_num_threads(1)  # before anything runs: a pool of threads does not survive a fork

from adgn.training import resolve_config, train  # noqa: E402
from adgn.training.checkpoint import StateStore, pack  # noqa: E402

LONGEST_WAIT = 120.0  # seconds until a run that makes no progress is a failure


def epochs_done(folder: Path) -> int:
    """The lines of metrics.jsonl."""
    metrics = folder / "metrics.jsonl"
    return metrics.read_bytes().count(b"\n") if metrics.exists() else 0


def attempt(config: object, folder: Path, until: int | None = None, delay: float = 0.0) -> bool:
    """Starts or resumes the run in a new process; whether it came to its end.

    Where `until` is given, the process is killed `delay` seconds after so many epochs are done.
    """
    child = os.fork()
    if child == 0:
        try:
            train(config, run_dir=folder, resume=True)
        except BaseException as error:
            print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
            os._exit(1)
        os._exit(0)
    ended, status = 0, 0
    if until is not None:
        deadline = time.monotonic() + LONGEST_WAIT
        while not ended and epochs_done(folder) < until:
            if time.monotonic() > deadline:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
                sys.exit(f"after {LONGEST_WAIT} s the run had not come to epoch {until}")
            time.sleep(0.0005)
            ended, status = os.waitpid(child, os.WNOHANG)
        if not ended:
            time.sleep(delay)
            os.kill(child, signal.SIGKILL)
    if not ended:
        _, status = os.waitpid(child, 0)
    if os.WIFEXITED(status) and os.WEXITSTATUS(status):
        sys.exit("an attempt failed, see above")
    return os.WIFEXITED(status)


def main() -> None:
    """Runs, kills, resumes, compares."""
    config, folder = resolve_config(Path(sys.argv[1])), Path(sys.argv[2])
    kills, stream = int(sys.argv[3]), random.Random(int(sys.argv[4]))
    started = time.monotonic()
    attempt(config, folder / "whole")
    epochs = epochs_done(folder / "whole")
    epoch_seconds = (time.monotonic() - started) / epochs
    in_the_middle = 0
    # Each kill waits for an epoch of its own, then for a part of the next: any moment may be hit.
    moments = stream.sample if kills <= epochs else stream.choices
    for until in sorted(moments(range(epochs), k=kills)):
        delay = stream.uniform(0, 1.5 * epoch_seconds)
        ended = attempt(config, folder / "killed", until, delay)
        in_the_middle += not ended and 0 < epochs_done(folder / "killed") < epochs
    if not attempt(config, folder / "killed"):
        sys.exit("the last attempt did not end")
    for name in ("config.toml", "metrics.jsonl", "best.safetensors"):
        if (folder / "whole" / name).read_bytes() != (folder / "killed" / name).read_bytes():
            sys.exit(f"{name} differs")
    states = [StateStore(folder / run / "state").load() for run in ("whole", "killed")]
    for state in states:
        state["trainer"]["progress"].pop("seconds")
    (tree, tensors), (other_tree, other_tensors) = map(pack, states)
    if tree != other_tree or any(not tensors[n].equal(other_tensors[n]) for n in tensors):
        sys.exit("the last states differ")
    print(f"{kills} kills, {in_the_middle} in the middle of the run; all equal")


if __name__ == "__main__":
    main()
