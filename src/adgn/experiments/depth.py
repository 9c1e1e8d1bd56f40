"""Accuracy on the graph benchmarks over the number of layers: the paper's figure."""

from adgn.experiments.benchmarks import ACCURACY, PAPER_ROWS
from adgn.experiments.benchmarks import COLUMNS as DATASETS
from adgn.experiments.definition import Column, Experiment

__all__ = ["EXPERIMENT", "over_depth"]


def over_depth(datasets: tuple[Column, ...], layers: tuple[int, ...]) -> tuple[Column, ...]:
    """A column per data set and number of layers."""
    return tuple(
        Column(
            f"{dataset.key}-{count}",
            f"{dataset.title}, {count} layers",
            dataset.task,
            {"model": {"num_layers": count}},
            layers=count,
            group=dataset.key,
        )
        for dataset in datasets
        for count in layers
    )


EXPERIMENT = Experiment(
    name="depth",
    title="Accuracy over depth",
    summary="Test accuracy on the five graph benchmarks with 1 to 30 layers.",
    kind="depth",
    metric=ACCURACY,
    rows=PAPER_ROWS,
    columns=over_depth(DATASETS, (1, 2, 3, 5, 10, 20, 30)),
    notes=("The paper has a figure of this, and no numbers.",),
    published=lambda row, column, config: None,
    settings_from="benchmarks",
)
