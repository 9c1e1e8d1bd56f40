"""Single trainings whose results are kept in a file after every run."""

import argparse
import itertools
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from adgn._util.environment import environment
from adgn._util.files import write_file
from adgn.experiments.plan import plan_cell
from adgn.experiments.records import Cell
from adgn.report import read_results
from adgn.selection import Run
from adgn.selection.replicate import read_scores
from adgn.training import TrainConfig, resolve_config, shared_data, train

TABLE = "heterophily"
RESULTS = Path(__file__).resolve().parents[1] / "results"


def arguments_of(about: str, out: str, only: str, splits: int) -> argparse.Namespace:
    """The options of a script: `only` (a list of data sets), `splits` and `out`."""
    parser = argparse.ArgumentParser(description=about.splitlines()[0])
    parser.add_argument("--only", default=only, help="data sets, with commas between them")
    parser.add_argument("--splits", type=int, default=splits, help="the first so many alone")
    parser.add_argument("--out", type=Path, default=RESULTS / out)
    arguments = parser.parse_args()
    arguments.only = arguments.only.split(",")
    return arguments


def every(**values: Iterable[Any]) -> Iterator[dict[str, Any]]:
    """A job for every combination, the last name's values changing first."""
    for combination in itertools.product(*values.values()):
        yield dict(zip(values, combination, strict=True))


def cell_jobs(
    tasks: Sequence[str], splits: int, folder: Path, wanted: Callable[[str, Cell], bool]
) -> Iterator[dict[str, Any]]:
    """A job for each run of whole cells of the heterophilic table, by the definition of now.

    Args:
        tasks: Keys of columns.
        splits: The first so many runs of a cell.
        folder: A results directory.
        wanted: Which cells: called with the title of the row and the cell.
    """
    tables = {table.experiment.name: table for table in read_results(folder).tables}
    table = tables[TABLE]
    titles = {row.key: row.title for row in table.experiment.rows}
    for (row, column), cell in table.cells.items():
        if column not in tasks or cell.status != "done" or table.is_outdated(cell):
            continue
        for run in cell.runs[:splits] if wanted(titles[row], cell) else ():
            yield {
                "row": row,
                "task": column,
                "seed": run.seed,
                "split": run.split,
                "settings": dict(cell.settings),
                "in_table": round(read_scores(run.scores["test"])["accuracy"], 6),
            }


def cell_config(job: Mapping[str, Any], change: Mapping[str, Any]) -> TrainConfig:
    """The configuration of such a run with a change, by section."""
    plan = plan_cell(TABLE, job["row"], job["task"], "laptop")
    return resolve_config(plan.config(job["settings"], Run(job["seed"], job["split"])), change)


def measure_cells(
    about: str, out: str, only: str, wanted: Callable[[str, Cell], bool], change: Mapping[str, Any]
) -> None:
    """Trains the wanted cells' runs again, with a change; `about` and `only` as `arguments_of`."""
    chosen = arguments_of(about, out, only, 10)
    do_missing(
        chosen.out,
        cell_jobs(chosen.only, chosen.splits, RESULTS / "reproduction", wanted),
        lambda **job: trained(cell_config(job, change)),
        known_by=("row", "task", "seed", "split"),
    )


def trained(config: TrainConfig) -> dict[str, Any]:
    """One training, and its accuracies."""
    started = time.process_time()
    result = train(config)
    return {
        "accuracy": round(result.scores["test"]["accuracy"], 6),
        "validation": round(result.scores["val"]["accuracy"], 6),
        "epochs": result.epochs,
        "best_epoch": result.best_epoch,
        "seconds": round(time.process_time() - started, 1),
        "commit": environment()["git_commit"],
    }


def do_missing(
    out: Path,
    jobs: Iterable[Mapping[str, Any]],
    measure: Callable[..., Mapping[str, Any]],
    *,
    known_by: Sequence[str] = (),
    **about: Any,
) -> None:
    """Does the jobs that the file does not have yet, with one thread, and writes it after each.

    Args:
        out: The file.
        jobs: What tells a run from the others, by name; it is kept with the run.
        measure: Does a job, given that as arguments; what it returns is kept too.
        known_by: Names of a job that say where it belongs; a run that belongs there and differs in
            the rest is outdated and goes. None: all names do.
        about: What the file says of all runs.
    """
    torch.set_num_threads(1)
    runs = json.loads(out.read_text(encoding="utf-8"))["runs"] if out.exists() else []
    for job in jobs:
        if any(job.items() <= run.items() for run in runs):
            continue
        place = {name: job[name] for name in known_by or job}
        runs = [run for run in runs if not place.items() <= run.items()]
        with shared_data():
            runs.append({**job, **measure(**job)})
        print(runs[-1], flush=True)
        content = {"environment": environment(), **about, "runs": runs}
        write_file(out, json.dumps(content, indent=1).encode() + b"\n")
