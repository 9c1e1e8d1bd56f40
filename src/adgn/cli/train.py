"""`adgn train`, `resume`, `evaluate` and `predict`: a run from the command line."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from adgn.cli.console import console, error_console, print_table
from adgn.cli.names import complete_model, complete_task
from adgn.cli.plugins import PluginOption

if TYPE_CHECKING:
    from adgn.training import RunResult

__all__ = ["evaluate", "predict", "resume", "train"]

# The room `adgn.training` brings torch; it is imported in the commands so that --help stays quick.


ModelOption = Annotated[
    str | None,
    typer.Option(
        help="A model from `adgn models`. Default: adgn.",
        show_default=False,
        autocompletion=complete_model,
    ),
]
RunFolder = Annotated[Path, typer.Argument(help="A run directory.", show_default=False)]
DeviceOption = Annotated[
    str | None,
    typer.Option(
        help="Where to compute: cpu, cuda, cuda:1 or auto. Default: where the run did.",
        show_default=False,
    ),
]
Tensorboard = Annotated[
    bool, typer.Option("--tensorboard", help="Also write TensorBoard events to the run directory.")
]


def train(
    task: Annotated[
        str | None,
        typer.Argument(
            help="A task from `adgn tasks`; may be left out with --config.",
            show_default=False,
            autocompletion=complete_task,
        ),
    ] = None,
    model: ModelOption = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="A setting, such as optimizer.lr=0.01 or task.radius=3; may be repeated. "
            "`adgn tasks TASK` lists all of them.",
            show_default=False,
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(help="A TOML file, such as the config.toml of a run.", show_default=False),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Seed of the run. Default: the task's.", show_default=False)
    ] = None,
    run_dir: Annotated[
        Path | None,
        typer.Option(
            help="Where everything is kept. Default: a new directory below runs/.",
            show_default=False,
        ),
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
    given: dict[str, Any] = {} if config is None else read_config(config)
    overrides: list[dict[str, Any]] = []
    if task is not None:
        overrides.append({"task": {"name": task}})
    if model is not None:
        overrides.append({"model": {"name": model}})
    overrides += [parse_setting(setting) for setting in settings or ()]
    if seed is not None:
        overrides.append({"seed": seed})
    resolved = resolve_config(given, *overrides)
    label = f"{resolved.task.name} {resolved.model.name}"
    folder = run_dir or _new_folder(f"{resolved.task.name}-{resolved.model.name}-{resolved.seed}")

    def run(options: dict[str, Any]) -> "RunResult":
        return train_run(resolved, run_dir=folder, **options)

    try:
        _show(label, folder, tensorboard, run)
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
    label = f"{config.task.name} {config.model.name}"

    def run(options: dict[str, Any]) -> "RunResult":
        return resume_run(run_dir, device=device, **options)

    _show(label, run_dir, tensorboard, run)


def evaluate(run_dir: RunFolder, device: DeviceOption = None, plugin: PluginOption = None) -> None:
    """Show the scores of a run's best weights on every split."""
    from adgn.training import evaluate as evaluate_run

    scores = evaluate_run(run_dir, device=device)
    names = list(next(iter(scores.values())))
    rows = [[split, *(f"{score[name]:.4f}" for name in names)] for split, score in scores.items()]
    print_table(["split", *names], rows)


def predict(
    run_dir: RunFolder,
    out: Annotated[
        Path, typer.Option(help="The file to write: .csv or .safetensors.", show_default=False)
    ],
    device: DeviceOption = None,
    plugin: PluginOption = None,
) -> None:
    """Write the predictions of a run's best weights for every split.

    Each row has its split, the numbers of its graph and node, prediction, target and, for classes,
    the probability of each.
    """
    from adgn.training.predictions import write_predictions

    rows = write_predictions(run_dir, out, device=device)
    console().print(f"{rows} predictions written to {escape(str(out))}", highlight=False)


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


def _show(label: str, folder: Path, tensorboard: bool, run: Any) -> None:
    """Runs with progress on standard error, then prints the result."""
    from adgn.cli.training_progress import shown_progress
    from adgn.training import Interrupted
    from adgn.training.tensorboard import event_writer

    message = error_console()
    try:
        with (
            event_writer(folder if tensorboard else None) as events,
            shown_progress(label) as shown,
        ):
            result = run({"callbacks": [shown.callback, *events], "progress": shown.preparing})
    except Interrupted as stop:
        message.print(
            f"{escape(str(stop))}. To go on: adgn resume {escape(str(folder))}",
            highlight=False,
            soft_wrap=True,
        )
        raise typer.Exit(130) from None
    _print_result(result)


def _print_result(result: "RunResult") -> None:
    names = list(result.scores["test"])
    rows = [
        [split, *(f"{scores[name]:.4f}" for name in names)]
        for split, scores in result.scores.items()
    ]
    rows.append(
        [
            "constant predictor (test)",
            *(f"{result.constant[n]:.4f}" if n in result.constant else "" for n in names),
        ]
    )
    out = console()
    print_table(["split", *names], rows)
    if result.published is not None:
        value = result.published
        spread = "" if value.std is None else f" ± {value.std:.4f}"
        column = f", column {value.column!r}" if value.table == "graph_property_prediction" else ""
        out.print(
            f"published ({value.row}{column}): {value.metric} {value.mean:.4f}{spread}",
            highlight=False,
        )
    out.print(
        f"{result.epochs} epochs in {result.seconds:.1f} s, best epoch {result.best_epoch}, "
        f"stopped by {result.stopped.replace('_', ' ')}",
        highlight=False,
    )
    for note in result.notes:
        out.print(f"known defect of the data: {escape(note)}", highlight=False, soft_wrap=True)
    if result.run_dir is not None:
        out.print(f"kept in {escape(str(result.run_dir))}", highlight=False, soft_wrap=True)
