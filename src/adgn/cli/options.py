"""Options and arguments that several commands have."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from adgn._util.registry import load_plugin
from adgn.cli.names import complete_model

__all__ = [
    "DataRootOption",
    "ModelOption",
    "NewEdges",
    "NewGraphs",
    "NewNodes",
    "PluginOption",
    "RunFolder",
    "RunOrModel",
]


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
