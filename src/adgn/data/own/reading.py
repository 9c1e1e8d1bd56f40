"""A table of nodes and a table of edges as a graph."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from adgn.data.own.edge_table import read_edges
from adgn.data.own.graph import Graph, Level
from adgn.data.own.graph_table import constant_within, first_rows, read_graphs
from adgn.data.own.node_table import TableOptions, opened, read_nodes
from adgn.data.own.roles import check_columns
from adgn.data.own.tables import Table
from adgn.data.root import GraphInputError

Integers = NDArray[np.int64]


def graph_from_tables(nodes: Any, edges: Any, graphs: Any, options: TableOptions) -> Graph:
    """See `Graph.from_tables`."""
    node_table = opened(nodes, "nodes", options.form)
    edge_table = None if edges is None else opened(edges, "edges", options.form)
    _check_ignored(options, [node_table, *([edge_table] if edge_table else [])])
    read = read_nodes(node_table, options, has_graph_table=graphs is not None)
    joined, edge_columns, ends = read_edges(edge_table, read, options)
    target, special = read.target, read.special
    level: Level = options.level or "node"
    notes = [*read.notes, *joined.notes]
    if graphs is not None:
        level, target, special = "graph", *read_graphs(graphs, read, options, notes)
    elif read.graph is not None and target is not None and options.level != "node":
        constant = constant_within(target, read.graph)
        if options.level == "graph" or constant:
            level = "graph"
            first = first_rows(read.graph)
            if not constant:
                raise GraphInputError(
                    f"{node_table.label}: the target {options.targets} differs between nodes of "
                    "one graph; level='graph' needs one value per graph"
                )
            target = target.take(first)
            special = {n: None if a is None else a.take(first) for n, a in special.items()}
            if options.level is None:
                notes.append(
                    f"{node_table.label}: the target is the same in all nodes of a graph; graphs "
                    "are predicted (level='node' predicts nodes)"
                )
    return Graph(
        ids=read.ids,
        edge_index=joined.index,
        node_columns=read.columns,
        edge_weight=joined.weight,
        directed=joined.directed,
        edge_columns=edge_columns,
        edge_ends=ends,
        target=target,
        level=level,
        graph_of_node=None if read.graph is None else torch.from_numpy(read.graph),
        graph_ids=read.graph_ids,
        **special,
        notes=tuple(notes),
        origin=node_table.label,
    )


def _check_ignored(options: TableOptions, tables: Sequence[Table]) -> None:
    names = [name for table in tables for name in table.names]
    labels = " and ".join(table.label for table in tables)
    check_columns("ignore", options.ignore, names, labels)
    check_columns("categories", options.categories, names, labels)
