"""What is asked: features, edges, targets and splits, of a task or of a user's graph."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from adgn.data import Graph, Preprocessing, TargetEncoder
from adgn.data.own.inputs import Inputs
from adgn.data.own.splits import Parts, nodes_of, split_rows
from adgn.data.own.targets import TargetKind
from adgn.nn.network import Level
from adgn.training import resolve_config, shared_data
from adgn.training.batches import LabelledBatch
from adgn.training.config import TrainConfig
from adgn.training.quality import Quality, choose_metric
from adgn.training.tasks import TaskData, task_entry

RANDOM_SPLITS = 5
_EMBEDDED = 1000  # values of integer features that may become columns


@dataclass(frozen=True, eq=False)
class Question:
    """Features, edges, targets and splits.

    Attributes:
        name: What reports call it.
        inputs: Features and edges.
        y: Classes `[rows]`, −1 where unknown, or values `[rows, T]`.
        splits: The rows of each split.
        quality: What is compared.
        weight: `[rows]`; how much each row counts in the error of values.
        cluster: `[rows]`; rows that belong together when intervals are made: those of one graph.
        notes: What was left out or assumed.
        config: Of a task, what it was built with.
    """

    name: str
    inputs: Inputs
    y: Tensor
    splits: tuple[Parts, ...]
    quality: Quality
    weight: Tensor | None = None
    cluster: Tensor | None = None
    notes: tuple[str, ...] = ()
    config: Mapping[str, Any] = field(default_factory=dict)

    def share(self, rows: Tensor) -> Tensor | None:
        """How much each of some rows counts."""
        return None if self.weight is None else self.weight[rows]


def graph_question(
    graph: Graph,
    *,
    kind: TargetKind | None = None,
    splits: int | None = None,
    metric: str | None = None,
    test_size: float = 0.2,
    seed: int = 0,
) -> Question:
    """The question of a user's graph: its target, from its columns and edges.

    Rows are split as the estimators split them; at random several times, with seeds one after the
    other. Columns become features by what the train rows of the first split have.

    Args:
        graph: With a target.
        kind: What is predicted; `None`: by the type of the target.
        splits: How many random splits. `None`: five; a column of splits or times gives one.
        metric: What is compared; `None`: as the estimators choose.
        test_size: The share of labelled rows that is tested on.
        seed: Of the first split.
    """
    _check_splits(splits)
    encoder = TargetEncoder.fit(graph, kind=kind)
    classes = len(encoder.classes)
    labels = encoder.encode(graph) if classes else None
    fixed = graph.split is not None or graph.time is not None
    count = 1 if fixed else splits or RANDOM_SPLITS
    parts = [split_rows(graph, labels, test_size=test_size, seed=seed + n) for n in range(count)]
    first = parts[0]
    if not first.test.numel():
        raise ValueError(
            f"{graph.origin} names no {graph.level} 'test' in its column of splits, so that there "
            "is nothing to score on; name some, or leave the column out"
        )
    if not classes:
        encoder = TargetEncoder.fit(graph, rows=first.train, kind=encoder.kind)
    y = encoder.encode(graph)
    inputs = Inputs.of(graph, Preprocessing.fit(graph, rows=nodes_of(graph, first.train)))
    chosen = choose_metric(encoder.kind, metric, y[first.train], y[first.valid])
    return Question(
        name=graph.origin,
        inputs=inputs,
        y=y,
        splits=tuple(parts),
        quality=Quality(chosen, classes),
        notes=(*graph.notes, *encoder.notes, *inputs.notes),
    )


def task_question(
    task: str,
    *,
    splits: int | None = None,
    settings: Sequence[Mapping[str, Any]] = (),
    progress: Callable[[int, int], None] | None = None,
) -> Question:
    """The question of a task: its data, its splits, its metric.

    Args:
        task: A task by name.
        splits: How many of its splits, from the first; `None`: all.
        settings: Of the configuration, such as `{"task": {"radius": 3}}`.
        progress: Told how much of the data is made.
    """
    _check_splits(splits)
    config = resolve_config({"task": {"name": task}}, *settings)
    entry = task_entry(config.task.name)
    available = entry.splits(config.task)
    count = 1 if available is None else min(splits or available, available)
    device = torch.device("cpu")
    with shared_data():
        first = _joined(entry.build(config, device, progress), config, entry.objective)
        parts = [first.splits[0]]
        for number in range(1, count):
            other = resolve_config(config, {"task": {"split": number}})
            built = entry.build(other, device, progress)
            parts.append(_parts(_batches(built), built.level))
    return Question(
        name=task,
        inputs=first.inputs,
        y=first.y,
        splits=tuple(parts),
        quality=first.quality,
        weight=first.weight,
        cluster=first.cluster,
        notes=first.notes,
        config=config.model_dump(mode="json"),
    )


Batches = Mapping[str, Sequence[LabelledBatch]]


def _batches(data: TaskData) -> Batches:
    return {split: list(source.batches(0)) for split, source in data.sources.items()}


def _one_graph(batches: Batches) -> bool:
    """Whether all splits are rows of one graph."""
    everything = [batch for some in batches.values() for batch in some]
    x, graph = everything[0].x, everything[0].graph
    return all(batch.x is x and batch.graph is graph for batch in everything)


def _joined(data: TaskData, config: TrainConfig, objective: str) -> Question:
    """All splits in one graph, disconnected where they have graphs of their own."""
    batches = _batches(data)
    one = _one_graph(batches)
    everything = [batch for some in batches.values() for batch in some]
    shown = everything[:1] if one else everything
    notes = list(data.notes)
    if any(batch.edge_attr is not None for batch in everything):
        notes.append("features of edges are not looked at")
    sizes = [batch.x.size(0) for batch in shown]
    offsets = [sum(sizes[:place]) for place in range(len(sizes))]
    edges = [_edges(batch) + offset for batch, offset in zip(shown, offsets, strict=True)]
    edge_index = torch.cat(edges, dim=1)
    weights = [batch.edge_weight for batch in shown if batch.edge_weight is not None]
    x = shown[0].x if one else torch.cat([_dense(batch.x) for batch in shown])
    if not x.is_floating_point():
        x, note = _columns(x, data.embeddings)
        notes.append(note)
    nodes = x.size(0)
    node_ptr = None
    graphs = [
        torch.zeros(size, dtype=torch.long) if batch.batch is None else batch.batch
        for batch, size in zip(shown, sizes, strict=True)
    ]
    counts = [torch.bincount(g, minlength=b.num_graphs) for g, b in zip(graphs, shown, strict=True)]
    count = torch.cat(counts)
    if data.level == "graph":
        node_ptr = torch.cat([count.new_zeros(1), count.cumsum(0)])
    inputs = Inputs(
        x,
        edge_index,
        torch.cat(weights) if weights else None,
        directed=not _symmetric(edge_index, nodes),
        node_ptr=node_ptr,
    )
    parts = _parts(batches, data.level)
    rows = torch.cat([parts.train, parts.valid, parts.test])
    values = torch.cat([batch.y for batch in everything])
    classes = data.out_channels if objective == "classification" else 0
    if classes:
        y = torch.full((inputs.num_rows,), -1)
        y[rows] = values
    else:
        y = torch.zeros(inputs.num_rows, data.out_channels)
        y[rows] = values.view(len(values), -1).to(y)
    weight = cluster = None
    if not one and data.level == "node" and not classes:
        # Errors are averaged over the nodes of each graph, and then over graphs.
        weight = torch.zeros(nodes, dtype=torch.double)
        shares = [
            torch.full((len(b.y),), b.size / len(b.y)) if b.weight is None else b.size * b.weight
            for b in everything
        ]
        weight[rows] = torch.cat(shares).double()
    if not one and data.level == "node":
        cluster = torch.repeat_interleave(count)
    metric = "accuracy" if classes else "log10_mse"
    quality = Quality(metric, classes)
    return Question(config.task.name, inputs, y, (parts,), quality, weight, cluster, tuple(notes))


def _parts(batches: Batches, level: Level) -> Parts:
    """The rows of each split, in the graph that `_joined` makes."""
    one, first, rows = _one_graph(batches), 0, {}
    for split, some in batches.items():
        found = []
        for batch in some:
            size = batch.x.size(0) if level == "node" else batch.num_graphs
            chosen = torch.arange(size) if batch.rows is None else batch.rows
            found.append(chosen + first)
            first += 0 if one else size
        rows[split] = torch.cat(found)
    return Parts(rows["train"], rows["val"], rows["test"], "the task's")


def _edges(batch: LabelledBatch) -> Tensor:
    edges = getattr(batch.graph, "edge_index", batch.graph)
    if not isinstance(edges, Tensor) or edges.layout != torch.strided:
        raise ValueError(
            f"the graphs of this task are a {type(edges).__name__}, which the probe cannot read; "
            "give edge_index tensors"
        )
    return edges


def _dense(x: Tensor) -> Tensor:
    return x.to_dense() if x.layout == torch.sparse_csr else x


def _columns(x: Tensor, values: tuple[int, ...] | None) -> tuple[Tensor, str]:
    """Integer features, of which each value becomes a column."""
    sizes = values or tuple(int(column.max()) + 1 for column in x.t())
    if sum(sizes) > _EMBEDDED:
        raise ValueError(
            f"the task's integer features have {sum(sizes):,} values; the probe takes up to "
            f"{_EMBEDDED:,}"
        )
    columns = [one_hot(column, size) for column, size in zip(x.t(), sizes, strict=True)]
    note = f"{len(sizes)} integer features became {sum(sizes)} columns, one for each value"
    return torch.cat(columns, dim=1).float(), note


def _symmetric(edge_index: Tensor, nodes: int) -> bool:
    source, target = edge_index.long()
    forward = (source * nodes + target).unique()
    return bool(forward.equal((target * nodes + source).unique()))


def _check_splits(splits: int | None) -> None:
    if splits is not None and (isinstance(splits, bool) or splits < 1):
        raise ValueError(f"splits={splits!r} is not valid; give at least 1")
