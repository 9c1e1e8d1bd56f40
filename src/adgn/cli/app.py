"""The program `adgn`, composed of its command groups. A new group is a file and a line here."""

import sys

import typer
from rich.markup import escape

from adgn.cli import analyze, bench, data, demo, lists, report, reproduce, select, study, train
from adgn.cli.console import error_console, replace_unprintable

app = typer.Typer(
    help="Anti-symmetric deep graph networks: long-range information on graphs.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


@app.callback()
def _program() -> None:
    """Keeps `adgn GROUP COMMAND` even while there is a single group."""


app.command()(train.train)
app.command()(train.resume)
app.command()(train.evaluate)
app.command()(train.predict)
app.command()(select.select)
app.add_typer(study.app, name="study")
app.command()(lists.tasks)
app.command()(lists.models)
app.add_typer(data.app, name="data")
app.add_typer(demo.app, name="demo")
app.command()(analyze.analyze)
app.command()(bench.bench)
app.command()(reproduce.reproduce)
app.command()(report.report)


def main() -> None:
    """Run the program; an error that the user can mend is one message, not a traceback."""
    replace_unprintable()
    try:
        app()
    except (RuntimeError, ValueError) as error:
        if not _can_be_mended(error):
            raise
        _end(str(error))
    except OSError as error:
        if error.filename is None:
            raise
        _end(f"cannot use {error.filename}: {error.strerror}; restore access or choose another")


def _end(message: str) -> None:
    error_console().print(f"[bold red]error:[/] {escape(message)}", soft_wrap=True)
    sys.exit(1)


def _can_be_mended(error: Exception) -> bool:
    # Imported here: it brings torch, which --help and shell completion can do without.
    from adgn.data import DataError
    from adgn.training import TrainingError

    return isinstance(error, DataError | TrainingError | ValueError)
