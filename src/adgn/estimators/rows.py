"""What users give for a graph, and for rows of it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data, Dataset

from adgn.data import Graph, GraphInputError, Preprocessing, TargetEncoder
from adgn.nn.network import Level
from adgn.transforms import FullyAdjacent, Transform, TransformLike, resolve_transforms


def is_graph(value: Any) -> bool:
    """Whether a value is a graph, or PyG data (one, a list, a data set), not positions of rows."""
    several = isinstance(value, list | tuple) and len(value) > 0
    return isinstance(value, Graph | Data | Dataset) or (several and isinstance(value[0], Data))


def as_graph(value: Any, level: Level, directed: bool | None = None) -> Graph:
    """A graph whose rows are nodes or graphs, as the estimator needs it.

    Args:
        value: A graph, or PyG data.
        level: What the estimator predicts.
        directed: Whether the edges of PyG data have a direction; `None`: as they look.
    """
    graph = value if isinstance(value, Graph) else Graph.from_pyg(value, directed=directed)
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


def row_name(graph: Graph, row: int) -> Any:
    """The id of a row; of a node of many graphs `"graph/id"`, for ids are unique within one.

    Example:
        >>> graph = Graph.from_arrays([[0.0]] * 2, [[], []], ids=[7, 7], graph_of_node=[0, 1])
        >>> row_name(graph, 1)
        '1/7'
    """
    name = graph.row_ids[row].as_py()
    if graph.level == "graph" or graph.graph_of_node is None or graph.graph_ids is None:
        return name
    return f"{graph.graph_ids[int(graph.graph_of_node[row])]}/{name}"


def row_of(graph: Graph, name: Any) -> int:
    """The position of the row with an id; the other way round than `row_name`.

    Example:
        >>> graph = Graph.from_arrays([[0.0]] * 2, [[], []], ids=[7, 7], graph_of_node=[0, 1])
        >>> row_of(graph, "1/7")
        1
        >>> row_of(graph, 7)
        Traceback (most recent call last):
        adgn.data.root.GraphInputError: 7 is the id of 2 nodes of x, each of another graph; name
        the graph too: '0/7'
    """
    ids = graph.row_ids
    found = _places(ids, name)
    owners = None if graph.level == "graph" else graph.graph_of_node
    if owners is not None and not len(found) and isinstance(name, str):
        for cut in (place for place, sign in enumerate(name) if sign == "/"):
            owned = np.isin(owners.numpy(), _places(graph.graph_ids, name[:cut])).nonzero()
            inside = np.intersect1d(_places(ids, name[cut + 1 :]), owned)
            found = np.concatenate([found, inside])
    if not len(found):
        raise GraphInputError(
            f"{name!r} is not among the {len(ids):,} ids of {graph.origin} (such as "
            f"{row_name(graph, 0)})"
        )
    if len(found) > 1:
        raise GraphInputError(
            f"{name!r} is the id of {len(found):,} {graph.level}s of {graph.origin}, each of "
            f"another graph; name the graph too: {row_name(graph, int(found[0]))!r}"
        )
    return int(found[0])


def _places(ids: Any, name: Any) -> NDArray[np.int64]:
    """Where an id is; nowhere if it cannot be one."""
    try:
        same = pc.equal(ids, pa.scalar(name).cast(ids.type))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return np.empty(0, dtype=np.int64)
    return np.flatnonzero(same.to_numpy(zero_copy_only=False))


def transforms_for(given: TransformLike, level: Level) -> tuple[Transform, ...]:
    """The transforms that the graphs of an estimator go through, before any model sees them.

    Example:
        >>> transforms_for("undirected", "node")
        (Undirected(),)
        >>> transforms_for("largest_component", "node")
        Traceback (most recent call last):
        ValueError: transform='largest_component' leaves nodes out, but every node ...
    """
    transforms = resolve_transforms(given)
    for transform in transforms:
        if not transform.keeps_nodes:
            raise ValueError(
                f"transform={transform.name!r} leaves nodes out, but every node of a graph is "
                "predicted; leave them out of the graph that is given"
            )
        if isinstance(transform, FullyAdjacent) and level == "graph":
            raise ValueError(
                "transform='fa' has no meaning where whole graphs are predicted: their readout "
                "reads all nodes already"
            )
    return transforms


def plain(value: Any) -> Any:
    """The value in types of Python, in place of NumPy's.

    Example:
        >>> plain({np.int64(3): [np.float32(0.5)]})
        {3: [0.5]}
    """
    if isinstance(value, Mapping):
        return {plain(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value.tolist() if isinstance(value, np.generic | np.ndarray) else value


def reading_of(
    graph: Graph, preprocessing: Preprocessing, encoder: TargetEncoder
) -> dict[str, Any]:
    """How new data for a model is read: as its graph was, and text where it had text."""
    reading = {name: value for name, value in graph.reading.items() if value not in (None, [])}
    if "for_prediction" in reading:
        text = encoder.names if encoder.classes and isinstance(encoder.classes[0], str) else ()
        named = (*reading.get("categories", ()), *preprocessing.category_columns, *text)
        reading["categories"] = list(dict.fromkeys(named))
    return reading


def described(graph: Graph) -> str:
    """The graph in a sentence."""
    many = f"{graph.num_graphs:,} graphs with " if graph.level == "graph" else ""
    kind = "directed" if graph.directed else "undirected"
    weights = ", with weights" if graph.edge_weight is not None else ""
    return f"{many}{graph.num_nodes:,} nodes and {graph.num_edges:,} {kind} edges{weights}."
