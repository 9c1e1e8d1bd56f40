"""`adgn train`, `resume`, `evaluate` and `predict`: a run from the command line."""

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from adgn.cli.console import (
    ModelOption,
    NewEdges,
    NewGraphs,
    NewNodes,
    PluginOption,
    RunFolder,
    RunOrModel,
    complain,
    error_console,
    print_table,
    say,
)
from adgn.cli.model_folder import (
    is_model_folder,
    model_and_graph,
    predictions_table,
    refuse_bad_input,
)
from adgn.cli.model_folder import write_predictions as write_model_predictions
from adgn.cli.names import complete_task

if TYPE_CHECKING:
    from adgn.training import Callback, PublishedValue, RunResult

# The room `adgn.training` brings torch; it is imported in the commands so that --help stays quick.

DeviceOption = Annotated[
    str | None,
    Option(help="Where to compute: cpu, cuda, cuda:1 or auto. Default: where the run did."),
]
Workers = Annotated[
    int | None,
    Option(
        help="Ranks that train together: each has its part of every batch, or of the graph. "
        "Default: one process, or the ranks of `torchrun`."
    ),
]
Threads = Annotated[
    int | None,
    Option(help="Threads of each rank. Default: the cores divided by the ranks of this machine."),
]
Executor = Annotated[
    str, Option(help="Where ranks run: local (processes of this machine) or ray (a Ray cluster).")
]
RayAddress = Annotated[
    str | None,
    Option(help="Of a Ray cluster, host:port or auto. Default: a cluster on this machine."),
]
PartitionOption = Annotated[
    str,
    Option(
        help="How one graph is spread over ranks: metis, ldg, blocks, a file or a folder of shards "
        "that `adgn partition` wrote, or auto: as before in a run that goes on with as many ranks, "
        "else metis where it is installed, else ldg."
    ),
]
RankTimeout = Annotated[
    float, Option(metavar="SECONDS", help="How long a rank waits for the others in an exchange.")
]
PrepareTimeout = Annotated[
    float,
    Option(
        metavar="SECONDS",
        help="How long ranks wait for one that reads data or partitions a graph and does not say "
        "how far it is.",
    ),
]
Tensorboard = Annotated[
    bool, Option("--tensorboard", help="Also write TensorBoard events to the run directory.")
]


def train(
    task: Annotated[
        str | None,
        Argument(
            help="A task from `adgn tasks`; may be left out with --config.",
            autocompletion=complete_task,
        ),
    ] = None,
    model: ModelOption = None,
    settings: Annotated[
        list[str] | None,
        Option(
            "--set",
            metavar="KEY=VALUE",
            help="A setting, such as optimizer.lr=0.01 or task.radius=3; may be repeated. "
            "`adgn tasks TASK` lists all of them.",
        ),
    ] = None,
    config: Annotated[
        Path | None, Option(help="A TOML file, such as the config.toml of a run.")
    ] = None,
    seed: Annotated[int | None, Option(help="Seed of the run. Default: the task's.")] = None,
    run_dir: Annotated[
        Path | None, Option(help="Where everything is kept. Default: a new directory below runs/.")
    ] = None,
    tensorboard: Tensorboard = False,
    plugin: PluginOption = None,
    workers: Workers = None,
    threads: Threads = None,
    executor: Executor = "local",
    ray_address: RayAddress = None,
    partition: PartitionOption = "auto",
    rank_timeout: RankTimeout = 300.0,
    prepare_timeout: PrepareTimeout = 3600.0,
) -> None:
    """Train a model on a task.

    The defaults are those of the paper's protocol. Everything about the run is kept in its
    directory; Ctrl-C stops it so that `adgn resume` can go on.

    Examples:

        adgn train sssp

        adgn train texas --model gcn --set optimizer.lr=0.01 --seed 3

        adgn train tree-neighbors-match --set task.radius=3 --run-dir runs/trees

        adgn train --config runs/trees/config.toml --run-dir runs/trees-again

        adgn train my-task --model my-model --plugin my_code.py

        adgn train sssp --workers 4

        torchrun --nproc-per-node 4 --no-python adgn train sssp --run-dir runs/sssp
    """
    from adgn.cli.rank_options import RankOptions
    from adgn.training import RunDirectory, parse_setting, read_config, resolve_config
    from adgn.training import train as train_run

    if task is None and config is None:
        raise typer.BadParameter("give a TASK (see `adgn tasks`) or --config FILE")
    resolved = resolve_config(
        {} if config is None else read_config(config),
        {} if task is None else {"task": {"name": task}},
        {} if model is None else {"model": {"name": model}},
        *map(parse_setting, settings or ()),
        {} if seed is None else {"seed": seed},
    )
    names = resolved.task.name, resolved.model.name
    options = RankOptions(
        *(workers, threads, executor, ray_address, partition, rank_timeout, prepare_timeout)
    )
    with options.ranks(resolved) as ranks:
        if ranks.rank > 0:  # rank 0 writes and prints
            train_run(resolved, ranks=ranks, partition=partition)
            return
        folder = run_dir or _new_folder("-".join([*names, str(resolved.seed)]))
        run = partial(train_run, resolved, run_dir=folder, ranks=ranks, partition=partition)
        try:
            _show(" ".join(names), folder, tensorboard, options.placed(run, resolved, folder))
        finally:
            if run_dir is None:
                RunDirectory(folder).remove_if_unused()


def resume(
    run_dir: RunFolder,
    tensorboard: Tensorboard = False,
    device: DeviceOption = None,
    plugin: PluginOption = None,
    workers: Workers = None,
    threads: Threads = None,
    executor: Executor = "local",
    ray_address: RayAddress = None,
    partition: PartitionOption = "auto",
    rank_timeout: RankTimeout = 300.0,
    prepare_timeout: PrepareTimeout = 3600.0,
) -> None:
    """Go on with a run that was stopped, exactly as if it had not been.

    The number of workers may be another one than before: the last bits of the scores then differ.
    """
    from adgn.cli.rank_options import RankOptions
    from adgn.training import RunDirectory
    from adgn.training import resume as resume_run
    from adgn.training import train as train_run

    config = RunDirectory(run_dir).config()
    if device is not None:
        config = config.model_copy(update={"device": device})
    options = RankOptions(
        *(workers, threads, executor, ray_address, partition, rank_timeout, prepare_timeout)
    )
    with options.ranks(config) as ranks:
        if ranks.rank > 0:
            train_run(config, ranks=ranks, partition=partition)
            return
        run = partial(resume_run, run_dir, device=device, ranks=ranks, partition=partition)
        label = f"{config.task.name} {config.model.name}"
        _show(label, run_dir, tensorboard, options.placed(run, config, run_dir))


def evaluate(
    folder: RunOrModel,
    nodes: NewNodes = None,
    edges: NewEdges = None,
    graphs: NewGraphs = None,
    device: DeviceOption = None,
    plugin: PluginOption = None,
) -> None:
    """Show the scores of a run's best weights on every split, or of a fitted model on tables.

    Of a model without tables: its scores on the rows that validated and on those held out.
    """
    if is_model_folder(folder):
        with refuse_bad_input():
            _evaluate_model(folder, nodes, edges, graphs)
        return
    from adgn.training import evaluate as evaluate_run

    _check_is_run(folder, nodes)
    _print_scores(evaluate_run(folder, device=device))


def predict(
    folder: RunOrModel,
    out: Annotated[Path, Option(help="The file to write: .csv; of runs also .safetensors.")],
    nodes: NewNodes = None,
    edges: NewEdges = None,
    graphs: NewGraphs = None,
    device: DeviceOption = None,
    plugin: PluginOption = None,
) -> None:
    """Write the predictions of a run's best weights, or of a fitted model for tables.

    Of a model each row has its id, the prediction and the probability of each class; without
    tables they are about those that it was fitted on. Of a run each row has its split, the numbers
    of its graph and node, prediction, target and the probabilities.
    """
    if is_model_folder(folder):
        with refuse_bad_input():
            estimator, graph = model_and_graph(folder, nodes, edges, graphs)
            table = predictions_table(estimator, graph)
            write_model_predictions(table, out)
            say(f"{table.num_rows:,} predictions written to {out}")
        return
    from adgn.training.predictions import write_predictions

    _check_is_run(folder, nodes)
    say(f"{write_predictions(folder, out, device=device)} predictions written to {out}")


def _check_is_run(folder: Path, nodes: Path | None) -> None:
    """Refuses what is neither a model nor a run, and tables for a run."""
    if nodes is not None:
        raise typer.BadParameter(
            f"{folder} is no model of `adgn fit`, and only models take tables", param_hint="NODES"
        )
    if not os.path.lexists(folder / "config.toml"):
        complain(
            f"{folder} is no model (it has no config.json) and not a run directory (no "
            "config.toml); give the --out of `adgn fit` or the --run-dir of `adgn train`"
        )
        raise typer.Exit(2)


def _evaluate_model(
    folder: Path, nodes: Path | None, edges: Path | None, graphs: Path | None
) -> None:
    if nodes is None:
        from adgn.estimators import load

        estimator = load(folder)
        scores = {"validation": estimator.validation_scores_, "held out": estimator.test_scores_}
        _print_scores({name: found for name, found in scores.items() if found})
        return
    estimator, graph = model_and_graph(folder, nodes, edges, graphs)
    _print_scores({graph.origin: estimator.scores(graph)})
    say(f"{graph.labelled.numel():,} {graph.level}s with a target, {graph.num_rows:,} in all")


def _new_folder(name: str) -> Path:
    """Makes a folder below runs/ that no other process has, even one started at the same time."""
    from adgn.training import RunError

    folder, number = Path("runs") / name, 2
    while True:
        try:
            folder.mkdir(parents=True)
            return folder
        except FileExistsError:
            folder, number = Path("runs") / f"{name}-{number}", number + 1
        except OSError as error:
            raise RunError(
                f"cannot make {folder}: {error.strerror or error}; give another --run-dir"
            ) from error


def _show(label: str, folder: Path, tensorboard: bool, run: "Callable[..., RunResult]") -> None:
    """Runs with progress on standard error, then prints the result."""
    from adgn.cli.training_progress import show_training
    from adgn.training import Interrupted

    events_of_run: AbstractContextManager[Sequence[Callback]] = nullcontext(())
    if tensorboard:
        from adgn.training.tensorboard import event_writer

        events_of_run = event_writer(folder)
    try:
        with events_of_run as events, show_training(label) as (callback, preparing):
            result = run(callbacks=[callback, *events], progress=preparing)
    except Interrupted as stop:
        say(f"{stop}. To go on: adgn resume {folder}", to=error_console())
        raise typer.Exit(130) from None
    _print_scores({**result.scores, "constant predictor (test)": result.constant})
    if result.published is not None:
        say(published_text(result.published))
    say(
        f"{result.epochs} epochs in {result.seconds:.1f} s, best epoch {result.best_epoch}, "
        f"stopped by {result.stopped.replace('_', ' ')}"
    )
    for note in result.transforms:
        say(f"transform: {note}")
    for note in result.notes:
        say(f"known defect of the data: {note}")
    if result.run_dir is not None:
        say(f"kept in {result.run_dir}")


def _print_scores(scores: Mapping[Any, Mapping[str, float]]) -> None:
    """A line per split; the first one has all scores."""
    names = list(next(iter(scores.values())))
    rows = [
        [split, *(f"{values[name]:.4f}" if name in values else "" for name in names)]
        for split, values in scores.items()
    ]
    print_table(["split", *names], rows)


def published_text(value: "PublishedValue") -> str:
    """A line about what the paper reports."""
    spread = "" if value.std is None else f" ± {value.std:.4f}"
    column = f", column {value.column!r}" if value.table == "graph_property_prediction" else ""
    told = value.direction not in (None, "any", "in")
    direction = f", direction {value.direction!r}" if told else ""
    return f"published ({value.row}{column}{direction}): {value.metric} {value.mean:.4f}{spread}"
