"""The numbers of the paper's tables, and which of them belongs to which task and model."""

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from adgn.data.node_datasets import NODE_DATASETS
from adgn.data.property_targets import TARGETS
from adgn.tasks.protocols import published_protocol
from adgn.training.tasks import PublishedValue

if TYPE_CHECKING:
    from adgn.training.config import TrainConfig

_PROPERTY, _TWENTY_THIRTY = "graph_property_prediction", "graph_benchmarks"
_HETEROPHILIC, _TREES = "heterophilic_benchmarks", "tree_neighbors_match"


@cache
def published_tables() -> Mapping[str, Any]:
    """All tables, by name, as they are in the paper.

    Example:
        >>> published_tables()["graph_property_prediction"]["rows"]["GCN"]["SSSP"]["mean"]
        0.9499
    """
    text = files("adgn.tasks").joinpath("published.json").read_text(encoding="utf-8")
    tables: Mapping[str, Any] = json.loads(text)
    return tables


def published_row(title: str, options: Mapping[str, Any], table: str) -> str:
    """How a table calls a model.

    Args:
        title: The model's name as people know it, such as `"GCN"` or `"A-DGN"`.
        options: The model's options; A-DGN has a row for each variant.
        table: The table's name.

    Example:
        >>> options = {"phi": "gcn", "weight_sharing": False}
        >>> published_row("A-DGN", options, "graph_property_prediction")
        'A-DGN ldw (GCN)'
    """
    if title != "A-DGN" or table == _TREES:
        return title
    variant = "" if options.get("phi", "sum") == "sum" else f" ({str(options['phi']).upper()})"
    if table != _PROPERTY:
        return f"A-DGN{variant}"
    return f"A-DGN {'ws' if options.get('weight_sharing', True) else 'ldw'}{variant}"


def published_direction(table: str, row: str) -> str | None:
    """Where nodes listened in a row of a table, see `adgn.training.PublishedValue`.

    The paper's own rows have PyG's direction, `"in"`. On the heterophilic graphs, whose edges have
    a direction, most of the rows that it quotes come from code that multiplies the states with the
    adjacency matrix as stored, so that a node hears the nodes that it points to.

    Example:
        >>> published_direction("heterophilic_benchmarks", "A-DGN")
        'in'
        >>> published_direction("heterophilic_benchmarks", "GCN")
        'out'
    """
    return published_protocol(table, row).conditions.direction


def published_value(
    task: str, title: str, options: Mapping[str, Any], *, radius: int | None = None
) -> PublishedValue | None:
    """What the paper reports for a task and a model; `None` where it reports nothing.

    Args:
        task: A property target under its true name, a node data set, or
            `"tree-neighbors-match"`.
        title: The model's name as people know it.
        options: The model's options.
        radius: Of the trees.

    Example:
        >>> value = published_value("laplacian", "GCN", {})  # published as "SSSP"
        >>> value.mean, value.column
        (0.9499, 'SSSP')
        >>> published_value("texas", "A-DGN", {"phi": "gcn"}).metric
        'accuracy'
    """
    if task in TARGETS:
        column = TARGETS[task].published_as
        if column is None:
            return None
        return _cell(_PROPERTY, column, title, options, "log10_mse_paper", 1)
    if task in NODE_DATASETS:
        column = NODE_DATASETS[task].title
        known = NODE_DATASETS[task].splits in ("public", "per class")
        table = _TWENTY_THIRTY if known else _HETEROPHILIC
        return _cell(table, column, title, options, "accuracy", 100)
    if task == "tree-neighbors-match":
        return _tree_cell(title, radius) if _was_run(title, options, _TREES) else None
    return None


def published_for(config: "TrainConfig", *, radius: int | None = None) -> PublishedValue | None:
    """What the paper reports for the task and the model of a configuration."""
    from adgn.nn import model_spec  # it brings torch

    title = model_spec(config.model.name).title
    return published_value(config.task.name, title, config.model.options, radius=radius)


def _cell(
    table: str, column: str, title: str, options: Mapping[str, Any], metric: str, unit: float
) -> PublishedValue | None:
    if not _was_run(title, options, table):
        return None
    row = published_row(title, options, table)
    cell = published_tables()[table]["rows"].get(row, {}).get(column)
    if cell is None or cell["mean"] is None:
        return None
    std = cell.get("std")
    return PublishedValue(
        metric=metric,
        mean=cell["mean"] / unit,
        std=None if std is None else std / unit,
        table=table,
        row=row,
        column=column,
        direction=published_direction(table, row),
    )


def _was_run(title: str, options: Mapping[str, Any], table: str) -> bool:
    """Whether a variant of A-DGN is one of the table's; other models are known by their title.

    Randomised weights are in no table. Outside property prediction the paper shares weights, and
    on trees it has the sum alone. Its nodes listen to their incoming edges, and no row has weights
    for both directions.
    """
    direction = options.get("direction", "in")
    if title != "A-DGN":
        return bool(direction != "both")
    if direction != "in" or not options.get("train_recurrent", True):
        return False
    shared = table == _PROPERTY or options.get("weight_sharing", True)
    return bool(shared) and (table != _TREES or options.get("phi", "sum") == "sum")


def _tree_cell(title: str, radius: int | None) -> PublishedValue | None:
    column = f"radius {radius}"
    accuracy = _tree_value("rows", title, column)
    if accuracy is None:
        return None
    # The paper's table has train accuracies.
    direction = published_direction(_TREES, title)
    return PublishedValue("train_accuracy", accuracy, None, _TREES, title, column, direction)


def published_normalised_accuracy(row: str, column: str) -> float | None:
    """What the paper reports for the trees next to the accuracy, by the titles of its table.

    Example:
        >>> published_normalised_accuracy("GGNN", "radius 5")
        0.38
    """
    return _tree_value("rows_normalised", row, column)


def _tree_value(rows: str, row: str, column: str) -> float | None:
    table = published_tables()[_TREES]
    columns = [f"radius {radius}" for radius in table["radius"]]
    values = table[rows].get(row)
    value: float | None = values[columns.index(column)] if values and column in columns else None
    return value
