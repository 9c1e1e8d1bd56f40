"""Writes generated parts of docs/probe.md: the suggestion beside the default, and directions.

    python scripts/document_probe.py            # prints the page
    python scripts/document_probe.py --write

The figures are those of results/suggestion.json, which benchmarks/suggestion.py measures, and of
results/direction-accuracy.json, by benchmarks/direction_accuracy.py.
"""

import json
from collections import Counter
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from pages import fill_places, markdown_table, print_or_write

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "probe.md"
SUGGESTION = ROOT / "results" / "suggestion.json"
DIRECTIONS = ROOT / "results" / "direction-accuracy.json"


def spread(values: list[float]) -> str:
    """Mean and standard deviation, of shares in per cent."""
    shown = [100 * value for value in values]
    return f"{mean(shown):.1f}" + (f" ± {stdev(shown):.1f}" if len(shown) > 1 else "")


def settings(model: dict[str, Any]) -> str:
    """A suggestion in few words."""
    words = [model["name"], f"{model['num_layers']} layers"]
    return ", ".join([*words, *(str(model[key]) for key in ("phi", "direction") if key in model)])


def commits(runs: list[dict[str, Any]]) -> str:
    """The commits that were measured."""
    found = list(dict.fromkeys(run["commit"][:7] for run in runs))
    return f"commit{'s' * (len(found) > 1)} {', '.join(found)}"


def suggestions(results: dict[str, Any]) -> str:
    """Test accuracy with the suggestion and with the default, over splits, and their difference."""
    runs, rows, worse = results["runs"], [], []
    for graph in dict.fromkeys(run["graph"] for run in runs):
        own = [run for run in runs if run["graph"] == graph]
        gains = [run["suggested"]["test"] - run["default"]["test"] for run in own]
        said = Counter(settings(run["suggestion"]) for run in own)
        times = [f"{what}" + (f" ({count} of {len(own)})" if len(said) > 1 else "")
                 for what, count in said.most_common()]  # fmt: skip
        error = stdev(gains) / len(gains) ** 0.5 if len(gains) > 1 else 0.0
        if mean(gains) < -error:
            worse.append(f"{graph} ({100 * mean(gains):.1f} points)")
        sides = [spread([run[side]["test"] for run in own]) for side in ("suggested", "default")]
        seconds = f"{mean(run['probe_seconds'] for run in own):.0f}"
        rows.append([graph, str(len(own)), "; ".join(times), *sides, spread(gains), seconds])
    head = ["graph", "splits", "suggestion", "suggested", "default", "difference", "probe, s"]
    verdict = (
        f"The suggestion is worse than the default by more than a standard error on "
        f"{', '.join(worse)}."
        if worse
        else "On none of them is the suggestion worse than the default by more than a standard "
        "error of the difference."
    )
    return (
        f"{verdict}\n\n{markdown_table(head, rows)}"
        f"\nTest accuracy in %, mean and standard deviation over random splits (60/20/20 %). "
        f"{results['environment']['processor']}, one thread of a machine with other "
        f"work, {commits(runs)}: `python benchmarks/suggestion.py`."
    )


def directions(results: dict[str, Any]) -> str:
    """Test accuracy of one network by where its nodes listen."""
    runs, rows, said = results["runs"], [], []
    sides = list(dict.fromkeys(run["direction"] for run in runs))
    for task in dict.fromkeys(run["task"] for run in runs):
        measured = Counter(run["split"] for run in runs if run["task"] == task)
        own = {  # of splits that have been measured in all directions
            side: [
                run["accuracy"]
                for run in runs
                if (run["task"], run["direction"]) == (task, side)
                and measured[run["split"]] == len(sides)
            ]
            for side in sides
        }
        rows.append([f"`{task}`", str(len(own[sides[0]])), *(spread(own[side]) for side in sides)])
        average = {side: 100 * mean(own[side]) for side in sides}
        best, second, *_, last = sorted(sides, key=lambda side: -average[side])
        said.append(
            f"on {task.title()} `{best}` is best, {average[best] - average[second]:.1f} points "
            f"above `{second}` and {average[best] - average[last]:.1f} above `{last}`"
        )
    verdict = "; ".join(said)
    return (
        f"{verdict[0].upper()}{verdict[1:]}.\n\n"
        + markdown_table(["data", "splits", *(f"`{side}`" for side in sides)], rows)
        + "\nTest accuracy in %, mean and standard deviation over the splits of the task. "
        f"{commits(runs).capitalize()}: `python benchmarks/direction_accuracy.py`."
    )


def page(text: str) -> str:
    """The page with its generated parts as they must be now."""
    parts = {
        "suggestion": suggestions(json.loads(SUGGESTION.read_text(encoding="utf-8"))),
        "directions": directions(json.loads(DIRECTIONS.read_text(encoding="utf-8"))),
    }
    return fill_places(text, parts, PAGE)


if __name__ == "__main__":
    print_or_write(__doc__, PAGE, lambda: page(PAGE.read_text(encoding="utf-8")))
