"""Accuracy on the heterophilic graphs over the number of layers: the paper's second figure."""

from adgn.experiments.benchmarks import ACCURACY
from adgn.experiments.definition import Experiment
from adgn.experiments.depth import over_depth
from adgn.experiments.heterophily import COLUMNS as DATASETS
from adgn.experiments.heterophily import NOTES, VARIANTS

__all__ = ["EXPERIMENT"]

EXPERIMENT = Experiment(
    name="depth-heterophily",
    title="Accuracy over depth on heterophilic graphs",
    summary="Test accuracy of A-DGN on the six heterophilic graphs with 2 to 64 layers.",
    kind="depth",
    metric=ACCURACY,
    rows=VARIANTS,
    columns=over_depth(DATASETS, (2, 4, 8, 16, 32, 64)),
    notes=(
        "The paper has a figure of this, and no numbers; the numbers of layers are those of its "
        "reference implementation.",
        *NOTES,
    ),
    published=lambda row, column, config: None,
    settings_from="heterophily",
)
