"""What it changes whether the first dropout is of the features or of what the encoder gives.

    python benchmarks/first_dropout_accuracy.py [--only chameleon,squirrel] [--out FILE]

Each cell of the heterophilic table that has all its runs by the definition of now, and whose
settings drop features, is trained again with its settings and seeds on the same splits, with
dropout of the first states. Its own runs are kept beside. Results are kept after every run, and a
second call does what is missing, and again what was measured anew since then.
"""

from typing import Any

from kept_runs import RESULTS, arguments_of, cell_config, cell_jobs, do_missing, trained

from adgn.experiments.records import Cell
from adgn.training import TrainConfig, resolve_config


def drops_features(title: str, cell: Cell) -> bool:
    """Whether the runs of a cell drop features."""
    settings = cell.settings
    return settings.get("model.first_dropout") == "features" and settings["model.dropout"] > 0


def config(**job: Any) -> TrainConfig:
    """The configuration of one training."""
    return resolve_config(cell_config(**job), {"model": {"first_dropout": "states"}})


if __name__ == "__main__":
    chosen = arguments_of(__doc__, "first-dropout-accuracy.json", "chameleon,squirrel", 10)
    do_missing(
        chosen.out,
        cell_jobs(chosen.only, chosen.splits, RESULTS / "reproduction", drops_features),
        lambda **job: trained(config(**job)),
        known_by=("row", "task", "seed", "split"),
    )
