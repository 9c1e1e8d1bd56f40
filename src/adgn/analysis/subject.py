"""What is looked at: a model with features and a graph, of a training run or made up."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from adgn._util.environment import check_memory
from adgn._util.suggestions import unknown_name
from adgn.analysis.graphs import EXAMPLE_GRAPHS, example_graph
from adgn.analysis.verdict import Diagnosis, diagnose
from adgn.data import NODE_DATASETS, load
from adgn.graph import Adjacency, SelectedGraphs
from adgn.nn import build_model
from adgn.training import PackedBatches, open_run
from adgn.training.models import parameter_bytes
from adgn.training.seeding import own_randomness

# Features of a graph that comes without any.
_EXAMPLE_CHANNELS = 8


@dataclass(frozen=True, eq=False)
class Subject:
    """A model, by the name that figures give it, with what `diagnose` needs besides it."""

    name: str
    model: nn.Module
    x: Tensor
    edge_index: Adjacency
    hidden_channels: int
    num_layers: int
    edge_weight: Tensor | None = None
    batch: Tensor | None = None
    loss: Callable[[Tensor], Tensor] | None = None

    def beside(self, name: str, seed: int = 0) -> "Subject":
        """An untrained model of the same size on the same graph, to compare with.

        It is asked for one number per node; the loss of its gradients is half their mean square.
        """
        if not self.x.is_floating_point():
            raise ValueError(
                f"{name} cannot be set beside {self.name}: its features are integers for an "
                "embedding, which untrained models do not have"
            )
        model = untrained(name, self.x.size(1), self.hidden_channels, self.num_layers, {}, seed)
        # Weights are drawn on the CPU, the same for every device.
        return replace(self, name=name, model=model.to(self.x), batch=None, loss=None)

    def diagnose(self, node: int = 0, probes: int | None = None, seed: int = 0) -> Diagnosis:
        """[`diagnose`][adgn.analysis.diagnose] of this model on this graph."""
        given = {"edge_weight": self.edge_weight, "batch": self.batch, "loss": self.loss}
        settings = {"node": node, "probes": probes, "seed": seed}
        return diagnose(self.model, self.x, self.edge_index, **given, **settings)  # type: ignore[arg-type]


def analyze(
    run_dir: str | Path,
    *,
    number: int = 0,
    node: int = 0,
    probes: int | None = None,
    device: str | None = None,
    seed: int = 0,
) -> Diagnosis:
    """Whether the network of a training run is stable and non-dissipative, and what to change.

    Args:
        run_dir: The run directory.
        number: Where the task has many graphs, the number of the test graph to look at.
        node: The node whose sensitivity to all others is measured.
        probes: Random probes in place of exact sensitivity; `None`: exact.
        device: Where to compute; `None`: where the run did.
        seed: Of the probes.

    Returns:
        The measurements; `print(diagnosis.text())` says in words what they mean.

    Example:
        >>> import tempfile
        >>> import adgn
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     small = {"task": {"distance": 3, "train": 8}, "loop": {"max_epochs": 1}}
        ...     _ = adgn.train("graph-transfer", run_dir=f"{folder}/run", **small)
        ...     diagnosis = adgn.analyze(f"{folder}/run")
        >>> diagnosis.sensitivity.by_distance().distance.tolist()
        [0, 1, 2, 3]
    """
    return load_run(run_dir, number, device=device).diagnose(node, probes, seed)


def load_run(run_dir: str | Path, number: int = 0, *, device: str | None = None) -> Subject:
    """The best weights of a training run on its test data; arguments as in `analyze`."""
    prepared = open_run(run_dir, device=device)
    config, source = prepared.config, prepared.data.sources["test"]
    if isinstance(source, PackedBatches):
        graphs = len(source.graphs)
        if not 0 <= number < graphs:
            raise ValueError(f"number={number} is out of range; test graphs are 0 to {graphs - 1}")
        batch = source.batch(torch.tensor([number], device=source.graphs.device))
    else:
        batch = next(source.batches(0))
    if batch.edge_attr is not None:
        raise ValueError(f"{run_dir}: models with edge features cannot be analysed yet")
    objective = prepared.trainer.objective

    def loss(output: Tensor) -> Tensor:
        scored = output if batch.rows is None else output[batch.rows]
        return objective.loss(scored, batch)

    graph = batch.graph
    if isinstance(graph, SelectedGraphs) and not graph.blocks.normalized:
        graph = graph.edge_index  # but weights that are an operator belong to the graph
    return Subject(
        name=config.model.name,
        model=prepared.model,
        x=batch.x,
        edge_index=graph,
        hidden_channels=config.model.hidden_channels,
        num_layers=config.model.num_layers,
        edge_weight=batch.edge_weight,
        batch=batch.batch,
        loss=loss,
    )


def untrained_subject(
    model: str,
    graph: str = "line",
    *,
    num_nodes: int = 25,
    num_layers: int = 20,
    hidden_channels: int = 30,
    options: Mapping[str, Any] | None = None,
    seed: int = 0,
) -> Subject:
    """A model by name, as initialised, on an example graph or a node data set.

    `graph` is `"line"`, `"ring"`, `"grid"`, `"random"`, or a node data set. `num_nodes` is for an
    example graph, whose features are drawn at random.

    Example:
        >>> untrained_subject("gcn", "ring", num_nodes=5).x.shape
        torch.Size([5, 8])
    """
    if graph in EXAMPLE_GRAPHS:
        _check_memory(model, num_nodes, num_layers, hidden_channels, options or {})
        generator = torch.Generator().manual_seed(seed)
        x = torch.randn(num_nodes, _EXAMPLE_CHANNELS, generator=generator)
        edge_index = example_graph(graph, num_nodes, seed)
    elif graph in NODE_DATASETS:
        data = load(graph)
        x, edge_index = data.x, data.edge_index
    else:
        raise unknown_name("graph", graph, [*EXAMPLE_GRAPHS, *NODE_DATASETS])
    network = untrained(model, x.size(1), hidden_channels, num_layers, options or {}, seed).to(x)
    return Subject(model, network, x, edge_index, hidden_channels, num_layers)


def _check_memory(
    model: str, nodes: int, layers: int, hidden: int, options: Mapping[str, Any]
) -> None:
    weights = parameter_bytes(
        lambda count: build_model(model, _EXAMPLE_CHANNELS, hidden, 1, count, **options), layers
    )
    # A node and its edges take up to 2000 bytes while the graph is made; then there are the states
    # of all layers, with what their gradient needs.
    need = 4 * weights + nodes * (2000.0 + 4.0 * hidden * (5.0 * layers + 10))
    check_memory(need, f"analysing {model} with {nodes} nodes, {layers} layers of size {hidden}")


def untrained(
    name: str,
    in_channels: int,
    hidden_channels: int,
    num_layers: int,
    options: Mapping[str, Any],
    seed: int,
) -> nn.Module:
    """A model with one output per node, its weights drawn from the seed."""
    with own_randomness(seed):
        return build_model(name, in_channels, hidden_channels, 1, num_layers, **options)
