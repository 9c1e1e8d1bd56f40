"""What it changes whether the first dropout is of the features or of what the encoder gives.

    python benchmarks/first_dropout_accuracy.py [--only chameleon,squirrel] [--out FILE]

Each cell of the heterophilic table that has all its runs by the definition of now, and whose
settings drop features, is trained again with its settings and seeds on the same splits, with
dropout of the first states. Its own runs are kept beside. Results are kept after every run, and a
second call does what is missing, and again what was measured anew since then.
"""

from kept_runs import measure_cells

from adgn.experiments.records import Cell

CHANGE = {"model": {"first_dropout": "states"}}


def drops_features(title: str, cell: Cell) -> bool:
    """Whether the runs of a cell drop features."""
    settings = cell.settings
    return settings.get("model.first_dropout") == "features" and settings["model.dropout"] > 0


if __name__ == "__main__":
    measure_cells(
        __doc__, "first-dropout-accuracy.json", "chameleon,squirrel", drops_features, CHANGE
    )
