"""The time of the balanced Forman curvature of all edges, and of steps of SDRF.

    python benchmarks/curvature.py      # writes results/curvature.json

Chameleon and Squirrel, edges taken as undirected. The native kernel and, on Chameleon, the products
of sparse matrices that serve without it run in one process; the best of several turns counts, in
seconds on the clock and of processor time, which other work on the machine disturbs less. Both give
the same values, which is checked. A step of SDRF, which works curvature out near the change
alone, is timed beside working all of it out.
"""

import argparse
import json
import os
import time
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from adgn._util.environment import git_commit, load_average, processor
from adgn._util.files import write_file
from adgn.data import load
from adgn.graph import set_backend
from adgn.graph.native.library import Setting
from adgn.transforms import SDRF, EdgeGraph, Undirected, balanced_forman_curvature
from adgn.transforms.sdrf import RicciFlow, run_flow

ROOT = Path(__file__).resolve().parent.parent
STEPS = 50


def best_of(turns: int, work: Callable[[], Any]) -> dict[str, float]:
    """The least seconds of several turns, on the clock and of the processor."""
    clock, used = [], []
    for _ in range(turns):
        start, begun = time.perf_counter(), time.process_time()
        work()
        clock.append(time.perf_counter() - start)
        used.append(time.process_time() - begun)
    return {"seconds": min(clock), "processor_seconds": min(used)}


def curvature_by(setting: Setting, graph: EdgeGraph) -> Tensor:
    """The curvature of all edges by one of the two ways."""
    with set_backend(setting):
        return balanced_forman_curvature(graph.edge_index, graph.num_nodes)


def measure(name: str, turns: int, *, plain: bool) -> dict[str, Any]:
    """The figures of one data set."""
    data = load(name)
    graph = Undirected()(EdgeGraph(data.edge_index, data.num_nodes))
    source, target = graph.edge_index
    found: dict[str, Any] = {
        "nodes": graph.num_nodes,
        "pairs": int((source < target).sum()),
        "native": best_of(turns, lambda: curvature_by("native", graph)),
    }
    if plain:
        values: list[Tensor] = []
        work = best_of(1, lambda: values.append(curvature_by("torch", graph)))
        same = torch.equal(values[0].nan_to_num(9), curvature_by("native", graph).nan_to_num(9))
        found["sparse_products"] = {**work, "same_values": same}
    flow = RicciFlow(graph)  # with the curvature of all edges
    taken = best_of(1, lambda: run_flow(flow, SDRF(iterations=STEPS)))
    per_step = {"processor_seconds": taken["processor_seconds"] / STEPS, "steps": STEPS}
    found["sdrf_step"] = per_step
    return found


def main() -> None:
    """Parses the command line, measures and writes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--turns", type=int, default=2, help="of which the best counts")
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "curvature.json")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    before, commit = load_average(), git_commit()
    figures: dict[str, Any] = {
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%d"),
        "machine": f"{processor()}, {os.cpu_count()} cores",
        "commit": "unknown" if commit is None else commit[0][:7],
        "torch": torch.__version__,
        "load_average": before,
        "threads": 1,
        "turns": arguments.turns,
        "graphs": {
            name: measure(name, arguments.turns, plain=plain)
            for name, plain in (("chameleon", True), ("squirrel", False))
        },
    }
    write_file(arguments.out, json.dumps(figures, indent=2).encode() + b"\n")
    print(json.dumps(figures["graphs"], indent=2))
    print(f"wrote {arguments.out}")


if __name__ == "__main__":
    main()
