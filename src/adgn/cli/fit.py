"""`adgn fit`: from a user's tables to a model, its predictions and its page."""

import shlex
import shutil
from collections.abc import Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer import Argument, Option

from adgn._util.files import write_file
from adgn.cli.console import PluginOption, error_console, make_folder, print_table, say
from adgn.cli.model_folder import (
    GraphFiles,
    is_model_folder,
    predictions_table,
    refuse_bad_input,
    write_predictions,
)
from adgn.cli.names import RESERVOIR, complete_fitted, model_rows
from adgn.cli.option_names import in_options
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
    from adgn.estimators import ComparedModel, GraphEstimator

_RUNS = ".fit-runs"  # while it works; another call of the same command goes on with them


def fit(
    context: typer.Context,
    nodes: Annotated[
        Path,
        Argument(help="The nodes: .csv, .tsv or .parquet. Or a folder of graphs, or .graphml."),
    ],
    edges: Annotated[Path | None, Argument(help="The edges, likewise.")] = None,
    target: Annotated[
        list[str] | None,
        Option(metavar="COLUMN", help="What is predicted; numbers may be several columns."),
    ] = None,
    out: Annotated[
        Path, Option(help="The folder for model, predictions and page.", file_okay=False)
    ] = Path("model"),
    kind: Annotated[
        Literal["classification", "regression"] | None,
        Option(help="Default: by the target's type."),
    ] = None,
    model: Annotated[
        str | None,
        Option(
            help="One model alone, by a name of `adgn models`: adgn, gcn, …; or adgn-reservoir, "
            "which like gesn is solved in seconds. Default: several are trained and averaged.",
            autocompletion=complete_fitted,
        ),
    ] = None,
    transform: Annotated[
        list[str] | None,
        Option(
            help="A transform of the graph before any model sees it: undirected, reverse, digl, "
            "sdrf or fa, with settings as in sdrf:iterations=20; may be repeated, in order."
        ),
    ] = None,
    minutes: Annotated[
        float | None, Option(help="Time for a search. Default: no search, a few good models.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        Option("--set", metavar="KEY=VALUE", help="A setting of the training; may be repeated."),
    ] = None,
    config: Annotated[
        Path | None,
        Option(help="A TOML file with settings, such as the suggestion of `adgn probe`."),
    ] = None,
    id: IdColumn = None,
    edge_source: SourceColumn = None,
    edge_target: EndColumn = None,
    weight: WeightColumn = None,
    directed: DirectedFlag = None,
    ignore: IgnoredColumns = None,
    category: CategoryColumns = None,
    graph: GraphColumn = None,
    graphs: GraphsTable = None,
    split_column: SplitColumn = None,
    time: Annotated[
        str | None, Option(metavar="COLUMN", help="Later rows validate and are held out.")
    ] = None,
    group: Annotated[
        str | None, Option(metavar="COLUMN", help="Rows of one group stay together.")
    ] = None,
    test_size: Annotated[
        float, Option(min=0.0, max=0.9, help="The share of labelled rows that is held out.")
    ] = 0.2,
    metric: Annotated[
        str | None,
        Option(
            help="What validation compares: accuracy, macro_f1, roc_auc, average_precision or "
            "log_loss of classes, r2, mse, mae or log10_mse of numbers. Default: accuracy (of a "
            "rare class average_precision), or r2."
        ),
    ] = None,
    seed: Annotated[int, Option(min=0, help="Seed of split and weights.")] = 0,
    device: Annotated[str, Option(help="Where to compute: cpu, cuda or auto.")] = "cpu",
    delimiter: Annotated[str | None, Option(help="Between columns of text files.")] = None,
    encoding: Annotated[str | None, Option(help="Of text files. Default: utf-8.")] = None,
    decimal: Annotated[str | None, Option(help="The decimal sign. Default: a point.")] = None,
    plugin: PluginOption = None,
) -> None:
    """Fit a model on your own graph: two tables in, predictions and a page out.

    Rows whose target is empty are those to be predicted. The folder OUT gets the model, the
    predictions of all rows (predictions.csv) and a page about both (report.html). Stopped with
    Ctrl-C, the same command goes on.

    Examples:

        adgn fit papers.csv citations.csv --target topic --undirected --out model

        adgn fit users.parquet calls.parquet --target churn --time joined --minutes 10

        adgn fit papers.csv citations.csv --target topic --transform digl:k=16

        adgn fit atoms.csv bonds.csv --graph molecule --graphs molecules.csv --target soluble
    """
    with refuse_bad_input():
        if not target:
            raise ValueError(f"--target is missing: which column of {nodes} is to be predicted?")
        options = {
            "id": id,
            "source": edge_source,
            "target": edge_target,
            "target_column": list(target),
            "weight": weight,
            "graph": graph,
            "directed": directed,
            "ignore": ignore,
            "categories": category,
            "groups": group,
            "time": time,
            "split": split_column,
            "delimiter": delimiter,
            "encoding": encoding,
            "decimal": decimal,
        }
        files = GraphFiles(
            nodes,
            edges,
            graphs,
            {name: value for name, value in options.items() if value is not None},
        )
        _check_names(model, metric, kind)
        _check_transforms(transform or ())
        fit_model(
            files,
            out,
            kind=kind,
            minutes=minutes,
            command=typed_command(context),
            **_from_config(config, model, _settings(settings or ())),
            transform=list(transform) if transform else None,
            metric=metric,
            test_size=test_size,
            random_state=seed,
            device=device,
        )


def _check_names(model: str | None, metric: str | None, kind: str | None) -> None:
    """Raises for an unknown name before large files are read."""
    from adgn._util.suggestions import unknown_name
    from adgn.training.quality import METRICS

    models = [*(name for name, *_ in model_rows()), RESERVOIR]
    if model is not None and model not in models:
        raise unknown_name("model", model, models)
    metrics = [name for of, names in METRICS.items() if kind in (None, of) for name in names]
    if metric is not None and metric not in metrics:
        raise unknown_name("metric", metric, metrics)


def _check_transforms(given: Sequence[str]) -> None:
    """Raises for a transform that is not there, or cannot be, before large files are read."""
    if given:
        from adgn.estimators.rows import transforms_for

        transforms_for(list(given), "node")


def fit_model(
    files: GraphFiles,
    out: Path,
    *,
    kind: Literal["classification", "regression"] | None = None,
    minutes: float | None = None,
    command: str = "",
    **parameters: Any,
) -> "GraphEstimator":
    """Reads, fits, compares and writes, and tells the user about each.

    Args:
        files: The tables.
        out: The folder for the model and all that is about it.
        kind: What is predicted; `None`: by the type of the target.
        minutes: Time for a search.
        command: What the user typed, for the page.
        parameters: Of the estimator.
    """
    from adgn.cli.training_progress import show_fitting
    from adgn.data import TargetEncoder
    from adgn.estimators import ESTIMATORS, compare
    from adgn.estimators.folder import PAGE, PREDICTIONS
    from adgn.report.model_page import model_page
    from adgn.training import Interrupted

    graph = files.read()
    chosen = TargetEncoder.fit(graph, kind=kind).kind
    name = f"{graph.level.title()}{'Classifier' if chosen == 'classification' else 'Regressor'}"
    estimator = ESTIMATORS[name](**parameters)
    make_folder(out)
    _check_is_for_models(out)
    say(f"{graph}")
    _list("notes", graph.notes)
    try:
        with show_fitting(lambda: _show_decisions(estimator)) as (callback, tell):
            estimator.fit(
                graph, minutes=minutes, run_dir=out / _RUNS, callbacks=[callback], progress=tell
            )
            compared = compare(None, estimator, progress=tell) if estimator.sizes_[2] else []
    except Interrupted as stop:
        say(f"{stop}. To go on: the same command", to=error_console())
        raise typer.Exit(130) from None
    _list("notes on the target and the features", estimator.notes_[len(graph.notes) :])
    estimator.save(out)
    files.write(out, command=command)
    write_predictions(predictions_table(estimator, graph), out / PREDICTIONS)
    page = model_page(estimator, compared, command=command, predictions=PREDICTIONS)
    write_file(out / PAGE, page.encode())
    shutil.rmtree(out / _RUNS, ignore_errors=True)
    _show_scores(estimator, compared)
    unknown = graph.num_rows - graph.labelled.numel()
    say(f"\nmodel: {out}, fitted in {estimator.seconds_:.0f} s")
    say(f"predictions: {out / PREDICTIONS}, {graph.num_rows:,} rows, {unknown:,} without a target")
    say(f"page: {out / PAGE}")
    return estimator


def _check_is_for_models(out: Path) -> None:
    """Refuses a folder with something else in it: a README of the user's would be written over."""
    found = sorted(path.name for path in out.iterdir())
    if found and not (is_model_folder(out) or _RUNS in found):
        raise typer.BadParameter(
            f"{out} holds {found[0]!r} and no model; give a new or an empty folder",
            param_hint="--out",
        )


def _show_decisions(estimator: "GraphEstimator") -> None:
    rows = [
        [row.column, row.kind, f"{row.features}", f"{row.missing or ''}", in_options(row.note)]
        for row in estimator.preprocessing_.decisions()
    ]
    print_table(["column", "becomes", "features", "missing", "note"], rows)


def _show_scores(estimator: "GraphEstimator", compared: "Sequence[ComparedModel]") -> None:
    """The model beside simple ones; without held-out rows its validation scores alone."""
    if not compared:
        say("\nno rows were held out; on the rows that validated, by which models were chosen:")
        scores = estimator.validation_scores_
        print_table(list(scores), [[f"{value:.4f}" for value in scores.values()]])
        return
    first = compared[0]
    say(f"\non {first.rows:,} {estimator.level}s that no model has seen:")
    rows = [
        [
            "this model" if row is first else row.name,
            f"{row.score:.4f}",
            "" if row.low != row.low else f"{row.low:.4f} to {row.high:.4f}",
            f"{row.seconds:.1f}",
        ]
        for row in compared
    ]
    print_table(["model", first.metric.replace("_", " "), "95 % interval", "seconds"], rows)


def _list(title: str, notes: Sequence[str]) -> None:
    if notes:
        say(f"{title}:")
    for note in notes:
        say(f"- {in_options(note)}")


def _settings(texts: Sequence[str]) -> Mapping[str, Any]:
    from adgn.training import parse_setting
    from adgn.training.config import merged

    return reduce(merged, map(parse_setting, texts), {})


def _from_config(
    path: Path | None, model: str | None, settings: Mapping[str, Any]
) -> dict[str, Any]:
    """Parameters of the estimator: its model and the options of this, and other settings."""
    if path is None:
        return {"model": model, "settings": settings}
    from adgn.training import read_config
    from adgn.training.config import merged

    sections = read_config(path)
    options = dict(sections.pop("model", {}))
    name = model or options.get("name")
    if options and options.pop("name", name) != name:
        options = {}  # another model was asked for
    return {"model": name, "model_options": options, "settings": merged(sections, settings)}


def typed_command(context: typer.Context) -> str:
    """What was typed, as one line that can be typed again."""
    words = ["adgn", context.info_name or "fit"]
    given, named = [], []
    for parameter in context.command.params:
        name = parameter.name or ""
        value = context.params.get(name)
        source = context.get_parameter_source(name)
        if source is None or source.name != "COMMANDLINE" or value is None:
            continue
        if parameter.param_type_name == "argument":
            given.append(str(value))
        elif isinstance(value, bool):
            flags = parameter.opts if value else parameter.secondary_opts
            named.append(flags[0])
        else:
            for item in value if isinstance(value, list | tuple) else [value]:
                named += [parameter.opts[0], str(item)]
    return shlex.join([*words, *given, *named])
