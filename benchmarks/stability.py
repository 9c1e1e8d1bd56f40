"""The numbers and pictures of docs/stability.md: a trained A-DGN beside two trained GCNs.

    python benchmarks/stability.py

Trains them, 20 layers deep, to predict single-source shortest paths on graphs of the property
data set (a tenth of it), measures them on a test graph whose diameter only a tenth of them exceed,
and writes `docs/images/stability/`, `results/stability.json` and the measured block of
`docs/stability.md`. A few minutes on two cores. `--page` fills the page from the results there are.
"""

import argparse
import json
import platform
import time
from datetime import datetime, timezone
from pathlib import Path

import torch
from torch import Tensor
from torch_geometric.data import Data

from adgn._util.files import write_file
from adgn.analysis import Diagnosis, DistanceProfile, diagnose, hops_to, sensitivity_by_distance
from adgn.analysis.figures import write_figures
from adgn.bench.run import measured_commit
from adgn.data import GraphPropertyDataset
from adgn.nn import GraphNetwork, build_model

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "stability.md"
RESULTS = ROOT / "results" / "stability.json"
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
# "adgn" as in the paper's property experiments; the other one takes five times its step. Of the
# GCNs the one with residual connections and normalisation is the strongest simple rival.
MODELS = {
    "adgn": ("adgn", {"phi": "sum", "epsilon": 0.1, "gamma": 0.1}),
    "adgn-large-step": ("adgn", {"phi": "sum", "epsilon": 0.5, "gamma": 0.1}),
    "gcn-residual": ("gcn", {"residual": True, "norm": "batch"}),
    "gcn": ("gcn", {}),
}


def train(model: GraphNetwork, data: GraphPropertyDataset, epochs: int, seed: int) -> None:
    """Adam with the paper's settings, batches of 64 graphs."""
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003, weight_decay=1e-6)
    generator = torch.Generator().manual_seed(seed)
    for _ in range(epochs):
        for chosen in torch.randperm(len(data), generator=generator).split(64):
            batch = data.packed.batch(chosen)
            optimizer.zero_grad()
            loss = (model(batch.x, batch.edge_index) - batch.y).square().mean()
            loss.backward()
            optimizer.step()
    model.eval()  # from here on normalisation takes the statistics that it has gathered


@torch.no_grad()
def mean_squared_error(model: GraphNetwork, data: GraphPropertyDataset) -> float:
    """Over all nodes of all graphs."""
    batch = data.packed.batch()
    return float((model(batch.x, batch.edge_index) - batch.y).square().mean())


def diameter(graph: Data) -> int:
    """The largest finite distance between two nodes."""
    return max(
        int(hops_to(v, graph.edge_index, graph.num_nodes).max()) for v in range(graph.num_nodes)
    )


def summary(found: Diagnosis, profile: DistanceProfile, error: float) -> dict[str, object]:
    """What the page says about one model."""
    record: dict[str, object] = {
        "verdict": found.kind,
        "test_mse": error,
        "perturbation_growth": found.growth.total,
        "gradient_first_over_last": found.gradients.ratio,
        "relative_energy_first": float(found.energy.relative[0]),
        "relative_energy_last": float(found.energy.relative[-1]),
        "sensitivity_by_distance": profile.mean.tolist(),
        "layer_spectral_radius": found.layer_spectrum.spectral_radius,
        "text": found.text(),
    }
    if found.node_spectrum is not None:
        record["node_max_distance_from_axis"] = float(found.node_spectrum.distance_from_axis.max())
        record["node_radius"] = float(found.node_spectrum.radius.max())
        record["node_amplification"] = found.node_spectrum.amplification
        record["node_largest_stable_step"] = found.node_spectrum.largest_stable_step
    return record


def measured_block(results: dict[str, object]) -> str:
    """The table and the verdicts as Markdown."""
    models: dict[str, dict[str, object]] = results["models"]
    names = list(models)
    far = len(models[names[0]]["sensitivity_by_distance"]) - 1
    rows = [
        ("verdict", lambda m: m["verdict"]),
        ("test mean squared error (hops²)", lambda m: f"{m['test_mse']:.3g}"),
        ("growth of a perturbation", lambda m: f"{m['perturbation_growth']:.3g}"),
        ("gradient, first over last layer", lambda m: f"{m['gradient_first_over_last']:.3g}"),
        ("relative energy, first states", lambda m: f"{m['relative_energy_first']:.3g}"),
        ("relative energy, last states", lambda m: f"{m['relative_energy_last']:.3g}"),
        *(
            (
                f"sensitivity at distance {distance}",
                lambda m, distance=distance: f"{m['sensitivity_by_distance'][distance]:.3g}",
            )
            for distance in sorted({0, 1, far // 2, far})
        ),
    ]
    lines = [conclusion(models), ""]
    lines += ["| | " + " | ".join(names) + " |", "|---|" + "---|" * len(names)]
    lines += [
        f"| {label} | " + " | ".join(str(show(models[n])) for n in names) + " |"
        for label, show in rows
    ]
    lines.append("")
    for name in names:
        lines += [f"What `diagnose` says of the trained {name}:", "", "```text"]
        lines += [str(models[name]["text"]), "```", ""]
    lines.append(
        f"Graph: {results['nodes']} nodes, {results['edges'] // 2} edges, diameter "
        f"{results['diameter']}. Measured on {results['date']}, {results['machine']}, torch "
        f"{results['torch']}, commit {results['commit']}, by `python benchmarks/stability.py`."
    )
    return "\n".join(lines)


def conclusion(models: dict[str, dict[str, object]]) -> str:
    """What the table says, in sentences made from its numbers."""
    kinds: dict[str, list[str]] = {}
    for name, record in models.items():
        kinds.setdefault(str(record["verdict"]), []).append(f"`{name}`")
    said = "; ".join(f"{' and '.join(names)} {kind}" for kind, names in kinds.items())
    ranked = sorted(models, key=lambda name: models[name]["test_mse"])
    errors = ", ".join(f"`{name}` {models[name]['test_mse']:.3g}" for name in ranked)
    return f"By verdict: {said}. By test error, the lowest first: {errors} hops²."


def fill_page(block: str) -> None:
    """Puts the measured block into the page."""
    page = PAGE.read_text()
    before, _, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not end:
        raise SystemExit(f"{PAGE} has no lines {BEGIN} and {END}")
    write_file(PAGE, f"{before}{BEGIN}\n{block}\n{END}{after}".encode())


def main() -> None:
    """Trains, measures, writes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--seed", type=int, default=41)
    parser.add_argument("--root", type=Path, default=None, help="data root")
    parser.add_argument("--page", action="store_true", help="only fill the page")
    arguments = parser.parse_args()
    if arguments.page:
        fill_page(measured_block(json.loads(RESULTS.read_text())))
        return
    size = {"train": (10, 52), "val": (5, 1), "test": (5, 26)}
    splits = {
        name: GraphPropertyDataset(arguments.root, name, "sssp", **size)
        for name in ("train", "test")
    }
    graphs: list[Data] = [splits["test"][i] for i in range(len(splits["test"]))]
    graph = sorted(graphs, key=diameter)[9 * len(graphs) // 10]
    target: Tensor = graph.y
    found, profiles, records = {}, {}, {}
    for name, (kind, options) in MODELS.items():
        torch.manual_seed(arguments.seed)
        model = build_model(kind, 2, 30, 1, num_layers=20, readout="mlp", **options)
        begin = time.perf_counter()
        train(model, splits["train"], arguments.epochs, arguments.seed)
        error = mean_squared_error(model, splits["test"])
        print(f"{name}: trained in {time.perf_counter() - begin:.0f} s, test error {error:.4g}")
        found[name] = diagnose(
            model,
            graph.x,
            graph.edge_index,
            loss=lambda output: (output - target).square().mean(),
        )
        profiles[name] = sensitivity_by_distance(model, graph.x, graph.edge_index)
        records[name] = summary(found[name], profiles[name], error)
        print(found[name].text(), [f"{v:.2g}" for v in profiles[name].mean.tolist()], sep="\n")
    for figure in write_figures(found, profiles, ROOT / "docs" / "images" / "stability"):
        if figure.suffix == ".svg":  # the page has the others: with so many points these are large
            figure.unlink()
    results = {
        "what": "A-DGN and GCNs, 20 layers, 30 units, trained on single-source shortest paths",
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%d"),
        "commit": measured_commit(),
        "machine": f"{platform.machine()}, {torch.get_num_threads()} threads",
        "torch": torch.__version__,
        "epochs": arguments.epochs,
        "seed": arguments.seed,
        "nodes": graph.num_nodes,
        "edges": graph.num_edges,
        "diameter": diameter(graph),
        "models": records,
    }
    write_file(RESULTS, json.dumps(results, indent=2).encode() + b"\n")
    fill_page(measured_block(results))


if __name__ == "__main__":
    main()
