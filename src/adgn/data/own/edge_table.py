"""The table of edges, joined to the nodes."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from numpy.typing import NDArray

from adgn._util.names import shortened
from adgn.data.own.columns import is_number
from adgn.data.own.edges import Edges, check_weights, edges_by_graph, tidy_edges
from adgn.data.own.ids import check_known, like_ids, positions, tidy_ids
from adgn.data.own.node_table import Nodes, TableOptions, read_columns
from adgn.data.own.roles import find_ends, find_weight
from adgn.data.own.tables import Table
from adgn.data.root import GraphInputError

Integers = NDArray[np.int64]
EDGE_IDS = ("id", "edge_id", "edge", "key")


def read_edges(
    table: Table | None, nodes: Nodes, options: TableOptions
) -> tuple[Edges, pa.Table | None, torch.Tensor | None, dict[str, str | None]]:
    """Edges by positions of nodes, columns that become features, the ends of their rows, roles.

    The roles are the columns that were taken as `source`, `target` and `weight`.
    """
    count = len(nodes.ids)
    if table is None:
        none = tidy_edges(np.empty((2, 0), dtype=np.int64), None, count, options.directed)
        note = f"no edges were given: {nodes.table.label} is a table of unconnected nodes"
        return Edges(none.index, None, bool(options.directed), (note,)), None, None, {}
    source, target, notes = find_ends(options.source, options.target, table.names, table.label)
    weight, said = find_weight(
        options.weight,
        [n for n in table.names if n not in {source, target, *options.ignore}],
        table.label,
    )
    notes += said
    graph = options.graph if options.graph in table.names else None
    taken = [source, target, *([weight] if weight else []), *([graph] if graph else [])]
    kept = [n for n in table.names if n not in {*taken, *options.ignore}]
    named_ids = {source, target, *([graph] if graph else [])}
    data = read_columns(table, [*taken, *kept], named_ids, options.categories)
    if not data.num_rows and options.for_prediction:
        return read_edges(None, nodes, options)
    if not data.num_rows:
        raise GraphInputError(
            f"{table.label} has a header and no rows: a graph without edges. Give edges=None to go "
            "on without any"
        )
    kept = _without_ids(data, kept, table, notes)
    ends = _joined(data, source, target, graph, nodes, table)
    weights = None if weight is None else _weights(data.column(weight), weight, table)
    directed, kept = _direction_column(data, kept, options.directed, table, notes)
    order = None
    if nodes.graph is not None:
        order = np.argsort(nodes.graph[ends[0]], kind="stable")
        ends = ends[:, order]
        weights = None if weights is None else weights[order]
    edges = tidy_edges(ends, weights, count, directed, table.label)
    if nodes.graph is not None:
        edges = edges_by_graph(edges, nodes.graph)
    joined = Edges(edges.index, edges.weight, edges.directed, (*notes, *edges.notes))
    roles = {"source": source, "target": target, "weight": weight}
    if not kept:
        return joined, None, None, roles
    columns = data.select(kept) if order is None else data.select(kept).take(order)
    return joined, columns, torch.from_numpy(np.ascontiguousarray(ends)), roles


def _without_ids(data: pa.Table, kept: Sequence[str], table: Table, notes: list[str]) -> list[str]:
    """Without columns that only name or count the edges."""
    features = []
    for name in kept:
        column = data.column(name)
        named = name.lower() in EDGE_IDS and pc.count_distinct(column).as_py() == len(column)
        if named or name.startswith("__index_level_"):
            notes.append(f"{table.label}: column {name!r} names the edges and is left out")
        else:
            features.append(name)
    return features


def _joined(
    data: pa.Table, source: str, target: str, graph: str | None, nodes: Nodes, table: Table
) -> Integers:
    """The positions of the ends of edges."""
    of_edge = None
    if graph is not None and nodes.graph_ids is not None:
        what = f"{table.label}, column {graph!r}"
        names, known = like_ids(tidy_ids(data.column(graph), what, table.place), nodes.graph_ids)
        of_edge = positions(names, known)
        check_known(of_edge, names, what, f"the graphs of {nodes.table.label}", table.place)
    elif nodes.graph is not None:
        distinct = pc.count_distinct(nodes.ids).as_py()
        if distinct < len(nodes.ids):
            raise GraphInputError(
                f"{table.label} has no column of graphs, and {nodes.table.label} has the same id "
                "in several graphs; add the column of graphs to the edges, or make ids unique"
            )
    found = np.empty((2, data.num_rows), dtype=np.int64)
    for side, column in enumerate((source, target)):
        what = f"{table.label}, column {column!r}"
        ends, ids = like_ids(tidy_ids(data.column(column), what, table.place), nodes.ids)
        if of_edge is None:
            found[side] = positions(ends, ids)
        else:
            found[side] = _positions_within(ends, of_edge, ids, nodes)
        check_known(found[side], ends, what, nodes.table.label, table.place)
    if nodes.graph is not None and of_edge is None:
        crossing = np.flatnonzero(nodes.graph[found[0]] != nodes.graph[found[1]])
        if len(crossing):
            raise GraphInputError(
                f"{table.label}: {len(crossing):,} edge(s) join nodes of two graphs, first at "
                f"{table.place(int(crossing[0]))}; remove them, or correct the graph of the nodes"
            )
    return found


def _positions_within(ends: pa.Array, of_edge: Integers, ids: pa.Array, nodes: Nodes) -> Integers:
    """As `positions`, for ids that are unique within a graph only."""
    encoded = ids.dictionary_encode()
    codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    wanted = positions(ends, encoded.dictionary)
    number = np.int64(len(encoded.dictionary))
    keys = nodes.graph * number + codes  # type: ignore[operator]  # there are graphs
    found = positions(pa.array(of_edge * number + wanted), pa.array(keys))
    found[wanted < 0] = -1
    return found


def _weights(column: pa.ChunkedArray, name: str, table: Table) -> NDArray[np.float64]:
    if not is_number(column.type) and not pa.types.is_boolean(column.type):
        raise GraphInputError(
            f"{table.label}: the weights in column {name!r} are not numbers but {column.type}, "
            f"such as {shortened(next((v.as_py() for v in column if v.is_valid), None))}; correct "
            f"them, or leave them out: ignore=[{name!r}]"
        )
    weights: NDArray[np.float64] = column.cast(pa.float64(), safe=False).to_numpy()
    what, remedy = f"{table.label}, column {name!r}", f"leave them out: ignore=[{name!r}]"
    check_weights(weights, what, remedy, table.place)
    return weights


def direction_note(label: str, who: str, directed: bool) -> str:
    """What is said where the user and the data do not agree about the direction."""
    asked, said = ("directed", "undirected") if directed else ("undirected", "directed")
    return f"{label}: edges are taken as {asked}, as asked, though {who} {said}"


def _direction_column(
    data: pa.Table, kept: list[str], directed: bool | None, table: Table, notes: list[str]
) -> tuple[bool | None, list[str]]:
    """What a column `Type` with `Directed` or `Undirected` says, as Gephi writes it."""
    for name in kept:
        column = data.column(name)
        if name.lower() != "type" or not pa.types.is_string(column.type):
            continue
        values = {str(value).lower() for value in pc.unique(column).to_pylist()}
        if not values <= {"directed", "undirected"}:
            continue
        if len(values) > 1:
            raise GraphInputError(
                f"{table.label}: column {name!r} says that some edges are directed and some are "
                f"not; say which all are, directed=…, and ignore=[{name!r}]"
            )
        kept = [other for other in kept if other != name]
        said = values.pop()
        if directed is None:
            directed = said == "directed"
            notes.append(f"{table.label}: edges are {said}, as column {name!r} says")
        elif directed != (said == "directed"):
            notes.append(direction_note(table.label, f"column {name!r} says", directed))
    return directed, kept
