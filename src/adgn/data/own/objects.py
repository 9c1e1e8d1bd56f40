"""Graphs of NetworkX and igraph, and GraphML files, as tables of nodes and edges."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree.ElementTree import ParseError

import networkx
import pyarrow as pa

from adgn.data.own.tables import MemoryTable, check_table_memory
from adgn.data.root import GraphInputError


class ObjectTables(NamedTuple):
    """A graph as a table of nodes and one of edges, with the names of the columns with ids."""

    nodes: MemoryTable
    edges: MemoryTable | None
    id: str
    source: str
    target: str
    directed: bool


def tables_of_networkx(graph: Any, label: str = "the graph") -> ObjectTables:
    """The attributes of nodes and edges as columns.

    Args:
        graph: Any class of NetworkX's graphs.
        label: What messages call it.
    """
    if not all(hasattr(graph, name) for name in ("nodes", "edges", "is_directed")):
        raise GraphInputError(
            f"graph is of the type {type(graph).__name__}; give a graph of NetworkX"
        )
    nodes = list(graph.nodes(data=True))
    edges = list(graph.edges(data=True))
    return _tables(
        _ids([node for node, _ in nodes]),
        _columns([attributes for _, attributes in nodes], f"{label}: node attribute"),
        _ends([edge[:2] for edge in edges], [node for node, _ in nodes]),
        _columns([edge[2] for edge in edges], f"{label}: edge attribute"),
        directed=bool(graph.is_directed()),
        label=label,
    )


def tables_of_igraph(graph: Any) -> ObjectTables:
    """The attributes of vertices and edges as columns; ids are the attribute `name`, if all differ.

    Args:
        graph: A graph of igraph, which is not imported.
    """
    if not all(hasattr(graph, name) for name in ("vs", "es", "get_edgelist", "is_directed")):
        raise GraphInputError(
            f"graph is of the type {type(graph).__name__}; give a graph of igraph"
        )
    attributes = {name: graph.vs[name] for name in graph.vs.attributes()}
    names = attributes.get("name", ())
    named = len(set(names)) == graph.vcount() > 0 and None not in names
    ids = attributes.pop("name") if named else list(range(graph.vcount()))
    positions = graph.get_edgelist()
    label = "the graph"
    return _tables(
        _ids(ids),
        {
            name: _array(values, f"{label}: vertex attribute", name)
            for name, values in attributes.items()
        },
        _ends([(ids[a], ids[b]) for a, b in positions], ids),
        {
            name: _array(graph.es[name], f"{label}: edge attribute", name)
            for name in graph.es.attributes()
        },
        directed=bool(graph.is_directed()),
        label=label,
    )


def tables_of_graphml(path: Path) -> ObjectTables:
    """A GraphML file, read by NetworkX."""
    if not path.is_file():
        raise GraphInputError(f"path={str(path)!r}: there is no such file")
    if path.stat().st_size == 0:
        raise GraphInputError(f"path={str(path)!r} is empty")
    check_table_memory(10 * path.stat().st_size, path.name)  # NetworkX keeps Python objects
    try:
        graph = networkx.read_graphml(path)
    except (ParseError, networkx.NetworkXError, OSError, ValueError, KeyError) as error:
        raise GraphInputError(f"{path.name} cannot be read as GraphML: {error}") from None
    return tables_of_networkx(graph, path.name)


def _tables(
    ids: pa.Array,
    node_columns: Mapping[str, pa.Array],
    ends: tuple[pa.Array, pa.Array],
    edge_columns: Mapping[str, pa.Array],
    *,
    directed: bool,
    label: str,
) -> ObjectTables:
    identity = _free_name("id", node_columns)
    source, target = (_free_name(name, edge_columns) for name in ("source", "target"))
    edges = None
    if len(ends[0]):
        columns = {source: ends[0], target: ends[1], **edge_columns}
        edges = MemoryTable(f"{label} (edges)", pa.table(columns))
    nodes = MemoryTable(label, pa.table({identity: ids, **node_columns}))
    return ObjectTables(nodes, edges, identity, source, target, directed)


def _free_name(name: str, taken: Iterable[str]) -> str:
    """The name, with underscores before it where an attribute has it already."""
    while name in taken:
        name = f"_{name}"
    return name


def _ids(nodes: Sequence[Hashable]) -> pa.Array:
    """Whole numbers and text as they are, everything else as it is printed."""
    return pa.array(nodes if _as_they_are(nodes) else [str(node) for node in nodes])


def _as_they_are(nodes: Sequence[Hashable]) -> bool:
    if all(type(node) is int for node in nodes):
        return all(-(2**63) <= node < 2**63 for node in nodes)  # type: ignore[operator]
    return all(type(node) is str for node in nodes)


def _ends(
    pairs: Sequence[tuple[Hashable, Hashable]], nodes: Sequence[Hashable]
) -> tuple[pa.Array, pa.Array]:
    """The ends of edges, written as the ids of the nodes are."""
    source, target = ([pair[side] for pair in pairs] for side in (0, 1))
    if _as_they_are(nodes):
        return pa.array(source), pa.array(target)
    return pa.array([str(node) for node in source]), pa.array([str(node) for node in target])


def _columns(rows: Sequence[Mapping[str, Any]], what: str) -> dict[str, pa.Array]:
    """A column for each attribute, null where something lacks it."""
    names = dict.fromkeys(name for row in rows for name in row)
    return {str(name): _array([row.get(name) for row in rows], what, name) for name in names}


def _array(values: Sequence[Any], what: str, name: str) -> pa.Array:
    try:
        return pa.array(values, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise GraphInputError(
            f"{what} {name!r} cannot be a column: {error}. Give it values of one type, or remove it"
        ) from None
