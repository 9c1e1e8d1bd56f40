"""What it saves to compute only the states that the nodes which are read depend on.

    python benchmarks/needed_nodes.py            # measure, write results/needed.json

A training step (forward, backward, optimiser) with all states, and with those that are needed:
Tree-NeighborsMatch, which is read at the roots, in the batches of its protocol; and a random graph
with 8 edges per node of which one node in a hundred is labelled. Both ways take turns in one
process with one thread; the times are the least processor times over the turns.
"""

import argparse
import dataclasses
import json
import time
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import torch

from adgn._util.environment import load_average
from adgn.bench.run import describe_machine, measured_commit
from adgn.graph import backend
from adgn.nn import build_model
from adgn.training import Prepared, Trainer, prepare, resolve_config
from adgn.training.batches import FullGraph, LabelledBatch
from adgn.training.checkpoint import OTHER_OUT, write_atomically

OUT = Path(__file__).resolve().parent.parent / "results" / "needed.json"
MODELS = ("adgn", "gcn", "gat")
PERMUTATIONS = {7: 40}  # fewer trees than the protocol has; a batch has as many


def trees(radius: int, model: str) -> tuple[Trainer, LabelledBatch]:
    """The task's trainer, and its first batch."""
    task = {"name": "tree-neighbors-match", "radius": radius}
    if radius in PERMUTATIONS:
        task["permutations"] = PERMUTATIONS[radius]
    prepared: Prepared = prepare(resolve_config({"task": task, "model": {"name": model}}))
    return prepared.trainer, next(iter(prepared.data.train.batches(0)))


def labelled_graph(layers: int, model: str) -> tuple[Trainer, LabelledBatch]:
    """A random graph of which few nodes are labelled."""
    generator = torch.Generator().manual_seed(0)
    nodes = 50_000
    edges = torch.randint(0, nodes, (2, 8 * nodes), generator=generator)
    x = torch.randn(nodes, 32, generator=generator)
    y = torch.randint(0, 5, (nodes,), generator=generator)
    labelled = torch.randperm(nodes, generator=generator)[: nodes // 100].sort().values
    torch.manual_seed(0)
    network = build_model(model, 32, 64, 5, layers)
    source = FullGraph(x, edges, y, labelled)
    trainer = Trainer(network, source, objective="classification")
    return trainer, next(source.batches(0))


def measure(name: str, trainer: Trainer, batch: LabelledBatch, turns: int) -> dict[str, Any]:
    """Milliseconds of a step in both ways, and the share of states that is needed."""
    network = trainer.model.train()
    needed = None
    if batch.nodes is not None:
        needed = network._needed(batch.x, batch.graph, batch.edge_weight, batch.nodes)  # type: ignore[operator]
    everything = dataclasses.replace(batch, nodes=None)

    def step(of: LabelledBatch) -> None:
        trainer._step(trainer._backward(of))

    ways: dict[str, Callable[[], None]] = {
        "all": lambda: step(everything),
        "needed": lambda: step(batch),
    }
    best = dict.fromkeys(ways, float("inf"))
    for _ in range(turns):
        for way, run in ways.items():
            start = time.process_time()
            run()
            best[way] = min(best[way], time.process_time() - start)
    share = None
    if needed is not None:
        share = sum(needed.counts[1:]) / (needed.num_layers * batch.x.size(0))
    figures = {"case": name, "share": share, **{way: 1e3 * best[way] for way in ways}}
    ratio = best["all"] / best["needed"]
    print(
        f"{name:34} {figures['all']:9.2f} ms {figures['needed']:9.2f} ms {ratio:6.2f}", flush=True
    )
    return figures


def main() -> None:
    """Parses the command line and measures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=OUT, help="default: results/needed.json")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    figures, load = [], load_average()
    for radius in (2, 3, 4, 5, 7):
        for model in MODELS:
            turns = 60 if radius <= 3 else 6 if radius <= 5 else 3
            name = f"trees of radius {radius}, {model}"
            figures.append(measure(name, *trees(radius, model), turns))
    for layers in (1, 2, 3, 4):
        name = f"1 node in 100 labelled, {layers} layers, adgn"
        figures.append(measure(name, *labelled_graph(layers, "adgn"), 5))
    result = {
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "commit": measured_commit(),
        "machine": describe_machine(backend().instruction_set).model_dump(),
        "kernels": backend().name,
        "load_average": load,
        "cases": figures,
    }
    write_atomically(arguments.out, (json.dumps(result, indent=1) + "\n").encode(), OTHER_OUT)
    print(f"wrote {arguments.out}")


if __name__ == "__main__":
    main()
