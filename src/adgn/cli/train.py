"""`adgn train`, `resume`, `evaluate` and `predict`: a run from the command line."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from adgn.cli.console import error_console, print_table, say
from adgn.cli.names import complete_task
from adgn.cli.options import ModelOption, PluginOption, RunFolder

if TYPE_CHECKING:
    from adgn.training import PublishedValue, RunResult

__all__ = ["evaluate", "predict", "resume", "train"]

# The room `adgn.training` brings torch; it is imported in the commands so that --help stays quick.

DeviceOption = Annotated[
    str | None,
    Option(help="Where to compute: cpu, cuda, cuda:1 or auto. Default: where the run did."),
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
    """
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
    folder = run_dir or _new_folder("-".join([*names, str(resolved.seed)]))
    try:
        _show(" ".join(names), folder, tensorboard, partial(train_run, resolved, run_dir=folder))
    finally:
        if run_dir is None:
            RunDirectory(folder).remove_if_unused()


def resume(
    run_dir: RunFolder,
    tensorboard: Tensorboard = False,
    device: DeviceOption = None,
    plugin: PluginOption = None,
) -> None:
    """Go on with a run that was stopped, exactly as if it had not been."""
    from adgn.training import RunDirectory
    from adgn.training import resume as resume_run

    config = RunDirectory(run_dir).config()
    run = partial(resume_run, run_dir, device=device)
    _show(f"{config.task.name} {config.model.name}", run_dir, tensorboard, run)


def evaluate(run_dir: RunFolder, device: DeviceOption = None, plugin: PluginOption = None) -> None:
    """Show the scores of a run's best weights on every split."""
    from adgn.training import evaluate as evaluate_run

    _print_scores(evaluate_run(run_dir, device=device))


def predict(
    run_dir: RunFolder,
    out: Annotated[Path, Option(help="The file to write: .csv or .safetensors.")],
    device: DeviceOption = None,
    plugin: PluginOption = None,
) -> None:
    """Write the predictions of a run's best weights for every split.

    Each row has its split, the numbers of its graph and node, prediction, target and, for classes,
    the probability of each.
    """
    from adgn.training.predictions import write_predictions

    say(f"{write_predictions(run_dir, out, device=device)} predictions written to {out}")


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
    from adgn.training.tensorboard import event_writer

    try:
        with (
            event_writer(folder if tensorboard else None) as events,
            show_training(label) as (callback, preparing),
        ):
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
    return f"published ({value.row}{column}): {value.metric} {value.mean:.4f}{spread}"
