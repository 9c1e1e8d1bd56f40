"""Kills a run at random moments, resumes it each time, and compares it with one that ran through.

Called as `python killed_runs.py CONFIG FOLDER KILLS SEED`. Each attempt is a process of its own,
forked from this one: importing the package anew each time would take longer than the run.
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


def attempt(config: object, folder: Path, kill_after: float | None) -> bool:
    """Starts or resumes the run in a new process; whether it came to its end."""
    child = os.fork()
    if child == 0:
        try:
            train(config, run_dir=folder, resume=True)
        except BaseException as error:
            print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
            os._exit(1)
        os._exit(0)
    if kill_after is not None:
        time.sleep(kill_after)
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if os.WIFEXITED(status) and os.WEXITSTATUS(status):
        sys.exit("an attempt failed, see above")
    return os.WIFEXITED(status)


def main() -> None:
    """Runs, kills, resumes, compares."""
    config, folder = resolve_config(Path(sys.argv[1])), Path(sys.argv[2])
    kills, stream = int(sys.argv[3]), random.Random(int(sys.argv[4]))
    started = time.monotonic()
    attempt(config, folder / "whole", None)
    whole = time.monotonic() - started
    progress = set()
    for _ in range(kills):
        # Short enough that the kills fall all over the run, the start of an attempt included.
        attempt(config, folder / "killed", stream.uniform(0, 4 * whole / kills))
        metrics = folder / "killed" / "metrics.jsonl"
        progress.add(metrics.stat().st_size if metrics.exists() else 0)
    if not attempt(config, folder / "killed", None):
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
    print(f"{kills} kills, at {len(progress)} different lengths of metrics.jsonl; all equal")


if __name__ == "__main__":
    main()
