"""Writes the generated part of docs/integrators.md: what integrators cost and how exact they are.

    python scripts/document_integrators.py            # prints the page
    python scripts/document_integrators.py --write

The figures are those of results/integrators.json, which benchmarks/integrators.py measures.
"""

import json
from pathlib import Path
from typing import Any

from pages import fill_places, markdown_table, print_or_write

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "integrators.md"
RESULTS = ROOT / "results" / "integrators.json"


def measured(results: dict[str, Any]) -> str:
    """Order, cost, error at equal cost, growth and time in a table."""
    found = results["integrators"]
    euler = found["euler"]["seconds"]
    rows = []
    for name, about in found.items():
        fits = [one for one in about["errors"] if one["rates"] <= 70] or about["errors"][:1]
        best = min(fits, key=lambda one: one["error"])
        rows.append(
            [
                f"`{name}`",
                str(about["order"]),
                about["cost"],
                f"{best['error']:.1e} ({best['rates']} rates)",
                f"{about['growth']:.3g}",
                f"{about['seconds'] / euler:.1f}",
            ]
        )
    head = ["integrator", "order", "cost of a step", "error at equal cost"]
    head += ["norm after 10,000 steps", "time of a training step"]
    about = results["environment"]
    return (
        markdown_table(head, rows)
        + "\nError: the largest at time 2 of a layer's states (100 nodes, 16 channels), with at "
        "most about 64 rates. Norm: of a linear antisymmetric field with steps of 0.1, as a "
        "multiple of the first; exact is 1. Time: as a multiple of forward Euler's, property "
        "prediction with 20 "
        f"layers of 30 units, one thread. {about['processor']}, torch {about['torch']}, "
        f"{results['date']}, commit {about['git_commit'][:7]}: `python benchmarks/integrators.py`."
    )


def page(text: str) -> str:
    """The page with its generated part as it must be now."""
    results = json.loads(RESULTS.read_text(encoding="utf-8"))
    return fill_places(text, {"integrators": measured(results)}, PAGE)


if __name__ == "__main__":
    print_or_write(__doc__, PAGE, lambda: page(PAGE.read_text(encoding="utf-8")))
