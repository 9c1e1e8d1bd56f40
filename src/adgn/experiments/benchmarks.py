"""Node classification on five graph benchmarks with 20 train nodes per class."""

from adgn.data import BENCHMARKS
from adgn.experiments.definition import Column, Experiment, Metric
from adgn.experiments.tables import adgn_row, baseline_rows

__all__ = ["ACCURACY", "COLUMNS", "EXPERIMENT", "PAPER_ROWS"]

ACCURACY = Metric("accuracy", "test accuracy", higher_is_better=True, unit="%")
DATASETS = ("pubmed", "cs", "physics", "computers", "photo")
COLUMNS = tuple(Column(name, BENCHMARKS[name].title, name) for name in DATASETS)
PAPER_ROWS = (
    *baseline_rows("gcn", "gat", "graphsage", "gin", "gcnii", "dgc", "grand"),
    adgn_row("adgn-sum", "A-DGN", phi="sum"),
    adgn_row("adgn-gcn", "A-DGN (GCN)", phi="gcn"),
)

EXPERIMENT = Experiment(
    name="benchmarks",
    title="Graph benchmarks",
    summary="The class of a node from 20 train and 30 validation nodes per class: test accuracy, "
    "five splits times five initialisations.",
    kind="scores",
    metric=ACCURACY,
    rows=(*PAPER_ROWS, *baseline_rows("dagnn")),
    columns=COLUMNS,
    notes=(
        "Mean over initialisations within each split, then mean and standard deviation over "
        "splits.",
        "DAGNN is not in the paper's table.",
    ),
)
