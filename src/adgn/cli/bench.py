"""`adgn bench`: speed and memory against PyG, on this machine."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from adgn.cli.console import DataRootOption, complain, error_console, print_table, say

if TYPE_CHECKING:
    from adgn.bench.records import BenchFile

FULL, QUICK = Path("results/bench.json"), Path("results/bench-quick.json")


def bench(
    cases: Annotated[
        list[str] | None,
        Argument(
            help="property, fields, prediction, physics, computers, pubmed, pubmed-gcn, texas, "
            "scale, depth; default: all."
        ),
    ] = None,
    quick: Annotated[
        bool, Option("--quick", help="Smaller and fewer measurements: under two minutes.")
    ] = False,
    large: Annotated[
        bool,
        Option("--large", help="Also 2.4 million nodes, 6e7 edges: up to 20 GB, many minutes."),
    ] = False,
    repeats: Annotated[
        int | None, Option(min=1, help="Turns of each way. Default: 7; with --quick 2.")
    ] = None,
    threads: Annotated[
        int | None, Option(min=1, help="Torch's threads. Default: torch's choice.")
    ] = None,
    max_edges: Annotated[
        int | None, Option(min=1, help="Leave out random graphs with more edges.")
    ] = None,
    slowest_rival: Annotated[
        float,
        Option(
            metavar="SECONDS",
            help="Leave PyG and the plain torch path out of graphs where a step of theirs would "
            "take longer.",
        ),
    ] = 3.0,
    data_root: DataRootOption = None,
    out: Annotated[
        Path | None,
        Option(
            help=f"Where the results go; cases that it has and are not measured now stay. "
            f"Default: {FULL}, with --quick {QUICK}."
        ),
    ] = None,
    show: Annotated[
        bool, Option("--show", help="Measure nothing; print what the file has.")
    ] = False,
) -> None:
    """Measure time and peak memory of training by this package and by PyG, side by side.

    Each case is stored as soon as it is done.
    """
    # The room brings torch, which --help can do without.
    from adgn.bench.cases import choose_cases
    from adgn.bench.records import check_replaceable, read, store
    from adgn.bench.run import BenchError, Options, run_case

    chosen = choose_cases(cases or [], large=large)
    path = out or (QUICK if quick else FULL)
    results = read(path)  # now, so that a file that cannot be added to is told before the work
    if show:
        _print(results, chosen if cases else list(results.cases))
        return
    check_replaceable(path, results, chosen, quick=quick)
    if not slowest_rival > 0:
        raise ValueError(f"--slowest-rival {slowest_rival:g} is not valid; give seconds above 0")
    root = None if data_root is None else str(data_root)
    options = Options(quick, repeats, root, threads, max_edges, slowest_rival=slowest_rival)
    failed = []
    for name in chosen:
        try:
            record = run_case(name, options, partial(say, to=error_console()))
        except BenchError as error:  # the other cases can still be measured
            failed.append(name)
            complain(f"{name}: {error}")
            continue
        results = store(path, name, record)
    measured = [name for name in chosen if name not in failed]
    _print(results, measured)
    if measured:
        say(f"written to {path}")
    if failed:
        complain(", ".join(failed), "not measured")
        raise typer.Exit(1)


def _print(results: "BenchFile", names: list[str]) -> None:
    from adgn.bench.tables import tables

    for table in tables(results, names):
        say(f"\n{table.title}", style="bold")
        print_table(table.head, table.rows)
        if table.note:
            say(table.note, style="dim")
