"""Targets of whole graphs: a table of graphs, or a column that is the same in all its nodes."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adgn.data.own.ids import check_unique, like_ids, positions, tidy_ids
from adgn.data.own.node_table import (
    Nodes,
    TableOptions,
    read_columns,
    taken_columns,
    target_columns,
)
from adgn.data.own.roles import check_columns
from adgn.data.own.tables import Table
from adgn.data.root import GraphInputError

Integers = NDArray[np.int64]


def read_graphs(
    table: Table, nodes: Nodes, options: TableOptions, notes: list[str]
) -> tuple[pa.Table | None, dict[str, pa.Array | None]]:
    """The target of each graph, and its columns for splits, from a table of graphs."""
    if options.graph is None or nodes.graph_ids is None:
        raise GraphInputError(
            f"{table.label} was given without graph='…': which column of {nodes.table.label} has "
            "the graph of each node?"
        )
    key = options.graph if options.graph in table.names else table.names[0]
    if key != options.graph:
        notes.append(f"{table.label}: the first column, {key!r}, is taken as the id of graphs")
    check_columns("target_column", options.targets, table.names, table.label)
    named = options.for_splits
    for role, name in named.items():
        check_columns(role, [name], table.names, table.label)
    used = list(dict.fromkeys([key, *options.targets, *named.values()]))
    unused = [name for name in table.names if name not in used]
    if unused:
        notes.append(
            f"{table.label}: {len(unused):,} column(s) are not used, since features are those of "
            f"nodes: {', '.join(map(repr, unused[:5]))}"
        )
    data = read_columns(table, used, {key}, options.categories)
    ids = tidy_ids(data.column(key), f"{table.label}, column {key!r}", table.place)
    check_unique(ids, None, f"{table.label}, column {key!r}", table.place)
    ids, wanted = like_ids(ids, nodes.graph_ids)
    rows = positions(wanted, ids)
    if (rows < 0).any():
        notes.append(
            f"{table.label}: {int((rows < 0).sum()):,} of {len(wanted):,} graphs have no row; "
            "their target is unknown"
        )
    without = len(ids) - int((rows >= 0).sum())
    if without:
        raise GraphInputError(
            f"{table.label}: {without:,} row(s) name a graph that {nodes.table.label} does not "
            "have; remove them, or add the nodes of these graphs"
        )
    data = data.take(pa.array(np.where(rows < 0, 0, rows), mask=rows < 0))
    special = taken_columns(data, named, table, wanted)
    return target_columns(data, options.targets), special


def constant_within(target: pa.Table, graph: Integers) -> bool:
    """Whether the target is the same in all nodes of each graph."""
    first = first_rows(graph)
    for column in target.columns:
        codes = column.combine_chunks().dictionary_encode()
        codes = (codes.combine_chunks() if isinstance(codes, pa.ChunkedArray) else codes).indices
        numbers = codes.fill_null(-1).to_numpy(zero_copy_only=False)
        if (numbers != numbers[first][graph]).any():
            return False
    return True


def first_rows(graph: Integers) -> Integers:
    """The first node of each graph."""
    return np.flatnonzero(np.append(True, graph[1:] != graph[:-1]))
