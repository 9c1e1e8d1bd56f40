"""What commands print, and the options that several of them have."""

import io
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console, RenderableType
from rich.live import Live
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from typer import Argument, Option

from adgn._util.registry import load_plugin
from adgn.cli.names import complete_model

Share = Callable[[int, int], None]  # called with (steps done, all steps)
LINE_SECONDS = 10.0  # between two lines in a pipe


class Display:
    """Shows work on standard error. There is one at a time: two would write over each other."""

    def __init__(self, out: Console, live: Live | None) -> None:
        self.out = out
        self.live = live
        self._next_line = 0.0
        self._about: object = None
        self._tenths = 0
        columns = (TextColumn("[bold]{task.description}"), BarColumn(bar_width=24))
        text = TextColumn("{task.fields[text]}", markup=False)
        self._bar = Progress(*columns, text, TimeElapsedColumn())

    def draw(self, picture: RenderableType) -> None:
        """Shows a picture in place of the one before, on a terminal."""
        if self.live is not None:
            self.live.update(picture)

    def draw_bar(self, label: str, done: float, total: float, text: str) -> None:
        """Shows a bar with a text beside it, on a terminal."""
        if not self._bar.tasks:
            self._bar.add_task(label)
        self._bar.update(
            self._bar.task_ids[0], description=label, completed=done, total=total, text=text
        )
        self.draw(self._bar)

    def line(self, text: str) -> None:
        """Prints a line, above the picture on a terminal."""
        say(text, to=self.out)

    def line_in_pipe(self, text: str, *, last: bool = False, about: object = None) -> None:
        """Prints a line in a pipe: at most every ten seconds unless it is the last.

        Nor does it print two lines in a row `about` the same.
        """
        if self.live is not None or (about is not None and about == self._about):
            return
        if last or time.monotonic() >= self._next_line:
            self._next_line, self._about = time.monotonic() + LINE_SECONDS, about
            self.line(text)

    def share(self, label: str) -> Share:
        """A function that shows how much is done: a bar, or a line per tenth in a pipe."""

        def show(done: int, total: int) -> None:
            self.draw_bar(label, done, total, f"{100 * done // total} %")
            tenths = 10 * done // total
            if self.live is None and tenths > self._tenths:
                self.line(f"{label}: {10 * tenths} %")
            self._tenths = tenths

        return show


@contextmanager
def show_work() -> Iterator[Display]:
    """A display as long as some work goes on."""
    out = error_console()
    if not out.is_terminal:
        yield Display(out, None)
        return
    with Live(console=out, transient=True, refresh_per_second=4) as live:
        yield Display(out, live)


@contextmanager
def progress_bar(label: str) -> Iterator[Share]:
    """Shows how far a piece of work is; yields a function to be told."""
    with show_work() as display:
        yield display.share(label)


def _load(sources: list[str] | None) -> list[str] | None:
    for source in sources or ():
        load_plugin(source)
    return sources


# A command that has it need not look at it: plugins are loaded before other options are read.
PluginOption = Annotated[
    list[str] | None,
    Option(
        metavar="FILE|MODULE",
        help="Own code that registers models, aggregations or tasks; may be repeated.",
        callback=_load,
        is_eager=True,
    ),
]
ModelOption = Annotated[
    str | None,
    Option(help="A model from `adgn models`. Default: adgn.", autocompletion=complete_model),
]
RunFolder = Annotated[Path, Argument(help="A run directory.")]
RunOrModel = Annotated[Path, Argument(help="A run directory, or a model of `adgn fit`.")]
NewNodes = Annotated[
    Path | None,
    Argument(help="New nodes for a model. Default: the tables that it was fitted on."),
]
NewEdges = Annotated[Path | None, Argument(help="New edges.")]
NewGraphs = Annotated[
    Path | None, Option(help="A new table with one row per graph, where graphs are predicted.")
]
DataRootOption = Annotated[
    Path | None,
    Option(help="The data root. Default: $ADGN_DATA, else a folder in the user's cache."),
]


# In a pipe there is no width to fit into; lines must stay whole so that tools can read them.
PIPE_WIDTH = 400


def replace_unprintable() -> None:
    """Characters that standard output or error has no code for are printed as `?` from now on."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def make_folder(path: Path) -> None:
    """Makes the folder of `--out`, before the work whose results go there."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        why = f"cannot make the folder {path}: {error.strerror or error}; give another one"
        raise typer.BadParameter(why, param_hint="--out") from error


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
