"""`adgn reproduce`: the paper's tables and figures from the command line."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Table

from adgn.cli.console import console, error_console, print_table

if TYPE_CHECKING:
    from adgn.experiments.api import Reproduction

__all__ = ["reproduce"]

# The room `adgn.experiments` brings torch; imported in the command so that --help stays quick.


def reproduce(
    experiments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[EXPERIMENT]...",
            help="Which; see --list. Default: all.",
            show_default=False,
        ),
    ] = None,
    budget: Annotated[
        str,
        typer.Option(
            metavar="smoke|laptop|paper",
            help="Minutes and meaningless numbers; a search by halving and the paper's runs; "
            "everything the paper did.",
        ),
    ] = "laptop",
    models: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,NAME,…",
            help="Models, or rows of the tables, such as adgn,gcn or adgn-ws. Default: all.",
            show_default=False,
        ),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,NAME,…",
            help="Columns of the tables, such as sssp, texas or radius-2. Default: all.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="The results directory. Default: reproduction/BUDGET.", show_default=False
        ),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            help="Processes with one thread each. Default: one per core.", show_default=False
        ),
    ] = None,
    rounds: Annotated[
        int | None,
        typer.Option(
            help="Stop after this many initialisations of each cell. Default: all.",
            show_default=False,
        ),
    ] = None,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Try cells again that failed.")
    ] = False,
    data_root: Annotated[
        Path | None, typer.Option(help="The folder of all data sets.", show_default=False)
    ] = None,
    executor: Annotated[
        str,
        typer.Option(metavar="local|ray", help="For --budget paper: where trials run."),
    ] = "local",
    ray_address: Annotated[
        str | None,
        typer.Option(help="For --budget paper: a Ray cluster, host:port.", show_default=False),
    ] = None,
    storage: Annotated[
        str | None,
        typer.Option(
            help="For --budget paper: a database URL for the studies.", show_default=False
        ),
    ] = None,
    show: Annotated[
        bool,
        typer.Option(
            "--list", help="List experiments, rows, columns, runs, hours used and left, and stop."
        ),
    ] = False,
) -> None:
    """Measure the paper's tables and figures, cell by cell.

    Ctrl-C, a crash or a reboot lose nothing: the same command goes on. What is there can be looked
    at any time with `adgn report DIR`.

    Examples:

        adgn reproduce --list

        adgn reproduce property --models adgn,gcn --columns sssp

        adgn reproduce --budget smoke
    """
    from adgn.cli.reproduction_progress import shown_reproduction
    from adgn.experiments.api import reproduce as run_reproduction
    from adgn.experiments.budgets import BUDGETS, find_budget

    names, keys = _names(models), _names(columns)
    if show:
        find_budget(budget, "property")  # a wrong name is told, though all budgets are listed
        places = {name: Path("reproduction") / name for name in BUDGETS}
        _list(experiments or [], names, keys, places if out is None else {**places, budget: out})
        return
    place = out if out is not None else Path("reproduction") / budget
    try:
        with shown_reproduction() as (watch, progress):
            result = run_reproduction(
                experiments or [],
                budget=budget,
                models=names,
                columns=keys,
                out=place,
                workers=workers,
                rounds=rounds,
                retry_failed=retry_failed,
                root=data_root,
                executor=executor,  # type: ignore[arg-type]
                ray_address=ray_address,
                storage=storage,
                watch=watch,
                progress=progress,
            )
    except KeyboardInterrupt:
        error_console().print(
            "stopped; nothing is lost. The same command goes on; "
            f"`adgn report {escape(str(place))}` shows what is there",
            highlight=False,
            soft_wrap=True,
        )
        raise typer.Exit(130) from None
    _print(result)
    if result.failed:
        raise typer.Exit(1)


def _names(given: str | None) -> list[str] | None:
    return None if given is None else [name.strip() for name in given.split(",") if name.strip()]


def _print(result: "Reproduction") -> None:
    from adgn.experiments.summary import summary_tables

    out = console()
    for title, columns, rows in summary_tables(result.jobs):
        out.print(escape(title), highlight=False, style="bold")
        print_table(columns, rows)
    for folder in result.moved:
        out.print(
            f"measured with another definition, moved to {escape(str(folder))}",
            highlight=False,
            soft_wrap=True,
        )
    for job in result.failed:
        error = job.cell.error
        where = "" if error is None or error.run is None else f" ({error.run})"
        first = "" if error is None else error.message.splitlines()[0]
        out.print(
            f"[bold red]failed:[/] {escape(job.plan.label + where)}: {escape(first)}",
            highlight=False,
            soft_wrap=True,
        )
    if result.failed:
        out.print("--retry-failed tries them again", highlight=False)
    out.print(f"adgn report {escape(str(result.path))}", highlight=False, soft_wrap=True)


def _list(
    experiments: list[str],
    models: list[str] | None,
    columns_wanted: list[str] | None,
    places: dict[str, Path],
) -> None:
    from adgn.experiments.summary import listing

    out = console()
    for entry in listing(experiments, models, columns_wanted, places):
        out.print(escape(entry.title), highlight=False, style="bold")
        out.print(escape(entry.summary), highlight=False, soft_wrap=not out.is_terminal)
        outline = Table.grid(padding=(0, 2, 0, 0))  # long texts wrap beside their labels
        for label, text in entry.about:
            outline.add_row(label, escape(text))
        out.print(outline, highlight=False)
        columns = ("budget", "cells", "configurations", "final runs", "time", "used", "left")
        print_table(columns, entry.budgets)
        out.print()
    out.print(
        "time: hours of one core (of all cores for times per epoch), about; searches without early "
        "stopping. used, left: by the records in "
        + ", ".join(escape(str(place)) for place in places.values()),
        highlight=False,
        soft_wrap=not out.is_terminal,
    )
