"""The option `--plugin`: own models, aggregations and tasks on the command line."""

from typing import Annotated

import typer

from adgn._util.plugins import load_plugin

__all__ = ["PluginOption"]


def _load(sources: list[str] | None) -> list[str] | None:
    for source in sources or ():
        load_plugin(source)
    return sources


# A command that has it need not look at it: plugins are loaded before other options are read.
PluginOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="FILE|MODULE",
        help="Own code that registers models, aggregations or tasks; may be repeated.",
        callback=_load,
        is_eager=True,
        show_default=False,
    ),
]
