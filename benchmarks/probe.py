"""Measure what the probe finds, and how long it takes.

    python benchmarks/probe.py                     measure what is missing, write the docs
    python benchmarks/probe.py chameleon large     measure these again
    python benchmarks/probe.py --table             only write the tables of docs/probe.md

`large` is a random graph of a million nodes and ten million edges, whose target is the mean of its
out-neighbours' features. Results are written after each, to results/probe.json.
"""

import argparse
import json
import sys
import time
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np
import torch

from adgn._util.environment import available_cores, git_commit, load_average, processor, versions
from adgn._util.files import write_file

REPOSITORY = Path(__file__).resolve().parents[1]
RESULTS = REPOSITORY / "results" / "probe.json"
DOCS = REPOSITORY / "docs" / "probe.md"
BEGIN, END = "<!-- generated: probe -->", "<!-- end of probe -->"
TASKS = (
    *("texas", "actor", "cora", "pubmed", "laplacian", "sssp", "eccentricity", "diameter"),
    *("chameleon", "squirrel"),
)
ONE_HOP = ("chameleon", "squirrel")  # also one hop of GCN's operator alone, in and out
LARGE = "large"
NODES, EDGES = 1_000_000, 10_000_000
TITLES = {"log10_mse": "log10 MSE", "accuracy": "accuracy, %", "r2": "R²"}


def large_graph(nodes: int = NODES, edges: int = EDGES) -> Any:
    """A random directed graph: features are noise, the target is one hop away."""
    import adgn

    generator = np.random.default_rng(0)
    ends = generator.integers(0, nodes, (2, edges))
    x = generator.normal(size=(nodes, 20)).astype(np.float32)
    total = np.bincount(ends[0], weights=x[ends[1], 0], minlength=nodes)
    y = total / np.maximum(np.bincount(ends[0], minlength=nodes), 1)
    noise = generator.normal(size=nodes) * y.std() / 2
    return adgn.Graph.from_arrays(x, ends, y=(y + noise).astype(np.float32))


def _import_everything() -> None:
    """So that no measurement has the time of imports."""
    import torch_geometric.datasets  # noqa: F401
    from sklearn.utils.extmath import randomized_svd  # noqa: F401

    import adgn.analysis.probe.api
    import adgn.tasks  # noqa: F401


def measure(name: str) -> dict[str, Any]:
    """What the probe finds, with the time it takes."""
    import adgn

    torch.set_num_threads(available_cores() if name == LARGE else 1)
    _import_everything()
    graph: Any = large_graph() if name == LARGE else name
    before, cpu, clock = load_average(), time.process_time(), time.perf_counter()
    found = adgn.probe(graph, splits=1 if name == LARGE else None)
    record = {
        "seconds": round(time.perf_counter() - clock, 2),
        "processor_seconds": round(time.process_time() - cpu, 2),
        "threads": torch.get_num_threads(),
        "load_before": before,
        "findings": {k: v for k, v in found.to_json().items() if k not in ("screened", "seconds")},
    }
    if name in ONE_HOP:
        alone = adgn.probe(
            name, hops=1, operators=["gcn"], directions=["in", "out"], alone=True
        ).to_json()
        record["one_hop_gcn"] = {side: alone["scores"][side]["1"] for side in ("in", "out")}
    record["date"] = datetime.now(timezone.utc).isoformat(timespec="seconds")
    record["commit"] = git_commit()
    return record


def score(record: dict[str, Any], spread: dict[str, float]) -> str:
    """A score as the table has it."""
    if record["findings"]["metric"] == "accuracy":
        return f"{100 * spread['mean']:.1f}"
    return f"{spread['mean']:.2f}"


def table(results: dict[str, Any]) -> str:
    """The tables of the docs."""
    helped = [n for n, one in results["measured"].items() if one["findings"]["helps"]]
    turned = [
        f"{n} (`{results['measured'][n]['findings']['direction']}`)"
        for n in helped
        if results["measured"][n]["findings"]["directed"] and n != LARGE
    ]
    lines = [
        f"The graph helps on {len(helped)} of {len(results['measured'])}"
        + (f"; the direction matters on {', '.join(turned)}." if turned else "."),
        "",
        "| data | metric | constant | features alone | best | direction | hops | operator | helps "
        "| warnings | seconds |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name in (*TASKS, LARGE):
        if name not in results["measured"]:
            continue
        record = results["measured"][name]
        found = record["findings"]
        way = found["scores"][found["direction"]]
        hop = str(found["hops"]) if found["helps"] else max(way, key=int)
        best = score(record, way[hop]) if found["helps"] else "–"
        alone = ", last hop" if found["last_hop_alone"] and found["hops"] > 1 else ""
        cells = [
            "1M nodes, 10M edges" if name == LARGE else f"`{name}`",
            TITLES[found["metric"]],
            score(record, found["constant"]),
            score(record, found["features_only"]),
            best,
            found["direction"] if found["helps"] and found["directed"] else "–",
            str(found["hops"]) if found["helps"] else "0",
            f"{found['operator']}{alone}" if found["helps"] else "–",
            "yes" if found["helps"] else "no" if found["gain"]["mean"] <= 0 else "not sure",
            ", ".join(warning["kind"] for warning in found["warnings"]) or "–",
            f"{record['processor_seconds']:.0f}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    machine = results["machine"]
    lines += [
        "",
        f"Seconds are those of the processor, {machine['processor']}, on one thread "
        f"(the last row: {results['measured'].get(LARGE, {}).get('threads', 2)} threads).",
    ]
    pairs = [
        f"{name.title()} in {score(r, r['one_hop_gcn']['in'])} %, out "
        f"{score(r, r['one_hop_gcn']['out'])} %"
        for name in ONE_HOP
        if (r := results["measured"].get(name)) is not None
    ]
    if pairs:
        lines += ["", f"One hop of GCN's operator alone, `--operator gcn --hops 1 --last-hop`: "
                  f"{'; '.join(pairs)}."]  # fmt: skip
    return "\n".join(lines)


def write_docs(results: dict[str, Any]) -> None:
    """Puts the tables between their marks."""
    text = DOCS.read_text(encoding="utf-8")
    first, last = text.index(BEGIN) + len(BEGIN), text.index(END)
    write_file(DOCS, f"{text[:first]}\n{table(results)}\n{text[last:]}".encode())


def main() -> None:
    """Measure what is asked for, or what is missing."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", choices=(*TASKS, LARGE, []))
    parser.add_argument("--table", action="store_true", help="only write the docs")
    arguments = parser.parse_args()
    results: dict[str, Any] = {"measured": {}}
    if RESULTS.exists():
        results = json.loads(RESULTS.read_text(encoding="utf-8"))
    if not arguments.table:
        missing = [n for n in (*TASKS, LARGE) if n not in results["measured"]]
        results["machine"] = {
            "processor": processor(),
            "cores": available_cores(),
            "versions": versions("torch", "numpy", "scipy", "scikit-learn"),
        }
        for name in arguments.names or missing:
            print(name, file=sys.stderr, flush=True)
            results["measured"][name] = measure(name)
            write_file(RESULTS, json.dumps(results, indent=1).encode() + b"\n")
    if DOCS.exists():
        write_docs(results)


if __name__ == "__main__":
    main()
