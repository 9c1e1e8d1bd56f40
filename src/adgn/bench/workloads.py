"""One training step (or epoch), or one prediction, by each of the ways that are compared."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from adgn._util.suggestions import unknown_name
from adgn.bench.rivals import PyGNetwork, adjacency_csr, normalised_csr, normalised_edges
from adgn.bench.sources import ManyGraphs, NodeTask, dataset_task, property_graphs, random_task
from adgn.bench.timing import Step
from adgn.graph import set_backend
from adgn.nn import build_model

Source = NodeTask | ManyGraphs
# What each way is called in tables. All of PyG but the documented one are candidates for PyG at its
# best: sparse features save it memory, but not always time; compiling helps most on small graphs.
WAYS = {
    "adgn": "adgn",
    "checkpoint": 'adgn, memory="checkpoint"',
    "torch": "adgn, plain torch",
    "pyg": "PyG as documented",
    "pyg-csr": "PyG, prebuilt CSR adjacency",
    "pyg-csr-sparse": "PyG, prebuilt CSR adjacency, CSR features",
    "pyg-compiled": "PyG, torch.compile, edges normalised beforehand",
    "pyg-csr-compiled": "PyG, torch.compile, prebuilt CSR adjacency",
    "rk4": "A-DGN with RK4",
    "swan": "SWAN",
    "sonar": "SONAR, conservative",
}
# Ways that are other networks than A-DGN with Euler's steps: a model by name, and its options.
# Their losses are their own, and PyG has none of them.
NETWORKS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "rk4": ("adgn", {"phi": "sum", "integrator": "rk4"}),
    "swan": ("swan", {}),
    "sonar": ("sonar", {}),
}
# Their first step compiles, which takes from seconds to minutes.
COMPILED = ("pyg-compiled", "pyg-csr-compiled")
COMPILER = "inductor"  # torch's own


@dataclass(frozen=True)
class Workload:
    """What is trained or predicted, however it is done."""

    data: str  # "property", "random" or the name of a node data set
    layers: int  # with shared weights
    hidden: int  # the size of a node's state
    phi: Literal["gcn", "sum"]  # the aggregation
    size: int = 0  # how many graphs of "property", how many directed edges of "random"
    predict: bool = False  # the outputs of all nodes alone, without gradients


def load_source(workload: Workload, root: Path | None) -> Source:
    """The data of a workload."""
    if workload.data == "property":
        return property_graphs(workload.size, root)
    if workload.data == "random":
        return random_task(workload.size)
    return dataset_task(workload.data, root)


def served_ways(source: Source, ways: Sequence[str]) -> list[str]:
    """Those of the ways that differ from the others on this source."""
    sparse = isinstance(source, NodeTask) and source.is_sparse
    return [way for way in ways if sparse or way != "pyg-csr-sparse"]


def build_step(workload: Workload, source: Source, way: str) -> Step:
    """A function that trains one step (on many graphs: one epoch) and returns the loss.

    Where the workload says `predict`, it does the same without gradients and optimiser.

    Every way starts from the same weights and sees the same data in the same order, so that all
    but those of `NETWORKS` return the same losses, up to rounding.
    """
    if way not in WAYS:
        raise unknown_name("way", way, WAYS)
    network = _network(workload, source, way).train(not workload.predict)
    called: Callable[..., Tensor] = network
    if way in COMPILED:
        # Batches of many graphs differ in size; one graph does not.
        called = torch.compile(network, dynamic=isinstance(source, ManyGraphs), backend=COMPILER)
    passes = _passes(workload, source, way, called)
    optimizer = _optimizer(source, network.parameters())

    def step() -> float:
        total = 0.0
        with set_backend("torch" if way == "torch" else "auto"):
            for loss_of in passes:
                optimizer.zero_grad()
                loss = loss_of()
                loss.backward()  # type: ignore[no-untyped-call]
                optimizer.step()
                total += float(loss.detach())
        return total / len(passes)

    def predict() -> float:
        with set_backend("torch" if way == "torch" else "auto"), torch.no_grad():
            return sum(float(loss_of()) for loss_of in passes) / len(passes)

    return predict if workload.predict else step


def _network(workload: Workload, source: Source, way: str) -> nn.Module:
    own: dict[str, Any] = {"phi": workload.phi}
    own["memory"] = "checkpoint" if way == "checkpoint" else "full"
    name, options = NETWORKS.get(way, ("adgn", own))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = build_model(
            name,
            source.sizes()["features"],
            workload.hidden,
            1 if isinstance(source, ManyGraphs) else source.num_classes,
            num_layers=workload.layers,
            readout="mlp" if isinstance(source, ManyGraphs) else "linear",
            **options,
        )
        if way.startswith("pyg"):
            return PyGNetwork(network, normalised=way != "pyg")
        return network


def _optimizer(source: Source, parameters: Any) -> torch.optim.Optimizer:
    # Those of the paper's experiments on each kind of data, in torch's fastest form for all ways.
    if isinstance(source, ManyGraphs):
        return torch.optim.Adam(parameters, lr=3e-3, weight_decay=1e-6, fused=True)
    return torch.optim.AdamW(parameters, lr=1e-3, fused=True)


def _passes(
    workload: Workload, source: Source, way: str, network: Callable[..., Tensor]
) -> list[Callable[[], Tensor]]:
    """The losses of one pass over the data, each with what it needs."""
    if isinstance(source, NodeTask):
        dense = way.startswith("pyg") and way != "pyg-csr-sparse"
        x = source.dense_features if dense else source.features
        graph = _given_graph(workload, way, source.edge_index, x.size(0))
        train, y = source.train, source.classes[source.train]
        return [lambda: cross_entropy(network(x, *graph)[train], y)]
    return [_property_loss(network, workload, source, chosen, way) for chosen in source.order]


def _given_graph(workload: Workload, way: str, edges: Tensor, nodes: int) -> tuple[Tensor, ...]:
    """What a network is given as its graph: edges, edges and weights, or a sparse adjacency."""
    if way.startswith("pyg-csr"):
        return ({"gcn": normalised_csr, "sum": adjacency_csr}[workload.phi](edges, nodes),)
    if way == "pyg-compiled" and workload.phi == "gcn":
        return normalised_edges(edges, nodes)
    return (edges,)


def _property_loss(
    network: Callable[..., Tensor],
    workload: Workload,
    source: ManyGraphs,
    chosen: Tensor,
    way: str,
) -> Callable[[], Tensor]:
    """The mean over graphs of the mean over nodes of the squared error."""

    def loss(batch: Any, *graph: Any) -> Tensor:
        errors: Tensor = (network(batch.x, *graph) - batch.y).square().squeeze(-1)
        total: Tensor = (errors * batch.weight).sum()
        return total

    def ours() -> Tensor:
        batch = source.batches.batch(chosen)
        return loss(batch, batch.graph)

    if not way.startswith("pyg"):
        return ours
    # PyG's batches are put together beforehand, which is to its advantage.
    batch = source.batches.batch(chosen)
    edges: Tensor = batch.graph.edge_index  # type: ignore[union-attr]
    graph = _given_graph(workload, way, edges, batch.x.size(0))
    return lambda: loss(batch, *graph)
