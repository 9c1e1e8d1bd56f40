"""Writes the generated part of docs/estimators.md: `fit` beside simple models on seven graphs.

    python scripts/document_estimators.py            # prints the page
    python scripts/document_estimators.py --write

The figures are those of results/own-graph.json, which benchmarks/own_graph.py measures.
"""

import json
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from pages import fill_places, markdown_table, print_or_write

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "estimators.md"
RESULTS = ROOT / "results" / "own-graph.json"


def comparison(results: dict[str, Any]) -> str:
    """Mean and standard deviation of the test accuracy over splits, and the time of `fit`."""
    runs = results["runs"]
    titles = list(runs[0]["accuracy"])
    ours, *others = titles
    rows, margins = [], {}
    for graph in dict.fromkeys(run["graph"] for run in runs):
        own = [run for run in runs if run["graph"] == graph]
        row = [graph, str(len(own))]
        means = {title: 100 * mean(run["accuracy"][title] for run in own) for title in titles}
        rival = max(others, key=lambda title: means[title])
        margins[means[ours] - means[rival]] = f"{graph}, {rival}"
        for title in titles:
            values = [100 * run["accuracy"][title] for run in own]
            row.append(f"{mean(values):.1f}" + (f" ± {stdev(values):.1f}" if len(own) > 1 else ""))
        rows.append([*row, f"{mean(run['seconds']['fit'] for run in own):.0f} s"])
    about = results["environment"]
    commits = ", ".join(dict.fromkeys(run["commit"][:7] for run in runs))
    ahead = sum(margin > 0 for margin in margins)
    said = (
        f"`{ours}` is ahead of the best of the others on {ahead} of {len(rows)} graphs, by "
        f"{min(margins):+.1f} points ({margins[min(margins)]}) to {max(margins):+.1f} "
        f"({margins[max(margins)]}).\n\n"
    )
    return (
        said
        + markdown_table(["graph", "splits", *titles, "time of `fit`"], rows)
        + "\nTest accuracy in %, mean and standard deviation over random splits (60/20/20 %), one "
        f"thread on a machine with other work. {about['processor']}, torch {about['torch']}, "
        f"commits {commits}: `python benchmarks/own_graph.py`."
    )


def page(text: str) -> str:
    """The page with its generated part as it must be now."""
    results = json.loads(RESULTS.read_text(encoding="utf-8"))
    return fill_places(text, {"comparison": comparison(results)}, PAGE)


if __name__ == "__main__":
    print_or_write(__doc__, PAGE, lambda: page(PAGE.read_text(encoding="utf-8")))
