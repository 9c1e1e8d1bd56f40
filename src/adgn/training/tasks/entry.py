"""What a task is."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from adgn.training.config import TaskConfig

if TYPE_CHECKING:  # without torch, so that listing the tasks is quick
    import torch

    from adgn.data.published import PublishedValue
    from adgn.nn.network import Level
    from adgn.training.batches import BatchSource, Split
    from adgn.training.config import TrainConfig

__all__ = ["Progress", "TaskData", "TaskEntry", "TaskSize"]

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class TaskData:
    """A task, ready to be trained on.

    Attributes:
        in_channels: Features per node.
        out_channels: Outputs per node or graph.
        level: What has outputs.
        train: The train batches in training order.
        sources: The batches of all splits in a fixed order, for evaluation.
        constant: The test scores of the best prediction that ignores the input.
        embeddings: Where features are integers: how many values each column has.
        notes: What a user should know before trusting a score.
    """

    in_channels: int
    out_channels: int
    level: "Level"
    train: "BatchSource"
    sources: "Mapping[Split, BatchSource]"
    constant: Mapping[str, float]
    embeddings: tuple[int, ...] | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class TaskSize:
    """How large the data of a task will be, known before they are made or read.

    Attributes:
        data: Bytes of all splits.
        nodes: Of the largest train batch.
        edges: Alike, both directions of an edge counted.
        in_channels: As of `TaskData`, and so are the following.
        out_channels: Outputs per node or graph.
        level: What has outputs.
        embeddings: Where features are integers: how many values each column has.
    """

    data: float
    nodes: int
    edges: int
    in_channels: int
    out_channels: int
    level: "Level" = "node"
    embeddings: tuple[int, ...] | None = None


@dataclass(frozen=True)
class TaskEntry:
    """A task as it is registered.

    Attributes:
        name: Its name.
        family: The group of experiments that it belongs to.
        summary: What is predicted, in a line.
        objective: The name of its objective.
        config: The settings it has.
        defaults: Sections of the configuration for given task settings and a model by name: the
            protocol.
        build: Makes the data of a configuration.
        published: What the paper reports for this configuration, if it is one of the paper's.
        model_defaults: For a model by name, its options in this task's protocol.
        protocol: Where the defaults come from.
        size: How large the data of a configuration are, by which memory is estimated before a run;
            `None`: unknown, and nothing is estimated.
    """

    name: str
    family: str
    summary: str
    objective: str
    config: type[TaskConfig]
    defaults: Callable[[Mapping[str, Any], str], dict[str, Any]]
    build: "Callable[[TrainConfig, torch.device, Progress | None], TaskData]"
    published: "Callable[[TrainConfig], PublishedValue | None]" = lambda _: None
    model_defaults: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    protocol: str = ""
    size: Callable[["TrainConfig"], TaskSize] | None = None
