"""What each of several ranks has of the data, and how outputs come together again."""

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from adgn.data.features import select_rows
from adgn.distributed.errors import RankError
from adgn.distributed.exchange import RowExchange
from adgn.distributed.partition import (
    METHODS,
    Method,
    partition,
    partition_bytes,
    read_partition,
)
from adgn.distributed.ranks import ProcessRanks, Ranks
from adgn.graph import GraphPart, PartitionedGraph, cut_part, weighted_edges
from adgn.nn import GraphNetwork
from adgn.nn.integrators import Integrator
from adgn.nn.integrators.adaptive import Adaptive
from adgn.nn.integrators.midpoint import ImplicitMidpoint
from adgn.nn.norms import PairNorm
from adgn.training.batches import BatchSource, FullGraph, LabelledBatch, PackedBatches, Split
from adgn.training.block_batches import BlockBatches
from adgn.training.tasks import TaskData

# Methods that apply the graph's operator to states and do all else node by node; a test trains each
# of them on a partitioned graph and in one process.
PARTITIONED_MODELS = frozenset(
    {"adgn", "appnp", "cgnn", "cheb", "dagnn", "dgc", "egnn", "gcn", "gcnii", "gde", "ggnn"}
    | {"gin", "gprgnn", "graphcon", "graphsage", "mlp", "mpssm", "phdgn", "sgc", "sonar"}
    | {"stable-cheb", "swan"}
)


def gathered(ranks: Ranks, output: Tensor, batch: LabelledBatch) -> tuple[Tensor, LabelledBatch]:
    """The scored rows of all ranks, in the order of ranks, on each of them; `x` stays its own.

    Shares in the loss are counted anew: a rank's shares add up to one, or to its part of a batch
    whose rows count differently, and it counts for its `size`.
    """
    if ranks.size == 1:
        return output, batch
    rows = output.size(0)
    total, weighted = ranks.sums([float(batch.size), float(batch.weight is not None)])
    size = int(total)
    columns = [torch.zeros(rows, 0, dtype=torch.float64, device=output.device)]
    if rows:
        columns += [output.reshape(rows, -1).double(), batch.y.reshape(rows, -1).double()]
    if batch.weight is not None and rows:
        columns.append((batch.weight.double() * (batch.size / max(size, 1))).view(-1, 1))
    whole = ranks.gather(torch.cat(columns, dim=1))
    outputs = whole.size(1) - (weighted > 0)
    classes = not batch.y.is_floating_point()
    width = outputs - 1 if classes else outputs // 2
    y = whole[:, width:outputs].to(batch.y.dtype)
    return whole[:, :width].to(output.dtype), replace(
        batch,
        y=y.view(-1) if classes else y,
        size=size,
        weight=whole[:, -1].to(output.dtype) if weighted else None,
        batch=None,
        rows=None,
        num_graphs=1,
    )


@dataclass(frozen=True)
class Shared:
    """The data of a rank, and on rank 0 how a graph was partitioned, as a file has it."""

    data: TaskData
    partition: bytes | None = None


def share_data(data: TaskData, ranks: Ranks, how: str = "auto") -> Shared:
    """This rank's share of a task's data: its part of each batch, or its nodes of one graph.

    Args:
        data: All of the data, the same on each rank.
        ranks: Who shares them.
        how: For one graph: a method of `adgn.distributed.partition`, or a file that `adgn
            partition` wrote.
    """
    if ranks.size == 1:
        return Shared(data)
    ranks.agree({"data": digest(data)})
    train = data.train
    if isinstance(train, PackedBatches | BlockBatches):
        graphs = train.graphs.numel() if isinstance(train.graphs, Tensor) else len(train.graphs)
        fewest = min(graphs, train.batch_size)
        if ranks.size > fewest:
            raise RankError(
                f"{ranks.size} ranks cannot share batches of {fewest} graphs; take {fewest} "
                f"workers at most, or a larger loop.batch_size (now {train.batch_size})"
            )
        parts: dict[Split, BatchSource] = {}
        for split, source in data.sources.items():
            if not isinstance(source, PackedBatches | BlockBatches):
                raise _cannot_share(source)
            parts[split] = source.part_of(ranks.rank, ranks.size)
        return Shared(replace(data, train=train.part_of(ranks.rank, ranks.size), sources=parts))
    if not isinstance(train, FullGraph):
        raise _cannot_share(train)
    return _share_graph(data, ranks, how)


def _cannot_share(source: object) -> RankError:
    return RankError(
        f"batches from a {type(source).__name__} cannot be shared by ranks; those of "
        "PackedBatches, BlockBatches and FullGraph can"
    )


def _share_graph(data: TaskData, ranks: Ranks, how: str) -> Shared:
    graph = WholeGraph.of(data)
    edges, nodes = graph.edge_index, graph.num_nodes
    owner = _owners(edges, nodes, ranks, how).to(edges.device)
    assert isinstance(ranks, ProcessRanks)
    part = PartitionedGraph(graph.part(owner, ranks.rank, ranks.size), RowExchange(ranks))
    kept = partition_bytes(owner, edges, ranks.size) if ranks.rank == 0 else None
    return Shared(graph_share(data, part), kept)


@dataclass(frozen=True, eq=False)
class WholeGraph:
    """The one graph of a task.

    Attributes:
        edge_index, edge_weight: `[2, E]`, and `[E]` or `None`.
        num_nodes: The number of nodes.
        normalized: Whether the weights are an operator already.
    """

    edge_index: Tensor
    edge_weight: Tensor | None
    num_nodes: int
    normalized: bool

    @classmethod
    def of(cls, data: TaskData) -> "WholeGraph":
        """The graph that all splits have; raises where ranks cannot share it."""
        sources = [data.train, *data.sources.values()]
        full = [source.whole for source in sources if isinstance(source, FullGraph)]
        if len(full) < len(sources) or any(batch.graph is not full[0].graph for batch in full):
            raise RankError("ranks can share one graph, and the splits of this task have several")
        first = full[0]
        if first.edge_attr is not None:
            raise RankError("a graph with edge features cannot be spread over ranks")
        nodes = first.x.size(0)
        edges, weight, normalized = weighted_edges(first.graph, first.edge_weight, nodes, first.x)
        return cls(edges, weight, nodes, normalized)

    def part(self, owner: Tensor, rank: int, size: int) -> GraphPart:
        """What a rank has of it."""
        weight, normalized = self.edge_weight, self.normalized
        return cut_part(self.edge_index, weight, owner, rank, size, normalized=normalized)


def graph_share(data: TaskData, part: PartitionedGraph) -> TaskData:
    """A rank's share of data that are one graph."""
    assert isinstance(data.train, FullGraph)
    x = select_rows(data.train.whole.x, part.nodes)
    made: dict[int, FullGraph] = {}

    def own(source: BatchSource) -> FullGraph:
        assert isinstance(source, FullGraph)
        if id(source) not in made:
            made[id(source)] = source.part_of(part, x)
        return made[id(source)]

    shared = {split: own(source) for split, source in data.sources.items()}
    return replace(data, train=own(data.train), sources=shared)


def _owners(edges: Tensor, nodes: int, ranks: Ranks, how: str) -> Tensor:
    """The rank of each node, as rank 0 has it."""
    found = b""
    if ranks.rank == 0:
        ranks.report_activity("partitioning the graph")
        if how in METHODS:
            method: Method = how
            owner = partition(edges, nodes, ranks.size, method)
        else:
            owner = read_partition(Path(how), edges, nodes, ranks.size)
        found = owner.to(torch.int32).numpy().tobytes()
    ranks.agree({})  # a partition may take longer than an exchange is waited for
    return torch.from_numpy(np.frombuffer(ranks.broadcast(found), dtype=np.int32).copy()).long()


def digest(data: TaskData) -> str:
    """A digest of all tensors of a task's data."""
    hashed = hashlib.blake2b(digest_size=16)
    for source in (data.train, *data.sources.values()):
        for tensor in getattr(source, "tensors", list)():
            for part in _dense_parts(tensor):
                hashed.update(np.ascontiguousarray(part.detach().cpu().numpy()).data)
    return hashed.hexdigest()


def _dense_parts(tensor: Tensor) -> list[Tensor]:
    if tensor.layout == torch.sparse_csr:
        return [tensor.crow_indices(), tensor.col_indices(), tensor.values()]
    return [tensor]


def check_network(network: GraphNetwork, name: str, data: TaskData) -> None:
    """Raises where ranks with shares of the data would compute another network than one process."""
    partitioned = isinstance(data.train, FullGraph)
    if partitioned and name not in PARTITIONED_MODELS:
        raise RankError(
            f"model={name!r} cannot be trained on a graph that is spread over ranks; these can: "
            + ", ".join(sorted(PARTITIONED_MODELS))
        )
    if partitioned and network.fully_adjacent:
        raise RankError("fully_adjacent=True reads all nodes, which no rank has; leave it out")
    for part in network.modules():
        reason = _coupling(part, partitioned)
        if reason is not None:
            raise RankError(
                f"model={name!r} has {reason}: ranks, each with its share, would compute something "
                "else than one process. Choose another setting, or leave out the workers"
            )


def _coupling(part: nn.Module, partitioned: bool) -> str | None:
    """What of a module joins the rows of a batch, but for the graph."""
    if isinstance(part, nn.modules.batchnorm._BatchNorm):
        return "a batch normalisation, whose statistics are of a whole batch"
    if partitioned and isinstance(part, PairNorm):
        return "a PairNorm, whose mean is of a whole graph"
    integrator = getattr(part, "integrator", None)
    if isinstance(integrator, Integrator) and isinstance(integrator, Adaptive | ImplicitMidpoint):
        return f"integrator={integrator.name!r}, whose steps depend on the states of all nodes"
    return None
