"""What early stopping by the validation loss does, as most quoted heterophilic rows had it.

    python benchmarks/stopping_accuracy.py [--only chameleon,texas] [--out FILE]

Each cell of the heterophilic table that has all its runs by the definition of now, and whose
published value was stopped by the validation loss, is trained again with its settings and seeds on
the same splits, stopped by the loss. Its own runs, stopped by the validation accuracy, are kept
beside. Results are kept after every run, and a second call does what is missing, and again what was
measured anew since then.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kept_runs import RESULTS, arguments_of, do_missing, trained

from adgn.experiments.plan import plan_cell
from adgn.report import read_results
from adgn.selection import Run
from adgn.selection.replicate import read_scores
from adgn.tasks.protocols import published_protocol
from adgn.training import TrainConfig, resolve_config

TABLE = "heterophilic_benchmarks"


def stopped_by_loss(title: str) -> bool:
    """Whether the published values of a row are of runs that the validation loss ended."""
    stopping = published_protocol(TABLE, title).conditions.stopping
    return stopping is not None and stopping.monitor == "loss"


def jobs_of(tasks: list[str], splits: int, folder: Path) -> Iterator[dict[str, Any]]:
    """A job for each run of each such cell in a results directory."""
    found = read_results(folder)
    (table,) = [one for one in found.tables if one.experiment.name == "heterophily"]
    for (row, column), cell in table.cells.items():
        title = next(one.title for one in table.experiment.rows if one.key == row)
        if column not in tasks or cell.status != "done" or cell.published is None:
            continue
        if not stopped_by_loss(title) or table.is_outdated(cell):
            continue
        for run in cell.runs[:splits]:
            yield {
                "row": row,
                "task": column,
                "seed": run.seed,
                "split": run.split,
                "settings": dict(cell.settings),
                "by_accuracy": round(read_scores(run.scores["test"])["accuracy"], 6),
            }


def config(row: str, task: str, seed: int, split: int, settings: Any, **_: Any) -> TrainConfig:
    """The configuration of one training."""
    plan = plan_cell("heterophily", row, task, "laptop")
    return resolve_config(
        plan.config(settings, Run(seed, split)), {"stopping": {"monitor": "loss"}}
    )


if __name__ == "__main__":
    chosen = arguments_of(__doc__, "stopping-accuracy.json", "chameleon,texas", 10)
    do_missing(
        chosen.out,
        jobs_of(chosen.only, chosen.splits, RESULTS / "reproduction"),
        lambda **job: trained(config(**job)),
        known_by=("row", "task", "seed", "split"),
    )
