"""`adgn probe`: does the graph matter, in which direction, how far?"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer import Argument, Option

from adgn.cli.console import PluginOption, make_folder, print_table, say, show_work
from adgn.cli.fit import typed_command
from adgn.cli.model_folder import GraphFiles, refuse_bad_input
from adgn.cli.names import complete_task
from adgn.cli.table_options import (
    CategoryColumns,
    DirectedFlag,
    EndColumn,
    GraphColumn,
    GraphsTable,
    IdColumn,
    IgnoredColumns,
    SourceColumn,
    SplitColumn,
    WeightColumn,
)

if TYPE_CHECKING:
    from adgn.analysis.probe import Findings

PAGE, PICTURE = "probe.html", "probe"


def probe(
    context: typer.Context,
    source: Annotated[
        str,
        Argument(
            metavar="TASK|NODES",
            help="A task from `adgn tasks`, or the nodes of your own graph: .csv, .tsv, .parquet.",
            autocompletion=complete_task,
        ),
    ],
    edges: Annotated[Path | None, Argument(help="The edges of your own graph.")] = None,
    target: Annotated[
        list[str] | None,
        Option(metavar="COLUMN", help="Of your own graph: what is predicted."),
    ] = None,
    hops: Annotated[
        int | None,
        Option(min=1, max=100, help="How far to look. Default: as far as it pays, at most 10."),
    ] = None,
    direction: Annotated[
        list[str] | None,
        Option(help="in, out, both or undirected; may be repeated. Default: all."),
    ] = None,
    operator: Annotated[
        list[str] | None,
        Option(help="mean, gcn, sum, laplacian or shell; may be repeated. Default: all."),
    ] = None,
    alone: Annotated[
        bool | None,
        Option(
            "--last-hop/--all-hops",
            help="Read the last hop alone, or all hops. Default: what validates better.",
        ),
    ] = None,
    splits: Annotated[
        int | None,
        Option(min=1, help="How many splits. Default: all of a task, 5 of your own graph."),
    ] = None,
    json_file: Annotated[
        Path | None, Option("--json", metavar="FILE", help="Write the findings for programs.")
    ] = None,
    suggestion: Annotated[
        Path | None,
        Option(metavar="FILE", help="Write the suggested configuration, for --config."),
    ] = None,
    out: Annotated[
        Path | None,
        Option(help="The folder for a page and its picture, PNG and SVG.", file_okay=False),
    ] = None,
    settings: Annotated[
        list[str] | None,
        Option("--set", metavar="KEY=VALUE", help="A setting of the task; may be repeated."),
    ] = None,
    kind: Annotated[
        Literal["classification", "regression"] | None,
        Option(help="Of your own graph. Default: by the target's type."),
    ] = None,
    metric: Annotated[
        str | None, Option(help="Of your own graph: what is compared. Default: as `adgn fit`.")
    ] = None,
    id: IdColumn = None,
    edge_source: SourceColumn = None,
    edge_target: EndColumn = None,
    weight: WeightColumn = None,
    directed: DirectedFlag = None,
    category: CategoryColumns = None,
    ignore: IgnoredColumns = None,
    graph: GraphColumn = None,
    graphs: GraphsTable = None,
    split_column: SplitColumn = None,
    seed: Annotated[int, Option(min=0, help="Seed of random splits and samples.")] = 0,
    plugin: PluginOption = None,
) -> None:
    """Tell whether the graph helps, in which direction and how far, before any training.

    Closed-form models read the features of a node and of its neighbours up to some hops away, in
    each direction, on the splits that training uses.

    Examples:

        adgn probe chameleon --splits 3 --out probe

        adgn probe papers.csv citations.csv --target topic --json findings.json

        adgn probe sssp --suggestion deep.toml && adgn train sssp --config deep.toml
    """
    with refuse_bad_input():
        columns = {
            "id": id,
            "source": edge_source,
            "target": edge_target,
            "target_column": list(target) if target else None,
            "weight": weight,
            "graph": graph,
            "directed": directed,
            "ignore": ignore,
            "categories": category,
            "split": split_column,
        }
        options = {name: value for name, value in columns.items() if value is not None}
        own = edges is not None or target is not None or Path(source).exists()
        found = _probe(
            source,
            _graph(source, edges, graphs, options) if own else None,
            {
                "hops": hops,
                "directions": direction,
                "operators": operator,
                "alone": alone,
                "splits": splits,
                "kind": kind,
                "metric": metric,
                "seed": seed,
            },
            settings or (),
        )
        show(found)
        write(found, json_file, suggestion, out, typed_command(context))


def _graph(source: str, edges: Path | None, graphs: Path | None, options: dict[str, Any]) -> Any:
    if "target_column" not in options:
        raise ValueError(f"--target is missing: which column of {source} is to be predicted?")
    graph = GraphFiles(Path(source), edges, graphs, options).read()
    say(f"{graph}")
    return graph


def _probe(
    source: str, graph: Any, parameters: dict[str, Any], settings: Sequence[str]
) -> "Findings":
    from adgn.analysis.probe import probe
    from adgn.training import parse_setting

    with show_work() as display:

        def tell(text: str) -> None:
            display.draw(text)
            display.line_in_pipe(text)

        return probe(
            source if graph is None else graph,
            settings=[parse_setting(text) for text in settings],
            progress=tell,
            **parameters,
        )


def show(found: "Findings") -> None:
    """Prints the scores by direction and hops, and what they mean."""
    hops = range(max((len(curve.scores) for curve in found.curves), default=0))
    rows = [
        [
            curve.direction,
            f"{curve.operator}{', last hop alone' if curve.alone else ''}",
            *(found.score(curve.scores[h].mean) if h < len(curve.scores) else "" for h in hops),
        ]
        for curve in found.curves
    ]
    if rows:
        print_table(["direction", "operator", *(f"{hop}" for hop in hops)], rows)
    say(found.text())
    say(f"({found.seconds:.1f} s)")


def write(
    found: "Findings",
    json_file: Path | None,
    suggestion: Path | None,
    out: Path | None,
    command: str,
) -> None:
    """Writes what was asked for."""
    from adgn._util.files import write_file
    from adgn.report.probe import probe_page, write_probe_figures

    if json_file is not None:
        json_file.parent.mkdir(parents=True, exist_ok=True)
        write_file(json_file, json.dumps(found.to_json(), indent=2).encode() + b"\n")
        say(f"findings: {json_file}")
    if suggestion is not None:
        suggestion.parent.mkdir(parents=True, exist_ok=True)
        write_file(suggestion, found.suggestion_toml().encode())
        say(f"suggestion: {suggestion}")
    if out is not None:
        make_folder(out)
        write_file(out / PAGE, probe_page(found, command=command).encode())
        for path in write_probe_figures(found, out / PICTURE):
            say(f"picture: {path}")
        say(f"page: {out / PAGE}")
