"""Writes the generated parts of docs/transforms.md: settings, released-code values, times.

    python scripts/document_transforms.py            # prints the page
    python scripts/document_transforms.py --write

Settings come from the code, curvatures are computed, and times are those of results/curvature.json,
which benchmarks/curvature.py measures.
"""

import json
from pathlib import Path
from typing import Any

import networkx
import torch
from pages import fill_places, markdown_table, print_or_write

from adgn.transforms import available_transforms, balanced_forman_curvature, find_transform

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "transforms.md"
RESULTS = ROOT / "results" / "curvature.json"
GRID = networkx.convert_node_labels_to_integers(networkx.grid_2d_graph(4, 4), ordering="sorted")
EXAMPLES = (
    ("triangle", networkx.cycle_graph(3), (0, 1)),
    ("C4, a cycle of four", networkx.cycle_graph(4), (0, 1)),
    ("C6, a cycle of six", networkx.cycle_graph(6), (0, 1)),
    ("K5, all of five nodes adjacent", networkx.complete_graph(5), (0, 1)),
    ("4 × 4 grid, an inner edge", GRID, (5, 6)),
    ("path of six, the middle edge", networkx.path_graph(6), (2, 3)),
    ("binary tree, an inner edge", networkx.balanced_tree(2, 3), (1, 3)),
    ("binary tree, the edge of a leaf", networkx.balanced_tree(2, 3), (3, 7)),
)


def settings() -> str:
    """Every transform with its settings, their defaults and meanings."""
    rows = []
    for name in available_transforms():
        kind = find_transform(name)
        if not kind.model_fields:
            rows.append([f"`{name}`", "", "", ""])
        for setting, field in kind.model_fields.items():
            default = field.get_default(call_default_factory=True)
            shown = "none" if default is None else str(default)
            rows.append([f"`{name}`", f"`{setting}`", f"`{shown}`", field.description or ""])
    return markdown_table(["transform", "setting", "default", "meaning"], rows)


def curvatures() -> str:
    """An edge of small graphs, by the definition and as the released code has it."""
    rows, other = [], []
    for title, graph, edge in EXAMPLES:
        edges = torch.tensor(list(graph.edges())).t()
        place = [set(pair) for pair in graph.edges()].index(set(edge))
        values = [
            float(balanced_forman_curvature(edges, len(graph), curvature=kind)[place])
            for kind in ("definition", "released")
        ]
        rows.append([title, *(f"{round(value, 6) + 0.0:.4g}" for value in values)])
        if abs(values[0] - values[1]) > 1e-6:
            other.append(title)
    said = f"The released code differs from the definition on {len(other)} of {len(rows)} edges"
    said += f": {'; '.join(other)}." if other else "."
    return f"{said}\n\n{markdown_table(['graph', 'definition', 'released code'], rows)}"


def times(results: dict[str, Any]) -> str:
    """How long all edges of a graph take, and a step of SDRF."""
    rows, gains = [], []
    for name, found in results["graphs"].items():
        plain = found.get("sparse_products")
        if plain is not None:
            ratio = plain["processor_seconds"] / found["native"]["processor_seconds"]
            gains.append((ratio, name.title()))
        rows.append(
            [
                name.title(),
                f"{found['pairs']:,}",
                f"{found['native']['processor_seconds']:.2f} s",
                "" if plain is None else f"{plain['processor_seconds']:.2f} s",
                f"{1e3 * found['sdrf_step']['processor_seconds']:.0f} ms",
            ]
        )
    steps = next(iter(results["graphs"].values()))["sdrf_step"]["steps"]
    head = ["graph", "edges", "native kernel", "without it", "a step of SDRF"]
    ratios = " and ".join(f"1/{ratio:.0f} on {name}" for ratio, name in gains)
    said = f"Of the time without it, the native kernel takes {ratios}.\n\n"
    return f"{said}{markdown_table(head, rows)}" + (
        f"\nProcessor time of all edges, one thread: the best of {results['turns']} turns with the "
        f"kernel, one turn without it; and of a step of SDRF, the mean of {steps}. The machine had "
        f"other work, a load average of {results['load_average']:.1f} at the start. "
        f"{results['machine']}, torch {results['torch']}, {results['date']}, commit "
        f"{results['commit']}: `python benchmarks/curvature.py`."
    )


def page(text: str) -> str:
    """The page with its generated parts as they must be now."""
    results = json.loads(RESULTS.read_text(encoding="utf-8"))
    parts = {"settings": settings(), "curvatures": curvatures(), "times": times(results)}
    return fill_places(text, parts, PAGE)


if __name__ == "__main__":
    print_or_write(__doc__, PAGE, lambda: page(PAGE.read_text(encoding="utf-8")))
