"""Options and arguments that several commands have."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from adgn._util.registry import load_plugin
from adgn.cli.names import complete_model

__all__ = ["DataRootOption", "ModelOption", "PluginOption", "RunFolder"]


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
DataRootOption = Annotated[
    Path | None,
    Option(help="The data root. Default: $ADGN_DATA, else a folder in the user's cache."),
]
