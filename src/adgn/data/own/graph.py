"""A graph of the user, or many: columns as they came, edges as positions of nodes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor

from adgn.data.root import GraphInputError
from adgn.graph.checks import check_edge_index

if TYPE_CHECKING:
    from os import PathLike

    from adgn.data.own.node_table import TableOptions
    from adgn.data.own.objects import ObjectTables

Level = Literal["node", "graph"]
_NO_COLUMNS = pa.table({})
_FORM = ("delimiter", "encoding", "decimal")
_OF_TABLES = ("id", "source", "target", "graph")


@dataclass(frozen=True, eq=False, repr=False)
class Graph:
    """One or many graphs as the user has them: raw columns, not yet features.

    Make one with `from_tables`, `from_arrays`, `from_networkx`, `from_igraph`, `from_pyg`,
    `from_graphml` or `from_folder`. Many graphs are one disconnected graph, the nodes of each
    beside one another.

    Args:
        ids: One id per node, strings or integers, unique within a graph.
        edge_index: `[2, E]`, positions of sources and targets; both directions of each edge where
            the graph is not directed.
        node_columns: The columns that become features, one row per node; may have none.
        x: Features given as an array, `[num_nodes, F]`: dense float32, or torch CSR.
        feature_names: The names of the columns of `x`.
        edge_weight: `[E]`, float32.
        directed: Whether edges have a direction.
        edge_columns: The columns of edges that become features, one row per edge of the input.
        edge_ends: `[2, R]`, the ends of the edges that `edge_columns` is about. Edges that the
            input lists twice are one edge in `edge_index` and two rows here.
        target: What is to be predicted, one row per node or, at level `"graph"`, per graph; null
            where it is unknown.
        level: Whether nodes or whole graphs are predicted.
        graph_of_node: `[num_nodes]`, never decreasing; `None`: one graph.
        graph_ids: One id per graph.
        groups: A column for the split: rows of one group stay together.
        time: A column for the split: later rows validate.
        split: A column with `"train"`, `"valid"` and `"test"`.
        notes: What was left out, joined or assumed, each with a count.
        origin: What messages call the input, such as `nodes.csv`.
        reading: Arguments with which new data is read as this was: the columns that were taken as
            ids and ends, the direction, and so on. A fitted model keeps them as `reading_`.

    Example:
        >>> graph = Graph.from_arrays(
        ...     [[0.5], [1.5], [3.0]], edge_index=[[0, 1], [1, 2]], y=["a", "b", None]
        ... )
        >>> graph
        Graph(3 nodes, 2 edges, directed, x: 1 feature, target: y, 2 of 3 nodes labelled)
        >>> graph.labelled
        tensor([0, 1])
    """

    ids: pa.Array
    edge_index: Tensor
    node_columns: pa.Table = field(default_factory=lambda: _NO_COLUMNS)
    x: Tensor | None = None
    feature_names: tuple[str, ...] | None = None
    edge_weight: Tensor | None = None
    directed: bool = True
    edge_columns: pa.Table | None = None
    edge_ends: Tensor | None = None
    target: pa.Table | None = None
    level: Level = "node"
    graph_of_node: Tensor | None = None
    graph_ids: pa.Array | None = None
    groups: pa.Array | None = None
    time: pa.Array | None = None
    split: pa.Array | None = None
    notes: tuple[str, ...] = ()
    origin: str = "the graph"
    reading: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.num_nodes == 0:
            raise GraphInputError(f"{self.origin} has no nodes; give at least one")
        check_edge_index(self.edge_index, self.num_nodes)
        nodes, rows = self.num_nodes, self.num_rows
        for name, length, expected in (
            ("node_columns", self.node_columns.num_rows, nodes),
            ("x", None if self.x is None else self.x.shape[0], nodes),
            ("edge_weight", _length(self.edge_weight), self.num_edges),
            ("graph_of_node", _length(self.graph_of_node), nodes),
            ("target", None if self.target is None else self.target.num_rows, rows),
            ("groups", _length(self.groups), rows),
            ("time", _length(self.time), rows),
            ("split", _length(self.split), rows),
        ):
            if name == "node_columns" and not self.node_columns.num_columns:
                continue
            if length is not None and length != expected:
                raise GraphInputError(
                    f"{name} has {length:,} rows; {self.origin} needs {expected:,}: "
                    f"{nodes:,} nodes, {self.num_graphs:,} graph(s), level={self.level!r}"
                )

    @property
    def num_nodes(self) -> int:
        """The number of nodes of all graphs."""
        return len(self.ids)

    @property
    def num_edges(self) -> int:
        """The number of entries of `edge_index`."""
        return self.edge_index.shape[1]

    @property
    def num_graphs(self) -> int:
        """The number of graphs, 1 where there is no graph id."""
        return 1 if self.graph_ids is None else len(self.graph_ids)

    @property
    def num_rows(self) -> int:
        """The number of things that can be predicted: nodes or graphs."""
        return self.num_nodes if self.level == "node" else self.num_graphs

    @property
    def row_ids(self) -> pa.Array:
        """The id of each thing that can be predicted: of nodes or of graphs."""
        if self.level == "node":
            return self.ids
        return pa.array([0]) if self.graph_ids is None else self.graph_ids

    @property
    def labelled(self) -> Tensor:
        """The positions of the rows whose target is known, in all of its columns."""
        if self.target is None:
            return torch.empty(0, dtype=torch.long)
        known = np.ones(self.num_rows, dtype=bool)
        for column in self.target.columns:
            known &= column.is_valid().to_numpy()
        return torch.from_numpy(known.nonzero()[0])

    def with_target(self, values: Any, name: str | Sequence[str] = "y") -> "Graph":
        """The same graph with another target.

        Args:
            values: One row per node or graph: an array, list, Arrow array or table; null or NaN,
                or -1 in an array of integers, where it is unknown. `None`: no target.
            name: Its name; as many names as columns.

        Example:
            >>> graph = Graph.from_arrays([[1.0], [2.0]], [[0], [1]])
            >>> graph.with_target([0.5, None], "price").labelled
            tensor([0])
        """
        from adgn.data.own.arrays import target_table

        target, notes = target_table(values, name)
        return replace(self, target=target, notes=(*self.notes, *notes))

    def __repr__(self) -> str:
        parts = [f"{self.num_nodes:,} nodes", f"{self.num_edges:,} edges"]
        if self.graph_ids is not None:
            parts.insert(0, f"{self.num_graphs:,} graphs")
        parts.append("directed" if self.directed else "undirected")
        if self.edge_weight is not None:
            parts.append("weighted")
        if self.node_columns.num_columns:
            parts.append(f"{_counted(self.node_columns.num_columns, 'column')}")
        if self.x is not None:
            parts.append(f"x: {_counted(self.x.shape[1], 'feature')}")
        if self.target is not None:
            parts.append(f"target: {', '.join(self.target.column_names)}")
            parts.append(f"{self.labelled.numel():,} of {self.num_rows:,} {self.level}s labelled")
        return f"Graph({', '.join(parts)})"

    @classmethod
    def from_tables(
        cls,
        nodes: Any,
        edges: Any,
        *,
        id: str | None = None,
        source: str | None = None,
        target: str | None = None,
        target_column: str | Sequence[str] | None = None,
        weight: str | None = None,
        graph: str | None = None,
        graphs: Any = None,
        directed: bool | None = None,
        features: Sequence[str] | None = None,
        ignore: Sequence[str] = (),
        categories: Sequence[str] = (),
        groups: str | None = None,
        time: str | None = None,
        split: str | None = None,
        level: Level | None = None,
        for_prediction: bool = False,
        delimiter: str | None = None,
        encoding: str = "utf-8",
        decimal: str = ".",
    ) -> "Graph":
        """A graph from a table of nodes and a table of edges.

        A table is a path to a CSV, TSV, Parquet or Feather file, an object that speaks Arrow
        (pandas, polars, pyarrow, DuckDB), or a dictionary of columns. What is not named is looked
        for under usual names; `notes` says what was taken.

        Args:
            nodes: One row per node.
            edges: One row per edge; `None`: no edges.
            id: The column with the ids of nodes. By default `id`, `node_id` or `node`, else the
                first column.
            source: The column of `edges` with the id of an edge's source. By default `source` and
                `target`, `src` and `dst`, `from` and `to`, `u` and `v`, else the first two.
            target: The column of `edges` with the id of an edge's target.
            target_column: What is to be predicted, a column of `nodes` or of `graphs`, or several.
                Where a cell is empty, it is to be predicted.
            weight: The column of `edges` with weights. By default `weight`, if there is one.
            graph: The column with the graph of each node. Edges have it too, unless ids are unique
                over all graphs.
            graphs: A table with one row per graph, for targets of graphs.
            directed: Whether edges have a direction. By default they have, unless the table lists
                each edge in both directions.
            features: The columns that become features; all others by default.
            ignore: Columns of `nodes` or `edges` that are not read.
            categories: Columns whose numbers are names of categories.
            groups: A column for the validation split: rows of one group stay together.
            time: A column for the validation split: later rows validate.
            split: A column with `train`, `valid` and `test`.
            level: Whether nodes or graphs are predicted. By default graphs where there is a table
                of them, or where the target is the same in all nodes of each graph.
            for_prediction: Whether the data is for a model that is fitted: the target may lack,
                and ignored columns and columns of categories too.
            delimiter: What separates columns of text files; a comma, in .tsv files a tab.
            encoding: Of text files.
            decimal: What separates a number from its fraction in text files.

        Raises:
            GraphInputError: The message names the table, the row or column, and the remedy.

        Example:
            >>> people = {"id": ["ann", "bob", "cy"], "age": [31, 45, None], "buys": [1, 0, None]}
            >>> knows = {"source": ["ann", "bob"], "target": ["bob", "cy"]}
            >>> graph = Graph.from_tables(people, knows, target_column="buys", directed=False)
            >>> graph
            Graph(3 nodes, 4 edges, undirected, 1 column, target: buys, 2 of 3 nodes labelled)
            >>> graph.edge_index.tolist()
            [[0, 1, 1, 2], [1, 2, 0, 1]]
        """
        from adgn.data.own.node_table import TableOptions
        from adgn.data.own.reading import graph_from_tables
        from adgn.data.own.textfiles import TextFormat

        options = TableOptions(
            id=id,
            source=source,
            target=target,
            target_column=target_column,
            weight=weight,
            graph=graph,
            directed=directed,
            features=features,
            ignore=ignore,
            categories=categories,
            groups=groups,
            time=time,
            split=split,
            level=level,
            for_prediction=for_prediction,
            form=TextFormat(delimiter, encoding, decimal),
        )
        return graph_from_tables(nodes, edges, graphs, options)

    @classmethod
    def from_folder(cls, path: "str | PathLike[str]", **options: Any) -> "Graph":
        """Many graphs from a folder, with their targets in a table.

        A graph is a pair of tables, `a_nodes.csv` and `a_edges.csv` or `a/nodes.csv` and
        `a/edges.csv`, or a GraphML file `a.graphml`. The table `targets.csv` has the names of
        graphs (`a`) in its first column and what is to be predicted in others. A folder with one
        pair, `nodes.csv` and `edges.csv`, is read as `from_tables` reads it.

        Args:
            path: The folder.
            options: As those of `from_tables`; `target_column` names a column of `targets.csv`, or
                of the nodes where there is none.

        Example:
            ```python
            graph = Graph.from_folder("molecules", target_column="soluble")
            ```
        """
        from adgn.data.own.folder import graph_from_folder

        return graph_from_folder(Path(path), _table_options(options))

    @classmethod
    def from_networkx(cls, graph: Any, **options: Any) -> "Graph":
        """A graph of NetworkX; attributes of nodes and edges are columns.

        Args:
            graph: Of any of NetworkX's classes. Ids that are not text or whole numbers become text.
            options: `target_column`, `weight`, `features`, `ignore`, `categories`, `groups`,
                `time`, `split` and `directed` as in `from_tables`; the direction is the graph's
                by default.

        Example:
            >>> import networkx
            >>> karate = networkx.karate_club_graph()
            >>> Graph.from_networkx(karate, target_column="club")
            Graph(34 nodes, 156 edges, undirected, weighted, target: club, 34 of 34 nodes labelled)
        """
        from adgn.data.own.objects import tables_of_networkx

        return _from_object(tables_of_networkx(graph), options)

    @classmethod
    def from_igraph(cls, graph: Any, **options: Any) -> "Graph":
        """A graph of igraph; attributes of vertices and edges are columns.

        Args:
            graph: Its vertices' attribute `name` has the ids, if all differ; else positions.
            options: As those of `from_networkx`.

        Example:
            ```python
            graph = Graph.from_igraph(igraph.Graph.Famous("Zachary"))
            ```
        """
        from adgn.data.own.objects import tables_of_igraph

        return _from_object(tables_of_igraph(graph), options)

    @classmethod
    def from_graphml(cls, path: "str | PathLike[str]", **options: Any) -> "Graph":
        """A graph from a GraphML file, as Gephi, yEd and NetworkX write it.

        Args:
            path: The file.
            options: As those of `from_networkx`; the direction is the file's by default.

        Example:
            ```python
            graph = Graph.from_graphml("club.graphml", target_column="club")
            ```
        """
        from adgn.data.own.objects import tables_of_graphml

        return _from_object(tables_of_graphml(Path(path)), options)

    @classmethod
    def from_pyg(
        cls,
        data: Any,
        *,
        target_name: str = "y",
        directed: bool | None = None,
        level: Level | None = None,
    ) -> "Graph":
        """A graph of PyG, or many: a `Data`, or a list or data set of them.

        `x`, `edge_index`, `y`, `edge_weight`, `edge_attr` and the masks for training, validation
        and test are taken; `notes` says what else there was.

        Args:
            data: The graph or graphs.
            target_name: What `y` is called.
            directed: Whether edges have a direction. By default they have, unless each edge is
                there in both directions.
            level: Whether `y` is about nodes or graphs. By default what its length says.

        Example:
            >>> from torch_geometric.data import Data
            >>> edge = torch.tensor([[0, 1], [1, 0]])
            >>> pairs = [Data(x=torch.rand(2, 3), edge_index=edge, y=float(n)) for n in range(5)]
            >>> Graph.from_pyg(pairs)
            Graph(5 graphs, 10 nodes, 10 edges, undirected, x: 3 features, target: y,
                  5 of 5 graphs labelled)
        """
        from adgn.data.own.pyg import graph_from_pyg

        return graph_from_pyg(data, target_name=target_name, directed=directed, level=level)

    @classmethod
    def from_arrays(
        cls,
        x: Any,
        edge_index: Any,
        y: Any = None,
        *,
        edge_weight: Any = None,
        ids: Any = None,
        feature_names: Sequence[str] | None = None,
        target_name: str | Sequence[str] = "y",
        directed: bool | None = None,
        graph_of_node: Any = None,
        level: Level | None = None,
    ) -> "Graph":
        """A graph from arrays: NumPy, SciPy sparse, torch (dense, sparse) or nested lists.

        Args:
            x: `[num_nodes, F]`; or `None`, with `ids` to say how many nodes there are.
            edge_index: `[2, E]`, positions of nodes.
            y: `[num_nodes]` or `[num_nodes, T]`, or so for graphs. Unknown: null, NaN, or -1 in
                integers that are not negative otherwise.
            edge_weight: `[E]`.
            ids: One per node; positions by default.
            feature_names: The names of the columns of `x`.
            target_name: The name of `y`, or of its columns.
            directed: Whether edges have a direction. By default they have, unless each edge is
                there in both directions. `False` adds the other directions where they lack.
            graph_of_node: `[num_nodes]`, the number of each node's graph, never decreasing.
            level: Whether `y` is about nodes or graphs. By default what its length says.

        Example:
            >>> Graph.from_arrays([[1.0], [0.0]], [[0, 1], [1, 0]], y=[0, 1])
            Graph(2 nodes, 2 edges, undirected, x: 1 feature, target: y, 2 of 2 nodes labelled)
        """
        from adgn.data.own.arrays import graph_from_arrays

        return graph_from_arrays(
            x,
            edge_index,
            y,
            edge_weight=edge_weight,
            ids=ids,
            feature_names=feature_names,
            target_name=target_name,
            directed=directed,
            graph_of_node=graph_of_node,
            level=level,
        )


def _table_options(options: dict[str, Any]) -> "TableOptions":
    from adgn.data.own.node_table import TableOptions
    from adgn.data.own.textfiles import TextFormat

    form = {name: options.pop(name) for name in _FORM if name in options}
    try:
        return TableOptions(**options, form=TextFormat(**form))
    except TypeError as error:
        raise TypeError(f"{error}; the options are those of Graph.from_tables") from None


def _from_object(tables: "ObjectTables", options: dict[str, Any]) -> Graph:
    """A graph of another library, which knows its direction and what its ids are."""
    from adgn.data.own.edge_table import direction_note
    from adgn.data.own.reading import graph_from_tables

    known: dict[str, Any] = {"id": tables.id, "source": tables.source, "target": tables.target}
    for name in _OF_TABLES:
        given = options.pop(name, None)
        if given is not None and not options.get("for_prediction"):
            raise GraphInputError(f"{name}={given!r} is for tables; this is one graph")
    directed = options.pop("directed", None)
    known["directed"] = tables.directed if directed is None else directed
    graph = graph_from_tables(
        tables.nodes, tables.edges, None, _table_options({**options, **known})
    )
    notes = graph.notes
    if graph.directed != tables.directed:
        notes = (*notes, direction_note(graph.origin, "the graph is", graph.directed))
    reading = {name: value for name, value in graph.reading.items() if name not in _OF_TABLES}
    return replace(graph, notes=notes, reading=reading)


def _length(value: Any) -> int | None:
    return None if value is None else len(value)


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
