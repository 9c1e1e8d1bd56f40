"""`adgn reproduce`: the paper's tables and figures from the command line."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Table
from typer import Argument, Option

from adgn.cli.console import complain, console, error_console, print_table, say

if TYPE_CHECKING:
    from adgn.experiments.api import Reproduction

# The room `adgn.experiments` brings torch; imported in the command so that --help stays quick.


def reproduce(
    experiments: Annotated[
        list[str] | None,
        Argument(metavar="[EXPERIMENT]...", help="Which; see --list. Default: all."),
    ] = None,
    budget: Annotated[
        str,
        Option(
            metavar="smoke|laptop|paper",
            help="Minutes and meaningless numbers; a search by halving and the paper's runs; "
            "everything the paper did.",
        ),
    ] = "laptop",
    models: Annotated[
        str | None,
        Option(
            metavar="NAME,NAME,…",
            help="Models, or rows of the tables, such as adgn,gcn or adgn-ws. Default: all.",
        ),
    ] = None,
    columns: Annotated[
        str | None,
        Option(
            metavar="NAME,NAME,…",
            help="Columns of the tables, such as sssp, texas or radius-2. Default: all.",
        ),
    ] = None,
    out: Annotated[
        Path | None, Option(help="The results directory. Default: reproduction/BUDGET.")
    ] = None,
    workers: Annotated[
        int | None, Option(help="Processes with one thread each. Default: one per core.")
    ] = None,
    rounds: Annotated[
        int | None, Option(help="Stop after this many initialisations of each cell. Default: all.")
    ] = None,
    retry_failed: Annotated[
        bool, Option("--retry-failed", help="Try cells again that failed.")
    ] = False,
    data_root: Annotated[Path | None, Option(help="The folder of all data sets.")] = None,
    executor: Annotated[
        str, Option(metavar="local|ray", help="For --budget paper: where trials run.")
    ] = "local",
    ray_address: Annotated[
        str | None, Option(help="For --budget paper: a Ray cluster, host:port.")
    ] = None,
    storage: Annotated[
        str | None, Option(help="For --budget paper: a database URL for the studies.")
    ] = None,
    show: Annotated[
        bool,
        Option(
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
    from adgn.cli.reproduction_progress import show_reproduction
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
        with show_reproduction() as (callback, progress):
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
                callback=callback,
                progress=progress,
            )
    except KeyboardInterrupt:
        say(
            f"stopped; nothing is lost. The same command goes on; `adgn report {place}` shows what "
            "is there",
            to=error_console(),
        )
        raise typer.Exit(130) from None
    _print(result)
    if result.failed:
        raise typer.Exit(1)


def _names(given: str | None) -> list[str] | None:
    return None if given is None else [name.strip() for name in given.split(",") if name.strip()]


def _print(result: "Reproduction") -> None:
    from adgn.experiments.summary import summary_tables

    for title, columns, rows in summary_tables(result.jobs):
        say(title, style="bold")
        print_table(columns, rows)
    for column, why in result.left_out.items():
        say(f"column {column} left out: {why}")
    for folder in result.moved:
        say(f"measured with another definition, moved to {folder}")
    for job in result.failed:
        error = job.cell.error
        where = "" if error is None or error.run is None else f" ({error.run})"
        first = "" if error is None else error.message.splitlines()[0]
        complain(f"{job.plan.label}{where}: {first}", "failed", to=console())
    if result.failed:
        say("--retry-failed tries them again")
    say(f"adgn report {result.path}")


def _list(
    experiments: list[str],
    models: list[str] | None,
    columns_wanted: list[str] | None,
    places: dict[str, Path],
) -> None:
    from adgn.experiments.summary import listing

    out = console()
    for entry in listing(experiments, models, columns_wanted, places):
        out.print(entry.title, style="bold", markup=False)
        out.print(entry.summary, markup=False, soft_wrap=not out.is_terminal)
        outline = Table.grid(padding=(0, 2, 0, 0))  # long texts wrap beside their labels
        for label, text in entry.about:
            outline.add_row(label, escape(text))
        out.print(outline)
        columns = ("budget", "cells", "configurations", "final runs", "time", "used", "left")
        print_table(columns, entry.budgets)
        out.print()
    out.print(
        "time: hours of one core (of all cores for times per epoch), about; searches without early "
        "stopping. used, left: by the records in "
        + ", ".join(str(place) for place in places.values()),
        markup=False,
        soft_wrap=not out.is_terminal,
    )
