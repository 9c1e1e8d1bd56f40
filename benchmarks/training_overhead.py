"""What the training loop costs on top of forward, backward and step.

    python benchmarks/training_overhead.py --data FOLDER     measure, write results/training.json

FOLDER is a data root with the raw files of Texas. Two cases: property prediction (the paper's sssp:
5120 small graphs, 20 layers, 30 units, ten batches an epoch) and Texas (183 nodes, where whatever
the loop does shows). The bare loop has all batches made beforehand and does nothing but forward,
loss, backward, step. Both ways run in turns, the same number of epochs each. The overhead compares
the fastest round of each, in CPU seconds of the process: what other programs do on the machine only
ever makes a round slower.
"""

import argparse
import json
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import torch

from adgn.graph import backend
from adgn.training import Prepared, RunDirectory, TrainConfig, prepare
from adgn.training.run import RunJournal

ROOT = Path(__file__).resolve().parent.parent


def bare_epochs(prepared: Prepared, evaluate: bool) -> Callable[[int], None]:
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


def loop_epochs(prepared: Prepared, evaluate: bool) -> Callable[[int], None]:
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


def taken(run: Callable[[int], None], epochs: int) -> tuple[float, float]:
    """Wall and CPU seconds of some epochs."""
    wall, cpu = time.perf_counter(), time.process_time()
    run(epochs)
    return time.perf_counter() - wall, time.process_time() - cpu


def loading(prepared: Prepared, passes: int) -> float:
    """CPU seconds per epoch to make the batches, their graphs included."""
    start = time.process_time()
    for number in range(passes):
        for batch in prepared.data.train.batches(number):
            if hasattr(batch.graph, "operator"):
                batch.graph.operator("none", torch.float32)
    return (time.process_time() - start) / passes


def measure(config: TrainConfig, epochs: int, rounds: int) -> dict[str, Any]:
    """Both ways in turns, without and with validation."""
    result: dict[str, Any] = {"epochs_per_round": epochs, "rounds": rounds}
    with tempfile.TemporaryDirectory() as folder:
        directory = RunDirectory(folder)
        for evaluate in (False, True):
            journal = RunJournal(directory, config)
            with journal.metrics:
                bare = bare_epochs(prepare(config), evaluate)
                prepared = prepare(config, journal=journal)
                prepared.trainer._save()
                loop = loop_epochs(prepared, evaluate)
                bare(epochs), loop(epochs)  # warm up
                pairs = [(taken(bare, epochs), taken(loop, epochs)) for _ in range(rounds)]
                bare_cpu, loop_cpu = min(b[1] for b, _ in pairs), min(x[1] for _, x in pairs)
                times = {
                    "bare_seconds": bare_cpu / epochs,
                    "loop_seconds": loop_cpu / epochs,
                    "overhead": loop_cpu / bare_cpu - 1,
                    "overhead_of_medians": statistics.median(x[1] for _, x in pairs)
                    / statistics.median(b[1] for b, _ in pairs)
                    - 1,
                    "overhead_wall": min(x[0] for _, x in pairs) / min(b[0] for b, _ in pairs) - 1,
                }
            result["training_and_validation" if evaluate else "training"] = times
        result["loading_seconds"] = loading(prepared, max(3, epochs))
        result["loading_share"] = result["loading_seconds"] / result["training"]["loop_seconds"]
    return result


def main() -> None:
    """Measures and writes results/training.json."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", required=True, help="data root with the raw files of Texas")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=9)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    property_config = TrainConfig(task={"name": "sssp", "root": arguments.data})
    texas_config = TrainConfig(task={"name": "texas", "root": arguments.data})
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True
    ).stdout.strip()
    results = {
        "command": "python benchmarks/training_overhead.py --data FOLDER",
        "date": datetime.now(timezone.utc).date().isoformat(),
        "commit": commit,
        "machine": f"{platform.processor() or platform.machine()}, {platform.python_version()}",
        "torch": torch.__version__,
        "kernels": backend().name,
        "threads": arguments.threads,
        "seconds_are": "CPU seconds per epoch, fastest round",
        "property": measure(property_config, 1, arguments.rounds),
        "texas": measure(texas_config, 100, arguments.rounds),
    }
    json.dump(results, sys.stdout, indent=1)
    (ROOT / "results").mkdir(exist_ok=True)
    (ROOT / "results" / "training.json").write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
