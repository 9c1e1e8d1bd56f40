"""The node-classification data sets: what each is, where it comes from and what is wrong with it.

A new data set is one entry here and the digests of its raw files in `SHA256SUMS`. One that users
supply has no digests: its file is checked by what is in it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, Literal

from adgn._util.suggestions import unknown_name


@dataclass(frozen=True)
class NodeDataset:
    """One graph whose nodes are classified.

    Args:
        name: how this package calls it.
        title: how papers call it.
        pyg_name: how its class in PyG calls it; empty where the class takes no name.
        nodes, edges, features, classes: what must come out; edges are counted as PyG gives them
            (both directions of an undirected edge).
        pyg_class: the class of `torch_geometric.datasets` that knows its files; also the name of
            its folder below the data root.
        splits: what splits come with it; `"file"`: ten in its own file.
        in_paper_table: whether these counts stand in the paper's table of statistics.
        reads: `"pyg"`: PyG reads the raw files; `"npz"`: they hold CSR arrays, which PyG would
            make dense, so they are read here.
        defects: what a user must know before trusting a result.
        also_called: another name it has elsewhere, besides its title in small letters.
        directed: whether its edges have a direction.
        file: of data sets that users put into the data root themselves, the file below it; empty
            for those that PyG knows.
        origin: where such a file is to be had.
        checked: which of the counts are compared with the file.
    """

    name: str
    title: str
    pyg_name: str
    nodes: int
    edges: int
    features: int
    classes: int
    pyg_class: str
    splits: Literal["public", "geom-gcn", "per class", "file"]
    in_paper_table: bool = False
    reads: Literal["pyg", "npz"] = "pyg"
    defects: tuple[str, ...] = ()
    also_called: str = ""
    directed: bool = False
    file: str = ""
    origin: str = ""
    checked: tuple[str, ...] = ("nodes", "edges", "features", "classes")

    @property
    def folder(self) -> str:
        """Where its files are below the data root."""
        return self.file or f"{self.pyg_class}/{self.pyg_name}".rstrip("/") + "/"


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
_ISOLATED = "some nodes have no edge"
_MADE_UNDIRECTED = "its authors made the edges undirected; the file has each of them once"
_TF_IDF = "features are TF-IDF weights, not the 0/1 values the paper speaks of"

_planetoid = partial(NodeDataset, pyg_class="Planetoid", splits="public")
_npz = partial(NodeDataset, splits="per class", in_paper_table=True, reads="npz")
_coauthor = partial(_npz, pyg_class="Coauthor", defects=(_BINARY,))
_amazon = partial(_npz, pyg_class="Amazon", defects=(_ISOLATED,))
_geom_gcn = partial(NodeDataset, splits="geom-gcn", defects=(_DIRECTED,), directed=True)
_wikipedia = partial(_geom_gcn, pyg_class="WikipediaNetwork", defects=(_DUPLICATES, _DIRECTED))
_webkb = partial(_geom_gcn, pyg_class="WebKB")


def _supplied(
    name: str, title: str, file: str, counts: tuple[int, int, int], **options: Any
) -> NodeDataset:
    """A data set whose file users put into the data root: nodes, edges and features."""
    nodes, edges, features = counts
    place = f"heterophilous-graphs/{file}"
    return NodeDataset(
        name, title, "", nodes, edges, features, 5, "", "file", file=place, **options
    )


# The edges of these files are not counted: each is what its authors made it.
_filtered = partial(
    _supplied,
    origin="the folder `data` of the repository yandex-research/heterophilous-graphs on GitHub",
    checked=("nodes", "features", "classes"),
)

_ENTRIES = (
    _planetoid(
        "pubmed", "PubMed", "PubMed", 19717, 88648, 500, 3, in_paper_table=True, defects=(_TF_IDF,)
    ),
    _planetoid("cora", "Cora", "Cora", 2708, 10556, 1433, 7),
    _coauthor("cs", "Coauthor CS", "CS", 18333, 163788, 6805, 15),
    _coauthor("physics", "Coauthor Physics", "Physics", 34493, 495924, 8415, 5),
    _amazon(
        "computers", "Amazon Computers", "Computers", 13752, 491722, 767, 10, also_called="computer"
    ),
    _amazon("photo", "Amazon Photo", "Photo", 7650, 238162, 745, 8),
    _wikipedia("chameleon", "Chameleon", "chameleon", 2277, 36101, 2325, 5),
    _wikipedia("squirrel", "Squirrel", "squirrel", 5201, 217073, 2089, 5),
    _geom_gcn("actor", "Actor", "", 7600, 30019, 932, 5, pyg_class="Actor", also_called="film"),
    _webkb(
        "cornell", "Cornell", "cornell", 183, 298, 1703, 5, defects=(_SWAPPED, _SINGLE, _DIRECTED)
    ),
    _webkb("texas", "Texas", "texas", 183, 325, 1703, 5, defects=(_SINGLE, _DIRECTED)),
    _webkb("wisconsin", "Wisconsin", "wisconsin", 251, 515, 1703, 5),
    _filtered(
        "chameleon-filtered",
        "Chameleon (filtered)",
        "chameleon_filtered.npz",
        (890, 17708, 2325),
        defects=(_MADE_UNDIRECTED,),
    ),
    _filtered(
        "squirrel-filtered",
        "Squirrel (filtered)",
        "squirrel_filtered.npz",
        (2223, 93996, 2089),
        defects=(_MADE_UNDIRECTED,),
    ),
    _filtered(
        "chameleon-filtered-directed",
        "Chameleon (filtered, directed)",
        "chameleon_filtered_directed.npz",
        (890, 13584, 2325),
        directed=True,
    ),
    _filtered(
        "squirrel-filtered-directed",
        "Squirrel (filtered, directed)",
        "squirrel_filtered_directed.npz",
        (2223, 65718, 2089),
        directed=True,
    ),
    _supplied(
        "cornell-fixed",
        "Cornell (its own features)",
        "cornell_fixed.npz",
        (183, 298, 1703),
        directed=True,
        origin="the WebKB data of the LINQS group (`cornell.content`, `cornell.cites`), brought "
        "into the arrays that docs/data.md names",
        checked=("features", "classes"),
    ),
)

NODE_DATASETS: Mapping[str, NodeDataset] = MappingProxyType({e.name: e for e in _ENTRIES})


# Those that PyG knows and can download; the others are there where users put a file.
PUBLIC_DATASETS: Mapping[str, NodeDataset] = MappingProxyType(
    {e.name: e for e in _ENTRIES if not e.file}
)


def find_node_dataset(name: str) -> NodeDataset:
    """The entry of this name; a name it has elsewhere leads to an error that tells the right one.

    Example:
        >>> find_node_dataset("physics").nodes
        34493
        >>> find_node_dataset("Coauthor-CS")
        Traceback (most recent call last):
        ValueError: name='Coauthor-CS' is not known. Did you mean 'cs'? ...
    """
    if name not in NODE_DATASETS:
        raise unknown_dataset(name, NODE_DATASETS)
    return NODE_DATASETS[name]


def unknown_dataset(name: str, valid: Iterable[str]) -> ValueError:
    """The error for a data set that is not known, which also knows the names used elsewhere."""
    aliases = {entry.title.lower().replace(" ", "-"): entry.name for entry in _ENTRIES}
    aliases |= {entry.also_called: entry.name for entry in _ENTRIES if entry.also_called}
    return unknown_name("name", name, valid, aliases)
