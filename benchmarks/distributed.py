"""Time per training step of one process with N threads against N ranks with one thread each.

Batches of graphs (`sssp`) and one partitioned graph (Physics, and a random geometric graph with
10⁷ edges), and the bytes that come in per step against those that the partition says. One
command writes `results/distributed.json`:

    python benchmarks/distributed.py
"""

import argparse
import json
import queue
import statistics
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.spatial import cKDTree
from torch._C._distributed_c10d import TCPStore

from adgn._util.environment import environment, load_average
from adgn._util.files import write_file
from adgn._util.processes import Answer, Worker
from adgn.distributed.exchange import RowExchange
from adgn.distributed.partition import partition, partition_quality
from adgn.distributed.ranks import ALONE, ProcessRanks, Ranks
from adgn.graph import PartitionedGraph
from adgn.nn import build_model
from adgn.training import FullGraph, PackedBatches, Trainer

CASES = ("batches", "physics", "geometric")
_HIDDEN = {"batches": 30, "physics": 64, "geometric": 32}
_LAYERS = {"batches": 20, "physics": 10, "geometric": 5}


def geometric(nodes: int, degree: int) -> torch.Tensor:
    """Edges of each node to its nearest ones in the plane, both directions."""
    points = np.random.default_rng(0).random((nodes, 2))
    points = points[np.argsort((points[:, 0] * 64).astype(int) + points[:, 1])]
    _, near = cKDTree(points).query(points, k=degree // 2 + 1)
    source = np.repeat(np.arange(nodes), degree // 2)
    ends = torch.from_numpy(np.stack([source, near[:, 1:].reshape(-1)]))
    return torch.cat([ends, ends.flip(0)], dim=1).long()


def data_of(case: str, edges: float) -> tuple[Any, int, int]:
    """The train batches, and features and outputs per node."""
    if case == "batches":
        from adgn.data import GraphPropertyDataset

        packed = GraphPropertyDataset(None, "train", "sssp").packed
        return PackedBatches(packed, 512, seed=0), packed.x.size(1), 1
    if case == "physics":
        from adgn.data import load

        data = load("physics")
        x, ends, y = data.x, data.edge_index, data.y
    else:
        ends = geometric(int(edges) // 10, 10)
        generator = torch.Generator().manual_seed(0)
        nodes = int(edges) // 10
        x = torch.randn(nodes, 16, generator=generator)
        y = torch.randint(0, 8, (nodes,), generator=generator)
    return FullGraph(x, ends, y, torch.arange(x.size(0)) % 5 == 0), x.size(1), int(y.max()) + 1


def measure(case: str, edges: float, steps: int, ranks: Ranks, owner: Path) -> dict[str, Any]:
    """Seconds per step, and bytes that came in."""
    source, features, outputs = data_of(case, edges)
    exchange = None
    result: dict[str, Any] = {}
    if ranks.size > 1 and isinstance(source, PackedBatches):
        source = source.part_of(ranks.rank, ranks.size)
    elif isinstance(ranks, ProcessRanks):
        whole = source.whole
        parts = torch.from_numpy(np.load(owner)).long()
        exchange = RowExchange(ranks)
        part = PartitionedGraph(whole.graph, None, parts, ranks.rank, ranks.size, exchange)
        from adgn.data.features import select_rows

        source = source.part_of(part, select_rows(whole.x, part.nodes))
    torch.manual_seed(0)
    options = {"phi": "gcn" if case == "physics" else "sum"}
    level = "node"
    model = build_model(
        "adgn", features, _HIDDEN[case], outputs, _LAYERS[case], level=level, **options
    )
    objective = "regression" if case == "batches" else "classification"
    trainer = Trainer(model, source, objective=objective, ranks=ranks)
    batches = [batch for _, batch in zip(range(2), source.batches(0), strict=False)]
    seconds = []
    for step in range(steps + 2):
        if step == 2 and exchange is not None:
            exchange.received = 0
        ranks.sums([0.0])  # all begin at once
        started = time.perf_counter()
        trainer._step(trainer._backward(batches[step % len(batches)]))
        seconds.append(time.perf_counter() - started)
    result["seconds"] = statistics.median(seconds[2:])
    result["received"] = 0 if exchange is None else exchange.received / steps
    return result


def serve(message: dict[str, Any], stop: object) -> dict[str, Any]:
    """A rank, or one process with several threads."""
    torch.set_num_threads(message["threads"])
    rest = (message["case"], message["edges"], message["steps"])
    owner = Path(message["owner"])
    if message["size"] == 1:
        return measure(*rest, ALONE, owner)
    store = TCPStore("127.0.0.1", message["port"], is_master=False, timeout=timedelta(seconds=600))
    with ProcessRanks(store, message["rank"], message["size"], timeout=600) as ranks:
        return measure(*rest, ranks, owner)


def run(size: int, threads: int, message: dict[str, Any]) -> list[dict[str, Any]]:
    """What so many processes with so many threads each measure."""
    limit = timedelta(seconds=600)
    store = TCPStore("127.0.0.1", 0, is_master=True, timeout=limit, wait_for_workers=False)
    answers: list[queue.Queue[Answer]] = [queue.Queue() for _ in range(size)]
    workers = [Worker("benchmarks.distributed:serve", found, threads=threads) for found in answers]
    try:
        for rank, worker in enumerate(workers):
            place = {"rank": rank, "size": size, "port": store.port, "threads": threads}
            worker.give({**message, **place})
        found = [queued.get(timeout=1200) for queued in answers]
    finally:
        Worker.stop_all(workers, 10.0)
    if any(answer.ended for answer in found):
        raise SystemExit("a process ended; what it said is above")
    return [answer.content for answer in found]


def compare(case: str, size: int, edges: float, steps: int, folder: Path) -> dict[str, Any]:
    """One process with `size` threads, and as many ranks."""
    owner, expected, quality = folder / f"{case}.npy", 0, None
    if case != "batches":
        source, _, _ = data_of(case, edges)
        ends = source.whole.graph
        nodes = source.whole.x.size(0)
        method = "blocks" if case == "geometric" else "auto"  # its nodes are in an order
        parts = partition(ends, nodes, size, method)
        np.save(owner, parts.numpy())
        quality = partition_quality(ends, parts, size)
        # There and back in each layer; what comes back is what was sent.
        expected = 2 * _LAYERS[case] * quality.bytes_per_product(_HIDDEN[case])
    message = {"case": case, "edges": edges, "steps": steps, "owner": str(owner)}
    (one,) = run(1, size, message)
    several = run(size, 1, message)
    seconds = max(found["seconds"] for found in several)
    received = sum(found["received"] for found in several)
    return {
        "case": case,
        "layers": _LAYERS[case],
        "hidden": _HIDDEN[case],
        "ranks": size,
        "steps": steps,
        "one_process_seconds": one["seconds"],
        "ranks_seconds": seconds,
        "ratio": seconds / one["seconds"],
        "received_bytes_per_step": received,
        "partition_bytes_per_step": expected,
        "partition": None if quality is None else str(quality),
    }


def main() -> None:
    """Measures, prints and writes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--edges", type=float, default=1e7, help="of the geometric graph")
    parser.add_argument("--steps", type=int, default=7)
    parser.add_argument("--out", type=Path, default=Path("results/distributed.json"))
    options = parser.parse_args()
    import tempfile

    found = []
    with tempfile.TemporaryDirectory() as folder:
        for case in options.cases.split(","):
            load = load_average()
            row = compare(case, options.ranks, options.edges, options.steps, Path(folder))
            found.append({**row, "load_before": load})
            print(json.dumps(found[-1], indent=1), flush=True)
    content = {"date": datetime.now(UTC).date().isoformat(), "environment": environment()}
    options.out.parent.mkdir(parents=True, exist_ok=True)
    write_file(options.out, json.dumps({**content, "cases": found}, indent=1).encode() + b"\n")


if __name__ == "__main__":
    main()
