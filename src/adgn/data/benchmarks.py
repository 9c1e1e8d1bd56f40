"""The node-classification data sets: what each is, where it comes from and what is wrong with it.

A new data set is one entry here and the digests of its raw files in `SHA256SUMS`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from adgn._util.suggestions import unknown_name

__all__ = ["BENCHMARKS", "NodeBenchmark", "find_benchmark"]


@dataclass(frozen=True)
class NodeBenchmark:
    """One graph whose nodes are classified.

    Args:
        name: how this package calls it.
        title: how papers call it.
        pyg_class: the class of `torch_geometric.datasets` that knows its files; also the name of
            its folder below the data root.
        arguments: for that class, besides `root`.
        nodes, edges, features, classes: what must come out; edges are counted as PyG gives them
            (both directions of an undirected edge).
        splits: what splits come with it.
        in_paper_table: whether these counts stand in the paper's table of statistics.
        reads: `"pyg"`: PyG reads the raw files; `"npz"`: they hold CSR arrays, which PyG would
            make dense, so they are read here.
        defects: what a user must know before trusting a result.
    """

    name: str
    title: str
    pyg_class: str
    arguments: Mapping[str, str]
    nodes: int
    edges: int
    features: int
    classes: int
    splits: Literal["public", "geom-gcn", "per class"]
    in_paper_table: bool = False
    reads: Literal["pyg", "npz"] = "pyg"
    defects: tuple[str, ...] = field(default=())
    also_called: tuple[str, ...] = field(default=())


_DUPLICATES = (
    "contains duplicated nodes (same features and neighbours) that leak from train to test "
    "(Platonov et al. 2023, https://arxiv.org/abs/2302.11640)"
)
_SWAPPED = (
    "Cornell's upstream file of features and labels is the same as Texas's, byte for byte: its "
    "features and labels are Texas's, only the edges are Cornell's"
)
_SINGLE = "one of the five classes has a single node"
_DIRECTED = "edges are directed and some are self loops; they are left as they are"
_BINARY = "features are counts in the raw file; as in PyG, every positive one becomes 1"

_ENTRIES = (
    NodeBenchmark(
        "pubmed",
        "PubMed",
        "Planetoid",
        {"name": "PubMed"},
        19717,
        88648,
        500,
        3,
        "public",
        in_paper_table=True,
        defects=("features are TF-IDF weights, not the 0/1 values the paper speaks of",),
    ),
    NodeBenchmark("cora", "Cora", "Planetoid", {"name": "Cora"}, 2708, 10556, 1433, 7, "public"),
    NodeBenchmark(
        "cs",
        "Coauthor CS",
        "Coauthor",
        {"name": "CS"},
        18333,
        163788,
        6805,
        15,
        "per class",
        in_paper_table=True,
        reads="npz",
        defects=(_BINARY,),
        also_called=("coauthor-cs",),
    ),
    NodeBenchmark(
        "physics",
        "Coauthor Physics",
        "Coauthor",
        {"name": "Physics"},
        34493,
        495924,
        8415,
        5,
        "per class",
        in_paper_table=True,
        reads="npz",
        defects=(_BINARY,),
        also_called=("coauthor-physics",),
    ),
    NodeBenchmark(
        "computers",
        "Amazon Computers",
        "Amazon",
        {"name": "Computers"},
        13752,
        491722,
        767,
        10,
        "per class",
        in_paper_table=True,
        reads="npz",
        defects=("some nodes have no edge",),
        also_called=("amazon-computers", "computer"),
    ),
    NodeBenchmark(
        "photo",
        "Amazon Photo",
        "Amazon",
        {"name": "Photo"},
        7650,
        238162,
        745,
        8,
        "per class",
        in_paper_table=True,
        reads="npz",
        defects=("some nodes have no edge",),
        also_called=("amazon-photo",),
    ),
    NodeBenchmark(
        "chameleon",
        "Chameleon",
        "WikipediaNetwork",
        {"name": "chameleon"},
        2277,
        36101,
        2325,
        5,
        "geom-gcn",
        defects=(_DUPLICATES, _DIRECTED),
    ),
    NodeBenchmark(
        "squirrel",
        "Squirrel",
        "WikipediaNetwork",
        {"name": "squirrel"},
        5201,
        217073,
        2089,
        5,
        "geom-gcn",
        defects=(_DUPLICATES, _DIRECTED),
    ),
    NodeBenchmark(
        "actor",
        "Actor",
        "Actor",
        {},
        7600,
        30019,
        932,
        5,
        "geom-gcn",
        defects=(_DIRECTED,),
        also_called=("film",),
    ),
    NodeBenchmark(
        "cornell",
        "Cornell",
        "WebKB",
        {"name": "cornell"},
        183,
        298,
        1703,
        5,
        "geom-gcn",
        defects=(_SWAPPED, _SINGLE, _DIRECTED),
    ),
    NodeBenchmark(
        "texas",
        "Texas",
        "WebKB",
        {"name": "texas"},
        183,
        325,
        1703,
        5,
        "geom-gcn",
        defects=(_SINGLE, _DIRECTED),
    ),
    NodeBenchmark(
        "wisconsin",
        "Wisconsin",
        "WebKB",
        {"name": "wisconsin"},
        251,
        515,
        1703,
        5,
        "geom-gcn",
        defects=(_DIRECTED,),
    ),
)

BENCHMARKS: Mapping[str, NodeBenchmark] = MappingProxyType({e.name: e for e in _ENTRIES})


def find_benchmark(name: str) -> NodeBenchmark:
    """The entry of this name; a name it has elsewhere leads to an error that tells the right one.

    Example:
        >>> find_benchmark("physics").nodes
        34493
        >>> find_benchmark("Coauthor-CS")
        Traceback (most recent call last):
        ValueError: name='Coauthor-CS' is not known. Did you mean 'cs'? ...
    """
    if name not in BENCHMARKS:
        raise unknown_dataset(name, BENCHMARKS)
    return BENCHMARKS[name]


def unknown_dataset(name: str, valid: Iterable[str]) -> ValueError:
    """The error for a data set that is not known, which also knows the names used elsewhere."""
    aliases = {other: entry.name for entry in _ENTRIES for other in entry.also_called}
    return unknown_name("name", name, valid, aliases)
