"""Parameters, time and peak memory of every model: a batch of small graphs, and one graph.

    python benchmarks/models.py                 # all models, writes results/models.json
    python benchmarks/models.py --model gcn     # one model, prints its figures
    python benchmarks/models.py --add gesn      # one model, adds it to those measured before

The batch is the size of one of property prediction: 512 random graphs of 25 to 34 nodes with about
207 directed edges each, two features per node and one target per graph. A step takes the batch out
of the prepared graphs, runs forward, backward and Adam. Each model runs in a process of its own, so
that the peak of its resident memory is its own; what the process needed before the first full step
is taken off. After that the same process trains the model on Chameleon, which the data root must
have or be able to fetch: an epoch is a step on the whole graph and the validation score.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time
import warnings
from datetime import datetime, timezone
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from adgn._util.environment import processor
from adgn._util.files import write_file
from adgn.bench.run import measured_commit
from adgn.graph import GraphBlocks
from adgn.nn import available_models, build_model
from adgn.training import Callback, LearnedNothingWarning, Trainer, train

ROOT = Path(__file__).resolve().parent.parent
LAYERS, UNITS, GRAPHS, SEED = 20, 30, 512, 0
NODE_LAYERS, NODE_UNITS = 4, 64  # on Chameleon
VARIANTS: dict[str, dict[str, Any]] = {
    **{name: {"name": name} for name in available_models()},
    "h2gcn": {"name": "h2gcn", "num_layers": 2},  # its states double with every layer
    "adgn, weights per layer": {"name": "adgn", "weight_sharing": False},
    "adgn, phi=gcn": {"name": "adgn", "phi": "gcn"},
    "adgn, phi=gat": {"name": "adgn", "phi": "gat"},
    "grand, adjoint=False": {"name": "grand", "adjoint": False},
}


def random_graphs(count: int) -> tuple[GraphBlocks, Tensor, Tensor]:
    """Undirected random graphs, their node features and targets."""
    generator = torch.Generator().manual_seed(SEED)
    edges, pointer = [], [0]
    for number in range(count):
        nodes = 25 + number % 10
        present = torch.rand(nodes, nodes, generator=generator).triu(1) > 1 - 207 / (29.5 * 28.5)
        pairs = present.nonzero().t() + pointer[-1]
        edges += [pairs, pairs.flip(0)]
        pointer.append(pointer[-1] + nodes)
    blocks = GraphBlocks(torch.cat(edges, 1), torch.tensor(pointer))
    x = torch.rand(blocks.num_nodes, 2, generator=generator)
    return blocks, x, torch.rand(count, 1, generator=generator)


def measure(variant: str, steps: int, threads: int) -> dict[str, Any]:
    """The figures of one model, in this process."""
    torch.set_num_threads(threads)
    torch.manual_seed(SEED)
    blocks, x, target = random_graphs(GRAPHS)
    options = {"num_layers": LAYERS, **VARIANTS[variant]}
    layers = {} if options["num_layers"] == LAYERS else {"layers": options["num_layers"]}
    sizes = {"in_channels": 2, "hidden_channels": UNITS, "out_channels": 1}
    model = build_model(**sizes, level="graph", readout="mlp", **options)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

    def step(count: int) -> float:
        start = time.perf_counter()
        graphs = torch.randperm(GRAPHS)[:count]
        batch = blocks.select(graphs)
        optimizer.zero_grad()
        out = model(x[batch.node_index], batch, batch=batch.batch, batch_size=count)
        loss = (out - target[graphs]).square().mean()
        loss.backward()
        optimizer.step()
        return time.perf_counter() - start

    step(2)  # loads every kernel, so that the baseline has them
    before = peak_bytes()
    times = [step(GRAPHS) for _ in range(steps + 2)][2:]
    peak = peak_bytes()
    return {
        **layers,
        "parameters": model.parameter_counts(),
        "step_ms": {"median": 1e3 * statistics.median(times), "min": 1e3 * min(times)},
        "peak_mb": (peak - before) / 2**20,
        "chameleon_ms": epoch_on_chameleon(variant, steps),
        "batch": {"nodes": blocks.num_nodes, "edges": blocks.edge_index.size(1)},
    }


class Clock(Callback):
    """The seconds of every epoch but the first, which builds the graph's operators."""

    def __init__(self) -> None:
        self.ends: list[float] = []

    def on_epoch(self, trainer: Trainer, line: Any) -> None:
        """Notes when an epoch is over."""
        self.ends.append(time.perf_counter())


def epoch_on_chameleon(variant: str, epochs: int) -> dict[str, float]:
    """Milliseconds of an epoch of the task's own training loop, in this process."""
    sizes = {"num_layers": NODE_LAYERS, "hidden_channels": NODE_UNITS}
    # Trained by steps as all others: that of GESN would be solved.
    options = {**sizes, "readout": "linear", **VARIANTS[variant]}
    clock, limits = Clock(), {"max_epochs": epochs + 1}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LearnedNothingWarning)  # few epochs
        train("chameleon", model=options, loop=limits, callbacks=[clock], evaluate_test=False)
    times = [1e3 * (after - before) for before, after in pairwise(clock.ends)]
    return {"median": statistics.median(times), "min": min(times)}


def peak_bytes() -> int:
    """The largest resident memory of this process so far."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


def measure_all(steps: int, threads: int) -> dict[str, Any]:
    """The figures of all models, each in a process of its own."""
    load = os.getloadavg()[0]
    figures = {}
    for variant in VARIANTS:
        command = [sys.executable, "-W", "ignore", __file__, "--model", variant]
        command += ["--steps", str(steps), "--threads", str(threads)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{variant} failed:\n{done.stderr}")
        figures[variant] = json.loads(done.stdout)
        times = figures[variant]["step_ms"]
        print(
            f"{variant:24} {times['min']:8.1f} ms {figures[variant]['peak_mb']:8.1f} MB "
            f"{figures[variant]['chameleon_ms']['min']:8.1f} ms on Chameleon",
            flush=True,
        )
    batch = next(iter(figures.values()))["batch"]
    for figure in figures.values():
        del figure["batch"]
    return {
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%d"),
        "machine": f"{processor()}, {os.cpu_count()} cores",
        "commit": measured_commit(),
        "torch": torch.__version__,
        "load_average": load,
        "threads": threads,
        "steps": steps,
        "layers": LAYERS,
        "units": UNITS,
        "node_layers": NODE_LAYERS,
        "node_units": NODE_UNITS,
        "batch": {"graphs": GRAPHS, **batch},
        "models": figures,
    }


def main() -> None:
    """Parses the command line and measures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", choices=VARIANTS, help="measure just this one, and print it")
    parser.add_argument("--add", choices=VARIANTS, help="measure just this one, and write it too")
    parser.add_argument("--steps", type=int, default=10, help="steps timed, after two warm-ups")
    parser.add_argument("--threads", type=int, default=1, help="torch's threads")
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "models.json")
    arguments = parser.parse_args()
    if arguments.model:
        print(json.dumps(measure(arguments.model, arguments.steps, arguments.threads)))
        return
    if arguments.add:
        figures = json.loads(arguments.out.read_text())
        circumstances = {
            "date": datetime.now(timezone.utc).strftime("%Y-%m-%d"),
            "commit": measured_commit(),
            "load_average": os.getloadavg()[0],
        }
        figure = measure(arguments.add, figures["steps"], figures["threads"])
        del figure["batch"]
        figures["models"][arguments.add] = {**figure, **circumstances}
    else:
        figures = measure_all(arguments.steps, arguments.threads)
    write_file(arguments.out, json.dumps(figures, indent=2).encode() + b"\n")
    print(f"wrote {arguments.out}")


if __name__ == "__main__":
    main()
