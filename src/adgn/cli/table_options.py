"""Options that say how the tables of a user's own graph are read."""

from pathlib import Path
from typing import Annotated

from typer import Option

IdColumn = Annotated[str | None, Option(metavar="COLUMN", help="The ids of nodes.")]
SourceColumn = Annotated[str | None, Option(metavar="COLUMN", help="Where an edge begins.")]
EndColumn = Annotated[str | None, Option(metavar="COLUMN", help="Where an edge ends.")]
WeightColumn = Annotated[str | None, Option(metavar="COLUMN", help="The weights of edges.")]
DirectedFlag = Annotated[
    bool | None,
    Option("--directed/--undirected", help="Whether edges have a direction."),
]
IgnoredColumns = Annotated[
    list[str] | None, Option(metavar="COLUMN", help="Not used; may be repeated.")
]
CategoryColumns = Annotated[
    list[str] | None,
    Option(metavar="COLUMN", help="Its numbers are names of categories; may be repeated."),
]
GraphColumn = Annotated[
    str | None, Option(metavar="COLUMN", help="The graph of each node, where there are many.")
]
GraphsTable = Annotated[
    Path | None, Option(help="A table with one row per graph, which has the target.")
]
SplitColumn = Annotated[str | None, Option(metavar="COLUMN", help="Has train, valid and test.")]
