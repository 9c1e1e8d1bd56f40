"""How much sooner a study is done with two workers than with one.

    python benchmarks/selection_scaling.py

Every trial has one thread, so two workers on two free cores could halve the time. Writes
`results/selection.json`: seconds from the first trial's start to the last one's end (`trials`) and
of the whole call, which includes the start of the workers (`whole`), for each round. The order of
one and two workers alternates between rounds, so that a change of the machine's load hits both.
`cpu` is the processor time of all workers, and `others` how many cores other programs used
meanwhile: a round with more than 0.2 says little about the executor and does not count. With
`--add` the rounds join those in the file, so that a long measurement can be had in parts.

Towards the end of a study a worker that finds no more trials waits for the other, so sets of few
trials scale worse: on two cores, by up to half a trial's time.
"""

import argparse
import json
import os
import platform
import resource
import statistics
import tempfile
import time
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import torch

from adgn._util.environment import available_cores
from adgn._util.files import write_file
from adgn.bench.run import measured_commit
from adgn.selection import StudyFolder, grid_size, select

DISTURBED = 0.2  # cores
RESULTS = Path(__file__).parent.parent / "results" / "selection.json"
STUDY = {
    "task": "graph-transfer",
    "space": {
        "optimizer.lr": [0.01, 0.003, 0.001],
        "model.epsilon": [1.0, 0.5, 0.2, 0.1],
        "model.hidden_channels": [16, 32],
    },
    "seeds": [0, 1],
    "study": "scaling",
    "threads": 1,
}


def busy_seconds() -> float:
    """Processor time of all programs of this machine since it started."""
    fields = Path("/proc/stat").read_text().splitlines()[0].split()[1:]
    user, nice, system, _, _, irq, softirq, *_ = map(int, fields)
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def own_seconds() -> float:
    """Processor time of this process and of the workers that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def measure(workers: int, epochs: int) -> dict[str, float]:
    """Seconds of one study."""
    with tempfile.TemporaryDirectory() as folder:
        begin, busy, own = time.perf_counter(), busy_seconds(), own_seconds()
        settings = {
            "task": {"distance": 10, "train": 1000},
            "loop": {"max_epochs": epochs},
            "stopping": {"patience": None},
        }
        result = select(**STUDY, settings=settings, workers=workers, folder=folder)
        whole, own = time.perf_counter() - begin, own_seconds() - own
        others = (busy_seconds() - busy - own) / whole
        if result.counts["complete"] != result.counts["total"]:
            raise SystemExit(f"not all trials are complete: {result.counts}")
        study, _ = StudyFolder("scaling", folder).open()
        trials = study.get_trials()
        started = min(trial.datetime_start for trial in trials)
        ended = max(trial.datetime_complete for trial in trials)
        return {
            "trials": round((ended - started).total_seconds(), 2),
            "whole": round(whole, 2),
            "cpu": round(own, 2),
            "others": round(others, 2),
        }


def earlier_rounds(known: dict[str, Any], epochs: int) -> list[dict[str, Any]]:
    """The rounds of the same measurement that the file has."""
    same = {"trials": grid_size(STUDY["space"]), "epochs": epochs, "commit": measured_commit()}
    for name, value in same.items():
        if known.get(name) != value:
            raise SystemExit(f"the file's rounds have {name} {known.get(name)}, not {value}")
    return [entry for entry in known["rounds"] if not disturbed(entry)]


def disturbed(entry: dict[str, Any]) -> bool:
    """Whether other programs used the cores in a round."""
    return max(entry[workers]["others"] for workers in ("one", "two")) > DISTURBED


def main() -> None:
    """Measures and writes the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--add", action="store_true", help="to the rounds in the file")
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    known = json.loads(arguments.out.read_text()) if arguments.out.exists() else {}
    rounds = earlier_rounds(known["scaling"], arguments.epochs) if arguments.add else []
    for number in range(len(rounds), len(rounds) + arguments.rounds):
        order = (1, 2) if number % 2 == 0 else (2, 1)
        seconds = {workers: measure(workers, arguments.epochs) for workers in order}
        ratio = {
            name: round(seconds[2][name] / seconds[1][name], 3)
            for name in ("trials", "whole", "cpu")
        }
        entry = {"one": seconds[1], "two": seconds[2], "two_over_one": ratio}
        print(f"round {number + 1}: {entry}", flush=True)
        if disturbed(entry):
            print("does not count: other programs used the cores meanwhile", flush=True)
        else:
            rounds.append(entry)
    if not rounds:
        raise SystemExit("no round counts; nothing is written")
    record = {
        "what": "time of a set of single-thread trials, two workers against one",
        "command": "python benchmarks/selection_scaling.py",
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%d"),
        "commit": measured_commit(),
        "machine": f"{platform.machine()}, {available_cores()} cores",
        "torch": torch.__version__,
        "trials": grid_size(STUDY["space"]),
        "runs_per_trial": len(STUDY["seeds"]),
        "epochs": arguments.epochs,
        "rounds": rounds,
        "two_over_one": {
            name: round(statistics.median(entry["two_over_one"][name] for entry in rounds), 3)
            for name in ("trials", "whole", "cpu")
        },
    }
    text = json.dumps({**known, "scaling": record}, indent=2, ensure_ascii=False) + "\n"
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    write_file(arguments.out, text.encode())
    print(f"two workers take {record['two_over_one']} of the time of one; {arguments.out}")


if __name__ == "__main__":
    main()
