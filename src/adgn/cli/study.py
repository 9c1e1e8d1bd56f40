"""`adgn study`: look at a study, finished or not."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from adgn.cli.console import console, print_table
from adgn.cli.plugins import PluginOption

if TYPE_CHECKING:
    from optuna.study import Study

    from adgn.selection import StudyDefinition

__all__ = ["app"]

app = typer.Typer(help="Look at studies of model selection.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="The name of a study.", show_default=False)]
Storage = Annotated[
    str | None,
    typer.Option(help="Its database URL. Default: where it was started.", show_default=False),
]
Folder = Annotated[
    Path | None, typer.Option(help="Its folder. Default: studies/NAME.", show_default=False)
]


@contextmanager
def _opened(
    name: str, storage: str | None, folder: Path | None
) -> "Iterator[tuple[Study, StudyDefinition]]":
    import optuna

    from adgn.selection import StudyFolder
    from adgn.selection.storage import storage_errors

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    place = StudyFolder(name, folder)
    with storage_errors(place.storage(storage)):
        yield place.open(storage)


@app.command()
def show(
    name: Name,
    storage: Storage = None,
    folder: Folder = None,
    count: Annotated[int, typer.Option("--best", help="How many configurations.", min=1)] = 10,
    tracebacks: Annotated[
        bool, typer.Option("--tracebacks", help="Print all of each failure.")
    ] = False,
    plugin: PluginOption = None,
) -> None:
    """Show a study: how far it is, its best configurations, what mattered, what failed."""
    with _opened(name, storage, folder) as (study, definition):
        _show(name, study, definition, count, tracebacks)


def _show(
    name: str, study: "Study", definition: "StudyDefinition", count: int, tracebacks: bool
) -> None:
    from adgn.selection import study_status
    from adgn.selection.show import best_table, failure_table, importances, trial_records

    status = study_status(study, definition)
    out = console()
    out.print(
        f"{escape(name)}: {definition.task}, {definition.base.model.name}, space "
        f"{escape(definition.space_name)}, search {definition.search}, "
        f"{len(definition.protocol.runs())} runs per trial",
        highlight=False,
        soft_wrap=True,
    )
    out.print(
        f"{status.done} of {status.total} trials done: {status.complete} complete, "
        f"{status.pruned} pruned, {status.failed} failed; {status.running} running, "
        f"{status.waiting} waiting",
        highlight=False,
        soft_wrap=True,
    )
    if status.rungs:
        out.print("\nrungs", highlight=False)
        rows = [
            [str(rung.epochs), str(rung.runs), str(rung.planned), str(rung.done), str(rung.failed)]
            for rung in status.rungs
        ]
        print_table(("epochs", "runs", "configurations", "done", "failed"), rows)
    if status.complete:
        out.print("\nbest configurations", highlight=False)
        print_table(*best_table(study, definition, count))
        shares = importances(study)
        if shares:
            out.print("\nshare of each setting in the variance of scores", highlight=False)
            print_table(("setting", "share"), [(k, f"{v:.2f}") for k, v in shares.items()])
    columns, rows = failure_table(study, definition)
    if rows:
        out.print("\nfailures", highlight=False)
        print_table(columns, rows)
    if tracebacks:
        for record in trial_records(study, definition):
            if record["traceback"]:
                text = f"\ntrial {record['trial']}\n{record['traceback']}"
                out.print(escape(text), highlight=False, soft_wrap=True)


@app.command()
def export(
    name: Name,
    form: Annotated[str, typer.Option("--format", metavar="csv|json", help="The form.")] = "csv",
    out: Annotated[
        Path | None,
        typer.Option(help="The file to write. Default: standard output.", show_default=False),
    ] = None,
    storage: Storage = None,
    folder: Folder = None,
    plugin: PluginOption = None,
) -> None:
    """Write all trials of a study as CSV (a line per trial) or JSON (with every run)."""
    from adgn.selection.show import export as export_text
    from adgn.training.files import OTHER_OUT, write_atomically

    with _opened(name, storage, folder) as (study, definition):
        text = export_text(study, definition, form)
    if out is None:
        sys.stdout.write(text)
    else:
        write_atomically(out, text.encode(), OTHER_OUT)
