"""Writes generated parts of docs/distributed.md: what a rank needs, and what a step takes.

    python scripts/document_distributed.py            # prints the page
    python scripts/document_distributed.py --write

The figures are those of results/rank-memory.json, which benchmarks/rank_memory.py measures, and of
results/distributed.json, by benchmarks/distributed.py.
"""

import json
from pathlib import Path
from typing import Any

from pages import fill_places, markdown_table, print_or_write

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "distributed.md"
MEMORY = ROOT / "results" / "rank-memory.json"
STEPS = ROOT / "results" / "distributed.json"
GOAL = 1.25
TITLES = {
    "batches": "`sssp`, batches of 512 graphs",
    "physics": "Physics, partitioned",
    "geometric": "a geometric graph, partitioned",
}


def measured(results: dict[str, Any], command: str) -> str:
    """Where and when."""
    about = results["environment"]
    commit = about["git_commit"] or "an unknown commit"
    return f"{about['processor']}, {results['date']}, commit {commit[:7]}: `python -m {command}`."


def megabytes(count: float) -> str:
    """Bytes in MB."""
    return f"{count / 1e6:,.0f}" if count >= 1e7 else f"{count / 1e6:.2f}"


def _share(graph: dict[str, Any], name: str) -> float:
    """What a process needs for the graph, the program itself left out, of what one alone needs."""
    return (graph[name] - graph["tiny_graph"]) / (graph["one_process"] - graph["tiny_graph"])


def memory(results: dict[str, Any]) -> str:
    """The peaks of processes, by graph."""
    head = ["graph", "a rank of a tiny graph", "one process", "a rank that reads the whole graph"]
    head += ["a rank with its shard", "its shard", "`adgn partition`"]
    names = ("tiny_graph", "one_process", "rank_reads_whole", "rank_with_shard", "shard_bytes")
    rows = [
        [graph["graph"], *(megabytes(graph[name]) for name in (*names, "partitioning"))]
        for graph in results["graphs"]
    ]
    first = results["graphs"][0]
    cuts = "; ".join(f"{graph['graph']}: {graph['partition']}" for graph in results["graphs"])
    said = "; ".join(
        f"{graph['graph']} graph: {_share(graph, 'rank_with_shard'):.2f} with its shard, "
        f"{_share(graph, 'rank_reads_whole'):.2f} without"
        for graph in results["graphs"]
    )
    return (
        f"What one of {first['ranks']} ranks needs above a tiny graph's run, in units of what one "
        f"process needs: {said}.\n\n"
        + markdown_table(head, rows)
        + f"\nPeak resident memory in MB of a training with {first['ranks']} ranks, "
        f"{first['layers']} layers of {first['hidden']} channels (so few "
        f"that the graph is most of it), on graphs of "
        f"{first['nodes']:,} nodes and {first['edges']:,} edges, partitioned by `blocks`. "
        f"{cuts}. " + measured(results, "benchmarks.rank_memory")
    )


def steps(results: dict[str, Any]) -> str:
    """Time per step, and bytes against those of the partition."""
    rows = []
    for case in results["cases"]:
        said, came = case["partition_bytes_per_step"], case["received_bytes_per_step"]
        title = TITLES[case["case"]]
        if case["case"] == "geometric":
            title += f", {case['edges']:.3g} edges"
        seconds = [
            f"{1e3 * case[key]:.1f}"
            for key in ("one_process_seconds", "ranks_seconds", "waited_seconds")
        ]
        exchanged = [megabytes(came), megabytes(said)] if said else ["–", "–"]
        rows.append([title, *seconds, f"{case['ratio']:.2f}", *exchanged])
    count = results["cases"][0]["ranks"]
    head = ["", f"one process, {count} threads, ms", f"{count} ranks, one thread each, ms"]
    head += ["of it waiting, ms", "ratio", "MB in per step", "by the partition"]
    over = [TITLES[case["case"]] for case in results["cases"] if case["ratio"] > GOAL]
    wrong = [
        TITLES[case["case"]]
        for case in results["cases"]
        if case["received_bytes_per_step"] != case["partition_bytes_per_step"]
    ]
    verdict = (
        f"The goal of at most {GOAL} times the time of one process is missed by {'; '.join(over)}."
        if over
        else f"All are within the goal of at most {GOAL} times the time of one process."
    )
    verdict += (
        f" The bytes of {'; '.join(wrong)} are not those of the partition."
        if wrong
        else " The bytes that come in are those that the partition says."
    )
    loads = ", ".join(f"{case['load_before']:.1f}" for case in results["cases"])
    return (
        f"{verdict}\n\n{markdown_table(head, rows)}"
        f"\nMedians of {results['cases'][0]['steps']} steps of A-DGN, in turns; load of the "
        f"machine before each: {loads}. {measured(results, 'benchmarks.distributed')}"
    )


def page(text: str) -> str:
    """The page with its generated parts as they must be now."""
    made = {"rank memory": (MEMORY, memory), "rank steps": (STEPS, steps)}
    parts = {
        name: make(json.loads(file.read_text(encoding="utf-8")))
        if file.exists()
        else f"Not measured yet: there is no `{file.relative_to(ROOT).as_posix()}`."
        for name, (file, make) in made.items()
    }
    return fill_places(text, parts, PAGE)


if __name__ == "__main__":
    print_or_write(__doc__, PAGE, lambda: page(PAGE.read_text(encoding="utf-8")))
