"""Is what the probe suggests at least as good as the default? Seven graphs, random splits.

    python benchmarks/suggestion.py --root DATA [--only texas,cora] [--splits 5] [--out FILE]

For each graph and split of `benchmarks/own_graph.py`, read from its two tables, `adgn.probe` is
asked for a suggestion, and `NodeClassifier` trains one network with it, and one A-DGN with the
default settings (four layers that listen along the edges). Width, optimiser, early stopping and
seed are the same for both. Results are kept after every run, and a second call does what is
missing. `python scripts/document_probe.py --write` makes the table.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from own_graph import GRAPHS, write_tables

import adgn
from adgn._util.environment import environment
from adgn._util.files import write_file

OUT = Path(__file__).resolve().parents[1] / "results" / "suggestion.json"


def trained(graph: adgn.Graph, model: dict[str, Any]) -> dict[str, Any]:
    """One network: its accuracy on validation and test rows, and the time it took."""
    options = dict(model)
    started = time.process_time()
    fitted = adgn.NodeClassifier(model=options.pop("name"), model_options=options).fit(graph)
    return {
        "valid": round(fitted.validation_scores_["accuracy"], 6),
        "test": round(fitted.test_scores_["accuracy"], 6),
        "seconds": round(time.process_time() - started, 2),
    }


def run(name: str, root: str | None, split: int) -> dict[str, Any]:
    """The suggestion and the default on one split."""
    with tempfile.TemporaryDirectory() as folder:
        nodes, edges = write_tables(name, root, split, Path(folder))
        graph = adgn.Graph.from_tables(nodes, edges, target_column="label", split="split")
    started = time.process_time()
    found = adgn.probe(graph)
    seconds = round(time.process_time() - started, 2)
    suggested = dict(found.suggestion["model"])
    return {
        "graph": name,
        "split": split,
        "commit": environment()["git_commit"],
        "suggestion": suggested,
        "helps": found.helps,
        "probe_seconds": seconds,
        "suggested": trained(graph, suggested),
        "default": trained(graph, {"name": "adgn"}),
    }


def main() -> None:
    """Runs what is missing."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", default=None)
    parser.add_argument("--only", default=",".join(GRAPHS))
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--out", type=Path, default=OUT)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    records = json.loads(arguments.out.read_text())["runs"] if arguments.out.exists() else []
    done = {(record["graph"], record["split"]) for record in records}
    for name in arguments.only.split(","):
        for split in range(arguments.splits):
            if (name, split) in done:
                continue
            records.append(run(name, arguments.root, split))
            print(records[-1], flush=True)
            content = {"environment": environment(), "runs": records}
            write_file(arguments.out, json.dumps(content, indent=1).encode() + b"\n")


if __name__ == "__main__":
    main()
