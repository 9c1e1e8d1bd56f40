"""Writes the generated parts of docs/training.md: tasks, settings and measurements.

python scripts/document_training.py           # print
python scripts/document_training.py --write   # write docs/training.md
"""

import json
from pathlib import Path
from typing import Any

from pages import fill_places, markdown_table, print_or_write

from adgn.training import TASKS
from adgn.training.reference import settings_markdown

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "training.md"
FIGURES = ROOT / "results" / "training.json"
CASES = {"property": "sssp, 5120 graphs", "texas": "Texas, 183 nodes"}
UNITS = {"cpu": "CPU time", "wall": "wall time"}
AIM = 0.05


def tasks_table() -> str:
    """Every task with what it predicts."""
    rows = [[f"`{entry.name}`", entry.family, entry.summary] for entry in TASKS.values()]
    return markdown_table(["task", "family", "what is predicted"], rows)


def measurements(results: dict[str, Any]) -> str:
    """The overhead of the loop in a table, whether it is as small as it should be, and where the
    numbers are from."""
    head = ["case", "forward, backward, step", "the loop", "overhead"]
    head += ["middle half of the rounds", "overhead of the medians", "of the fastest rounds"]
    rows = []
    for case, title in CASES.items():
        for part in ("training", "training_and_validation"):
            times = results[case][part]
            low, high = times["overhead_quartiles"]
            rows.append(
                [
                    f"{title}: {part.replace('_', ' ')}",
                    f"{1000 * times['bare_seconds']['median']:.2f} ms",
                    f"{1000 * times['loop_seconds']['median']:.2f} ms",
                    percent(times["overhead"]),
                    f"{percent(low)} to {percent(high)}",
                    percent(times["overhead_of_medians"]),
                    percent(times["overhead_of_fastest"]),
                ]
            )
    return f"{verdict(results)}\n\n{markdown_table(head, rows)}\n{origin(results)}"


def percent(share: float) -> str:
    """A share as it is read."""
    return f"{100 * share:.1f} %"


def verdict(results: dict[str, Any]) -> str:
    """Which of the measured shares are within the aim, which are not, and how sure that is."""
    shares: dict[str, tuple[float, float, float]] = {}
    for case, title in CASES.items():
        times = results[case]["training"]
        shares[f"the overhead of training on {title}"] = (
            times["overhead"],
            *times["overhead_quartiles"],
        )
    for loading in results["loading"]:
        threads = {1: "one thread", 2: "two threads"}[loading["threads"]]
        shares[f"loading of sssp with {threads}"] = (loading["share"],) * 3
    texts = []
    for within, title in ((True, f"Within {percent(AIM)}"), (False, f"Above {percent(AIM)}")):
        held = [
            f"{what} ({percent(share)}"
            + (f", but single rounds scatter around {percent(AIM)})" if low <= AIM < high else ")")
            for what, (share, low, high) in shares.items()
            if (share <= AIM) == within
        ]
        texts += [f"**{title}:** {'; '.join(held)}."] if held else []
    return " ".join(texts) + " The aim is for training; validation is shown beside it."


def origin(results: dict[str, Any]) -> str:
    """How, when and where it was measured."""
    machine = results["machine"]
    loading = ", ".join(
        f"{1000 * entry['loading_seconds']:.1f} ms of {1000 * entry['epoch_seconds']:.1f} ms "
        f"with {entry['threads']} thread(s), {UNITS[entry['seconds_are']]}"
        for entry in results["loading"]
    )
    return (
        "Times are medians of CPU time per epoch. The overhead is the median over "
        f"{results['property']['rounds']} rounds, in each of which both loops run one after the "
        f"other, {results['threads']} thread(s). Loading, making the batches of sssp: {loading}. "
        f"{machine['processor']}, {machine['cores']} cores, {machine['memory_gb']:g} GB, "
        f"{machine['system']}, load average {results['load_average']:.2f} at the start; kernels "
        f"{results['kernels']} ({machine['instruction_set']}), torch "
        f"{results['versions']['torch']}, {results['date']}, commit {results['commit']}: "
        f"`{results['command']}`."
    )


def sections() -> dict[str, str]:
    """The generated parts by the name of their place in the page."""
    return {
        "tasks": tasks_table(),
        "settings": settings_markdown("sssp"),
        "overhead": measurements(json.loads(FIGURES.read_text(encoding="utf-8"))),
    }


def page(text: str) -> str:
    """The page with its generated parts as they must be now."""
    return fill_places(text, sections(), PAGE)


if __name__ == "__main__":
    print_or_write(__doc__, PAGE, lambda: page(PAGE.read_text(encoding="utf-8")))
