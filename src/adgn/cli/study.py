"""`adgn study`: look at a study, finished or not."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from adgn.cli.console import PluginOption, print_table, say

if TYPE_CHECKING:
    from optuna.study import Study

    from adgn.selection import StudyDefinition

app = typer.Typer(help="Look at studies of model selection.", no_args_is_help=True)

Name = Annotated[str, Argument(help="The name of a study.")]
Storage = Annotated[str | None, Option(help="Its database URL. Default: where it was started.")]
Folder = Annotated[Path | None, Option(help="Its folder. Default: studies/NAME.")]


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
    count: Annotated[int, Option("--best", help="How many configurations.", min=1)] = 10,
    tracebacks: Annotated[bool, Option("--tracebacks", help="Print all of each failure.")] = False,
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
    say(
        f"{name}: {definition.task}, {definition.base.model.name}, space {definition.space_name}, "
        f"search {definition.search}, {len(definition.protocol.runs())} runs per trial\n"
        f"{status.done} of {status.total} trials done: {status.complete} complete, "
        f"{status.pruned} pruned, {status.failed} failed; {status.running} running, "
        f"{status.waiting} waiting"
    )
    if status.rungs:
        say("\nrungs")
        counts = [(r.epochs, r.runs, r.planned, r.done, r.failed) for r in status.rungs]
        head = ("epochs", "runs", "configurations", "done", "failed")
        print_table(head, [[str(count) for count in rung] for rung in counts])
    if status.complete:
        say("\nbest configurations")
        print_table(*best_table(study, definition, count))
        shares = importances(study)
        if shares:
            say("\nshare of each setting in the variance of scores")
            print_table(("setting", "share"), [(k, f"{v:.2f}") for k, v in shares.items()])
    columns, rows = failure_table(study, definition)
    if rows:
        say("\nfailures")
        print_table(columns, rows)
    for record in trial_records(study, definition) if tracebacks else ():
        if record["traceback"]:
            say(f"\ntrial {record['trial']}\n{record['traceback']}")


@app.command()
def export(
    name: Name,
    form: Annotated[str, Option("--format", metavar="csv|json", help="The form.")] = "csv",
    out: Annotated[Path | None, Option(help="The file to write. Default: standard output.")] = None,
    storage: Storage = None,
    folder: Folder = None,
    plugin: PluginOption = None,
) -> None:
    """Write all trials of a study as CSV (a line per trial) or JSON (with every run)."""
    from adgn.selection.show import export as export_text
    from adgn.training.checkpoint import OTHER_OUT, write_atomically

    with _opened(name, storage, folder) as (study, definition):
        text = export_text(study, definition, form)
    if out is None:
        sys.stdout.write(text)
    else:
        write_atomically(out, text.encode(), OTHER_OUT)
