"""What the place of neighbours in memory costs on large graphs, and what another order saves.

    python benchmarks/large_graphs.py --data FOLDER   # measure, write results/large-graphs.json

Graphs with 24 neighbours per node: drawn at random; drawn with a power law, some nodes far more
often than others; and those of a mesh, a grid in which each node has the nodes at most two steps
away, numbered at random and along itself. Then the larger graphs of the paper's benchmarks. Of each
the time of one neighbour sum of 64 channels, and of a training step of 10 layers of A-DGN, as the
nodes are numbered and as the package numbers them anew, where it does; and how long it takes to
decide and to renumber. One thread; the least processor times, both ways in turns.
"""

import argparse
import json
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from adgn._util.environment import load_average
from adgn.bench.run import describe_machine, measured_commit
from adgn.graph import SparseOperator, backend, clear_cache, graph_operator
from adgn.graph.locality import renumbered
from adgn.graph.native.library import NativeLibrary, native_library
from adgn.nn import integration_run
from adgn.nn.integration import integrate
from adgn.training import prepare, resolve_config
from adgn.training.checkpoint import OTHER_OUT, write_atomically

OUT = Path(__file__).resolve().parent.parent / "results" / "large-graphs.json"
DEGREE, CHANNELS, LAYERS = 24, 64, 10
TASKS = ("physics", "cs", "computers", "pubmed")


def neighbours(kind: str, nodes: int, generator: torch.Generator) -> Tensor:
    """`[nodes, DEGREE]`; the neighbours of each node, of a mesh along itself."""
    if kind == "random":
        return torch.randint(0, nodes, (nodes, DEGREE), generator=generator)
    if kind == "power law":
        drawn = torch.rand(nodes, DEGREE, generator=generator)
        return drawn.pow_(3).mul_(nodes).long().clamp_(max=nodes - 1)
    side = int(nodes**0.5)
    steps = [(a, b) for a in range(-2, 3) for b in range(-2, 3) if (a, b) != (0, 0)]
    row, column = torch.arange(nodes) // side, torch.arange(nodes) % side
    around = [(row + a) % side * side + (column + b) % side for a, b in steps]
    return torch.stack(around, 1)


def made(kind: str, edges: int) -> SparseOperator:
    """A graph of about so many edges."""
    side = round((edges / DEGREE) ** 0.5)
    nodes = side * side
    generator = torch.Generator().manual_seed(0)
    heard = neighbours(kind, nodes, generator)
    if kind != "mesh, along itself":
        place = torch.randperm(nodes, generator=generator)
        heard = place[heard[place.argsort()]]
    target = torch.arange(nodes).repeat_interleave(DEGREE)
    return graph_operator(torch.stack([heard.flatten(), target]), num_nodes=nodes)


def of_task(task: str, root: str) -> SparseOperator:
    """The graph of a node task, normalised as GCN does."""
    data = prepare(resolve_config({"task": {"name": task, "root": root}})).data
    batch = next(iter(data.train.batches(0)))
    return graph_operator(batch.graph, num_nodes=batch.x.size(0), normalization="gcn", like=batch.x)


def least(*ways: Callable[[], object]) -> list[float]:
    """The least processor times of three turns."""
    best = [float("inf")] * len(ways)
    for _ in range(3):
        for number, way in enumerate(ways):
            start = time.process_time()
            way()
            best[number] = min(best[number], time.process_time() - start)
    return best


def training_step(operator: SparseOperator, anew: bool) -> Callable[[], None]:
    """A-DGN forward and back, in the given order or in the one that the package chooses."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(operator.shape[0], CHANNELS, generator=generator).requires_grad_()
    draw = torch.randn(2, CHANNELS, CHANNELS, generator=generator) / CHANNELS
    w_self = (draw[:1] - draw[:1].mT - 0.1 * torch.eye(CHANNELS)).requires_grad_()
    w_neigh, bias = draw[1:].requires_grad_(), torch.zeros(1, CHANNELS, requires_grad=True)
    choose = integration_run.renumbered

    def step() -> None:
        integration_run.renumbered = choose if anew else lambda *_: None
        try:
            settings: dict[str, Any] = {"epsilon": 0.1, "act": torch.tanh, "num_steps": LAYERS}
            integrate(x, operator, w_self, w_neigh, bias, **settings).sum().backward()
        finally:
            integration_run.renumbered = choose

    return step


def measure(
    library: NativeLibrary, name: str, operator: SparseOperator, steps: bool
) -> dict[str, Any]:
    """Nanoseconds per edge: of a neighbour sum, of a layer in training, and of renumbering."""
    entries = operator.num_entries
    x = torch.randn(operator.shape[0], CHANNELS)
    start = time.process_time()
    found = renumbered(library, operator, CHANNELS * x.element_size())
    seconds = {"deciding": time.process_time() - start}
    other = operator if found is None else found.operator
    assert isinstance(other, SparseOperator)
    seconds["sum"], seconds["sum_anew"] = least(lambda: operator @ x, lambda: other @ x)
    if steps:
        ways = [training_step(operator, anew) for anew in (False, True)]
        seconds["layer"], seconds["layer_anew"] = (t / LAYERS for t in least(*ways))
    figures = {key: 1e9 * value / entries for key, value in seconds.items()}
    result = {"graph": name, "edges": entries, "renumbered": found is not None, "ns": figures}
    print(result, flush=True)
    return result


def cases(library: NativeLibrary, root: str) -> Iterator[dict[str, Any]]:
    """All graphs, one in memory at a time."""
    for kind in ("random", "power law", "mesh, at random", "mesh, along itself"):
        for edges in (10**6, 10**7, 4 * 10**7):
            clear_cache()
            yield measure(library, kind, made(kind, edges), steps=edges <= 10**7)
    for task in TASKS:
        yield measure(library, task, of_task(task, root), steps=True)


def main() -> None:
    """Parses the command line and measures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True, help="data root with the raw files of the graphs")
    parser.add_argument("--out", type=Path, default=OUT, help="default: results/large-graphs.json")
    arguments = parser.parse_args()
    library = native_library()
    if library is None:
        parser.error("the native kernels are not there")
    torch.set_num_threads(1)
    load = load_average()
    result = {
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "commit": measured_commit(),
        "machine": describe_machine(backend().instruction_set).model_dump(),
        "load_average": load,
        "cases": list(cases(library, arguments.data)),
    }
    write_atomically(arguments.out, (json.dumps(result, indent=1) + "\n").encode(), OTHER_OUT)
    print(f"wrote {arguments.out}")


if __name__ == "__main__":
    main()
