"""`adgn analyze`: is a network stable, does it forget, what to change."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from adgn._util.files import parse_json
from adgn.cli.console import PluginOption, make_folder

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adgn.analysis import Diagnosis, DistanceProfile

PAGE = "analysis.html"

app = typer.Typer(help="Measure whether a network is stable and non-dissipative.")
# Rooms that bring torch are imported in the command, so that --help stays quick.


@app.command()
def analyze(
    run: Annotated[Path | None, Argument(help="A run directory.")] = None,
    model: Annotated[
        str | None, Option(help="An untrained model by name, in place of a run.")
    ] = None,
    graph: Annotated[
        str, Option(help="With --model: line, ring, grid, random, or a node data set.")
    ] = "line",
    nodes: Annotated[int, Option(min=1, help="Nodes of such a graph.")] = 25,
    layers: Annotated[int, Option(min=1, help="Layers of an untrained model.")] = 20,
    hidden: Annotated[int, Option(min=1, help="Size of its states.")] = 30,
    option: Annotated[
        list[str] | None, Option(help="Option of --model, as epsilon=0.5; repeatable.")
    ] = None,
    baseline: Annotated[
        list[str] | None, Option(help="Untrained model to compare with, as gcn; repeatable.")
    ] = None,
    number: Annotated[
        int, Option(min=0, help="Of a run on many graphs: the test graph to look at.")
    ] = 0,
    node: Annotated[int, Option(min=0, help="Node whose sensitivity is measured.")] = 0,
    probes: Annotated[
        int | None, Option(min=1, help="Random probes in place of exact sensitivity.")
    ] = None,
    device: Annotated[
        str | None,
        Option(help="Of a run: where to compute, such as cpu. Default: where the run did."),
    ] = None,
    probe: Annotated[
        bool,
        Option(
            "--probe",
            help="Of a run: also probe its task, and write a page that tells whether the model "
            "uses the range that the probe finds.",
        ),
    ] = False,
    seed: Annotated[int, Option(help="For weights, features and probes.")] = 0,
    out: Annotated[Path, Option(help="Folder for the figures.")] = Path("analysis"),
    plugin: PluginOption = None,
) -> None:
    """Print a verdict in words with numbers and write the figures."""
    if (run is None) == (model is None):
        raise typer.BadParameter("give either a run directory or --model, not both or neither")
    options = _parsed(option or [])
    if run is not None and options:
        raise typer.BadParameter("--option goes with --model; a run has its options")
    if run is None and device is not None:
        raise typer.BadParameter("--device goes with a run; an untrained model is on the CPU")
    if run is None and probe:
        raise typer.BadParameter("--probe goes with a run, whose task is probed")
    make_folder(out)

    from adgn.analysis.figures import write_figures
    from adgn.analysis.subject import load_run, untrained_subject

    if run is not None:
        subject = load_run(run, number, device=device)
    else:
        subject = untrained_subject(
            str(model),
            graph,
            num_nodes=nodes,
            num_layers=layers,
            hidden_channels=hidden,
            options=options,
            seed=seed,
        )
    found, profiles = {}, {}
    for each in [subject, *(subject.beside(name, seed) for name in baseline or [])]:
        label = each.name if each.name not in found else f"{each.name}-untrained"
        found[label] = each.diagnose(node, probes, seed)
        typer.echo(f"{label}\n{found[label].text()}\n")
        reach = found[label].sensitivity
        if reach is not None:
            profiles[label] = reach.by_distance()
    written = write_figures(found, profiles, out)
    typer.echo(f"{len(written)} files written to {out}")
    if run is not None and probe:
        _write_page(run, out, found, profiles)


def _write_page(
    run: Path,
    out: Path,
    found: "Mapping[str, Diagnosis]",
    profiles: "Mapping[str, DistanceProfile]",
) -> None:
    """What the probe finds in the run's task, beside what the models hear."""
    from adgn._util.files import write_file
    from adgn.analysis.probe import probe
    from adgn.report.probe import probe_page, range_text
    from adgn.training import RunDirectory

    task = RunDirectory(run).config().task.model_dump()
    findings = probe(task["name"], settings=[{"task": task}], splits=1)
    for name, profile in profiles.items():
        typer.echo(range_text(findings, name, profile))
    verdicts = {name: diagnosis.text() for name, diagnosis in found.items()}
    page = probe_page(findings, profiles=profiles, verdicts=verdicts)
    write_file(out / PAGE, page.encode())
    typer.echo(f"page: {out / PAGE}")


def _parsed(options: list[str]) -> dict[str, Any]:
    """`["epsilon=0.5", "phi=gcn"]` as arguments; values are JSON, or else strings."""
    parsed: dict[str, Any] = {}
    for text in options:
        key, equals, value = text.partition("=")
        if not key or not equals:
            raise typer.BadParameter(f"--option {text} is not of the form name=value")
        try:
            parsed[key] = parse_json(value)
        except ValueError:
            parsed[key] = value
    return parsed
