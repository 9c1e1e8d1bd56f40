"""A table of nodes and a table of edges as a graph."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from adgn._util.suggestions import did_you_mean, nearest
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
    graph_table = None if graphs is None else opened(graphs, "graphs", options.form)
    if options.for_prediction:
        graph_table, options = _without_what_lacks(node_table, edge_table, graph_table, options)
    _check_ignored(options, [t for t in (node_table, edge_table, graph_table) if t is not None])
    read = read_nodes(node_table, options, has_graph_table=graph_table is not None)
    joined, edge_columns, ends, roles = read_edges(edge_table, read, options)
    target, special = read.target, read.special
    level: Level = options.level or "node"
    notes = [*read.notes, *joined.notes]
    if graph_table is not None:
        level, target, special = "graph", *read_graphs(graph_table, read, options, notes)
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
        reading={
            "id": read.id_column,
            **roles,
            "graph": options.graph,
            "target_column": options.targets,
            "directed": joined.directed,
            "level": level,
            "groups": options.groups,
            "time": options.time,
            "split": options.split,
            "ignore": [*options.ignore],
            "categories": [*options.categories],
            **vars(options.form),
            "for_prediction": True,
        },
    )


def _without_what_lacks(
    nodes: Table, edges: Table | None, graphs: Table | None, options: TableOptions
) -> tuple[Table | None, TableOptions]:
    """What a prediction can do without is left out where it is not there: the target first."""
    for role, table in (
        ("id", nodes),
        ("graph", nodes),
        ("source", edges),
        ("target", edges),
        ("weight", edges),
    ):
        name = getattr(options, role)
        if table is not None and name is not None and name not in table.names:
            raise GraphInputError(
                f"{table.label} has no column {name!r}, the {role} column of the data that the "
                f"model was fitted on; name it so.{did_you_mean(nearest(name, table.names))}"
            )
    targets = set(options.targets)
    if graphs is not None and not targets <= set(graphs.names):
        graphs = None
    known = {name for table in (nodes, edges, graphs) if table is not None for name in table.names}
    there = targets <= set((graphs or nodes).names)
    return graphs, replace(
        options,
        target_column=options.targets if there else None,
        ignore=[name for name in options.ignore if name in known],
        categories=[name for name in options.categories if name in known],
    )


def _check_ignored(options: TableOptions, tables: Sequence[Table]) -> None:
    names = [name for table in tables for name in table.names]
    labels = " and ".join(table.label for table in tables)
    check_columns("ignore", options.ignore, names, labels)
    check_columns("categories", options.categories, names, labels)
