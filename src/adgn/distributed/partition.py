"""Which rank owns which node: by METIS, or in one stream over the nodes."""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import scipy.sparse
import scipy.sparse.csgraph
import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from adgn._util.files import write_file
from adgn._util.suggestions import unknown_name
from adgn.distributed.errors import RankError
from adgn.distributed.metis import has_metis, metis

Method = Literal["auto", "metis", "ldg", "blocks"]
METHODS: tuple[Method, ...] = ("auto", "metis", "ldg", "blocks")
# What a node costs besides its edges, in edges: products with [d, d] weights, forward and back,
# take about as much time as 3/4 d edges (`gather_cost` in parts.hpp).
NODE_COST = 32
_SLACK = 1.05  # how much a rank may have above its share
_ROUNDS = 40
_GRAPH, _PARTS = "graph", "parts"


@dataclass(frozen=True)
class PartitionQuality:
    """What a partition costs.

    Attributes:
        parts: How many ranks share the graph.
        cut: Edges between ranks, of all edges.
        cut_share: Their share.
        halo: Rows that come in for one product, at each rank.
        nodes, entries: Nodes and edges of each rank.
        balance: The largest work of a rank, in units of the mean; a node counts as 32 edges.
    """

    parts: int
    cut: int
    cut_share: float
    halo: tuple[int, ...]
    nodes: tuple[int, ...]
    entries: tuple[int, ...]
    balance: float

    def bytes_per_product(self, channels: int) -> int:
        """What all ranks together receive for one product with states of so many channels."""
        return sum(self.halo) * channels * 4  # float32

    def __str__(self) -> str:
        return (
            f"{self.parts} parts: {self.cut:,} edges cut ({100 * self.cut_share:.1f} %), halo of "
            f"{max(self.halo):,} rows at most, largest part {self.balance:.2f} times the mean"
        )


def partition(
    edge_index: Tensor, num_nodes: int, parts: int, method: Method = "auto", seed: int = 0
) -> Tensor:
    """The rank of each node, `[N]`, each rank with about as much work.

    A node's work is that of its edges and, for the products with the weights, of 32 more.

    Args:
        edge_index: `[2, E]`.
        num_nodes: The number of nodes.
        parts: How many ranks.
        method: `"metis"`: by METIS, which `pymetis` brings (`pip install pymetis`); `"ldg"`: linear
            deterministic greedy, in one pass over the nodes in breadth-first order, each going
            where most of its neighbours are, unless that rank is full, and then rounds in which
            nodes move to where more of their neighbours are; `"blocks"`: numbers in
            stretches, for graphs whose order means something, which needs little memory and time;
            `"auto"`: METIS where it is installed, else LDG.
        seed: Of METIS.

    Example:
        >>> path = torch.tensor([[0, 1, 2], [1, 2, 3]])
        >>> partition(path, 4, 2, "ldg").tolist()
        [0, 0, 1, 1]
    """
    if method not in METHODS:
        raise unknown_name("method", method, METHODS)
    if parts < 1:
        raise ValueError(f"parts={parts} is not valid; give at least 1")
    if parts > num_nodes:
        raise ValueError(
            f"{parts} workers cannot share a graph of {num_nodes} nodes; take {num_nodes} at most"
        )
    if parts == 1:
        return torch.zeros(num_nodes, dtype=torch.long)
    if method == "auto":
        method = "metis" if has_metis() else "ldg"
    if method == "blocks":
        work = _work(np.bincount(edge_index[1].cpu().numpy(), minlength=num_nodes))
        owner = np.minimum((np.cumsum(work) - work / 2) * parts // work.sum(), parts - 1)
    else:
        graph = _neighbours(edge_index, num_nodes)
        if method == "metis":
            owner = metis(graph.indptr, graph.indices, parts, seed, NODE_COST)
        else:
            owner = _refined(graph, _ldg(graph, parts), parts)
    return _no_part_empty(torch.from_numpy(np.asarray(owner, dtype=np.int64)), parts)


def _work(degree: np.ndarray) -> np.ndarray:
    """What each node costs, in edges."""
    return degree + float(NODE_COST)


def _neighbours(edge_index: Tensor, num_nodes: int) -> scipy.sparse.csr_matrix:
    """The graph without directions, self loops and weights."""
    source, target = edge_index.cpu().numpy()
    apart = source != target
    ones = np.ones(int(apart.sum()), dtype=np.int8)
    matrix = scipy.sparse.csr_matrix(
        (ones, (target[apart], source[apart])), shape=(num_nodes, num_nodes)
    )
    both = (matrix + matrix.T).tocsr()
    both.data[:] = 1
    return both


def _ldg(graph: scipy.sparse.csr_matrix, parts: int) -> np.ndarray:
    pointers, neighbours = graph.indptr, graph.indices
    work = _work(np.diff(pointers))
    capacity = _SLACK * work.sum() / parts
    owner = np.full(graph.shape[0], -1, dtype=np.int64)
    load = np.zeros(parts)
    for node in _breadth_first(graph):
        known = owner[neighbours[pointers[node] : pointers[node + 1]]]
        there = np.bincount(known[known >= 0], minlength=parts)
        score = there * (1.0 - load / capacity)
        full = load + work[node] > capacity
        if full.all():
            choice = int(load.argmin())
        else:
            score[full] = -np.inf
            best = score.max()
            # Of equals the fullest: a part grows until it is full, and stays in one piece.
            choice = int(np.where(score == best, load, -1.0).argmax())
        owner[node] = choice
        load[choice] += work[node]
    return owner


def _refined(graph: scipy.sparse.csr_matrix, owner: np.ndarray, parts: int) -> np.ndarray:
    """Moves nodes to ranks that have more of their neighbours and have room, in some rounds."""
    nodes = np.arange(len(owner))
    work = _work(np.diff(graph.indptr))
    capacity = _SLACK * work.sum() / parts
    generator = np.random.default_rng(0)
    counted = graph.astype(np.float32)
    for _ in range(_ROUNDS):
        member = np.zeros((len(owner), parts), dtype=np.float32)
        member[nodes, owner] = 1.0
        there = counted @ member
        gain = there - there[nodes, owner][:, None]
        # Half of the nodes: two neighbours that change places gain nothing.
        movable = generator.random(len(owner)) < 0.5
        moved = 0
        for part in range(parts):
            chosen = np.flatnonzero(movable & (gain[:, part] > 0) & (owner != part))
            chosen = chosen[np.argsort(-gain[chosen, part], kind="stable")]
            room = capacity - work[owner == part].sum()
            chosen = chosen[np.cumsum(work[chosen]) <= room]
            owner[chosen], movable[chosen] = part, False
            moved += len(chosen)
        if not moved:
            break
    return owner


def _breadth_first(graph: scipy.sparse.csr_matrix) -> np.ndarray:
    """All nodes, component by component."""
    count, label = scipy.sparse.csgraph.connected_components(graph, directed=False)
    starts = np.full(count, -1, dtype=np.int64)
    order = np.arange(graph.shape[0])[::-1]
    starts[label[order]] = order  # the first node of each
    small = np.bincount(label, minlength=count) == 1
    pieces = [
        scipy.sparse.csgraph.breadth_first_order(
            graph, int(start), directed=False, return_predecessors=False
        )
        for start in starts[~small]
    ]
    return np.concatenate([*pieces, starts[small]]).astype(np.int64)


def _no_part_empty(owner: Tensor, parts: int) -> Tensor:
    """Gives each rank without a node one of the largest rank's."""
    for part in range(parts):
        if not bool((owner == part).any()):
            largest = int(torch.bincount(owner, minlength=parts).argmax())
            owner[(owner == largest).nonzero()[-1]] = part
    return owner


def partition_quality(edge_index: Tensor, owner: Tensor, parts: int) -> PartitionQuality:
    """What a partition costs for products with a graph's operator.

    Example:
        >>> path = torch.tensor([[0, 1, 2], [1, 2, 3]])
        >>> print(partition_quality(path, torch.tensor([0, 0, 1, 1]), 2))
        2 parts: 1 edges cut (33.3 %), halo of 1 rows at most, largest part 1.01 times the mean
    """
    source, target = edge_index.long()
    receiver = owner[target]
    cut = owner[source] != receiver
    pairs = torch.unique(receiver[cut] * owner.numel() + source[cut])
    halo = torch.bincount(pairs // max(owner.numel(), 1), minlength=parts)
    nodes = torch.bincount(owner, minlength=parts)
    entries = torch.bincount(receiver, minlength=parts)
    work = (NODE_COST * nodes + entries).double()
    count = int(cut.sum())
    return PartitionQuality(
        parts=parts,
        cut=count,
        cut_share=count / max(1, source.numel()),
        halo=tuple(halo.tolist()),
        nodes=tuple(nodes.tolist()),
        entries=tuple(entries.tolist()),
        balance=float(work.max() / work.mean()),
    )


def graph_digest(edge_index: Tensor, num_nodes: int) -> str:
    """A digest of a graph: its number of nodes and its edges, in their order."""
    data = np.ascontiguousarray(edge_index.cpu().numpy().astype(np.int64, copy=False))
    hashed = hashlib.blake2b(data.data, digest_size=16)
    hashed.update(str(num_nodes).encode())
    return hashed.hexdigest()


def partition_bytes(owner: Tensor, edge_index: Tensor, parts: int) -> bytes:
    """The content of a file that says which rank owns which node, and of which graph."""
    about = {_GRAPH: graph_digest(edge_index, owner.numel()), _PARTS: str(parts)}
    return save({"owner": owner.to(torch.int32)}, about)


def write_partition(path: Path, owner: Tensor, edge_index: Tensor, parts: int) -> None:
    """Writes which rank owns which node, and of which graph."""
    write_file(path, partition_bytes(owner, edge_index, parts))


def read_partition(path: Path, edge_index: Tensor, num_nodes: int, parts: int) -> Tensor:
    """The rank of each node from a file, which must be of this graph and this number of ranks."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise RankError(f"cannot read the partition {path}: {error.strerror or error}") from error
    try:
        owner = load(data)["owner"].long()
        header = data[8 : 8 + int.from_bytes(data[:8], "little")]
        about = json.loads(header)["__metadata__"]
        digest, written = about[_GRAPH], int(about[_PARTS])
    except (SafetensorError, KeyError, ValueError) as error:
        raise RankError(
            f"{path} is no partition ({error}); make one with `adgn partition`"
        ) from error
    if digest != graph_digest(edge_index, num_nodes) or owner.numel() != num_nodes:
        raise RankError(
            f"{path} is the partition of another graph ({owner.numel():,} nodes; this one has "
            f"{num_nodes:,} nodes and {edge_index.size(1):,} edges); make one of this graph"
        )
    if written != parts:
        raise RankError(
            f"{path} has {written} parts, and there are {parts} ranks; take --workers {written}, "
            "or make another partition"
        )
    if bool((wrong := (owner < 0) | (owner >= parts)).any()):
        node = int(wrong.nonzero()[0])
        raise RankError(
            f"{path} gives node {node} to rank {int(owner[node])}, and ranks go from 0 to "
            f"{parts - 1}; make the partition anew with `adgn partition`"
        )
    return owner
