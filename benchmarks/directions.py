"""The processor time of a training step of A-DGN on Chameleon, for each direction.

    python benchmarks/directions.py      # writes results/directions.json

All directions run in one process and take turns. A step is forward, backward and Adam on all nodes.
"both, one by one" is the same network without the fused integration: a plain loop over the layers,
in which autograd keeps what each operation needs.
"""

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

from adgn._util.environment import git_commit, load_average, processor
from adgn._util.files import write_file
from adgn.data import load
from adgn.graph import DIRECTIONS
from adgn.nn import ADGN

ROOT = Path(__file__).resolve().parent.parent
LAYERS, UNITS, SEED = 16, 64, 0
PLAIN = "both, one by one"


def training_step(phi: str, way: str) -> Callable[[], None]:
    """A step of a network on Chameleon."""
    torch.manual_seed(SEED)
    data = load("chameleon")
    options: dict[str, Any] = {"direction": way}
    if way == PLAIN:  # an activation that the fused integration does not know
        options = {"direction": "both", "act": partial(torch.tanh)}
    classes = int(data.y.max()) + 1
    model = ADGN(data.x.size(1), UNITS, classes, num_layers=LAYERS, phi=phi, **options)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    def step() -> None:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(data.x, data.edge_index), data.y).backward()
        optimizer.step()

    return step


def measure(phi: str, turns: int) -> dict[str, dict[str, float]]:
    """Milliseconds of processor time per step of each way; other work disturbs it less."""
    steps = {way: training_step(phi, way) for way in (*DIRECTIONS, PLAIN)}
    times: dict[str, list[float]] = {way: [] for way in steps}
    for turn in range(turns + 2):
        for way, step in steps.items():
            start = time.process_time()
            step()
            if turn >= 2:  # the first ones build operators
                times[way].append(1e3 * (time.process_time() - start))
    return {
        way: {"median": statistics.median(found), "min": min(found)} for way, found in times.items()
    }


def main() -> None:
    """Parses the command line, measures and writes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--turns", type=int, default=40, help="steps timed, after two warm-ups")
    parser.add_argument("--threads", type=int, default=1, help="torch's threads")
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "directions.json")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    before = load_average()
    commit = git_commit()
    data = load("chameleon")
    figures: dict[str, Any] = {
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%d"),
        "machine": f"{processor()}, {os.cpu_count()} cores",
        "commit": "unknown" if commit is None else commit[0][:7],
        "torch": torch.__version__,
        "load_average": before,
        "threads": arguments.threads,
        "turns": arguments.turns,
        "layers": LAYERS,
        "units": UNITS,
        "graph": {"nodes": data.num_nodes, "edges": data.edge_index.size(1)},
        "processor_ms": {phi: measure(phi, arguments.turns) for phi in ("sum", "gcn")},
    }
    for phi, ways in figures["processor_ms"].items():
        for way, found in ways.items():
            print(f"{phi:4} {way:18} {found['min']:8.1f} ms (median {found['median']:.1f})")
    write_file(arguments.out, json.dumps(figures, indent=2).encode() + b"\n")
    print(f"wrote {arguments.out}")


if __name__ == "__main__":
    main()
