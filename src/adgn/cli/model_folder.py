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
from adgn.cli.console import complain
from adgn.data.root import DataError, GraphInputError

if TYPE_CHECKING:
    import pyarrow as pa

    from adgn.data import Graph
    from adgn.estimators import GraphEstimator

_CONFIG, FIT_FILE = "config.json", "fit.json"
_FORM = ("delimiter", "encoding", "decimal")
# What a prediction does not need: rows are not split, and features are those of the model.
_ONLY_FOR_FITTING = ("groups", "time", "split", "features")


@contextmanager
def refuse_bad_input() -> Iterator[None]:
    """What the user can mend becomes one message and the exit code 2."""
    try:
        yield
    except (DataError, ValueError) as error:
        complain(str(error))
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

    def pinned(self, graph: "Graph") -> "GraphFiles":
        """The same files; direction and level as they were found, so that new files are alike."""
        found: dict[str, Any] = {"directed": graph.directed}
        if self.edges is not None:
            found["level"] = graph.level
        return replace(self, options={**(self.options or {}), **found})

    def for_prediction(self) -> "GraphFiles":
        """The files without what only fitting needs; the target may not be there."""
        options = {k: v for k, v in (self.options or {}).items() if k not in _ONLY_FOR_FITTING}
        if self.edges is None:
            return replace(self, options=options)
        from adgn.data.own.tables import open_table
        from adgn.data.own.textfiles import TextFormat

        form = TextFormat(**{name: options[name] for name in _FORM if name in options})
        files = {"nodes": self.nodes, "edges": self.edges, "graphs": self.graphs}
        names = {
            key: open_table(path, key, form).names
            for key, path in files.items()
            if path is not None
        }
        for key in ("ignore", "categories"):
            if key in options:
                known = {*names["nodes"], *names["edges"]}
                options[key] = [name for name in options[key] if name in known]
        graphs = self.graphs
        targets = options.pop("target_column", [])
        if graphs is not None and not set(targets) <= set(names["graphs"]):
            graphs = None
        if set(targets) <= set(names["nodes" if graphs is None else "graphs"]):
            options["target_column"] = targets
        return replace(self, graphs=graphs, options=options)

    def write(self, folder: Path, **more: Any) -> None:
        """Keeps them in a model folder, by paths relative to it."""
        content = {
            **{
                name: None if path is None else os.path.relpath(path, folder)
                for name, path in (
                    ("nodes", self.nodes),
                    ("edges", self.edges),
                    ("graphs", self.graphs),
                )
            },
            "options": dict(self.options or {}),
            **more,
        }
        write_file(folder / FIT_FILE, json.dumps(content, indent=2).encode() + b"\n")

    @classmethod
    def of_model(cls, folder: Path) -> "GraphFiles":
        """The files that a model was fitted on."""
        path = folder / FIT_FILE
        try:
            content = parse_json(read_file(path))
            nodes, edges, graphs = (
                None if content[key] is None else Path(os.path.normpath(folder / content[key]))
                for key in ("nodes", "edges", "graphs")
            )
            if nodes is None:
                raise ValueError("it names no nodes")
            return cls(nodes, edges, graphs, dict(content["options"]))
        except FileNotFoundError:
            raise GraphInputError(
                f"{folder} does not say which tables it was fitted on (it has no {FIT_FILE}, which "
                "`adgn fit` writes); give NODES and EDGES"
            ) from None
        except (KeyError, TypeError, ValueError) as error:
            raise GraphInputError(f"{path} is damaged: {error}; fit the model again") from error

    @classmethod
    def for_model(
        cls, folder: Path, nodes: Path | None, edges: Path | None, graphs: Path | None = None
    ) -> "GraphFiles":
        """New files, read as those of the model were; without any, those of the model."""
        if nodes is None:
            return cls.of_model(folder).for_prediction()
        kept = cls.of_model(folder).options if (folder / FIT_FILE).exists() else {}
        return cls(nodes, edges, graphs, kept).for_prediction()


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


def feature_notes(estimator: "GraphEstimator", graph: "Graph") -> tuple[str, ...]:
    """What a graph has that the model has not seen, each with a count."""
    return estimator.preprocessing_.transform(graph).notes


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
