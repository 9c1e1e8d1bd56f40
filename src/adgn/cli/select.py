"""`adgn select`: model selection from the command line."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from adgn.cli.console import ModelOption, PluginOption, error_console, print_table, say
from adgn.cli.names import complete_task
from adgn.cli.train import published_text

if TYPE_CHECKING:
    from adgn.selection import SelectionResult
    from adgn.selection.forecast import Forecast
    from adgn.selection.protocols import Summary

# The room `adgn.selection` brings torch; it is imported in the command so that --help stays quick.


def _numbers(text: str | None) -> list[int] | None:
    if text is None:
        return None
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not a list of numbers such as 0,1,2") from None


def select(
    task: Annotated[
        str | None,
        Argument(
            help="A task from `adgn tasks`; may be left out to go on with a --study.",
            autocompletion=complete_task,
        ),
    ] = None,
    model: ModelOption = None,
    space: Annotated[
        str | None,
        Option(
            metavar="paper|compact|authors|FILE",
            help="The paper's grid, a few dozen configurations, 16 or fewer around published "
            "settings (heterophilic graphs), or a TOML file. Default: compact.",
        ),
    ] = None,
    search: Annotated[
        str | None,
        Option(
            metavar="grid|random|tpe",
            help="All of the space, a random part, or guided by scores so far. Default: grid.",
        ),
    ] = None,
    prune: Annotated[
        str | None,
        Option(
            metavar="halving|asha|none",
            help="Halving: all train for a few epochs, the best go on to more, from where they "
            "paused. Asha: stop trials that are not among the best third after 1, 3, 9, … of their "
            "runs. Default: none.",
        ),
    ] = None,
    first_rung: Annotated[
        int | None,
        Option(
            metavar="EPOCHS",
            help="With halving, how long all configurations train. Default: a 27th of the task's "
            "epochs, or half its patience where that is less.",
        ),
    ] = None,
    trials: Annotated[
        int | None, Option(help="How many trials. Default: all of a grid, 50 of another search.")
    ] = None,
    hours: Annotated[
        float | None,
        Option(
            help="How long the search may take: as many configurations are drawn at random as "
            "that allows. Default: any.",
        ),
    ] = None,
    workers: Annotated[int, Option(help="Trials that run at a time.")] = 1,
    executor: Annotated[
        str, Option(metavar="local|ray", help="Processes, or tasks of a Ray cluster.")
    ] = "local",
    ray_address: Annotated[
        str | None, Option(help="A Ray cluster, host:port or auto. Default: one on this machine.")
    ] = None,
    threads: Annotated[
        int | None, Option(help="Threads per worker. Default: the cores divided by the workers.")
    ] = None,
    storage: Annotated[
        str | None,
        Option(
            help="A database URL, such as postgresql+psycopg://user@host/database. Default: a "
            "file in the study's folder."
        ),
    ] = None,
    study: Annotated[
        str | None,
        Option(help="The name of the study; one that is there goes on. Default: TASK-MODEL-SPACE."),
    ] = None,
    folder: Annotated[
        Path | None, Option(help="The study's folder. Default: studies/NAME.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        Option(
            "--set",
            metavar="KEY=VALUE",
            help="A setting of all trials, such as loop.max_epochs=100; may be repeated.",
        ),
    ] = None,
    seeds: Annotated[
        str | None, Option(metavar="N,N,…", help="Initialisation seeds. Default: the protocol's.")
    ] = None,
    splits: Annotated[
        str | None, Option(metavar="N,N,…", help="Splits. Default: the protocol's.")
    ] = None,
    seed: Annotated[int | None, Option(help="Of a random or TPE search. Default: 0.")] = None,
    retry_failed: Annotated[
        bool, Option("--retry-failed", help="Run trials again that crashed.")
    ] = False,
    heartbeat: Annotated[
        int, Option(help="Seconds between two signs of life of a trial.", min=1)
    ] = 10,
    grace: Annotated[
        int, Option(help="Seconds of silence after which a trial is run again.", min=2)
    ] = 60,
    plugin: PluginOption = None,
) -> None:
    """Select a model's settings by validation score, then report the test score.

    Ctrl-C, a crash or a reboot lose nothing: the same command, or just --study NAME, goes on. The
    selected configuration is written to selected.toml, which `adgn train --config` takes.

    Examples:

        adgn select texas --model adgn --space compact --workers 2

        adgn select sssp --space paper --prune halving --study sssp-paper

        adgn select --study sssp-paper
    """
    from adgn.cli.selection_progress import cost_lines, show_study
    from adgn.selection import select as run_selection
    from adgn.training import parse_setting
    from adgn.training.config import merged

    def tell_cost(cost: "Forecast") -> None:
        for line in cost_lines(cost):
            say(line, to=error_console())

    chosen: dict[str, Any] | None = None
    for setting in settings or ():
        chosen = merged(chosen or {}, parse_setting(setting))
    try:
        with show_study(study or task or "") as (callback, progress):
            result = run_selection(
                task,
                model=model,
                space=space,
                search=search,  # type: ignore[arg-type]
                prune=prune,  # type: ignore[arg-type]
                first_rung=first_rung,
                trials=trials,
                hours=hours,
                workers=workers,
                executor=executor,  # type: ignore[arg-type]
                ray_address=ray_address,
                threads=threads,
                storage=storage,
                study=study,
                folder=folder,
                settings=chosen,
                seeds=_numbers(seeds),
                splits=_numbers(splits),
                seed=seed,
                retry_failed=retry_failed,
                heartbeat=heartbeat,
                grace=grace,
                callback=callback,
                progress=progress,
                tell_cost=tell_cost if hours is not None or prune == "halving" else None,
            )
    except KeyboardInterrupt:
        say("stopped; nothing is lost. The same command goes on", to=error_console())
        raise typer.Exit(130) from None
    _print(result)


def _print(result: "SelectionResult") -> None:
    from adgn.training import PublishedValue

    record, counts = result.record, result.counts
    print_table(("setting", "selected"), [(k, str(v)) for k, v in result.settings.items()])
    if result.by_split:
        say(
            "the best over all splits; each split was scored with its own selection, see "
            "selected-split-N.toml"
        )
    rows = [
        (name, _text(result.validation[name]), _text(test)) for name, test in result.test.items()
    ]
    print_table(("score", record["compared_on"], "test"), rows)
    say(record["rule"])
    if record["published"] is not None:
        say(published_text(PublishedValue(**record["published"])))
    say(
        f"{counts['total']} trials: {counts['complete']} complete, {counts['pruned']} pruned, "
        f"{counts['failed']} failed"
    )
    say(f"written to {result.folder}: selected.toml, selection.json")


def _text(summary: "Summary") -> str:
    return f"{summary.mean:.4f}" + ("" if summary.std is None else f" ± {summary.std:.4f}")
