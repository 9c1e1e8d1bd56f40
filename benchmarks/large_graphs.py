"""What the place of neighbours in memory costs on large graphs, and what renumbering nodes saves.

    python benchmarks/large_graphs.py           # measure, write results/large-graphs.json

One neighbour sum (64 channels, 24 neighbours per node) of three kinds of graphs: neighbours drawn
at random; drawn with a power law, some nodes far more often than others; and those of a mesh, a
grid in which each node has the nodes at most two steps away. Nodes are numbered at random, then
anew: by reverse Cuthill-McKee, which puts neighbours close to each other, or the most heard first.
One thread; the times are the least processor times of three.
"""

import argparse
import json
import time
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import reverse_cuthill_mckee
from torch import Tensor

from adgn._util.environment import load_average
from adgn.bench.run import describe_machine, measured_commit
from adgn.graph import CSR, backend
from adgn.graph.native import calls
from adgn.graph.native.library import NativeLibrary, native_library
from adgn.training.checkpoint import OTHER_OUT, write_atomically

OUT = Path(__file__).resolve().parent.parent / "results" / "large-graphs.json"
DEGREE, CHANNELS = 24, 64


def neighbours(kind: str, nodes: int, generator: torch.Generator) -> Tensor:
    """`[nodes, DEGREE]`; the neighbours of each node, all numbers being drawn at random."""
    if kind == "random":
        return torch.randint(0, nodes, (nodes, DEGREE), generator=generator, dtype=torch.int32)
    if kind == "power law":
        drawn = torch.rand(nodes, DEGREE, generator=generator)
        return drawn.pow_(3).mul_(nodes).int().clamp_(max=nodes - 1)
    side = int(nodes**0.5)
    steps = [(a, b) for a in range(-2, 3) for b in range(-2, 3) if (a, b) != (0, 0)]
    row, column = torch.arange(nodes) // side, torch.arange(nodes) % side
    around = [(row + a) % side * side + (column + b) % side for a, b in steps]
    return torch.stack(around, 1).int()


def renumbered(heard: Tensor, place: Tensor) -> Tensor:
    """The neighbours where node `u` has the number `place[u]`, ascending in each row."""
    moved = torch.empty_like(heard)
    moved[place] = place.int()[heard.long()]
    return moved.sort(1).values


def better_order(kind: str, heard: Tensor) -> Tensor:
    """The new number of each node."""
    nodes = heard.size(0)
    place = torch.empty(nodes, dtype=torch.long)
    if kind == "power law":
        order = torch.bincount(heard.flatten(), minlength=nodes).argsort(descending=True)
    else:
        pointers = np.arange(0, heard.numel() + 1, DEGREE, dtype=np.int32)
        ones = np.ones(heard.numel(), dtype=np.int8)
        matrix = csr_matrix((ones, heard.flatten().numpy(), pointers), shape=(nodes, nodes))
        order = torch.from_numpy(reverse_cuthill_mckee(matrix).astype(np.int64))
    place[order] = torch.arange(nodes)
    return place


def nanoseconds(library: NativeLibrary, heard: Tensor, x: Tensor) -> float:
    """Per edge, of a neighbour sum."""
    nodes = heard.size(0)
    pointers = torch.arange(0, heard.numel() + 1, DEGREE, dtype=torch.int32)
    csr = CSR(pointers, heard.flatten(), (nodes, nodes))
    value, best = torch.ones(heard.numel()), float("inf")
    for _ in range(3):
        start = time.process_time()
        calls.multiply(library, csr, value, x)
        best = min(best, time.process_time() - start)
    return 1e9 * best / heard.numel()


def measure(library: NativeLibrary, kind: str, edges: int, renumber: bool) -> dict[str, Any]:
    """Nanoseconds per edge with random numbers and, where wanted, with better ones."""
    side = round((edges / DEGREE) ** 0.5)
    nodes = side * side
    generator = torch.Generator().manual_seed(0)
    heard = renumbered(
        neighbours(kind, nodes, generator), torch.randperm(nodes, generator=generator)
    )
    x = torch.randn(nodes, CHANNELS, generator=generator)
    figures = {"kind": kind, "edges": nodes * DEGREE, "given": nanoseconds(library, heard, x)}
    if renumber:
        start = time.process_time()
        heard = renumbered(heard, better_order(kind, heard))
        figures["renumbering_ns"] = 1e9 * (time.process_time() - start) / heard.numel()
        figures["renumbered"] = nanoseconds(library, heard, x)
    print(figures, flush=True)
    return figures


def main() -> None:
    """Parses the command line and measures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=OUT, help="default: results/large-graphs.json")
    arguments = parser.parse_args()
    library = native_library()
    if library is None:
        parser.error("the native kernels are not there")
    torch.set_num_threads(1)
    load, cases = load_average(), []
    for kind in ("random", "power law", "mesh"):
        for edges in (10**6, 10**7):
            cases.append(measure(library, kind, edges, renumber=True))
    for kind in ("random", "mesh"):
        cases.append(measure(library, kind, 4 * 10**7, renumber=False))
    result = {
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "commit": measured_commit(),
        "machine": describe_machine(backend().instruction_set).model_dump(),
        "load_average": load,
        "cases": cases,
    }
    write_atomically(arguments.out, (json.dumps(result, indent=1) + "\n").encode(), OTHER_OUT)
    print(f"wrote {arguments.out}")


if __name__ == "__main__":
    main()
