"""Many graphs in a folder: a pair of tables or a GraphML file for each, and a table of targets."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from adgn.data.own.graph import Graph
from adgn.data.own.node_table import TableOptions, opened, read_columns
from adgn.data.own.objects import tables_of_graphml
from adgn.data.own.reading import graph_from_tables
from adgn.data.own.roles import find_ends, find_id
from adgn.data.own.tables import FEATHER, PARQUET, MemoryTable, Table
from adgn.data.own.textfiles import TEXT_ENDINGS
from adgn.data.root import GraphInputError

ENDINGS = (*TEXT_ENDINGS, *PARQUET, *FEATHER)
TARGETS = ("targets", "graphs", "labels")


@dataclass
class StackedTable(MemoryTable):
    """Tables of many graphs one below the other; a row is found in the file it is from."""

    parts: Sequence[Table] = ()
    starts: Sequence[int] = ()

    def place(self, row: int) -> str:
        """The row and the file."""
        part = bisect_right(self.starts, row) - 1
        return f"{self.parts[part].place(row - self.starts[part])} of {self.parts[part].label}"


def graph_from_folder(folder: Path, options: TableOptions) -> Graph:
    """See `Graph.from_folder`."""
    if not folder.is_dir():
        raise GraphInputError(f"path={str(folder)!r} is not a folder")
    files = sorted(p for p in folder.rglob("*") if p.is_file() and not p.name.startswith("."))
    targets = [path for path in files if path.parent == folder and _stem(path) in TARGETS]
    if len(targets) > 1:
        raise GraphInputError(
            f"{folder.name} has several tables of targets: {_listed(targets, folder)}; keep one"
        )
    rest = [path for path in files if path not in targets]
    graphml = [path for path in rest if path.name.endswith((".graphml", ".graphml.gz"))]
    pairs = _pairs(rest, folder)
    if graphml and pairs:
        raise GraphInputError(f"{folder.name} has GraphML files and tables; keep one kind of them")
    if not graphml and not pairs:
        raise GraphInputError(
            f"{folder.name} has no graphs: neither .graphml files nor pairs such as a_nodes.csv "
            "and a_edges.csv, or a/nodes.csv and a/edges.csv"
        )
    used = {*graphml, *(path for pair in pairs.values() for path in pair), *targets}
    unused = [path for path in files if path not in used]
    notes: tuple[str, ...] = ()
    if unused:
        notes = (f"{folder.name}: {len(unused):,} file(s) not read: {_listed(unused, folder)}",)
    if list(pairs) == [""]:
        nodes, edges = pairs[""]
        graph = graph_from_tables(nodes, edges, targets[0] if targets else None, options)
    elif graphml:
        graph = _from_graphml(graphml, targets, folder, options)
    else:
        graph = _from_pairs(pairs, targets, folder, options)
    reading = {**graph.reading}
    if list(pairs) != [""]:
        reading["graph"] = None  # a column that was made here
    return replace(graph, notes=(*graph.notes, *notes), reading=reading)


def _pairs(files: Iterable[Path], folder: Path) -> dict[str, tuple[Path, Path]]:
    """The tables of nodes and edges of each graph, by its name."""
    found: dict[str, dict[str, Path]] = {}
    for path in files:
        stem, inside = _stem(path), path.relative_to(folder).parent
        if stem is None:
            continue
        for kind in ("nodes", "edges"):
            if stem == kind or stem.endswith((f"_{kind}", f".{kind}", f"-{kind}")):
                own = stem[: -len(kind)].rstrip("_.-")
                name = "/".join(part for part in (*inside.parts, own) if part)
                earlier = found.setdefault(name, {}).setdefault(kind, path)
                if earlier != path:
                    raise GraphInputError(
                        f"{folder.name}: {earlier.name} and {path.name} are both the {kind} of "
                        f"{name!r}; keep one"
                    )
    for name, tables in found.items():
        for kind, other in (("nodes", "edges"), ("edges", "nodes")):
            if kind not in tables:
                raise GraphInputError(
                    f"{folder.name}: the graph {name!r} has {tables[other].name} and no table of "
                    f"{kind}; add it"
                )
    if "" in found and len(found) > 1:
        raise GraphInputError(
            f"{folder.name} has {found['']['nodes'].name} and also tables of single graphs, such "
            f"as {next(name for name in found if name)!r}; keep one of the two forms"
        )
    return {name: (tables["nodes"], tables["edges"]) for name, tables in found.items()}


def _from_pairs(
    pairs: dict[str, tuple[Path, Path]], targets: list[Path], folder: Path, options: TableOptions
) -> Graph:
    nodes = [opened(pair[0], "nodes", options.form) for pair in pairs.values()]
    edges = [opened(pair[1], "edges", options.form) for pair in pairs.values()]
    for table, first in [(t, nodes[0]) for t in nodes] + [(t, edges[0]) for t in edges]:
        if set(table.names) != set(first.names):
            lacking = sorted(set(first.names) ^ set(table.names))
            raise GraphInputError(
                f"{folder.name}: {table.label} and {first.label} have different columns: only one "
                f"of them has {', '.join(map(repr, lacking[:5]))}"
            )
    identity, _ = find_id(options.id, nodes[0].names, nodes[0].label)
    source, target, _ = find_ends(options.source, options.target, edges[0].names, edges[0].label)
    node_tables = [read_columns(t, t.names, {identity}, options.categories) for t in nodes]
    edge_tables = [read_columns(t, t.names, {source, target}, options.categories) for t in edges]
    names = list(pairs)
    return _stacked(
        names,
        (nodes, node_tables),
        (edges, edge_tables),
        targets,
        folder,
        replace(options, id=identity, source=source, target=target),
    )


def _from_graphml(
    files: list[Path], targets: list[Path], folder: Path, options: TableOptions
) -> Graph:
    graphs = [tables_of_graphml(path) for path in files]
    names = [str(path.relative_to(folder)).split(".graphml")[0] for path in files]
    directions = {graph.directed for graph in graphs}
    if len(directions) > 1 and options.directed is None:
        raise GraphInputError(
            f"{folder.name} has directed and undirected graphs; say what they are: directed=…"
        )
    first = graphs[0]
    nodes = [graph.nodes for graph in graphs]
    edges = [graph.edges for graph in graphs if graph.edges is not None]
    directed = directions.pop() if options.directed is None else options.directed
    chosen = replace(
        options, id=first.id, source=first.source, target=first.target, directed=directed
    )
    named = [name for name, graph in zip(names, graphs, strict=True) if graph.edges is not None]
    return _stacked(
        names,
        (nodes, [table.table for table in nodes]),
        (edges, [table.table for table in edges]),
        targets,
        folder,
        chosen,
        named,
    )


def _stacked(
    names: Sequence[str],
    nodes: tuple[Sequence[Table], Sequence[pa.Table]],
    edges: tuple[Sequence[Table], Sequence[pa.Table]],
    targets: list[Path],
    folder: Path,
    options: TableOptions,
    edge_names: Sequence[str] | None = None,
) -> Graph:
    key = "graph"
    while any(key in table.column_names for table in (*nodes[1], *edges[1])):
        key = f"_{key}"
    options = replace(options, graph=key, level="graph" if targets else options.level)
    node_table = _below(nodes, names, key, f"{folder.name} (nodes)")
    edge_table = None
    if edges[1]:
        edge_table = _below(edges, edge_names or names, key, f"{folder.name} (edges)")
        if not edge_table.table.num_rows:
            edge_table = None
    table: Any = targets[0] if targets else None
    return graph_from_tables(node_table, edge_table, table, options)


def _below(
    tables: tuple[Sequence[Table], Sequence[pa.Table]], names: Sequence[str], key: str, label: str
) -> StackedTable:
    """One table of many, with the graph of each row."""
    with_key, starts, total = [], [], 0
    for table, name in zip(tables[1], names, strict=True):
        starts.append(total)
        total += table.num_rows
        graph = pa.array([name], pa.string()).take(pa.array([0] * table.num_rows, pa.int64()))
        with_key.append(table.append_column(key, graph))
    try:
        joined = pa.concat_tables(with_key, promote_options="permissive")
    except pa.ArrowException as error:
        raise GraphInputError(
            f"{label}: a column has values of different types in different graphs: {error}. Name "
            "columns with codes in categories=[…], or leave them out: ignore=[…]"
        ) from None
    return StackedTable(label, joined, tuple(tables[0]), tuple(starts))


def _stem(path: Path) -> str | None:
    """The name of a table's file without its ending; `None` for other files."""
    name = path.name.removesuffix(".gz")
    ending = next((ending for ending in ENDINGS if name.lower().endswith(ending)), None)
    return None if ending is None else name[: -len(ending)]


def _listed(paths: Sequence[Path], folder: Path) -> str:
    shown = ", ".join(str(path.relative_to(folder)) for path in paths[:5])
    return f"{shown}{', …' if paths[5:] else ''}"
