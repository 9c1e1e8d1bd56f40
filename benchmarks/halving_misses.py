"""Does a search by epochs miss configurations that learn slowly? Of A-DGN on graph properties.

    python benchmarks/halving_misses.py [--only TARGETS] [--rows ROWS] [--out FILE]

For each whole cell of the table: the configurations that the search ended before the full protocol
(all others, where it did not keep what it compared) are trained by the full protocol, with the
search's initialisation: those with the selected step size, and with smaller ones down to 0.1. Has
one of them a better validation score then than the selected one, the search missed it. Results are
kept after every run, and a second call does what is missing.
"""

import argparse
import itertools
import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from kept_runs import RESULTS, do_missing

from adgn._util.environment import environment
from adgn.experiments.plan import plan_cell
from adgn.experiments.records import Cell, SearchRecord, Tried
from adgn.report import read_results
from adgn.selection import Run
from adgn.training import train

TABLE = "property"
LEAST = 0.1  # with smaller steps all configurations are far behind where they were ended


def ended_early(cell: Cell, search: SearchRecord) -> Iterator[tuple[dict[str, Any], Tried | None]]:
    """Settings that the search ended early, and how far it took them.

    Of a search whose configurations were not kept: all but the selected one, with None.
    """
    varied = {name: values for name, values in search.space.items() if len(values) > 1}
    selected = {name: cell.settings[name] for name in varied}
    kept = {json.dumps(tried.settings, sort_keys=True): tried for tried in search.configurations}
    for values in itertools.product(*varied.values()):
        settings = dict(zip(varied, values, strict=True))
        if settings == selected:
            continue
        if not LEAST <= settings["model.epsilon"] <= selected["model.epsilon"]:
            continue
        tried = kept.get(json.dumps(settings, sort_keys=True))
        if tried is None and kept:
            continue
        if tried and (tried.state != "complete" or len(tried.scores) == len(search.rungs)):
            continue
        yield settings, tried


def jobs(rows: Sequence[str], columns: Sequence[str], folder: Path) -> Iterator[dict[str, Any]]:
    """A job for each such configuration of whole cells."""
    table = next(t for t in read_results(folder).tables if t.experiment.name == TABLE)
    metric = table.experiment.metric.name
    titles = {row.key: row.title for row in table.experiment.rows}
    for (row, column), cell in table.cells.items():
        search = cell.search
        if row not in rows or column not in columns or cell.status != "done" or search is None:
            continue
        if table.is_outdated(cell):
            continue
        first = cell.runs[0]  # with the initialisation of the search
        for settings, tried in ended_early(cell, search):
            yield {
                "row": row,
                "title": titles[row],
                "task": column,
                "seed": first.seed,
                "published": cell.published and cell.published.mean,
                "selected": {name: cell.settings[name] for name in settings},
                "selected_score": first.scores["val"][metric],
                "selected_test": first.scores["test"][metric],
                "settings": settings,
                "ended_after": tried and search.rungs[len(tried.scores) - 1],
                "ended_with": tried and tried.scores[-1],
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
    parser.add_argument("--only", default="diameter,sssp,eccentricity,laplacian", help="targets")
    parser.add_argument("--rows", default="adgn-ws,adgn-ldw", help="rows of the table")
    parser.add_argument("--results", type=Path, default=RESULTS / "reproduction")
    parser.add_argument("--out", type=Path, default=RESULTS / "halving-misses.json")
    chosen = parser.parse_args()
    do_missing(
        chosen.out,
        jobs(chosen.rows.split(","), chosen.only.split(","), chosen.results),
        measure,
        known_by=("row", "task", "seed", "settings"),
    )
