"""What early stopping by the validation loss does, as most quoted heterophilic rows had it.

    python benchmarks/stopping_accuracy.py [--only chameleon,texas] [--out FILE]

Each cell of the heterophilic table that has all its runs by the definition of now, and whose
published value was stopped by the validation loss, is trained again with its settings and seeds on
the same splits, stopped by the loss. Its own runs, stopped by the validation accuracy, are kept
beside. Results are kept after every run, and a second call does what is missing, and again what was
measured anew since then.
"""

from typing import Any

from kept_runs import RESULTS, arguments_of, cell_config, cell_jobs, do_missing, trained

from adgn.experiments.records import Cell
from adgn.tasks.protocols import published_protocol
from adgn.training import TrainConfig, resolve_config


def stopped_by_loss(title: str, cell: Cell) -> bool:
    """Whether the published value of a cell is of runs that the validation loss ended."""
    if cell.published is None:
        return False
    stopping = published_protocol("heterophilic_benchmarks", title).conditions.stopping
    return stopping is not None and stopping.monitor == "loss"


def config(**job: Any) -> TrainConfig:
    """The configuration of one training."""
    return resolve_config(cell_config(**job), {"stopping": {"monitor": "loss"}})


if __name__ == "__main__":
    chosen = arguments_of(__doc__, "stopping-accuracy.json", "chameleon,texas", 10)
    do_missing(
        chosen.out,
        cell_jobs(chosen.only, chosen.splits, RESULTS / "reproduction", stopped_by_loss),
        lambda **job: trained(config(**job)),
        known_by=("row", "task", "seed", "split"),
    )
