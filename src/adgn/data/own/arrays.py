"""Graphs from arrays."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse
import torch
from torch import Tensor

from adgn.data.features import csr_from_scipy
from adgn.data.own.arrow import plain_array, unknown_as_null
from adgn.data.own.edges import check_weights, edges_by_graph, tidy_edges
from adgn.data.own.graph import Graph, Level
from adgn.data.own.ids import check_unique, tidy_ids
from adgn.data.root import GraphInputError
from adgn.graph.checks import check_edge_index


def graph_from_arrays(
    x: Any,
    edge_index: Any,
    y: Any,
    *,
    edge_weight: Any,
    ids: Any,
    feature_names: Sequence[str] | None,
    target_name: str | Sequence[str],
    directed: bool | None,
    graph_of_node: Any,
    level: Level | None,
) -> Graph:
    """See `Graph.from_arrays`."""
    features = None if x is None else feature_matrix(x)
    if features is None and ids is None:
        raise GraphInputError(
            "x and ids are both None; give one of them: how many nodes are there?"
        )
    given: Any = None if ids is None else _ids(ids)
    nodes = features.shape[0] if features is not None else len(given)
    if given is not None and len(given) != nodes:
        raise GraphInputError(f"ids has {len(given):,} entries; x has {nodes:,} rows")
    if feature_names is not None and (features is None or len(feature_names) != features.shape[1]):
        columns = 0 if features is None else features.shape[1]
        raise GraphInputError(
            f"feature_names has {len(feature_names)} names; x has {columns} columns"
        )
    ends = np.asarray(_numpy(edge_index))
    ends = ends.reshape(2, 0).astype(np.int64) if not ends.size else ends
    check_edge_index(torch.from_numpy(ends), nodes)
    weight = None if edge_weight is None else np.asarray(_numpy(edge_weight), dtype=np.float64)
    if weight is not None:
        if weight.shape != ends.shape[1:]:
            raise GraphInputError(
                f"edge_weight has shape {list(weight.shape)}; give one number per edge, "
                f"[{ends.shape[1]}]"
            )
        check_weights(weight, "edge_weight", "leave them out", _place)
    edges = tidy_edges(ends.astype(np.int64), weight, nodes, directed)
    graphs, graph_ids = _graphs(graph_of_node, nodes)
    if given is not None:
        check_unique(given, None if graphs is None else graphs.numpy(), "ids", _place)
    if graphs is not None:
        edges = edges_by_graph(edges, graphs.numpy())
    target, notes = target_table(y, target_name)
    if target is not None and level is None:
        level = _level(target.num_rows, nodes, 1 if graph_ids is None else len(graph_ids))
    return Graph(
        ids=pa.array(np.arange(nodes)) if given is None else given,
        edge_index=edges.index,
        x=features,
        feature_names=None if feature_names is None else tuple(map(str, feature_names)),
        edge_weight=edges.weight,
        directed=edges.directed,
        target=target,
        level=level or "node",
        graph_of_node=graphs,
        graph_ids=graph_ids,
        notes=(*edges.notes, *notes),
        origin="x",
        reading={"directed": edges.directed},
    )


def feature_matrix(x: Any) -> Tensor:
    """Features as they are kept: dense float32 or torch CSR, all finite."""
    if scipy.sparse.issparse(x):
        matrix = csr_from_scipy(scipy.sparse.csr_matrix(x).astype(np.float32))
    elif isinstance(x, Tensor) and x.layout != torch.strided:
        matrix = x.detach().cpu().to_sparse_csr().float()
    else:
        try:
            matrix = torch.from_numpy(np.array(_numpy(x), dtype=np.float32))
        except (TypeError, ValueError) as error:
            raise GraphInputError(
                f"x cannot be read as a matrix of numbers ({error}); give columns of other types "
                "as a table: Graph.from_tables"
            ) from None
    if matrix.dim() != 2:
        raise GraphInputError(f"x has shape {list(matrix.shape)}; give [num_nodes, num_features]")
    values = matrix.values() if matrix.layout == torch.sparse_csr else matrix
    if not bool(values.isfinite().all()):
        wrong = int((~values.isfinite()).sum())
        raise GraphInputError(
            f"x has {wrong:,} value(s) that are NaN or infinite; fill them in, or give columns "
            "with missing values as a table: Graph.from_tables"
        )
    return matrix


def target_table(
    values: Any, name: str | Sequence[str] = "y"
) -> tuple[pa.Table | None, tuple[str, ...]]:
    """A target as a table with null where it is unknown, and what there is to say about it."""
    if values is None:
        return None, ()
    if isinstance(values, pa.Table):
        columns = [plain_array(column) for column in values.columns]
        return pa.table([unknown_as_null(c) for c in columns], values.column_names), ()
    if isinstance(values, pa.Array | pa.ChunkedArray):
        columns = [plain_array(values)]
    else:
        columns = _target_columns(values)
    names = [name] if isinstance(name, str) else list(name)
    if len(names) == 1 and len(columns) > 1:
        names = [f"{names[0]}{number}" for number in range(len(columns))]
    if len(names) != len(columns):
        raise GraphInputError(f"the target has {len(columns)} columns and {len(names)} names")
    notes = []
    for position, column in enumerate(columns):
        unknown = _minus_one(column) if not isinstance(values, pa.Array) else 0
        if unknown:
            columns[position] = pc.if_else(pc.equal(column, -1), None, column)
            notes.append(f"{names[position]}: {unknown:,} value(s) of -1 are taken as unknown")
    return pa.table([unknown_as_null(column) for column in columns], names), tuple(notes)


def _target_columns(values: Any) -> list[pa.Array]:
    if isinstance(values, list | tuple) and not any(isinstance(v, list | tuple) for v in values):
        return [pa.array(values, from_pandas=True)]
    array = np.asarray(_numpy(values))
    if array.ndim == 2:
        return [pa.array(np.ascontiguousarray(column)) for column in array.T]
    if array.ndim != 1:
        raise GraphInputError(
            f"the target has shape {list(array.shape)}; give [rows] or [rows, targets]"
        )
    return [pa.array(array, from_pandas=True)]


def _minus_one(column: pa.Array) -> int:
    """How many unknown labels an array of class numbers has."""
    if not pa.types.is_signed_integer(column.type) or pc.min(column).as_py() != -1:
        return 0
    return int(pc.sum(pc.equal(column, -1)).as_py())


def _graphs(graph_of_node: Any, nodes: int) -> tuple[Tensor | None, pa.Array | None]:
    if graph_of_node is None:
        return None, None
    numbers = torch.as_tensor(_numpy(graph_of_node)).long()
    if numbers.shape != (nodes,):
        raise GraphInputError(
            f"graph_of_node has shape {list(numbers.shape)}; give one number per node, [{nodes}]"
        )
    steps = numbers.diff()
    if int(numbers[0]) != 0 or not bool(((steps == 0) | (steps == 1)).all()):
        raise GraphInputError(
            "graph_of_node must count the graphs 0, 1, 2, … with the nodes of each beside one "
            "another; sort the nodes by graph"
        )
    return numbers, pa.array(np.arange(int(numbers[-1]) + 1))


def _level(rows: int, nodes: int, graphs: int) -> Level:
    if rows == nodes:
        return "node"
    if rows == graphs:
        return "graph"
    raise GraphInputError(
        f"the target has {rows:,} rows; there are {nodes:,} nodes and {graphs:,} graph(s): give "
        "one row for each node or for each graph"
    )


def _numpy(value: Any) -> Any:
    return value.detach().cpu().numpy() if isinstance(value, Tensor) else value


def _ids(ids: Any) -> pa.Array:
    values = ids if isinstance(ids, pa.Array | pa.ChunkedArray) else pa.array(_numpy(ids))
    return tidy_ids(values, "ids", _place)


def _place(row: int) -> str:
    return f"position {row:,}"
