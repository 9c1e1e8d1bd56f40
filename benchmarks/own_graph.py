"""Does `fit` with defaults reach the best of simple models? Seven graphs, five random splits.

    python benchmarks/own_graph.py --root DATA [--only texas,cora] [--splits 5] [--out FILE]

For each graph and split (60 % train, 20 % validation, 20 % test, drawn at random) the graph is
written as nodes.csv and edges.csv and read again, as a user would; then `NodeClassifier().fit` and
three simple models are trained on the same rows: logistic regression on the features (with the
settings of scikit-learn), a two-layer GCN with its usual settings (width 64, dropout 0.5, learning
rate 0.01, weight decay 5e-4, 200 epochs at most, patience 50) and a five-layer GCN with residuals
and layer normalisation, both on edges in both directions. Results are kept after every run, and a
second call does what is missing. `python scripts/document_estimators.py --write` makes the table.
"""

import argparse
import csv
import json
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from torch_geometric.nn.models import GCN

import adgn
from adgn._util.environment import environment
from adgn._util.files import write_file
from adgn.estimators.comparison import _features_alone, _gcn
from adgn.training import EarlyStopping, FullGraph, Trainer
from adgn.training.seeding import own_randomness

GRAPHS = ("texas", "cora", "chameleon", "actor", "photo", "squirrel", "pubmed")
OUT = Path(__file__).resolve().parents[1] / "results" / "own-graph.json"


def write_tables(name: str, root: str | None, split: int, folder: Path) -> tuple[Path, Path]:
    """The graph as two CSV files; the split is a column of the nodes."""
    data = adgn.data.load(name, root, features="dense")
    nodes = len(data.y)
    order = np.random.RandomState(split).permutation(nodes)
    part = np.full(nodes, "test", dtype=object)
    part[order[: int(0.6 * nodes)]] = "train"
    part[order[int(0.6 * nodes) : int(0.8 * nodes)]] = "valid"
    x = data.x.numpy()
    whole = bool((x == np.round(x)).all())
    with (folder / "nodes.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", *(f"f{n}" for n in range(x.shape[1])), "label", "split"])
        for node, row in enumerate(x.astype(int) if whole else x):
            writer.writerow([f"n{node}", *row.tolist(), f"c{int(data.y[node])}", part[node]])
    with (folder / "edges.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["source", "target"])
        writer.writerows([f"n{a}", f"n{b}"] for a, b in data.edge_index.t().tolist())
    return folder / "nodes.csv", folder / "edges.csv"


def usual_gcn(problem: object) -> torch.Tensor:
    """A two-layer GCN of PyG, by the package's loop."""
    inputs, y, parts = problem.inputs, problem.y, problem.parts  # type: ignore[attr-defined]
    x = inputs.x.to_dense() if inputs.x.layout == torch.sparse_csr else inputs.x
    edges, _ = inputs.edges("undirected")
    with own_randomness(0):
        model = GCN(x.size(1), 64, 2, problem.encoder.num_outputs, dropout=0.5)  # type: ignore[attr-defined]
    trainer = Trainer(
        model,
        FullGraph(x, edges, y, parts.train),
        FullGraph(x, edges, y, parts.valid),
        objective="classification",
        optimizer=torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4),
        stopping=EarlyStopping("max", 50),
        max_epochs=200,
    )
    trainer.fit()
    trainer.restore_best()
    model.eval()
    with torch.no_grad():
        return model(x, edges).softmax(-1)


def run(name: str, root: str | None, split: int) -> dict[str, object]:
    """All models on one split."""
    with tempfile.TemporaryDirectory() as folder:
        nodes, edges = write_tables(name, root, split, Path(folder))
        graph = adgn.Graph.from_tables(nodes, edges, target_column="label", split="split")
    started = time.perf_counter()
    model = adgn.NodeClassifier().fit(graph)
    found = {"fit": (model.test_scores_["accuracy"], time.perf_counter() - started)}
    problem = model.problem_
    test = problem.parts.test
    for title, make in (
        ("logistic regression", lambda: _features_alone(problem, problem.inputs)),
        ("GCN, 2 layers", lambda: usual_gcn(problem)),
        ("GCN, 5 layers, residual, LayerNorm", lambda: _gcn(problem, problem.inputs)),
    ):
        started = time.perf_counter()
        probability = make()
        accuracy = float((probability[test].argmax(-1) == problem.y[test]).double().mean())
        found[title] = (accuracy, time.perf_counter() - started)
    scores = model.validation_scores_
    return {
        "graph": name,
        "split": split,
        "commit": environment()["git_commit"],
        "accuracy": {title: round(value, 6) for title, (value, _) in found.items()},
        "seconds": {title: round(value, 2) for title, (_, value) in found.items()},
        "validation": round(scores["accuracy"], 6),
        "tried": model.tried(),
    }


def main() -> None:
    """Runs what is missing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", default=None)
    parser.add_argument("--only", default=",".join(GRAPHS))
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, default=OUT)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    records = json.loads(arguments.out.read_text())["runs"] if arguments.out.exists() else []
    done = {(record["graph"], record["split"]) for record in records}
    for name in arguments.only.split(","):
        for split in range(arguments.splits):
            if (name, split) in done:
                continue
            records.append(run(name, arguments.root, split))
            print(name, split, records[-1]["accuracy"], records[-1]["seconds"], flush=True)
            content = {"environment": environment(), "threads": arguments.threads, "runs": records}
            arguments.out.parent.mkdir(exist_ok=True)
            write_file(arguments.out, json.dumps(content, indent=1).encode() + b"\n")


if __name__ == "__main__":
    main()
