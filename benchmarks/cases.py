"""What is timed: for each case the ways to run one training step (or epoch)."""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, mse_loss

from adgn.graph import set_backend
from adgn.nn import ADGN
from benchmarks.data import ManyGraphs, NodeTask
from benchmarks.rivals import PyGNetwork, SumConv, adjacency_csr, normalised_csr, plain_gcn
from benchmarks.timing import Step

SPARSE_BELOW = 0.1  # features with a larger share of entries are smaller and faster dense
OURS, TORCH, DOCUMENTED, BEST = "adgn", "adgn, torch path", "PyG as documented", "PyG at its best"


def node_steps(
    task: NodeTask, layers: int, hidden: int, phi: str, only: str | None = None
) -> dict[str, Step]:
    """One training step on all nodes of a graph, by each of the four ways (or one of them)."""
    features, outputs = task.features.size(1), task.num_classes

    def ours(setting: str) -> Step:
        model = ADGN(features, hidden, outputs, num_layers=layers, phi=phi)
        x = task.features if task.density < SPARSE_BELOW else task.dense_features()
        step = _training(model, lambda: model(x, task.edge_index), task)

        def run() -> object:
            with set_backend(setting):
                return step()

        return run

    def rival(best: bool) -> Step:
        convs = {"gcn": plain_gcn if best else lambda _: None, "sum": SumConv}
        csr = {"gcn": normalised_csr, "sum": adjacency_csr}[phi]
        model = PyGNetwork(features, hidden, outputs, layers, convs[phi](hidden))
        x = task.dense_features()
        edges = csr(task.edge_index, x.size(0)) if best else task.edge_index
        return _training(model, lambda: model(x, edges), task)

    builders: dict[str, Callable[[], Step]] = {
        OURS: lambda: ours("auto"),
        TORCH: lambda: ours("torch"),
        DOCUMENTED: lambda: rival(best=False),
        BEST: lambda: rival(best=True),
    }
    return {name: build() for name, build in builders.items() if only in (None, name)}


def _training(model: nn.Module, forward: Callable[[], Tensor], task: NodeTask) -> Step:
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

    def step() -> float:
        optimizer.zero_grad()
        loss = cross_entropy(forward()[task.train], task.classes[task.train])
        loss.backward()
        optimizer.step()
        return float(loss.detach())

    return step


def property_epochs(
    data: ManyGraphs, layers: int = 20, hidden: int = 30, batch: int = 512, only: str | None = None
) -> dict[str, Step]:
    """One epoch over many small graphs, sum aggregation, by each of the four ways."""
    blocks = data.blocks

    def epoch(model: nn.Module, best: bool, pyg: bool, setting: str) -> Step:
        optimizer = torch.optim.Adam(model.parameters(), lr=3e-3, weight_decay=1e-6)
        generator = torch.Generator().manual_seed(0)
        # PyG's batches are collated beforehand, which is to its advantage.
        order = torch.randperm(len(blocks), generator=generator).split(batch)
        collated = []
        if pyg:
            for graphs in order:
                chosen = blocks.select(graphs)
                edges = chosen.edge_index
                edges = adjacency_csr(edges, chosen.num_nodes) if best else edges
                collated.append((chosen.node_index, edges))

        def run() -> None:
            with set_backend(setting):
                for number, graphs in enumerate(order):
                    if pyg:
                        nodes, edges = collated[number]
                    else:
                        edges = blocks.select(graphs)
                        nodes = edges.node_index
                    optimizer.zero_grad()
                    loss = mse_loss(model(data.features[nodes], edges), data.target[nodes])
                    loss.backward()
                    optimizer.step()

        return run

    def ours() -> nn.Module:
        return ADGN(2, hidden, 1, num_layers=layers, phi="sum")

    def rival() -> nn.Module:
        return PyGNetwork(2, hidden, 1, layers, SumConv(hidden))

    builders: dict[str, Callable[[], Step]] = {
        OURS: lambda: epoch(ours(), False, False, "auto"),
        TORCH: lambda: epoch(ours(), False, False, "torch"),
        DOCUMENTED: lambda: epoch(rival(), False, True, "auto"),
        BEST: lambda: epoch(rival(), True, True, "auto"),
    }
    return {name: build() for name, build in builders.items() if only in (None, name)}
