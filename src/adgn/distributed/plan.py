"""Memory and time of a training step on one machine and on several, worked out beforehand."""

import math
import statistics
import threading
import time
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

import torch
import torch.distributed as dist
from torch import Tensor
from torch._C._distributed_c10d import HashStore, PrefixStore

from adgn._util.environment import available_bytes, available_cores
from adgn.graph import graph_operator

_FLOAT, _INDEX = 4, 4
_OPERATOR_BYTES = 2 * (_INDEX + _FLOAT)  # an entry in the operator and in its transpose
_BUILDING_BYTES = 40  # an edge while operators are made: the list, its order, slots
_LISTED_BYTES = 2 * 8  # an edge as it is read, whole
# An edge of a rank while its rows are made. Measured: the sum over incoming edges takes 48, gcn 70,
# skew 99. It is too little for gcn with direction="undirected", which takes 188.
_MAKING_BYTES = 100
_AT_WORK = 6.0  # arrays of states of the step under way, of encoder and readout
_KEPT = 1.0  # numbers kept per entry of the states and step, A-DGN with sum or gcn
Mode = Literal["one process", "batches over ranks", "one graph over ranks"]


@dataclass(frozen=True)
class Speeds:
    """What a machine does in a second, measured.

    Attributes:
        edges: Numbers that a product with the operator gathers and adds up.
        dense: Multiplications and additions of dense products.
        memory: Bytes that are copied.
        link: Bytes that come in from another rank.
        latency: Seconds that the smallest exchange between ranks takes.
        threads: Of torch, while it was measured.
    """

    edges: float
    dense: float
    memory: float
    link: float
    latency: float
    threads: int

    def __str__(self) -> str:
        return (
            f"{self.edges / 1e9:.2f} G numbers/s gathered, {self.dense / 1e9:.1f} G operations/s, "
            f"{self.memory / 1e9:.1f} GB/s copied, {self.link / 1e9:.2f} GB/s between ranks "
            f"(an exchange takes {1e6 * self.latency:.0f} µs at least), {self.threads} threads"
        )


@dataclass(frozen=True)
class Workload:
    """What is trained: a graph, or the largest batch of graphs.

    Attributes:
        nodes, edges: Both directions of an edge counted.
        layers, hidden: Steps, and channels of the states.
        features, outputs: Per node.
        density: The share of features that are not zero.
        graphs: How many graphs a batch has; 1 is one graph.
    """

    nodes: float
    edges: float
    layers: int
    hidden: int
    features: int = 128
    outputs: int = 16
    density: float = 1.0
    graphs: int = 1

    def __post_init__(self) -> None:
        for name in ("nodes", "layers", "hidden", "features", "outputs", "graphs"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name}={getattr(self, name):g} is not valid; give at least 1")
        if self.edges < 0 or not 0 <= self.density <= 1:
            raise ValueError(
                f"edges={self.edges:g} and density={self.density:g} are not valid; edges are not "
                "negative, and a density is from 0 to 1"
            )


@dataclass(frozen=True)
class Need:
    """What each of some machines needs for a step.

    Attributes:
        machines: How many.
        mode: How they share the work.
        checkpoint: Whether steps are computed a second time (`memory="checkpoint"`).
        states, graph, features, weights: Bytes.
        compute, exchange: Seconds.
        halo: Rows that come in for one product.
        reading: Of one graph, bytes while a rank reads it and makes its operators; on several
            machines, from its shard. 0 for batches of graphs: each rank reads the whole data set,
            whose size a batch does not tell.
        reading_whole: The same where each rank reads the whole graph.
        fits: Whether the memory is there, for training and, of one graph, before.
    """

    machines: int
    mode: Mode
    checkpoint: bool
    states: float
    graph: float
    features: float
    weights: float
    compute: float
    exchange: float
    halo: float
    reading: float
    reading_whole: float
    fits: bool

    @property
    def memory(self) -> float:
        """All bytes."""
        return self.states + self.graph + self.features + self.weights

    @property
    def seconds(self) -> float:
        """Of a step, at most: as if no exchange were hidden behind work."""
        return self.compute + self.exchange


def need(
    work: Workload,
    speeds: Speeds,
    *,
    machines: int = 1,
    memory: float | None = None,
    checkpoint: bool = False,
    halo_share: float = 0.3,
) -> Need:
    """What each of `machines` like this one needs.

    Args:
        work: What is trained.
        speeds: Of one machine, and of the link between two.
        machines: How many.
        memory: Bytes of each; by default those that are free here.
        checkpoint: Whether `memory="checkpoint"` is set.
        halo_share: Of one graph: the rows that a rank gets from others, in units of its own nodes,
            as a partition of the graph says (`adgn partition`). No rank gets more than all others
            have.

    Example:
        >>> fast = Speeds(edges=1e9, dense=5e10, memory=1e10, link=1e9, latency=1e-4, threads=2)
        >>> work = Workload(nodes=1e6, edges=1e7, layers=10, hidden=64)
        >>> one, two = (need(work, fast, machines=n, memory=16e9) for n in (1, 2))
        >>> one.fits, two.mode, two.states < one.states
        (True, 'one graph over ranks', True)
    """
    if machines < 1:
        raise ValueError(f"machines={machines} is not valid; give at least 1")
    if not halo_share >= 0:
        raise ValueError(f"halo_share={halo_share:g} is not valid; give a share from 0 on")
    nodes, edges = work.nodes / machines, work.edges / machines
    several = machines > 1
    batches = work.graphs > 1
    mode: Mode = "one process"
    if several:
        mode = "batches over ranks" if batches else "one graph over ranks"
    halo = min(halo_share * nodes, work.nodes - nodes) if several and not batches else 0.0
    kept = work.layers * _KEPT
    if checkpoint:
        kept = min(kept, 2 * math.sqrt(work.layers))
    size = _FLOAT * work.hidden
    states = size * ((nodes + halo) * _AT_WORK + nodes * kept)
    graph = edges * (_OPERATOR_BYTES + _BUILDING_BYTES) + 2 * _INDEX * nodes
    entries = nodes * work.features * work.density
    features = entries * (_FLOAT if work.density > 1 / 3 else 2 * (_INDEX + _FLOAT))
    weights = work.hidden * (work.features + work.outputs + 2 * work.hidden + 3)
    # Gradients, two moments, the best weights, and a state that is written.
    weight_bytes = _FLOAT * weights * 8
    again = 1 if checkpoint else 0
    # There: one product with the operator, one with the weights; back: one, and two.
    products = work.layers * (2 + again)
    gathered = products * edges * work.hidden / speeds.edges
    dense = work.layers * (3 + again) * 2 * 2 * nodes * work.hidden**2 / speeds.dense
    outside = 3 * 2 * (entries + nodes * work.outputs) * work.hidden / speeds.dense
    copied = products * 3 * size * nodes / speeds.memory
    sums = 2 * _FLOAT * weights / speeds.link + 2 * speeds.latency if several else 0.0
    moved = products * (halo * size / speeds.link + speeds.latency) if halo else 0.0
    found = states + graph + features + weight_bytes
    reading = reading_whole = 0.0
    if not batches:
        # Edges that join two ranks are in both shards: with the halo's nodes come their edges.
        shared = 1 + halo / nodes
        reading = reading_whole = features + min(edges * shared, work.edges) * _MAKING_BYTES
        if several:
            reading_whole += _LISTED_BYTES * work.edges + features * (machines - 1)
    free = available_bytes() if memory is None else memory
    return Need(
        machines=machines,
        mode=mode,
        checkpoint=checkpoint,
        states=states,
        graph=graph,
        features=features,
        weights=weight_bytes,
        compute=gathered + dense + outside + copied,
        exchange=sums + moved,
        halo=halo,
        reading=reading,
        reading_whole=reading_whole,
        fits=max(found, reading) <= free,
    )


def machines_needed(
    work: Workload, speeds: Speeds, memory: float, halo_share: float, limit: int = 1_000_000
) -> Need | None:
    """The smallest number of machines, each with so much memory, on which a step fits.

    With checkpoints where they need fewer machines; `None` where even `limit` are not enough.
    """
    low, high = 1, 1
    settings = {"memory": memory, "checkpoint": True, "halo_share": halo_share}

    def of(machines: int) -> Need:
        return need(work, speeds, machines=machines, **settings)  # type: ignore[arg-type]

    while not of(high).fits:
        low, high = high + 1, high * 2
        if high > limit:
            return None
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if of(middle).fits else (middle + 1, high)
    full = need(work, speeds, machines=low, memory=memory, halo_share=halo_share)
    return full if full.fits else of(low)


def measure_speeds(link: float | None = None, latency: float | None = None) -> Speeds:
    """Measures this machine for about a second.

    Args:
        link: Bytes per second between two ranks, where they are not on this machine: a link of 10
            Gbit/s has 1.25e9 at most. By default what two ranks of this machine exchange.
        latency: Seconds of the smallest exchange; by default that of two ranks of this machine,
            which those of two machines exceed.
    """
    generator = torch.Generator().manual_seed(0)
    nodes, degree, width = 50_000, 10, 32
    edges = torch.randint(0, nodes, (2, nodes * degree), generator=generator)
    operator = graph_operator(edges, num_nodes=nodes)
    x = torch.randn(nodes, width, generator=generator)
    gathered = operator.num_entries * width / _best(lambda: operator @ x)
    matrix = torch.randn(width, width, generator=generator)
    dense = 2 * nodes * width * width / _best(lambda: x @ matrix)
    large = torch.randn(2**23)
    other = torch.empty_like(large)
    copied = 2 * large.numel() * large.element_size() / _best(lambda: other.copy_(large))
    if link is None or latency is None:
        here = measure_exchange()
        link, latency = here[0] if link is None else link, here[1] if latency is None else latency
    threads = min(torch.get_num_threads(), available_cores())
    return Speeds(gathered, dense, copied, link, latency, threads)


def _best(call: object, times: int = 5) -> float:
    """The seconds of the quickest of some calls."""
    assert callable(call)
    call()
    found = []
    for _ in range(times):
        started = time.perf_counter()
        call()
        found.append(time.perf_counter() - started)
    return min(found)


def measure_exchange(numbers: int = 2**22, repeats: int = 50) -> tuple[float, float]:
    """Bytes per second and seconds at least of an exchange between two ranks of this machine.

    The ranks are threads with a gloo group each, which talk through sockets as processes do.

    Args:
        numbers: How many numbers each rank has in a large exchange; half of them stay there.
        repeats: How many small exchanges there are, of which the median counts.

    Raises:
        RuntimeError: The ranks cannot connect, or an exchange fails.
    """
    if numbers < 2 or numbers % 2:
        raise ValueError(f"numbers={numbers} is not valid; give an even number from 2 on")
    if repeats < 1:
        raise ValueError(f"repeats={repeats} is not valid; give at least 1")
    store, limit = HashStore(), timedelta(seconds=30)
    measured: list[tuple[float, float]] = []
    errors: list[Exception] = []

    def measure(rank: int) -> None:
        group = dist.ProcessGroupGloo(PrefixStore("plan", store), rank, 2, limit)

        def exchange(sent: Tensor, received: Tensor) -> float:
            started = time.perf_counter()
            group.alltoall_base(received, sent, [], [], dist.AllToAllOptions()).wait()  # type: ignore[attr-defined]
            return time.perf_counter() - started

        small, large = torch.zeros(2, 1), torch.zeros(numbers)
        small_received, large_received = torch.empty_like(small), torch.zeros(numbers)
        exchange(small, small_received)
        latency = statistics.median(exchange(small, small_received) for _ in range(repeats))
        measured.append((min(exchange(large, large_received) for _ in range(3)), latency))

    def run(rank: int) -> None:
        try:
            measure(rank)
        except Exception as error:  # in a thread: it is raised where the threads are joined
            errors.append(error)

    threads = [threading.Thread(target=run, args=(rank,)) for rank in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise RuntimeError(
            f"an exchange between two ranks of this machine failed ({errors[0]}); give --link and "
            "--latency"
        ) from errors[0]
    large_seconds, latency = (max(found) for found in zip(*measured, strict=True))
    return numbers // 2 * _FLOAT / large_seconds, latency


def halo_share_of(edge_index: Tensor, owner: Tensor, parts: int) -> float:
    """The largest halo of a rank in units of its nodes, for `need`."""
    from adgn.distributed.partition import partition_quality

    found = partition_quality(edge_index, owner, parts)
    return max(h / max(n, 1) for h, n in zip(found.halo, found.nodes, strict=True))
