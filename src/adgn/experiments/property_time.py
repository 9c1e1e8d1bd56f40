"""Seconds per epoch of property prediction, as the paper's appendix reports them."""

from adgn.data import TARGETS
from adgn.experiments.definition import Column, Experiment, Metric, PublishedCell, Row
from adgn.experiments.property import BASELINES, COLUMNS, MISLABELLED, VARIANTS
from adgn.tasks.published import published_tables
from adgn.training import TrainConfig

__all__ = ["EXPERIMENT"]


def _published(row: Row, column: Column, config: TrainConfig) -> PublishedCell | None:
    title = TARGETS[column.task].published_as
    if title is None:
        return None
    table = published_tables()["graph_property_prediction_seconds_per_epoch"]["rows"]
    cell = table[row.title][title]
    return PublishedCell(cell["mean"], cell["std"], row.title, title)


EXPERIMENT = Experiment(
    name="property-time",
    title="Time per epoch of graph property prediction",
    summary="Seconds per epoch (5120 train graphs in batches of 512, and the validation score) "
    "with 20 layers of 30 units.",
    kind="seconds",
    metric=Metric("seconds", "seconds per epoch", higher_is_better=False, unit="s", split="train"),
    rows=(*BASELINES, *VARIANTS),
    columns=COLUMNS,
    notes=(
        "Measured on the processor with all cores, one cell after the other; a cell's notes have "
        "the number of threads and, where it was recorded, the load before. Published values are "
        "from an A100 GPU and the authors' code.",
        MISLABELLED,
    ),
    published=_published,
    settings_of=lambda row, column: {"model": {"num_layers": 20, "hidden_channels": 30}},
)
