"""Measure the time and peak memory of reading a large graph from tables.

    python benchmarks/own_data.py            measure, write results/own_data.json and the docs
    python benchmarks/own_data.py --table    only write the table of docs/own-data.md

A million nodes with twelve columns and ten million edges with weights are written as Parquet files
into a temporary folder. Each step runs in a process of its own.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet

from adgn._util.environment import available_cores, git_commit, load_average, processor, versions
from adgn._util.files import write_file

REPOSITORY = Path(__file__).resolve().parents[1]
RESULTS = REPOSITORY / "results" / "own_data.json"
DOCS = REPOSITORY / "docs" / "own-data.md"
BEGIN, END = "<!-- generated: large -->", "<!-- end of large -->"
NODES, EDGES = 1_000_000, 10_000_000
REPEATS = 3
IDS = {"numbers": "ids are whole numbers", "text": "ids are text"}


def write_files(folder: Path, ids: str, nodes: int = NODES, edges: int = EDGES) -> None:
    """Tables of nodes and edges whose ids are in no order."""
    generator = np.random.default_rng(0)
    names = generator.permutation(10 * nodes)[:nodes]
    source, target = (names[generator.integers(0, nodes, edges)] for _ in range(2))

    def named(values: Any) -> pa.Array:
        numbers = pa.array(values)
        if ids == "numbers":
            return numbers
        return pa.compute.binary_join_element_wise("node-", numbers.cast(pa.string()), "")

    columns = {f"number{place}": generator.normal(size=nodes) for place in range(8)}
    kinds = pa.array([f"kind {place}" for place in range(30)])
    table = pa.table(
        {
            "id": named(names),
            **columns,
            "kind": kinds.take(pa.array(generator.integers(0, 30, nodes))),
            "member": generator.random(nodes) < 0.3,
            "income": pa.array(generator.gamma(2, 1000, nodes), mask=generator.random(nodes) < 0.1),
            "label": generator.integers(0, 5, nodes),
        }
    )
    pa.parquet.write_table(table, folder / "nodes.parquet")
    ends = {"source": named(source), "target": named(target), "weight": generator.random(edges)}
    pa.parquet.write_table(pa.table(ends), folder / "edges.parquet")


def measure_here(folder: Path) -> dict[str, Any]:
    """Read the files, decide about columns, make features and targets."""
    from adgn.bench.timing import peak_megabytes
    from adgn.data import Graph, Preprocessing, TargetEncoder

    before = peak_megabytes()
    start, cpu = time.perf_counter(), time.process_time()
    graph = Graph.from_tables(
        folder / "nodes.parquet", folder / "edges.parquet", target_column="label"
    )
    read = time.perf_counter()
    preprocessing = Preprocessing.fit(graph)
    features = preprocessing.transform(graph)
    target = TargetEncoder.fit(graph).encode(graph)
    done = time.perf_counter()
    return {
        "nodes": graph.num_nodes,
        "edges": graph.num_edges,
        "features": features.x.shape[1],
        "labels": int((target >= 0).sum()),
        "read_seconds": read - start,
        "features_seconds": done - read,
        "cpu_seconds": time.process_time() - cpu,
        "peak_mb": peak_megabytes(),
        "imports_mb": before,
    }


def measure(ids: str) -> dict[str, Any]:
    """Write files, and read them in new processes; the fastest counts, and the largest peak."""
    with tempfile.TemporaryDirectory() as folder:
        own = [sys.executable, "-W", "ignore", __file__]
        subprocess.run([*own, "--make", ids, folder], check=True)
        results: list[dict[str, Any]] = []
        for _ in range(REPEATS):
            run = subprocess.run(
                [*own, "--measure", folder], check=True, capture_output=True, text=True
            )
            results.append(json.loads(run.stdout.splitlines()[-1]))
            print(ids, json.dumps(results[-1]), flush=True)
    fastest = min(results, key=lambda result: result["read_seconds"])
    return {**fastest, "peak_mb": max(result["peak_mb"] for result in results)}


def measure_all() -> dict[str, Any]:
    """Both kinds of ids, and what they were measured with."""
    return {
        "date": datetime.now(timezone.utc).date().isoformat(),
        "commit": (git_commit() or ("unknown", False))[0][:7],
        "processor": processor(),
        "cores": available_cores(),
        "load_average": load_average(),
        "versions": versions("pyarrow", "numpy", "torch"),
        "runs": {ids: measure(ids) for ids in IDS},
    }


def table(results: dict[str, Any]) -> str:
    """The Markdown table of the docs, and before it what it says."""
    seconds = [run["read_seconds"] + run["features_seconds"] for run in results["runs"].values()]
    peaks = [run["peak_mb"] / 1000 for run in results["runs"].values()]
    lines = [
        f"From files to features it takes {min(seconds):.1f} to {max(seconds):.1f} s and at most "
        f"{max(peaks):.1f} GB.",
        "",
        "| | nodes | edges | features | reading, s | features, s | CPU time, s | peak memory, GB |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for ids, run in results["runs"].items():
        lines.append(
            f"| {IDS[ids]} | {run['nodes']:,} | {run['edges']:,} | {run['features']} | "
            f"{run['read_seconds']:.1f} | {run['features_seconds']:.1f} | "
            f"{run['cpu_seconds']:.1f} | {run['peak_mb'] / 1000:.2f} |"
        )
    packages = ", ".join(f"{name} {number}" for name, number in results["versions"].items())
    lines += [
        "",
        f"Measured on {results['date']} at commit `{results['commit']}`: {results['processor']}, "
        f"{results['cores']} cores, load average {results['load_average']:g} at the start; "
        f"{packages}. Each in a process of its own, the fastest of {REPEATS} "
        "runs and the largest memory, imports included: "
        "`python benchmarks/own_data.py`.",
    ]
    return "\n".join(lines)


def write_table(results: dict[str, Any]) -> None:
    """Put the table between the two marks of the docs page."""
    text = DOCS.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    DOCS.write_text(f"{before}{BEGIN}\n{table(results)}\n{END}{after}", encoding="utf-8")


def main() -> None:
    """Parse the arguments and do what they ask."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--table", action="store_true", help="only write the table of the docs")
    parser.add_argument("--make", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.make:
        write_files(Path(arguments.make[1]), arguments.make[0])
    elif arguments.measure:
        print(json.dumps(measure_here(arguments.measure)))
    else:
        if not arguments.table:
            write_file(RESULTS, json.dumps(measure_all(), indent=1).encode() + b"\n")
        write_table(json.loads(RESULTS.read_text(encoding="utf-8")))


if __name__ == "__main__":
    main()
