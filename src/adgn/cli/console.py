"""Printing that reads well on a terminal and in a pipe."""

import io
import sys
from collections.abc import Sequence
from pathlib import Path

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

__all__ = ["complain", "console", "error_console", "make_folder", "print_table", "say"]

# In a pipe there is no width to fit into; lines must stay whole so that tools can read them.
PIPE_WIDTH = 400


def replace_unprintable() -> None:
    """Characters that standard output or error has no code for are printed as `?` from now on."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def make_folder(path: Path, option: str = "--out") -> None:
    """Makes the folder of an option, before the work whose results go there."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        why = f"cannot make the folder {path}: {error.strerror or error}; give another one"
        raise typer.BadParameter(why, param_hint=option) from error


def console() -> Console:
    """The console of results: standard output."""
    plain = Console(highlight=False)
    return plain if plain.is_terminal else Console(width=PIPE_WIDTH, highlight=False)


def error_console() -> Console:
    """The console of messages and progress: standard error."""
    return Console(stderr=True, highlight=False)


def say(text: str, *, style: str | None = None, to: Console | None = None) -> None:
    """Prints a text as it is, its lines whole; on standard output, unless it goes `to` another."""
    (to or console()).print(text, style=style, markup=False, soft_wrap=True)


def complain(
    text: str, label: str = "error", colour: str = "red", to: Console | None = None
) -> None:
    """Prints a message with a coloured label; on standard error, unless it goes `to` another."""
    markup = f"[bold {colour}]{label}:[/] {escape(text)}"
    (to or error_console()).print(markup, soft_wrap=True)


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table: framed on a terminal, plain aligned columns in a pipe."""
    out = console()
    table = Table(*columns) if out.is_terminal else Table(*columns, box=None, pad_edge=False)
    for row in rows:
        table.add_row(*map(escape, row))
    out.print(table)
