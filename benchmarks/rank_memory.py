"""Peak memory of a rank with its shard, of a rank that reads the whole graph, and of one process.

Each trains two epochs of A-DGN on a graph of 10⁶ nodes and 10⁷ edges: a geometric one, of which
few edges join two ranks, and a uniformly random one, of which half of them do. One command writes
`results/rank-memory.json`:

    python -m benchmarks.rank_memory
"""

import argparse
import json
import re
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import torch
from torch._C._distributed_c10d import TCPStore

from adgn._util.environment import environment
from adgn._util.files import write_file
from adgn.distributed.partition import partition, partition_quality, write_partition
from adgn.distributed.ranks import ALONE, ProcessRanks
from adgn.training import FullGraph, TaskData, register_task, resolve_config, train
from adgn.training.config import TaskConfig
from adgn.training.shards import write_shards
from benchmarks.distributed import geometric, run

_FEATURES, _CLASSES, _DEGREE = 16, 8, 10
_TINY = 100  # nodes of a graph that takes no memory: what is left is the program's own


class FileConfig(TaskConfig):
    """Where the graph is."""

    file: str = ""


@register_task("graph-in-a-file", objective="classification", config=FileConfig)
def build(config: Any, device: torch.device, progress: Any) -> TaskData:
    """Features, edges and classes from a file, without a copy."""
    tensors = torch.load(FileConfig.of(config).file, weights_only=True, mmap=True)
    x, edges, y = (tensors[name] for name in ("x", "edge_index", "y"))
    sources: dict[Any, Any] = {
        split: FullGraph(x, edges, y, torch.arange(x.size(0)) % 5 == place)
        for place, split in enumerate(("train", "val"))
    }
    return TaskData(_FEATURES, _CLASSES, "node", sources["train"], sources, {})


def settings(file: Path, layers: int, hidden: int) -> dict[str, Any]:
    """A run of two epochs."""
    model = {"name": "adgn", "num_layers": layers, "hidden_channels": hidden, "phi": "gcn"}
    task = {"name": "graph-in-a-file", "file": str(file)}
    return {"task": task, "model": model, "loop": {"max_epochs": 2}}


def peak() -> int:
    """The most bytes that this process had in memory so far, files that it maps included.

    Not `ru_maxrss`, in which Linux counts what the process had that this one was started from.
    """
    found = re.search(r"^VmHWM:\s+(\d+) kB$", Path("/proc/self/status").read_text(), re.MULTILINE)
    if found is None:
        raise SystemExit("this system does not say how much memory a process had at most")
    return 1024 * int(found[1])


def serve(message: dict[str, Any], stop: object) -> dict[str, Any]:
    """A process that does one thing; its memory at most."""
    torch.set_num_threads(message["threads"])
    file = Path(message["file"])
    if message["kind"] == "partition":
        _partition(file, Path(message["folder"]), message["parts"], message["settings"])
    elif message["size"] == 1:
        train(message["settings"], ranks=ALONE)
    else:
        limit = timedelta(seconds=600)
        store = TCPStore("127.0.0.1", message["port"], is_master=False, timeout=limit)
        with ProcessRanks(store, message["rank"], message["size"], timeout=600) as ranks:
            train(message["settings"], ranks=ranks, partition=message["partition"])
    return {"peak": peak()}


def _partition(file: Path, folder: Path, parts: int, given: dict[str, Any]) -> None:
    config = resolve_config(given)
    data = build(config, torch.device("cpu"), None)
    whole = data.train.whole  # type: ignore[attr-defined]
    owner = partition(whole.graph, whole.x.size(0), parts, "blocks")
    write_partition(folder / "owners.safetensors", owner, whole.graph, parts)
    write_shards(folder / "shards", data, owner, parts, config.task)


def graph_of(kind: str, nodes: int) -> dict[str, torch.Tensor]:
    """A graph with features and classes."""
    generator = torch.Generator().manual_seed(0)
    if kind == "geometric":
        edges = geometric(nodes, _DEGREE)
    else:
        half = torch.randint(0, nodes, (2, nodes * _DEGREE // 2), generator=generator)
        edges = torch.cat([half, half.flip(0)], dim=1)
    x = torch.randn(nodes, _FEATURES, generator=generator)
    y = torch.randint(0, _CLASSES, (nodes,), generator=generator)
    return {"x": x, "edge_index": edges, "y": y}


def compare(kind: str, options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """The peaks of all processes for one graph."""
    nodes, parts, file = int(options.nodes), options.ranks, folder / "graph.pt"
    tiny = folder / "tiny.pt"
    torch.save(graph_of("random", _TINY), tiny)
    tensors = graph_of(kind, nodes)
    torch.save(tensors, file)
    quality = partition_quality(
        tensors["edge_index"], partition(tensors["edge_index"], nodes, parts, "blocks"), parts
    )
    del tensors
    told: dict[str, Any] = {"file": str(file), "folder": str(folder), "parts": parts}
    told["settings"] = settings(file, options.layers, options.hidden)

    def peaks(name: str, size: int, **message: Any) -> int:
        given = {**told, "kind": name, **message}
        found = run(size, 1, given, "benchmarks.rank_memory:serve")
        return max(each["peak"] for each in found)

    writing = peaks("partition", 1)
    given = settings(tiny, options.layers, options.hidden)
    nothing = peaks("ranks", parts, settings=given, partition="blocks")
    one = peaks("one process", 1)
    whole = peaks("ranks", parts, partition=str(folder / "owners.safetensors"))
    shards = peaks("shards", parts, partition=str(folder / "shards"))
    files = sorted((folder / "shards").iterdir())
    return {
        "graph": kind,
        "nodes": nodes,
        "edges": nodes * _DEGREE,
        "layers": options.layers,
        "hidden": options.hidden,
        "ranks": parts,
        "partition": str(quality),
        "shard_bytes": max(path.stat().st_size for path in files),
        "tiny_graph": nothing,
        "one_process": one,
        "rank_reads_whole": whole,
        "rank_with_shard": shards,
        "partitioning": writing,
    }


def main() -> None:
    """Measures, prints and writes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--graphs", default="geometric,random")
    parser.add_argument("--nodes", type=float, default=1e6, help="a tenth of the edges")
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--hidden", type=int, default=8)
    parser.add_argument("--out", type=Path, default=Path("results/rank-memory.json"))
    options = parser.parse_args()
    found = []
    content = {"date": datetime.now(UTC).date().isoformat(), "environment": environment()}
    options.out.parent.mkdir(parents=True, exist_ok=True)
    for kind in options.graphs.split(","):
        with tempfile.TemporaryDirectory() as folder:
            found.append(compare(kind, options, Path(folder)))
        print(json.dumps(found[-1], indent=1), flush=True)
        text = json.dumps({**content, "graphs": found}, indent=1)
        write_file(options.out, text.encode() + b"\n")


if __name__ == "__main__":
    main()
