"""The cases: what is measured in each, and what is aimed at."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from adgn._util.suggestions import unknown_name
from adgn.bench.workloads import COMPILED, NETWORKS, Workload

ALL_WAYS = ("adgn", "torch", "pyg", "pyg-csr", "pyg-csr-sparse", *COMPILED)
OURS = ("adgn", "checkpoint")
LARGEST_EDGES = 40_000_000


@dataclass(frozen=True)
class Case:
    """A case: its workloads, those of a quick run, and the ways that are compared.

    `needs_mb` says of ways that need much memory how much must be available for the first workload.
    Whether there is enough for a later one follows from the one before it.
    """

    summary: str
    points: tuple[Workload, ...]  # from small to large
    quick: tuple[Workload, ...]
    ways: tuple[str, ...] = ALL_WAYS
    needs_mb: Mapping[str, float] = field(default_factory=dict)
    by_default: bool = True  # whether it runs when no case is named
    quick_memory: bool = False  # whether a quick run measures memory too


@dataclass(frozen=True)
class Target:
    """How many times the time or memory of this package PyG is to need in a case, at least."""

    case: str
    quantity: Literal["time", "memory"]
    documented: float  # PyG as documented
    best: float  # PyG at its best: each of its other ways


@dataclass(frozen=True)
class Limit:
    """How many times the time of A-DGN with Euler's steps another network may take, at most."""

    case: str
    way: str  # one of `adgn.bench.workloads.NETWORKS`
    most: float


def _random(*edges: int) -> tuple[Workload, ...]:
    return tuple(Workload("random", 20, 64, "gcn", size) for size in edges)


def _nodes(data: str, *layers: int, phi: Literal["gcn", "sum"] = "gcn") -> tuple[Workload, ...]:
    return tuple(Workload(data, depth, 64, phi) for depth in layers)


def _predictions(graphs: int, layers: int) -> tuple[Workload, ...]:
    """The same workloads as for training, from many small graphs to few nodes."""
    trained = (
        Workload("property", 20, 30, "sum", graphs),
        *(_nodes("physics", 10) + _nodes("computers", layers) + _nodes("texas", 10)),
    )
    return tuple(replace(workload, predict=True) for workload in trained)


CASES: Mapping[str, Case] = {
    "property": Case(
        "graph property prediction, one epoch in batches of 512 graphs",
        (Workload("property", 20, 30, "sum", 5120),),
        (Workload("property", 20, 30, "sum", 1024),),
    ),
    "fields": Case(
        "the same epoch by other integrators and fields, next to A-DGN with Euler's steps; PyG has "
        "none of them",
        (Workload("property", 20, 30, "sum", 5120),),
        (Workload("property", 20, 30, "sum", 1024),),
        ways=("adgn", *NETWORKS),
    ),
    "prediction": Case(
        "the outputs of all nodes without gradients, on data of the cases above and below",
        _predictions(5120, 30),
        _predictions(1024, 10),
    ),
    "physics": Case(
        "Coauthor Physics: very sparse features",
        _nodes("physics", 10),
        _nodes("physics", 10),
        quick_memory=True,
    ),
    "computers": Case(
        "Amazon Computers: many layers, dense features",
        _nodes("computers", 30),
        _nodes("computers", 10),
        quick_memory=True,
    ),
    "pubmed": Case(
        "PubMed: sum aggregation on one graph",
        _nodes("pubmed", 20, phi="sum"),
        _nodes("pubmed", 20, phi="sum"),
    ),
    "pubmed-gcn": Case(
        "PubMed: the same with GCN aggregation",
        _nodes("pubmed", 20),
        _nodes("pubmed", 20),
    ),
    "texas": Case(
        "Texas: 183 nodes, where the cost of calls decides",
        _nodes("texas", 20),
        _nodes("texas", 20),
    ),
    "scale": Case(
        "random graphs from small to large",
        _random(10_000, 100_000, 1_000_000, 10_000_000, LARGEST_EDGES),
        _random(10_000, 100_000),
        ways=("adgn", "torch", "pyg", "pyg-csr"),
        quick_memory=True,
    ),
    "depth": Case(
        "Coauthor Physics from 1 to 1000 layers",
        _nodes("physics", 1, 3, 10, 30, 100, 300, 1000),
        _nodes("physics", 1, 20),
        ways=OURS,
        quick_memory=True,
    ),
    "large": Case(
        "a random graph of 2.4 million nodes and 6·10⁷ directed edges",
        _random(60_000_000),
        _random(60_000_000),
        ways=OURS,
        needs_mb={"adgn": 20_000, "checkpoint": 12_000},
        by_default=False,
        quick_memory=True,
    ),
}

TARGETS = (
    Target("property", "time", 7, 7),
    Target("physics", "time", 12, 5),
    Target("computers", "time", 20, 6),
    Target("pubmed", "time", 4, 4),
    Target("pubmed-gcn", "time", 4, 4),
    Target("texas", "time", 3, 3),
    Target("physics", "memory", 3, 2),
    Target("computers", "memory", 2, 1.5),
)
LIMITS = (Limit("fields", "rk4", 4.5), Limit("fields", "swan", 2.2), Limit("fields", "sonar", 1.3))


def choose_cases(names: list[str], *, large: bool = False) -> list[str]:
    """The named cases, or all that run by default; an unknown name is an error.

    Example:
        >>> choose_cases(["texas", "property"])
        ['texas', 'property']
        >>> choose_cases(["physic"])
        Traceback (most recent call last):
        ValueError: case='physic' is not known. Did you mean 'physics'? ...
    """
    for name in names:
        if name not in CASES:
            raise unknown_name("case", name, CASES)
    chosen = list(dict.fromkeys(names or [name for name in CASES if CASES[name].by_default]))
    return chosen + ["large"] * (large and "large" not in chosen)
