"""Node classification: the paper's 20/30 data sets and its heterophilic ones."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field, StrictBool, StrictInt, field_validator

from adgn._util.progress import ProgressCallback
from adgn.data.node_datasets import NODE_DATASETS
from adgn.tasks.authors import NODE_DEPTHS
from adgn.tasks.published import published_for
from adgn.training.config import TaskConfig
from adgn.training.tasks import (
    PublishedValue,
    TaskData,
    TaskSize,
    cached_data,
    register_task,
)

if TYPE_CHECKING:  # what brings torch is imported where it is used: listing the tasks is quick
    import torch
    from torch import Tensor
    from torch_geometric.data import Data

    from adgn.data import NodeSplit
    from adgn.training.batches import BatchSource, Split
    from adgn.training.config import TrainConfig


class NodeConfig(TaskConfig):
    """The split, and how the graph is read."""

    splits: Literal["paper", "public"] = Field(
        default="paper",
        description='"paper": 20 train and 30 validation nodes per class, or the ten fixed '
        'splits of heterophilic graphs; "public": the split that comes with the data set',
    )
    split: StrictInt = Field(default=0, ge=0, description="which of the splits, from 0")
    largest_component: StrictBool = Field(
        default=False, description="keep the largest component only"
    )
    features: Literal["auto", "sparse", "dense"] = Field(
        default="auto", description="how features are kept; auto: sparse where it pays"
    )
    normalize: StrictBool = Field(
        default=False, description="divide the features of each node by their sum"
    )
    transform: list[dict[str, Any]] = Field(
        default_factory=list,
        description='transforms of the graph before any method sees it, in order: a name, "sdrf", '
        'with settings "sdrf:iterations=20", several "undirected | digl:k=32", or a list',
    )
    root: str | None = Field(default=None, description='data root; "none": the usual one')

    @field_validator("transform", mode="before")
    @classmethod
    def _transforms_by_name(cls, given: Any) -> Any:
        if given is None or given == []:
            return []
        from adgn.transforms import resolve_transforms  # it brings torch

        return [transform.settings() for transform in resolve_transforms(given)]


def _size(config: "TrainConfig") -> TaskSize:
    task = NodeConfig.of(config)
    known = NODE_DATASETS[task.name]
    share = 1.0 if task.features == "dense" else 0.1  # of the features that are kept
    edges = known.edges
    if task.transform:
        from adgn.transforms import resolve_transforms  # it brings torch

        for transform in resolve_transforms(task.transform):
            edges = transform.expected_edges(known.nodes, edges)
    data = 4.0 * share * known.nodes * known.features + 32.0 * edges
    return TaskSize(data, known.nodes, edges, known.features, known.classes)


def _build(
    config: "TrainConfig", device: "torch.device", progress: ProgressCallback | None
) -> TaskData:
    from adgn.data import load, transformed
    from adgn.data.features import rows_sum_to_one
    from adgn.graph.blocks import graph_as_given
    from adgn.training.batches import FullGraph

    task = NodeConfig.of(config)
    reading = {"features": task.features, "largest_component": task.largest_component}

    def read() -> "Data":
        data = load(task.name, task.root, **reading)  # type: ignore[arg-type]
        if task.normalize:
            data.x = rows_sum_to_one(data.x)
        return transformed(data, task.transform, root=task.root).to(device)

    about = (*reading.values(), task.normalize, str(task.transform))
    data = cached_data(("graph", task.name, task.root, *about, device), read)
    split = _split(task, data)
    masks: dict[Split, Tensor] = {"train": split.train, "val": split.val, "test": split.test}
    number = data.get("node_id")  # of the nodes of a component
    graph, weight = graph_as_given(
        data.edge_index, data.get("edge_weight"), data.num_nodes, normalized=data.normalized
    )
    sources: dict[Split, BatchSource] = {
        name: FullGraph(data.x, graph, data.y, mask.to(device), edge_weight=weight, node_id=number)
        for name, mask in masks.items()
    }
    classes = int(data.y.max()) + 1
    return TaskData(
        in_channels=data.x.size(1),
        out_channels=classes,
        level="node",
        train=sources["train"],
        sources=sources,
        constant=constant_scores(data.y[split.train], data.y[split.test], classes),
        notes=NODE_DATASETS[task.name].defects,
        transforms=tuple(data.transform_notes),
        fully_adjacent=data.fully_adjacent,
    )


def _split(task: NodeConfig, data: Any) -> "NodeSplit":
    from adgn.data import PAPER_DATA_SEEDS, fixed_split, split_per_class

    published = NODE_DATASETS[task.name].splits
    if task.splits == "public" and published == "per class":
        raise ValueError(
            f"task.splits='public' is not there for {task.name!r}, which comes without a split; "
            "use 'paper'"
        )
    if published in ("geom-gcn", "file") or task.splits == "public":
        return fixed_split(data, task.split)
    if task.split >= len(PAPER_DATA_SEEDS):
        raise ValueError(
            f"task.split={task.split} is out of range; the paper has {len(PAPER_DATA_SEEDS)} "
            "splits, from 0"
        )
    return split_per_class(data.y, PAPER_DATA_SEEDS[task.split])


def constant_scores(train: "Tensor", test: "Tensor", classes: int) -> dict[str, float]:
    """The test scores of always answering the most frequent train class.

    Where several are as frequent (all of them, in a split with as many train nodes per class), the
    mean over these answers: which of them to give is a guess.

    Example:
        >>> import torch
        >>> constant_scores(torch.tensor([1, 1, 0]), torch.tensor([0, 1, 1, 1]), 2)["accuracy"]
        0.75
        >>> constant_scores(torch.tensor([1, 0]), torch.tensor([0, 1, 1, 1]), 2)["accuracy"]
        0.5
    """
    import torch

    from adgn.training.metrics import macro_f1

    frequency = torch.bincount(train, minlength=classes)
    answers = (frequency == frequency.max()).nonzero().view(-1).tolist()
    occurring = torch.bincount(test, minlength=classes)
    f1 = []
    for answer in answers:
        confusion = torch.zeros(classes, classes, dtype=torch.long)
        confusion[:, answer] = occurring
        f1.append(macro_f1(confusion))
    hits = int(occurring[answers].sum())
    return {"accuracy": hits / (test.numel() * len(answers)), "macro_f1": sum(f1) / len(f1)}


def _published(config: "TrainConfig") -> PublishedValue | None:
    task = NodeConfig.of(config)
    if task.largest_component or task.transform:
        return None  # another graph than the paper's
    if task.splits == "public" and NODE_DATASETS[task.name].splits not in ("geom-gcn", "file"):
        return None  # of heterophilic graphs the public splits are the paper's
    return published_for(config)


def _paper_splits(settings: TaskConfig) -> int | None:
    from adgn.data import PAPER_DATA_SEEDS

    public = isinstance(settings, NodeConfig) and settings.splits == "public"
    return None if public else len(PAPER_DATA_SEEDS)


_COMMON: Mapping[str, Any] = {
    "objective": "classification",
    "config": NodeConfig,
    "published": _published,
    "size": _size,
    "protocol": "the paper's; values out of its grid, not selected for this data set",
}
_TWENTY_THIRTY: Mapping[str, Any] = {
    "family": "benchmarks",
    "defaults": {
        "model": {"hidden_channels": 64, "num_layers": 10},
        "optimizer": {"name": "adamw", "lr": 0.001, "weight_decay": 0.1},
        "stopping": {"monitor": "accuracy", "patience": 50},
        "loop": {"max_epochs": 10000},
        "seed": 1978873828,
    },
    "model_defaults": {"adgn": {"phi": "gcn", "epsilon": 0.1, "gamma": 0.1}, **NODE_DEPTHS},
    "seeds": (1978873828, 3780411061, 1201489814, 2805583900, 594910111),
    "splits": _paper_splits,
    "per_split": True,
    "compact": {
        "optimizer.lr": [1e-2, 1e-3],
        "optimizer.weight_decay": [0.1],
        "model.num_layers": [2, 5, 10],
        "model.hidden_channels": [64],
    },
}
_HETEROPHILIC: Mapping[str, Any] = {
    "family": "heterophily",
    "defaults": {
        "model": {"hidden_channels": 128, "num_layers": 8},
        "optimizer": {"name": "adam", "lr": 0.01, "weight_decay": 0.01},
        "stopping": {"monitor": "accuracy", "patience": 100},
        "loop": {"max_epochs": 1500},
        "seed": 0,
    },
    "model_defaults": {"adgn": {"phi": "sum", "epsilon": 0.1, "gamma": 0.1}, **NODE_DEPTHS},
    "splits": lambda settings: 10,
    # On small graphs dropout, depth and step size decide; what matters least has one value.
    "compact": {
        "optimizer.lr": [1e-2, 3e-3],
        "optimizer.weight_decay": [1e-2],
        "model.num_layers": [2, 8],
        "model.hidden_channels": [64],
        "model.dropout": [0.0, 0.5],
        "model.act": ["tanh"],
        "model.gamma": [0.1],
    },
}

for _graph in NODE_DATASETS.values():
    register_task(
        _graph.name,
        summary=f"{_graph.title}: the class of a node, {_graph.classes} classes",
        **(_HETEROPHILIC if _graph.splits in ("geom-gcn", "file") else _TWENTY_THIRTY),
        **_COMMON,
    )(_build)
