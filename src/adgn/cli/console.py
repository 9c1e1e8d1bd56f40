"""Printing that reads well on a terminal and in a pipe."""

import io
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

__all__ = [
    "console",
    "error_console",
    "make_folder",
    "print_table",
    "progress_bar",
    "replace_unprintable",
]

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
    plain = Console()
    return plain if plain.is_terminal else Console(width=PIPE_WIDTH)


def error_console() -> Console:
    """The console of messages and progress: standard error."""
    return Console(stderr=True)


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table: framed on a terminal, plain aligned columns in a pipe."""
    out = console()
    table = Table(box=None, pad_edge=False) if not out.is_terminal else Table()
    for column in columns:
        table.add_column(column)
    for row in rows:
        table.add_row(*(escape(cell) for cell in row))
    out.print(table)


@contextmanager
def progress_bar(label: str) -> Iterator[Callable[[int, int], None]]:
    """Show how far a piece of work is: a bar on a terminal, a line per tenth elsewhere.

    Yields a function to be called with (steps done, all steps).
    """
    out = error_console()
    if not out.is_terminal:
        shown = 0

        def print_tenths(done: int, total: int) -> None:
            nonlocal shown
            tenth = 10 * done // total
            if tenth > shown:
                shown = tenth
                out.print(f"{label}: {10 * tenth} %", highlight=False)

        yield print_tenths
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn())
    with Progress(*columns, TimeElapsedColumn(), console=out, transient=True) as progress:
        task = progress.add_task(label, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)
