"""Model folders of `adgn fit`: which tables they were made from, and how new ones are read."""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from adgn._util.files import parse_json, read_file, write_file
from adgn.cli.console import complain, error_console, say
from adgn.cli.option_names import in_options
from adgn.data.root import DataError, GraphInputError

if TYPE_CHECKING:
    import pyarrow as pa

    from adgn.data import Graph
    from adgn.estimators import GraphEstimator

_CONFIG = "config.json"


@contextmanager
def refuse_bad_input() -> Iterator[None]:
    """What the user can mend becomes one message and the exit code 2."""
    try:
        yield
    except (DataError, ValueError) as error:
        complain(in_options(str(error)))
        raise typer.Exit(2) from error
    except OSError as error:
        if error.filename is None:
            raise
        complain(f"cannot use {error.filename}: {error.strerror or error}")
        raise typer.Exit(2) from error


def is_model_folder(path: Path) -> bool:
    """Whether a folder holds a fitted model; run directories have a config.toml instead."""
    return (path / _CONFIG).is_file()


@dataclass(frozen=True)
class GraphFiles:
    """The files of a graph and how they are read.

    Attributes:
        nodes: The table of nodes; or a folder of graphs, or a GraphML file, that need no other.
        edges: The table of edges.
        graphs: A table with one row per graph.
        options: Further arguments of `Graph.from_tables`.
    """

    nodes: Path
    edges: Path | None = None
    graphs: Path | None = None
    options: Mapping[str, Any] | None = None

    def read(self) -> "Graph":
        """The graph."""
        from adgn.data import Graph

        options = dict(self.options or {})
        if self.nodes.is_dir() and self.edges is None:
            return Graph.from_folder(self.nodes, **options)
        if self.nodes.suffix.lower() == ".graphml" and self.edges is None:
            return Graph.from_graphml(self.nodes, **options)
        if self.edges is None:
            raise GraphInputError(
                f"{self.nodes} was given without a table of edges; give NODES and EDGES, a folder "
                "of graphs, or a .graphml file"
            )
        return Graph.from_tables(self.nodes, self.edges, graphs=self.graphs, **options)

    def write(self, folder: Path, **more: Any) -> None:
        """Keeps them in a model folder, by paths relative to it."""
        from adgn.estimators.folder import FIT

        content = {
            **{
                name: None if path is None else os.path.relpath(path, folder)
                for name, path in (
                    ("nodes", self.nodes),
                    ("edges", self.edges),
                    ("graphs", self.graphs),
                )
            },
            **more,
        }
        write_file(folder / FIT, json.dumps(content, indent=2).encode() + b"\n")

    @classmethod
    def of_model(cls, folder: Path) -> "GraphFiles":
        """The files that a model was fitted on."""
        from adgn.estimators.folder import FIT

        path = folder / FIT
        try:
            content = parse_json(read_file(path))
            nodes, edges, graphs = (
                None if content[key] is None else Path(os.path.normpath(folder / content[key]))
                for key in ("nodes", "edges", "graphs")
            )
            if nodes is None:
                raise ValueError("it names no nodes")
            return cls(nodes, edges, graphs)
        except FileNotFoundError:
            raise GraphInputError(
                f"{folder} does not say which tables it was fitted on (it has no {FIT}, which "
                "`adgn fit` writes); give NODES and EDGES"
            ) from None
        except (KeyError, TypeError, ValueError) as error:
            raise GraphInputError(f"{path} is damaged: {error}; fit the model again") from error


def model_and_graph(
    folder: Path, nodes: Path | None, edges: Path | None, graphs: Path | None = None
) -> "tuple[GraphEstimator, Graph]":
    """A model and new data, read as those of the model were; without any, those of the model.

    What was assumed about the data, and what the model has not seen of it, is told.
    """
    from adgn.estimators import load

    estimator = load(folder)
    files = GraphFiles.of_model(folder) if nodes is None else GraphFiles(nodes, edges, graphs)
    graph = replace(files, options=estimator.reading_).read()
    for note in (*graph.notes, *estimator.preprocessing_.transform(graph).notes):
        say(f"- {in_options(note)}", to=error_console())
    return estimator, graph


def predictions_table(estimator: "GraphEstimator", graph: "Graph") -> "pa.Table":
    """Ids, predictions and probabilities; beside them what the tables say, empty where nothing."""
    import pyarrow as pa

    table = estimator.predictions(graph)
    if graph.level == "node" and graph.graph_of_node is not None and graph.graph_ids is not None:
        owner = graph.graph_ids.take(pa.array(graph.graph_of_node.numpy()))
        table = table.add_column(0, "graph", owner)
    if graph.target is not None:
        several = graph.target.num_columns > 1
        for name in graph.target.column_names:
            label = f"known {name}" if several else "known"
            table = table.append_column(label, graph.target[name])
    return table


def write_predictions(table: "pa.Table", path: Path) -> None:
    """Writes predictions as CSV or Parquet."""
    import io

    import pyarrow.csv
    import pyarrow.parquet

    buffer = io.BytesIO()
    ending = path.suffix.lower()
    if ending == ".csv":
        pyarrow.csv.write_csv(table, buffer)
    elif ending in (".parquet", ".pq"):
        pyarrow.parquet.write_table(table, buffer)
    else:
        raise ValueError(f"--out={path}: predictions are written as .csv or .parquet; give one")
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path, buffer.getvalue())
