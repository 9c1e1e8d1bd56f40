"""Does a search by epochs miss configurations that learn slowly? Of A-DGN on graph properties.

    python benchmarks/halving_misses.py [--only sssp,eccentricity,laplacian] [--out FILE]

For each whole cell of the table whose search is kept: every configuration with the step size that
was selected which the search ended before the full protocol is trained by the full protocol, with
the search's initialisation. Had one of them a better validation score then than the selected one,
the search missed it. Results are kept after every run, and a second call does what is missing.
"""

import argparse
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from kept_runs import RESULTS, do_missing

from adgn._util.environment import environment
from adgn.experiments.plan import plan_cell
from adgn.report import read_results
from adgn.selection import Run
from adgn.training import train

TABLE, ROWS = "property", ("adgn-ws", "adgn-ldw")


def jobs(columns: Sequence[str], folder: Path) -> Iterator[dict[str, Any]]:
    """A job for each configuration with the selected step size that ended early."""
    table = next(t for t in read_results(folder).tables if t.experiment.name == TABLE)
    titles = {row.key: row.title for row in table.experiment.rows}
    for (row, column), cell in table.cells.items():
        search = cell.search
        if row not in ROWS or column not in columns or cell.status != "done" or search is None:
            continue
        if table.is_outdated(cell) or not search.configurations:
            continue
        selected = search.configurations[0]
        for tried in search.configurations:
            same = tried.settings["model.epsilon"] == selected.settings["model.epsilon"]
            if not same or tried.state != "complete" or len(tried.scores) == len(search.rungs):
                continue
            yield {
                "row": row,
                "title": titles[row],
                "task": column,
                "seed": cell.runs[0].seed,
                "selected": selected.settings,
                "selected_score": selected.scores[-1],
                "settings": tried.settings,
                "ended_after": search.rungs[len(tried.scores) - 1],
                "ended_with": tried.scores[-1],
            }


def measure(row: str, task: str, seed: int, settings: dict[str, Any], **_: Any) -> dict[str, Any]:
    """The full protocol for a configuration, all else as in the table."""
    plan = plan_cell(TABLE, row, task, "laptop")
    fixed = {name: values[0] for name, values in plan.space.items() if len(values) == 1}
    started = time.process_time()
    result = train(plan.config(fixed | settings, Run(seed, None)))
    metric = plan.experiment.metric.name
    return {
        "validation": result.scores["val"][metric],
        "test": result.scores["test"][metric],
        "epochs": result.epochs,
        "seconds": round(time.process_time() - started, 1),
        "commit": environment()["git_commit"],
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="sssp,eccentricity,laplacian", help="targets")
    parser.add_argument("--results", type=Path, default=RESULTS / "reproduction")
    parser.add_argument("--out", type=Path, default=RESULTS / "halving-misses.json")
    chosen = parser.parse_args()
    do_missing(
        chosen.out,
        jobs(chosen.only.split(","), chosen.results),
        measure,
        known_by=("row", "task", "seed", "settings"),
    )
