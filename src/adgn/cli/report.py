"""`adgn report`: tables, figures and a page from a results directory."""

from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from adgn.cli.console import PluginOption, error_console, say


def report(
    folder: Annotated[
        Path,
        Argument(
            metavar="DIR", help="What `adgn reproduce` wrote, or a folder with runs or studies."
        ),
    ],
    out: Annotated[Path | None, Option(help="Where the report goes. Default: DIR/report.")] = None,
    collect: Annotated[
        Path | None,
        Option(
            help="Instead of a report, copy the small files (definitions and cells, without "
            "studies and runs) into this folder, to be committed. What is there already and holds "
            "more stays."
        ),
    ] = None,
    plugin: PluginOption = None,
) -> None:
    """Write the tables (Markdown, CSV, LaTeX), figures and one HTML page of a reproduction.

    DIR may also be a run directory, the folder of a study, or one with several of them, of own
    tasks and models too. An unfinished or partly failed reproduction gives a report that says so.
    """
    # The room brings torch and matplotlib, which --help can do without.
    from adgn.report import collect as collect_files
    from adgn.report import read_results, read_runs, table_state, write_report

    if collect is not None:
        if out is not None:
            raise typer.BadParameter("--out and --collect do not go together; give one of them")
        copied = collect_files(folder, collect)
        for note in copied.notes:
            say(note)
        size = sum(path.stat().st_size for path in copied.files)
        say(f"{len(copied.files)} files, {size / 1e6:.2f} MB, copied to {collect}")
        return
    results = read_runs(folder) or read_results(folder)
    written = write_report(results, out or folder / "report")
    for table in results.tables:
        say(f"{table.experiment.name}: {table_state(table)}")
        for cell in table.cells.values():
            if cell.error is not None:
                line = f"failed: {cell.row}, {cell.column}: {cell.error.message}"
                say(line, to=error_console())
    say(f"{len(written.files)} files written; open {written.page}")
