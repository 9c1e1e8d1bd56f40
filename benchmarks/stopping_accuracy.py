"""What early stopping by the validation loss does, as most quoted heterophilic rows had it.

    python benchmarks/stopping_accuracy.py [--only chameleon,texas] [--out FILE]

Each cell of the heterophilic table that has all its runs by the definition of now, and whose
published value was stopped by the validation loss, is trained again with its settings and seeds on
the same splits, stopped by the loss. Its own runs, stopped by the validation accuracy, are kept
beside. Results are kept after every run, and a second call does what is missing, and again what was
measured anew since then.
"""

from kept_runs import measure_cells

from adgn.experiments.records import Cell
from adgn.tasks.protocols import published_protocol

CHANGE = {"stopping": {"monitor": "loss"}}


def stopped_by_loss(title: str, cell: Cell) -> bool:
    """Whether the published value of a cell is of runs that the validation loss ended."""
    if cell.published is None:
        return False
    stopping = published_protocol("heterophilic_benchmarks", title).conditions.stopping
    return stopping is not None and stopping.monitor == "loss"


if __name__ == "__main__":
    measure_cells(__doc__, "stopping-accuracy.json", "chameleon,texas", stopped_by_loss, CHANGE)
