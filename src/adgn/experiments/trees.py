"""Tree-NeighborsMatch: how much a fixed-size state can carry from the leaves to the root."""

from collections.abc import Mapping
from typing import Any

from adgn.experiments.definition import Column, Experiment, Metric, Row
from adgn.experiments.tables import adgn_row, baseline_rows
from adgn.selection import named_space
from adgn.selection.spaces import nested
from adgn.tasks.trees import tree_layers
from adgn.training import TrainConfig

__all__ = ["EXPERIMENT", "add_normalised", "normalised_accuracy"]

TASK = "tree-neighbors-match"


def _settings(row: Row, column: Column) -> dict[str, Any]:
    """Baselines as Alon and Yahav had them; A-DGN by the task."""
    if row.model == "adgn":
        return {}
    space = named_space("paper", TASK, row.model)
    settings = nested({key: values[0] for key, values in space.items()})
    settings["model"]["num_layers"] = tree_layers(row.model, column.settings["task"]["radius"])
    return settings


def normalised_accuracy(accuracy: float, channels: int, distinct_layers: int) -> float:
    """Accuracy per trained unit, as the paper defines it: 100 · accuracy / (d · layers).

    Example:
        >>> normalised_accuracy(1.0, 32, 1)
        3.125
    """
    return 100 * accuracy / (channels * distinct_layers)


def add_normalised(config: TrainConfig, scores: Mapping[str, dict[str, Any]]) -> float:
    """Adds the normalised accuracy to the train scores of a run, and gives it back."""
    shared = config.model.options.get("weight_sharing", False)
    value = normalised_accuracy(
        scores["train"]["accuracy"],
        config.model.hidden_channels,
        1 if shared else config.model.num_layers,
    )
    scores["train"]["normalised_accuracy"] = value
    return value


EXPERIMENT = Experiment(
    name="trees",
    title="Tree-NeighborsMatch",
    summary="The root of a binary tree must tell the value of the leaf that it asks for; the "
    "deeper the tree, the more must pass through one state. Train accuracy, as in the paper.",
    kind="scores",
    metric=Metric("accuracy", "train accuracy", higher_is_better=True, unit="%", split="train"),
    rows=(*baseline_rows("ggnn", "gat", "gcn", "gin"), adgn_row("adgn", "A-DGN")),
    columns=tuple(
        Column(f"radius-{radius}", f"radius {radius}", TASK, {"task": {"radius": radius}})
        for radius in range(2, 9)
    ),
    notes=(
        "The paper quotes the rows other than A-DGN from Alon and Yahav (2021).",
        "A-DGN has one set of weights for all layers, the others one per layer; the normalised "
        "accuracy beside it accounts for that.",
    ),
    settings_of=_settings,
)
