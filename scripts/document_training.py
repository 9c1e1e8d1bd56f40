"""Writes the generated parts of docs/training.md: tasks, settings and measurements.

python scripts/document_training.py           # print
python scripts/document_training.py --write   # write docs/training.md
"""

import argparse
import json
from pathlib import Path
from typing import Any

from adgn.training import TASKS
from adgn.training.reference import settings_markdown

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "training.md"
FIGURES = ROOT / "results" / "training.json"


def tasks_table() -> str:
    """Every task with what it predicts."""
    lines = ["| task | family | what is predicted |", "|---|---|---|"]
    lines += [f"| `{e.name}` | {e.family} | {e.summary} |" for e in TASKS.values()]
    return "\n".join(lines)


def measurements(results: dict[str, Any]) -> str:
    """The overhead of the loop in a table."""
    lines = [
        "| case | forward, backward, step | the loop | overhead, fastest | overhead, medians |",
        "|---|---|---|---|---|",
    ]
    for case, title in (("property", "sssp, 5120 graphs"), ("texas", "Texas, 183 nodes")):
        for part in ("training", "training_and_validation"):
            times = results[case][part]
            lines.append(
                f"| {title}: {part.replace('_', ' ')} | {1000 * times['bare_seconds']:.2f} ms | "
                f"{1000 * times['loop_seconds']:.2f} ms | {100 * times['overhead']:.1f} % | "
                f"{100 * times['overhead_of_medians']:.1f} % |"
            )
    lines += [
        "",
        f"Making the batches of sssp takes {100 * results['property']['loading_share']:.1f} % of a "
        f"training epoch. CPU time per epoch, fastest of {results['property']['rounds']} rounds, "
        f"{results['threads']} thread(s), kernels {results['kernels']}, torch {results['torch']}, "
        f"{results['date']}, commit {results['commit']}: `{results['command']}`.",
    ]
    return "\n".join(lines)


def sections() -> dict[str, str]:
    """The generated parts by the name of their place in the page."""
    return {
        "tasks": tasks_table(),
        "settings": settings_markdown("sssp"),
        "overhead": measurements(json.loads(FIGURES.read_text(encoding="utf-8"))),
    }


def page(text: str) -> str:
    """The page with its generated parts as they must be now."""
    for name, part in sections().items():
        begin, end = f"<!-- generated: {name} -->", f"<!-- end of {name} -->"
        before, found, rest = text.partition(begin)
        _, closed, after = rest.partition(end)
        if not found or not closed:
            raise ValueError(f"{PAGE} has no place {begin} … {end}")
        text = f"{before}{begin}\n{part}\n{end}{after}"
    return text


def main() -> None:
    """Parses the command line and prints or writes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="write docs/training.md")
    text = page(PAGE.read_text(encoding="utf-8"))
    if parser.parse_args().write:
        PAGE.write_text(text, encoding="utf-8")
    else:
        print(text, end="")


if __name__ == "__main__":
    main()
