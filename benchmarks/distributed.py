"""Time per training step of one process with N threads against N ranks with one thread each.

Batches of graphs (`sssp`) and one partitioned graph (Physics, and a geometric graph with 10⁷
edges), and the bytes that come in per step against those that the partition says. The partitioned
ranks read nothing but their shards. One command writes `results/distributed.json`; on two quiet
cores it takes less than ten minutes:

    python -m benchmarks.distributed
"""

import argparse
import json
import queue
import statistics
import tempfile
import time
from dataclasses import fields
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
from adgn.data.packed import PackedGraphs
from adgn.distributed.exchange import RowExchange
from adgn.distributed.partition import partition, partition_quality
from adgn.distributed.ranks import ALONE, ProcessRanks, Ranks
from adgn.graph.partitioned import Received
from adgn.nn import build_model
from adgn.training import FullGraph, PackedBatches, TaskData, Trainer
from adgn.training.config import TaskConfig
from adgn.training.shards import read_shard, write_shards

CASES = ("batches", "physics", "geometric")
_HIDDEN = {"batches": 30, "physics": 64, "geometric": 32}
_LAYERS = {"batches": 20, "physics": 10, "geometric": 5}
_WARM = 2  # steps before those that are timed
_TASK = TaskConfig(name="benchmark")


class TimedExchange(RowExchange):
    """Counts the seconds in which a rank does nothing but wait for rows.

    Attributes:
        waited: Since it was last set to 0.
    """

    def __init__(self, ranks: ProcessRanks) -> None:
        super().__init__(ranks)
        self.waited = 0.0

    def send(
        self,
        rows: torch.Tensor,
        out: list[int],
        into: list[int],
        place: torch.Tensor | None = None,
    ) -> Received:
        """See `RowExchange`."""
        received = super().send(rows, out, into, place)

        def timed() -> torch.Tensor:
            started = time.perf_counter()
            found = received()
            self.waited += time.perf_counter() - started
            return found

        return timed


def geometric(nodes: int, degree: int) -> torch.Tensor:
    """Edges of each node to its nearest ones in the plane, both directions."""
    points = np.random.default_rng(0).random((nodes, 2))
    points = points[np.argsort((points[:, 0] * 64).astype(int) + points[:, 1])]
    _, near = cKDTree(points).query(points, k=degree // 2 + 1)
    source = np.repeat(np.arange(nodes), degree // 2)
    ends = torch.from_numpy(np.stack([source, near[:, 1:].reshape(-1)]))
    return torch.cat([ends, ends.flip(0)], dim=1).long()


def tensors_of(case: str, edges: float) -> dict[str, Any]:
    """The data of a case, made once for all processes."""
    if case == "batches":
        from adgn.data import GraphPropertyDataset

        packed = GraphPropertyDataset(None, "train", "sssp").packed
        return {field.name: getattr(packed, field.name) for field in fields(PackedGraphs)}
    if case == "physics":
        from adgn.data import load

        data = load("physics")
        return {"x": data.x, "edge_index": data.edge_index, "y": data.y}
    nodes = int(edges) // 10
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(nodes, 16, generator=generator)
    y = torch.randint(0, 8, (nodes,), generator=generator)
    return {"x": x, "edge_index": geometric(nodes, 10), "y": y}


def source_of(tensors: dict[str, Any]) -> PackedBatches | FullGraph:
    """The train batches."""
    if "node_ptr" in tensors:
        return PackedBatches(PackedGraphs(**tensors), 512, seed=0)
    x, edge_index, y = (tensors[name] for name in ("x", "edge_index", "y"))
    return FullGraph(x, edge_index, y, torch.arange(x.size(0)) % 5 == 0)


def measure(message: dict[str, Any], ranks: Ranks) -> dict[str, Any]:
    """Seconds of each step, those of waiting among them, and the bytes that came in per step."""
    case, steps, folder = message["case"], message["steps"], Path(message["folder"])
    exchange = TimedExchange(ranks) if isinstance(ranks, ProcessRanks) else None
    source: Any
    if exchange is not None and case != "batches":
        source = read_shard(folder, ranks, _TASK, exchange=exchange).train
    else:
        source = source_of(torch.load(folder / "data.pt", weights_only=True, mmap=True))
    if exchange is not None and isinstance(source, PackedBatches):
        source = source.part_of(ranks.rank, ranks.size)
    torch.manual_seed(0)
    sizes = (message["features"], _HIDDEN[case], message["outputs"], _LAYERS[case])
    phi = "gcn" if case == "physics" else "sum"
    model = build_model("adgn", *sizes, level="node", phi=phi)
    objective = "regression" if case == "batches" else "classification"
    trainer = Trainer(model, source, objective=objective, ranks=ranks)
    batches = [batch for _, batch in zip(range(2), source.batches(0), strict=False)]
    seconds, waited, received = [], [], 0
    for step in range(steps + _WARM):
        ranks.sums([0.0])  # all begin at once
        if exchange is not None:
            exchange.waited = 0.0
            received = exchange.received if step == _WARM else received
        started = time.perf_counter()
        trainer._step(trainer._backward(batches[step % len(batches)]))
        seconds.append(time.perf_counter() - started)
        waited.append(0.0 if exchange is None else exchange.waited)
    return {
        "seconds": seconds[_WARM:],
        "waited": waited[_WARM:],
        "received": 0 if exchange is None else (exchange.received - received) / steps,
    }


def serve(message: dict[str, Any], stop: object) -> dict[str, Any]:
    """A rank, or one process with several threads."""
    torch.set_num_threads(message["threads"])
    if message["size"] == 1:
        return measure(message, ALONE)
    store = TCPStore("127.0.0.1", message["port"], is_master=False, timeout=timedelta(seconds=600))
    with ProcessRanks(store, message["rank"], message["size"], timeout=600) as ranks:
        return measure(message, ranks)


def run(size: int, threads: int, message: dict[str, Any], function: str) -> list[dict[str, Any]]:
    """What so many processes with so many threads each measure."""
    limit = timedelta(seconds=600)
    store = TCPStore("127.0.0.1", 0, is_master=True, timeout=limit, wait_for_workers=False)
    answers: list[queue.Queue[Answer]] = [queue.Queue() for _ in range(size)]
    workers = [Worker(function, found, threads=threads) for found in answers]
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


def prepared(case: str, size: int, edges: float, folder: Path) -> tuple[dict[str, Any], Any]:
    """Writes the data of a case, whole and as shards; the message to processes, and the quality."""
    tensors = tensors_of(case, edges)
    torch.save(tensors, folder / "data.pt")
    features = tensors["x"].size(1)
    message: dict[str, Any] = {"case": case, "folder": str(folder), "features": features}
    if case == "batches":
        return {**message, "outputs": 1}, None
    source = source_of(tensors)
    assert isinstance(source, FullGraph)
    outputs, ends = int(tensors["y"].max()) + 1, tensors["edge_index"]
    method = "blocks" if case == "geometric" else "auto"  # its nodes are in an order
    owner = partition(ends, source.whole.x.size(0), size, method)
    data = TaskData(features, outputs, "node", source, {"train": source}, {})
    write_shards(folder, data, owner, size, _TASK)
    return {**message, "outputs": outputs}, partition_quality(ends, owner, size)


def compare(
    case: str, size: int, edges: float, steps: int, rounds: int, folder: Path
) -> dict[str, Any]:
    """One process with `size` threads and as many ranks, in turns."""
    message, quality = prepared(case, size, edges, folder)
    message["steps"] = steps
    # There and back in each layer; what comes back is what was sent.
    products = 2 * _LAYERS[case]
    expected = 0 if quality is None else products * quality.bytes_per_product(_HIDDEN[case])
    one: list[float] = []
    ranks: list[dict[str, list[float]]] = [{"seconds": [], "waited": []} for _ in range(size)]
    for _ in range(rounds):
        one += run(1, size, message, "benchmarks.distributed:serve")[0]["seconds"]
        several = run(size, 1, message, "benchmarks.distributed:serve")
        for times, found in zip(ranks, several, strict=True):
            for name, before in times.items():
                before += found[name]
    medians = [{name: statistics.median(t) for name, t in times.items()} for times in ranks]
    slowest = max(medians, key=lambda found: found["seconds"])
    alone, seconds = statistics.median(one), slowest["seconds"]
    return {
        "case": case,
        "layers": _LAYERS[case],
        "hidden": _HIDDEN[case],
        "ranks": size,
        "steps": len(one),
        "one_process_seconds": alone,
        "ranks_seconds": seconds,
        "ratio": seconds / alone,
        "waited_seconds": slowest["waited"],
        "received_bytes_per_step": sum(found["received"] for found in several),
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
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("results/distributed.json"))
    options = parser.parse_args()
    found = []
    content = {"date": datetime.now(UTC).date().isoformat(), "environment": environment()}
    options.out.parent.mkdir(parents=True, exist_ok=True)
    for case in options.cases.split(","):
        load, started = load_average(), time.perf_counter()
        sizes = (options.ranks, options.edges, options.steps, options.rounds)
        with tempfile.TemporaryDirectory() as folder:
            row = compare(case, *sizes, Path(folder))
        took = round(time.perf_counter() - started)
        found.append({**row, "edges": options.edges, "load_before": load, "took_seconds": took})
        print(json.dumps(found[-1], indent=1), flush=True)
        text = json.dumps({**content, "cases": found}, indent=1)
        write_file(options.out, text.encode() + b"\n")


if __name__ == "__main__":
    main()
