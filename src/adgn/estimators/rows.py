"""What users give for a graph, and for rows of it."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor
from torch_geometric.data import Data

from adgn.data import Graph, GraphInputError
from adgn.nn.network import Level


def is_graph(value: Any) -> bool:
    """Whether a value is a graph, or PyG data (one or a list), rather than positions of rows."""
    several = isinstance(value, list | tuple) and len(value) > 0
    return isinstance(value, Graph | Data) or (several and isinstance(value[0], Data))


def as_graph(value: Any, level: Level) -> Graph:
    """A graph whose rows are nodes or graphs, as the estimator needs it."""
    graph = value if isinstance(value, Graph) else Graph.from_pyg(value)
    if graph.level == level:
        return graph
    if graph.target is None and level == "graph":
        return replace(graph, level=level)
    wanted = "Graph" if graph.level == "graph" else "Node"
    raise GraphInputError(
        f"the target of {graph.origin} is about {graph.level}s, and this estimator predicts "
        f"{level}s; use {wanted}Classifier or {wanted}Regressor"
    )


def row_positions(rows: Any, graph: Graph) -> Tensor:
    """Positions from positions or a mask, checked.

    Example:
        >>> graph = Graph.from_arrays([[0.0]] * 3, [[0], [1]])
        >>> row_positions([True, False, True], graph)
        tensor([0, 2])
        >>> row_positions([[5]], graph)
        Traceback (most recent call last):
        adgn.data.root.GraphInputError: position 5 is out of range: ...
    """
    values = rows.numpy() if isinstance(rows, Tensor) else np.asarray(rows)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1 or values.dtype.kind not in "iub":
        raise GraphInputError(
            f"rows have shape {list(values.shape)} and type {values.dtype}; give positions "
            f"(integers from 0) of {graph.level}s, or a mask; ids are looked up with "
            "graph.row_ids"
        )
    if values.dtype.kind == "b":
        if len(values) != graph.num_rows:
            raise GraphInputError(
                f"the mask has {len(values):,} entries; {graph.origin} has {graph.num_rows:,} "
                f"{graph.level}s"
            )
        values = values.nonzero()[0]
    outside = values[(values < 0) | (values >= graph.num_rows)]
    if len(outside):
        raise GraphInputError(
            f"position {int(outside[0])} is out of range: {graph.origin} has {graph.num_rows:,} "
            f"{graph.level}s, from 0"
        )
    return torch.from_numpy(values.astype(np.int64))


def with_known(graph: Graph, rows: Tensor, y: Any, name: str | Sequence[str]) -> Graph:
    """The graph with targets at some rows, and none elsewhere.

    Example:
        >>> graph = Graph.from_arrays([[0.0]] * 3, [[0], [1]])
        >>> with_known(graph, torch.tensor([2]), ["b"], "y").target["y"].to_pylist()
        [None, None, 'b']
    """
    given = y.tolist() if hasattr(y, "tolist") else list(y)
    if len(given) != rows.numel():
        raise GraphInputError(
            f"y has {len(given):,} rows; {rows.numel():,} positions need as many targets"
        )
    several = bool(given) and isinstance(given[0], list | tuple)
    width = len(given[0]) if several else 1
    columns: list[list[Any]] = [[None] * graph.num_rows for _ in range(width)]
    for row, value in zip(rows.tolist(), given, strict=True):
        for column, part in zip(columns, value if several else [value], strict=True):
            column[row] = part
    names = [name] if isinstance(name, str) else list(name)
    return graph.with_target(pa.table(dict(zip(names, columns, strict=True))), names)


def target_names(graph: Graph) -> str | list[str]:
    """What a new target is called: as the one before it."""
    return "y" if graph.target is None else list(graph.target.column_names)


def described(graph: Graph) -> str:
    """The graph in a sentence."""
    many = f"{graph.num_graphs:,} graphs with " if graph.level == "graph" else ""
    kind = "directed" if graph.directed else "undirected"
    weights = ", with weights" if graph.edge_weight is not None else ""
    return f"{many}{graph.num_nodes:,} nodes and {graph.num_edges:,} {kind} edges{weights}."
