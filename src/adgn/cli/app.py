"""The program `adgn`, composed of its command groups. A new group is a file and a line here."""

import sys
import warnings
from typing import Annotated, Any

import typer
from typer import Option

from adgn._util.registry import PluginError
from adgn.cli import (
    analyze,
    bench,
    data,
    demo,
    explain,
    fit,
    lists,
    plan,
    probe,
    report,
    reproduce,
    select,
    study,
    train,
)
from adgn.cli.console import complain, replace_unprintable
from adgn.data.root import DataError
from adgn.distributed.errors import RankError
from adgn.training.errors import TrainingError

app = typer.Typer(
    help="Anti-symmetric deep graph networks: long-range information on graphs.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from adgn._version import __version__

        typer.echo(f"adgn {__version__}")
        raise typer.Exit


_VERSION = Option(
    "--version", callback=_print_version, is_eager=True, help="Show the version and stop."
)


@app.callback()
def _program(version: Annotated[bool, _VERSION] = False) -> None:
    """What comes before the name of a command."""


app.command()(fit.fit)
app.command()(train.train)
app.command()(train.resume)
app.command()(train.evaluate)
app.command()(train.predict)
app.command()(plan.plan)
app.command("partition")(plan.partition_graph)
app.command()(explain.explain)
app.command()(probe.probe)
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
    warnings.showwarning = _show_warning
    replace_unprintable()
    try:
        app()
    except (DataError, PluginError, RankError, TrainingError, ValueError) as error:
        complain(str(error))
        sys.exit(1)
    except OSError as error:
        if error.filename is None:
            raise
        complain(f"cannot use {error.filename}: {error.strerror}; restore access or choose another")
        sys.exit(1)


def _show_warning(message: Warning | str, *_place: Any, **_more: Any) -> None:
    """A warning as one message, without the line of code that it comes from."""
    complain(str(message), "warning", "yellow")
