"""Node classification on six graphs whose neighbours tend to have different classes."""

from adgn.data import BENCHMARKS
from adgn.experiments.benchmarks import ACCURACY
from adgn.experiments.definition import Column, Experiment
from adgn.experiments.tables import adgn_row, baseline_rows, quoted_rows

__all__ = ["COLUMNS", "EXPERIMENT", "NOTES", "VARIANTS"]

DATASETS = ("chameleon", "squirrel", "actor", "cornell", "texas", "wisconsin")
COLUMNS = tuple(Column(name, BENCHMARKS[name].title, name) for name in DATASETS)
NOTES = tuple(
    f"{BENCHMARKS[name].title}: {defect}."
    for name in DATASETS
    for defect in BENCHMARKS[name].defects
)
VARIANTS = (
    adgn_row("adgn-sum", "A-DGN", phi="sum"),
    adgn_row("adgn-gcn", "A-DGN (GCN)", phi="gcn"),
)
_ROWS = (*VARIANTS, *baseline_rows("mlp", "gcn", "gat", "graphsage", "gcnii"))

EXPERIMENT = Experiment(
    name="heterophily",
    title="Heterophilic graphs",
    summary="The class of a node where neighbours differ, on the ten fixed splits of Geom-GCN: "
    "test accuracy.",
    kind="scores",
    metric=ACCURACY,
    rows=_ROWS,
    columns=COLUMNS,
    notes=(
        "The paper trained A-DGN alone and quotes all other rows from earlier work.",
        *NOTES,
    ),
    quoted=quoted_rows(
        "heterophilic_benchmarks",
        COLUMNS,
        tuple(row.title for row in _ROWS),
        {name: BENCHMARKS[name].title for name in DATASETS},
    ),
)
