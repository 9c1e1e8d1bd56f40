"""`adgn analyze`: is a network stable, does it forget, what to change."""

import importlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from torch import Tensor, nn

__all__ = ["analyze", "app"]

app = typer.Typer(help="Measure whether a network is stable and non-dissipative.")
# Rooms that bring torch are imported in the command, so that --help stays quick.


@app.command()
def analyze(
    run: Annotated[
        Path | None, typer.Argument(help="The folder of a training run.", show_default=False)
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="An untrained model by name, in place of a run.")
    ] = None,
    graph: Annotated[
        str, typer.Option(help="With --model: line, ring, grid, random, or a node data set.")
    ] = "line",
    nodes: Annotated[int, typer.Option(min=1, help="Nodes of such a graph.")] = 25,
    layers: Annotated[int, typer.Option(min=1, help="Layers of an untrained model.")] = 20,
    hidden: Annotated[int, typer.Option(min=1, help="Size of its states.")] = 30,
    option: Annotated[
        list[str] | None, typer.Option(help="Option of --model, as epsilon=0.5; repeatable.")
    ] = None,
    baseline: Annotated[
        list[str] | None,
        typer.Option(help="Untrained model to compare with, as gcn; repeatable."),
    ] = None,
    node: Annotated[int, typer.Option(min=0, help="Node whose sensitivity is measured.")] = 0,
    probes: Annotated[
        int | None, typer.Option(min=1, help="Random probes in place of exact sensitivity.")
    ] = None,
    seed: Annotated[int, typer.Option(help="For weights, features and probes.")] = 0,
    out: Annotated[Path, typer.Option(help="Folder for the figures.")] = Path("analysis"),
) -> None:
    """Print a verdict in words with numbers and write the figures."""
    from adgn.analysis import DistanceProfile, diagnose
    from adgn.analysis.report import write_figures

    subject, x, edge_index, batch = _subject(run, model, graph, nodes, layers, hidden, option, seed)
    name = model or "model"
    models: dict[str, nn.Module] = {name: subject}
    for other in baseline or []:
        models[other] = _untrained(other, int(x.size(1)), hidden, layers, [], seed)
    diagnoses, profiles = {}, dict[str, DistanceProfile]()
    for label, each in models.items():
        found = diagnose(
            each,
            x,
            edge_index,
            batch=batch if label == name else None,
            node=node,
            probes=probes,
            seed=seed,
        )
        diagnoses[label] = found
        typer.echo(f"{label}\n{found.text()}\n")
        if found.sensitivity is not None:
            profiles[label] = found.sensitivity.by_distance()
    written = write_figures(diagnoses, profiles, out)
    typer.echo(f"{len(written)} files written to {out}")


def _subject(
    run: Path | None,
    model: str | None,
    graph: str,
    nodes: int,
    layers: int,
    hidden: int,
    options: list[str] | None,
    seed: int,
) -> "tuple[nn.Module, Tensor, Tensor, Tensor | None]":
    """The model with its features, its graph and, at graph level, the graph of each node."""
    if (run is None) == (model is None):
        raise typer.BadParameter("give either the folder of a run or --model, not both or neither")
    if run is not None:
        trained = load_run(run)
        data = trained.data
        return trained.model, data.x, data.edge_index, getattr(data, "batch", None)
    x, edge_index = _graph(graph, nodes, seed)
    return (
        _untrained(str(model), int(x.size(1)), hidden, layers, options or [], seed),
        x,
        edge_index,
        None,
    )


def load_run(path: Path) -> Any:
    """The model and data of a training run: an object with `model` and `data`, a PyG `Data`."""
    try:
        training = importlib.import_module("adgn.training")
        load = training.load_run
    except (ImportError, AttributeError):
        raise typer.BadParameter(
            f"{path}: this version cannot read training runs; use --model"
        ) from None
    return load(path)


def _graph(name: str, num_nodes: int, seed: int) -> "tuple[Tensor, Tensor]":
    import torch

    from adgn.analysis.graphs import EXAMPLE_GRAPHS, example_graph
    from adgn.choices import unknown_name
    from adgn.data import BENCHMARKS, load

    if name in EXAMPLE_GRAPHS:
        generator = torch.Generator().manual_seed(seed)
        return torch.randn(num_nodes, 8, generator=generator), example_graph(name, num_nodes, seed)
    if name not in BENCHMARKS:
        raise unknown_name("graph", name, [*EXAMPLE_GRAPHS, *BENCHMARKS])
    data = load(name)
    return data.x, data.edge_index


def _untrained(
    name: str, channels: int, hidden: int, layers: int, options: list[str], seed: int
) -> "nn.Module":
    import torch

    from adgn.nn import build_model

    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return build_model(name, channels, hidden, 1, layers, **_parsed(options))


def _parsed(options: list[str]) -> dict[str, Any]:
    """`["epsilon=0.5", "phi=gcn"]` as arguments; values are JSON, or else strings."""
    parsed: dict[str, Any] = {}
    for text in options:
        key, equals, value = text.partition("=")
        if not key or not equals:
            raise typer.BadParameter(f"--option {text} is not of the form name=value")
        try:
            parsed[key] = json.loads(value)
        except json.JSONDecodeError:
            parsed[key] = value
    return parsed
