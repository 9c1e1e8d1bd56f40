"""How much training several runs of one configuration at once could save at best.

    python benchmarks/several_runs.py --data FOLDER     # measure, write results/several-runs.json

Runs that share graph and features could be trained as one: one call does for all of them what each
would call for by itself. What that can save is the time of a step that does not grow with the runs.
A step on R copies of the graph side by side, with one set of weights, does the arithmetic of R runs
in the calls of one; with weights of their own they would do more. R steps of one run over one such
step is therefore the most that could be gained. One thread, the least processor time over turns
that alternate between both.
"""

import argparse
import json
import time
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from adgn._util.environment import load_average
from adgn.bench.run import describe_machine, measured_commit
from adgn.graph import backend
from adgn.nn import build_model
from adgn.training import prepare, resolve_config
from adgn.training.batches import LabelledBatch
from adgn.training.checkpoint import OTHER_OUT, write_atomically

OUT = Path(__file__).resolve().parent.parent / "results" / "several-runs.json"
TASKS = ("texas", "chameleon", "photo")
COPIES = (1, 4)


def copied(x: Tensor, copies: int) -> Tensor:
    """Rows one below the other, dense or CSR."""
    if x.layout == torch.strided:
        return x.repeat(copies, 1)
    counts = x.crow_indices().diff().repeat(copies)
    pointers = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
    col, value = x.col_indices().repeat(copies), x.values().repeat(copies)
    shape = (copies * x.size(0), x.size(1))
    return torch.sparse_csr_tensor(pointers, col, value, shape, check_invariants=True)


def training_step(batch: LabelledBatch, classes: int, copies: int) -> Callable[[], None]:
    """A step of A-DGN with gcn, 10 layers and 64 units, on copies of a graph."""
    assert isinstance(batch.graph, Tensor) and batch.rows is not None
    nodes = batch.x.size(0)
    shift = nodes * torch.arange(copies)
    edges = (batch.graph.unsqueeze(1) + shift.view(1, -1, 1)).flatten(1)
    rows = (batch.rows + shift.unsqueeze(1)).flatten()
    x, y = copied(batch.x, copies), batch.y.repeat(copies)
    torch.manual_seed(0)
    network = build_model("adgn", batch.x.size(1), 64, classes, 10, phi="gcn")
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3, fused=True)

    def step() -> None:
        output = network(x, edges)[rows]
        torch.nn.functional.cross_entropy(output, y).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step


def measure(task: str, root: str, turns: int) -> dict[str, Any]:
    """Milliseconds per step of one run and of several at once."""
    data = prepare(resolve_config({"task": {"name": task, "root": root}})).data
    batch = next(iter(data.train.batches(0)))
    best = dict.fromkeys(COPIES, float("inf"))
    steps = {copies: training_step(batch, data.out_channels, copies) for copies in COPIES}
    for _ in range(turns):
        for copies, step in steps.items():
            start = time.process_time()
            step()
            best[copies] = min(best[copies], time.process_time() - start)
    gain = COPIES[-1] * best[1] / best[COPIES[-1]]
    print(f"{task:12} {1e3 * best[1]:8.2f} {1e3 * best[COPIES[-1]]:8.2f} ms, at most {gain:.2f} ×")
    one, several = (1e3 * best[copies] for copies in COPIES)
    return {"task": task, "copies": COPIES[-1], "one": one, "several": several, "at_most": gain}


def main() -> None:
    """Parses the command line and measures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True, help="data root with the raw files of the graphs")
    parser.add_argument("--out", type=Path, default=OUT, help="default: results/several-runs.json")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    load, turns = load_average(), {"texas": 300, "chameleon": 30, "photo": 12}
    result = {
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "commit": measured_commit(),
        "machine": describe_machine(backend().instruction_set).model_dump(),
        "load_average": load,
        "cases": [measure(task, arguments.data, turns[task]) for task in TASKS],
    }
    write_atomically(arguments.out, (json.dumps(result, indent=1) + "\n").encode(), OTHER_OUT)
    print(f"wrote {arguments.out}")


if __name__ == "__main__":
    main()
