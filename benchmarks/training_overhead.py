"""What the training loop costs on top of forward, backward and step.

    python benchmarks/training_overhead.py --data FOLDER     measure, write results/training.json

FOLDER is a data root with the raw files of Texas. Two cases: property prediction (the paper's sssp:
5120 small graphs, 20 layers, 30 units, ten batches an epoch) and Texas (183 nodes, where whatever
the loop does shows). The bare loop has all batches made beforehand and does nothing but forward,
loss, backward, step. A round runs both ways one after the other, the same number of epochs each;
which comes first changes from round to round. The overhead is the median over the rounds of the
ratio of their CPU seconds: the two halves of a round see the machine in the same condition.

Loading is the share of making the batches of sssp in a training epoch, taken in rounds alike: in
CPU seconds with one thread, in wall seconds with two, where waiting threads use CPU time as well.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NamedTuple

import torch

from adgn._util.environment import load_average
from adgn.bench.run import describe_machine, measured_commit, measured_versions
from adgn.graph import backend
from adgn.training import Prepared, RunDirectory, TrainConfig, prepare
from adgn.training.checkpoint import OTHER_OUT, write_atomically
from adgn.training.run import Checkpointer

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "results" / "training.json"

Epochs = Callable[[int], None]


class Taken(NamedTuple):
    """Seconds of some epochs."""

    wall: float
    cpu: float


def bare_epochs(prepared: Prepared, evaluate: bool) -> Epochs:
    """The bare loop on batches made beforehand; with `evaluate`, also a bare forward on val."""
    trainer = prepared.trainer
    model, optimizer, loss_of = trainer.model, trainer.optimizer, trainer.objective.loss
    batches = list(prepared.data.train.batches(0))
    validation = list(prepared.data.sources["val"].batches(0))

    def output(batch: Any) -> torch.Tensor:
        out = model(batch.x, batch.graph, batch=batch.batch)
        return out if batch.rows is None else out[batch.rows]

    def run(epochs: int) -> None:
        for _ in range(epochs):
            model.train()
            for batch in batches:
                loss_of(output(batch), batch).backward()
                optimizer.step()
                optimizer.zero_grad(set_to_none=True)
            if evaluate:
                model.eval()
                with torch.no_grad():
                    for batch in validation:
                        loss_of(output(batch), batch).item()

    return run


def loop_epochs(prepared: Prepared, evaluate: bool) -> Epochs:
    """The package's loop: fresh batches each epoch, checks, states when due; with `evaluate`,
    also validation with all scores, metrics.jsonl and early stopping."""
    trainer = prepared.trainer

    def run(epochs: int) -> None:
        for _ in range(epochs):
            trainer.model.train()
            if evaluate:
                trainer._epoch()
            else:
                trainer._pass()
                trainer._pause()

    return run


def loading_epochs(prepared: Prepared) -> Epochs:
    """Makes the batches, their operators included, and does nothing with them."""
    passes = 0

    def run(epochs: int) -> None:
        nonlocal passes
        for _ in range(epochs):
            for batch in prepared.data.train.batches(passes):
                if hasattr(batch.graph, "operator"):
                    batch.graph.operator("none", torch.float32)
            passes += 1

    return run


def taken(run: Epochs, epochs: int) -> Taken:
    """Wall and CPU seconds of some epochs."""
    wall, cpu = time.perf_counter(), time.process_time()
    run(epochs)
    return Taken(time.perf_counter() - wall, time.process_time() - cpu)


def take_pairs(one: Epochs, other: Epochs, epochs: int, rounds: int) -> list[tuple[Taken, Taken]]:
    """Both in every round, first the one, in the next round first the other; warmed up before."""
    one(epochs), other(epochs)
    pairs = []
    for number in range(rounds):
        if number % 2:
            later = taken(other, epochs)
            pairs.append((taken(one, epochs), later))
        else:
            pairs.append((taken(one, epochs), taken(other, epochs)))
    return pairs


def compared(pairs: list[tuple[Taken, Taken]], epochs: int) -> dict[str, Any]:
    """What the rounds of the bare loop and the package's loop say."""
    bare, loop = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    overheads = [b.cpu / a.cpu - 1 for a, b in pairs]
    bare_median = statistics.median(a.cpu for a in bare)
    loop_median = statistics.median(b.cpu for b in loop)
    bare_fastest, loop_fastest = min(a.cpu for a in bare), min(b.cpu for b in loop)
    quartiles = statistics.quantiles(overheads, n=4, method="inclusive")
    return {
        "overhead": statistics.median(overheads),
        "overhead_quartiles": [quartiles[0], quartiles[2]],
        "overhead_of_medians": loop_median / bare_median - 1,
        "overhead_of_fastest": loop_fastest / bare_fastest - 1,
        "overhead_wall": statistics.median(b.wall / a.wall - 1 for a, b in pairs),
        "bare_seconds": {"median": bare_median / epochs, "fastest": bare_fastest / epochs},
        "loop_seconds": {"median": loop_median / epochs, "fastest": loop_fastest / epochs},
    }


def measure(config: TrainConfig, epochs: int, rounds: int) -> dict[str, Any]:
    """Both ways in turns, without and with validation."""
    result: dict[str, Any] = {"epochs_per_round": epochs, "rounds": rounds}
    with tempfile.TemporaryDirectory() as folder:
        for evaluate in (False, True):
            checkpointer = Checkpointer(RunDirectory(folder), config)
            with checkpointer.metrics:
                bare = bare_epochs(prepare(config), evaluate)
                prepared = prepare(config)
                prepared.trainer.checkpointer = checkpointer
                prepared.trainer._save()
                pairs = take_pairs(bare, loop_epochs(prepared, evaluate), epochs, rounds)
            name = "training_and_validation" if evaluate else "training"
            result[name] = compared(pairs, epochs)
    return result


def measure_loading(config: TrainConfig, threads: int, rounds: int) -> dict[str, Any]:
    """The share of loading in a training epoch."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        prepared = prepare(config)
        pairs = take_pairs(loading_epochs(prepared), loop_epochs(prepared, False), 1, rounds)
    finally:
        torch.set_num_threads(before)
    unit = "cpu" if threads == 1 else "wall"
    loading = [getattr(pair[0], unit) for pair in pairs]
    epoch = [getattr(pair[1], unit) for pair in pairs]
    return {
        "threads": threads,
        "rounds": rounds,
        "seconds_are": unit,
        "loading_seconds": statistics.median(loading),
        "epoch_seconds": statistics.median(epoch),
        "share": statistics.median(a / b for a, b in zip(loading, epoch, strict=True)),
    }


def command(arguments: argparse.Namespace) -> str:
    """What was called, without the places of this machine."""
    return (
        f"python benchmarks/training_overhead.py --data FOLDER --threads {arguments.threads} "
        f"--rounds {arguments.rounds}"
    )


def parsed(words: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True, help="data root with the raw files of Texas")
    parser.add_argument("--threads", type=int, default=1, help="of the overhead; default: 1")
    parser.add_argument("--rounds", type=int, default=9, help="at least 2; default: 9")
    parser.add_argument("--out", type=Path, default=OUT, help="default: results/training.json")
    arguments = parser.parse_args(words)
    if arguments.rounds < 2:
        parser.error(f"--rounds {arguments.rounds} is too few; give at least 2")
    if arguments.threads < 1:
        parser.error(f"--threads {arguments.threads} is not valid; give at least 1")
    return arguments


def main() -> None:
    """Measures and writes results/training.json."""
    arguments = parsed()
    load = load_average()
    torch.set_num_threads(arguments.threads)
    arguments.out.parent.mkdir(parents=True, exist_ok=True)  # now: not after all the work
    sssp = TrainConfig(task={"name": "sssp", "root": arguments.data})
    texas = TrainConfig(task={"name": "texas", "root": arguments.data})
    results = {
        "command": command(arguments),
        "date": datetime.now(timezone.utc).date().isoformat(),
        "commit": measured_commit(),
        "machine": describe_machine(backend().instruction_set).model_dump(),
        "versions": measured_versions(),
        "kernels": backend().name,
        "load_average": load,
        "threads": arguments.threads,
        "seconds_are": "CPU seconds per epoch",
        "property": measure(sssp, 1, arguments.rounds),
        "texas": measure(texas, 100, arguments.rounds),
        "loading": [measure_loading(sssp, threads, arguments.rounds) for threads in (1, 2)],
    }
    text = json.dumps(results, indent=1) + "\n"
    sys.stdout.write(text)
    write_atomically(arguments.out, text.encode(), OTHER_OUT)


if __name__ == "__main__":
    main()
