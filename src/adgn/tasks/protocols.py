"""Under which conditions published numbers came about, row by row, and where ours differ.

The conditions of a row are data: on which graph, where nodes listened, on which splits, with which
features and with which early stopping. What is not known is `None`, and reports say so.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from adgn._util.suggestions import unknown_name
from adgn.data.node_datasets import NODE_DATASETS

if TYPE_CHECKING:
    from adgn.training.config import TrainConfig

Graph = Literal["whole", "reached part", "largest component"]
Heard = Literal["in", "out", "both", "undirected", "any"]
Splits = Literal["generated", "20/30 per class", "public", "geom-gcn", "in the file", "random"]
Features = Literal["as stored", "rows sum to 1"]


@dataclass(frozen=True)
class Stopping:
    """At most so many passes over the data; a run ends after `patience` epochs without a gain."""

    max_passes: int
    patience: int | None
    monitor: str
    split: Literal["train", "val", "test"] = "val"


@dataclass(frozen=True)
class Conditions:
    """What a number was measured on, and how; `None`: not known.

    Attributes:
        graph: All of it; the largest connected component; or the largest set of nodes that is
            reached along directed edges from one node.
        direction: Where nodes listened; `"any"` where the graph has no directions or is not used.
        splits: Which nodes, or graphs, trained, validated and tested.
        features: Those of the data set, or each row divided by its sum.
        stopping: When a run ended.
    """

    graph: Graph | None = "whole"
    direction: Heard | None = None
    splits: Splits | None = None
    features: Features | None = "as stored"
    stopping: Stopping | None = None


@dataclass(frozen=True)
class PublishedProtocol:
    """The conditions of a row of a published table.

    Attributes:
        table, row: Where the numbers stand, as in `adgn.tasks.published.published_tables`.
        source: Whose measurement it is.
        conditions: How it was measured.
        remarks: What else a reader must know, a sentence each.
    """

    table: str
    row: str
    source: str
    conditions: Conditions
    remarks: tuple[str, ...] = ()


_OWN = "the A-DGN paper"
_LATER = "later papers, each named with its numbers"
_YAN = "Yan et al. (2022), quoted"
_TOPPING = "Topping et al. (2022), quoted"
_ALON = "Alon and Yahav (2021), quoted"

# What the quoted rows of the heterophilic table share: the code that Yan et al. released divides
# rows of features by their sum and ends a run by the validation loss.
_QUOTED = Conditions(
    direction="out",
    splits="geom-gcn",
    features="rows sum to 1",
    stopping=Stopping(1500, 100, "loss"),
)
_UNKNOWN_RUN = replace(_QUOTED, direction=None, features=None, stopping=None)
_REWIRED = Conditions(graph="reached part", splits="random", features=None)
# The patience is counted in hundreds of passes.
_TREES = Conditions(
    direction="in", splits="generated", stopping=Stopping(50_000, 20, "accuracy", "train")
)
_RELEASED = (
    "The released code makes the graph undirected where its flag `undirected` is off and leaves "
    "it directed where it is on.",
    "Its ± is a confidence interval over the seeds, as far as is known, not a standard deviation.",
)
_NO_SCRIPT = "The code that Yan et al. released does not run this method."

# By table: its rows' source and conditions, and the rows that differ.
_Shared = tuple[str, Conditions]
_Rows = Mapping[str, tuple[str, Conditions, tuple[str, ...]]]
_TABLES: Mapping[str, tuple[_Shared, _Rows]] = {
    "graph_property_prediction": (
        (
            _OWN,
            Conditions(
                direction="any",
                splits="generated",
                stopping=Stopping(1500, 100, "log10_mse_paper"),
            ),
        ),
        {},
    ),
    "graph_property_prediction_later": (
        (_LATER, Conditions(direction="any", splits="generated")),
        {},
    ),
    "graph_property_prediction_seconds_per_epoch": (
        (_OWN, Conditions(direction="any", splits="generated")),
        {},
    ),
    "graph_benchmarks": (
        (
            _OWN,
            Conditions(
                direction="any",
                splits="20/30 per class",
                stopping=Stopping(10000, 50, "accuracy"),
            ),
        ),
        {},
    ),
    "heterophilic_benchmarks": (
        (_YAN, _QUOTED),
        {
            "GPRGNN": (
                _YAN,
                replace(_QUOTED, direction="in"),
                ("Alone of the quoted rows it was run with PyG's message passing.",),
            ),
            "H2GCN": (
                _YAN,
                replace(_UNKNOWN_RUN, direction="undirected"),
                (_NO_SCRIPT, "The method itself makes the graph undirected."),
            ),
            "Geom-GCN": (
                _YAN,
                replace(_QUOTED, direction=None),
                (
                    "Messages go along the edges and along those that files of the Geom-GCN "
                    "authors add; which directions these have is not known.",
                ),
            ),
            "GraphSAGE": (_YAN, _UNKNOWN_RUN, (_NO_SCRIPT,)),
            "MLP": (_YAN, replace(_QUOTED, direction="any"), ()),
            "FA": (_TOPPING, _REWIRED, _RELEASED),
            "DIGL": (_TOPPING, _REWIRED, _RELEASED),
            "DIGL + Undirected": (_TOPPING, replace(_REWIRED, direction="undirected"), _RELEASED),
            "SDRF": (_TOPPING, _REWIRED, _RELEASED),
            "SDRF + Undirected": (_TOPPING, replace(_REWIRED, direction="undirected"), _RELEASED),
            **dict.fromkeys(
                ("A-DGN", "A-DGN (GCN)"),
                (
                    _OWN,
                    Conditions(
                        direction="in",
                        splits="geom-gcn",
                        stopping=Stopping(1500, 100, "accuracy"),
                    ),
                    (),
                ),
            ),
        },
    ),
    "tree_neighbors_match": (
        (_ALON, _TREES),
        {"A-DGN": (_OWN, _TREES, ())},
    ),
}

# Nodes and edges of the part that is reached, by the rule of the code that Topping et al. released:
# from the smallest node that was in no part yet, all that outgoing edges lead to; the largest part.
REACHED_PARTS: Mapping[str, tuple[int, int]] = {
    "chameleon": (832, 12355),
    "squirrel": (2186, 65224),
    "actor": (4388, 21907),
    "cornell": (140, 219),
    "texas": (135, 251),
    "wisconsin": (184, 362),
}


def published_protocol(table: str, row: str) -> PublishedProtocol:
    """Under which conditions a row of a published table was measured.

    Example:
        >>> published_protocol("heterophilic_benchmarks", "GCN").conditions.stopping.monitor
        'loss'
    """
    if table not in _TABLES:
        raise unknown_name("table", table, _TABLES)
    from adgn.tasks.published import published_tables  # it imports this module

    published = published_tables()[table]["rows"]
    if row not in published:
        raise unknown_name("row", row, published)
    (source, shared), rows = _TABLES[table]
    return PublishedProtocol(table, row, *rows.get(row, (source, shared, ())))


def rows_with_conditions_of_their_own(table: str) -> tuple[str, ...]:
    """The rows of a table that do not have the conditions that its rows share.

    Example:
        >>> rows_with_conditions_of_their_own("tree_neighbors_match")
        ('A-DGN',)
    """
    if table not in _TABLES:
        raise unknown_name("table", table, _TABLES)
    return tuple(_TABLES[table][1])


_SPLITS: Mapping[str, Splits] = {
    "public": "20/30 per class",
    "per class": "20/30 per class",
    "geom-gcn": "geom-gcn",
    "file": "in the file",
}


def conditions_of(config: "TrainConfig") -> Conditions:
    """The conditions of a run with this configuration.

    Example:
        >>> from adgn.training import resolve_config
        >>> conditions_of(resolve_config("texas", {"model": {"direction": "out"}})).direction
        'out'
    """
    from adgn.nn import model_spec  # it brings torch

    task = config.task
    entry = NODE_DATASETS.get(task.name)
    transforms = getattr(task, "transform", [])
    component = getattr(task, "largest_component", False)
    hears = "direction" in model_spec(config.model.name).options.model_fields
    heard = config.model.options.get("direction", "in") if hears else "any"
    graph: Graph = "largest component" if component else "whole"
    for transform in transforms:
        if not hears:
            pass
        elif transform["name"] == "undirected" or transform.get("undirected"):
            heard = "undirected"
        elif transform["name"] == "reverse":
            heard = {"in": "out", "out": "in"}.get(heard, heard)
        if transform["name"] == "largest_component":
            graph = "reached part" if transform["kind"] == "released" else "largest component"
    splits: Splits = "generated"
    if entry is not None:
        heard = heard if entry.directed else "any"
        splits = _SPLITS[entry.splits]
        if splits == "20/30 per class" and getattr(task, "splits", "paper") == "public":
            splits = "public"
    elif task.name != "tree-neighbors-match":
        heard = "any"
    loop, stopping = config.loop, config.stopping
    return Conditions(
        graph=graph,
        direction=heard,  # type: ignore[arg-type]  # one of the model's options
        splits=splits,
        features="rows sum to 1" if getattr(task, "normalize", False) else "as stored",
        stopping=Stopping(
            loop.max_epochs * loop.passes_per_epoch,
            stopping.patience,
            stopping.monitor or "loss",
            stopping.split,
        ),
    )


GRAPH_WORDS: Mapping[Graph | None, str] = {
    "whole": "the whole graph",
    "reached part": "the largest part that is reached from one node along directed edges",
    "largest component": "the largest connected component",
    None: "not known",
}
HEARD_WORDS: Mapping[Heard | None, str] = {
    "in": "the sources of incoming edges (in)",
    "out": "the targets of outgoing edges (out)",
    "both": "both ends, with weights for each direction (both)",
    "undirected": "both ends, as one undirected graph (undirected)",
    "any": "the same in all directions",
    None: "not known",
}
SPLIT_WORDS: Mapping[Splits | None, str] = {
    "generated": "generated with the data",
    "20/30 per class": "20 train and 30 validation nodes per class, five splits",
    "public": "the public split",
    "geom-gcn": "Geom-GCN's ten fixed splits (48/32/20 %)",
    "in the file": "the ten splits of the data file",
    "random": "random ones with one fixed test set, 100 seeds",
    None: "not known",
}
FEATURE_WORDS: Mapping[Features | None, str] = {
    "as stored": "as stored",
    "rows sum to 1": "each row divided by its sum",
    None: "not known",
}


_MONITORS = {"log10_mse_paper": "error"}


def stopping_words(stopping: Stopping | None) -> str:
    """Early stopping in words.

    Example:
        >>> stopping_words(Stopping(1500, 100, "loss"))
        'at most 1500 epochs, patience 100 on the validation loss'
    """
    if stopping is None:
        return "not known"
    words = f"at most {stopping.max_passes} epochs"
    if stopping.patience is None:
        return f"{words}, no early stopping"
    monitor = _MONITORS.get(stopping.monitor, stopping.monitor.replace("_", " "))
    split = {"val": "validation"}.get(stopping.split, stopping.split)
    return f"{words}, patience {stopping.patience} on the {split} {monitor}"


def direction_sentence(published: Conditions | None, measured: Conditions) -> str | None:
    """Where nodes of a measured row listen, where that is a choice and not told as a difference.

    Example:
        >>> direction_sentence(Conditions(direction="out"), Conditions(direction="out"))
        'Nodes hear the targets of outgoing edges (out), as published.'
    """
    if measured.direction == "any":
        return None
    heard = f"Nodes hear {HEARD_WORDS[measured.direction]}"
    if published is None:
        return f"{heard}; not in the paper."
    return f"{heard}, as published." if published.direction == measured.direction else None


def protocol_sentence(protocol: PublishedProtocol) -> str:
    """The conditions of a published row in one sentence, for rows that are quoted.

    Example:
        >>> protocol_sentence(published_protocol("graph_benchmarks", "GCN"))
        'From the A-DGN paper; graph: the whole graph; direction: the same in all directions; ...'
    """
    words = conditions_words(protocol.conditions)
    return f"From {protocol.source}; {'; '.join(f'{k}: {v}' for k, v in words.items())}."


def conditions_words(conditions: Conditions) -> dict[str, str]:
    """All conditions in words, by what they are about."""
    return {
        "graph": GRAPH_WORDS[conditions.graph],
        "direction": HEARD_WORDS[conditions.direction],
        "splits": SPLIT_WORDS[conditions.splits],
        "features": FEATURE_WORDS[conditions.features],
        "stopping": stopping_words(conditions.stopping),
    }


def published_rows(table: str, rows: Iterable[str]) -> list[tuple[list[str], PublishedProtocol]]:
    """The rows of a table that share source, conditions and remarks, together.

    Example:
        >>> [rows for rows, _ in published_rows("tree_neighbors_match", ["GCN", "GIN", "A-DGN"])]
        [['GCN', 'GIN'], ['A-DGN']]
    """
    found: dict[PublishedProtocol, list[str]] = {}
    for row in rows:
        found.setdefault(replace(published_protocol(table, row), row=""), []).append(row)
    return [(rows, protocol) for protocol, rows in found.items()]


def differences(
    published: Conditions, measured: Conditions, dataset: str | None = None
) -> tuple[str, ...]:
    """Where two measurements differ, a sentence each, in plain words.

    What is not known of the published one is told too, where it matters for the data: early
    stopping and directions of a graph that has none are not.

    Args:
        published: Of the published number.
        measured: Of ours.
        dataset: The data set, for the sizes of its parts.

    Example:
        >>> differences(Conditions(direction="out"), Conditions(direction="in"))
        ('Direction: published, the targets of outgoing edges (out); here, the sources of incoming
        edges (in).',)
    """
    found = []
    if published.graph != measured.graph:
        there = GRAPH_WORDS[published.graph]
        if published.graph == "reached part" and dataset is not None and dataset in REACHED_PARTS:
            nodes, _ = REACHED_PARTS[dataset]
            there += f", {nodes} of {NODE_DATASETS[dataset].nodes} nodes"
        found.append(("Graph", there, GRAPH_WORDS[measured.graph]))
    if published.direction != measured.direction and measured.direction != "any":
        found.append(
            ("Direction", HEARD_WORDS[published.direction], HEARD_WORDS[measured.direction])
        )
    if published.splits != measured.splits:
        found.append(("Splits", SPLIT_WORDS[published.splits], SPLIT_WORDS[measured.splits]))
    if published.features != measured.features:
        words = FEATURE_WORDS[published.features], FEATURE_WORDS[measured.features]
        found.append(("Features", *words))
    if published.stopping is not None and published.stopping != measured.stopping:
        words = stopping_words(published.stopping), stopping_words(measured.stopping)
        found.append(("Stopping", *words))
    return tuple(f"{what}: published, {there}; here, {here}." for what, there, here in found)
