"""What a task is, all tasks by name, and data that runs of one process share."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from adgn._util.progress import ProgressCallback
from adgn._util.registry import Registry
from adgn.training.config import ModelConfig, TaskConfig, merged

if TYPE_CHECKING:  # without torch, so that listing the tasks is quick
    import torch

    from adgn.nn.network import Level
    from adgn.training.batches import BatchSource, Split
    from adgn.training.config import TrainConfig
    from adgn.training.metrics import Scores

from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Made = TypeVar("Made")
_store: ContextVar[dict[Hashable, Any] | None] = ContextVar("shared_data", default=None)


@contextmanager
def shared_data() -> Iterator[None]:
    """Inside, the data of a task are loaded once and serve every run that needs the same.

    Operators built from a graph are remembered with its tensors, so they are shared as well.

    Example:
        >>> with shared_data():
        ...     first = cached_data("key", lambda: object())
        ...     first is cached_data("key", lambda: object())
        True
        >>> cached_data("key", lambda: "made anew outside")
        'made anew outside'
    """
    if _store.get() is not None:
        yield  # an outer one keeps more
        return
    token = _store.set({})
    try:
        yield
    finally:
        _store.reset(token)


def cached_data(key: Hashable, make: Callable[[], Made]) -> Made:
    """What `make` gave for this key before, inside `shared_data`; otherwise made anew."""
    store = _store.get()
    if store is None:
        return make()
    if key not in store:
        store[key] = make()
    made: Made = store[key]
    return made


Build = TypeVar(
    "Build", bound="Callable[[TrainConfig, torch.device, ProgressCallback | None], TaskData]"
)
Defaults = Callable[[Mapping[str, Any], str], Mapping[str, Any]]


@dataclass(frozen=True)
class TaskData:
    """A task, ready to be trained on.

    Attributes:
        in_channels, out_channels: Features per node, and outputs per node or graph.
        level: What has outputs.
        train: The train batches in training order.
        sources: The batches of all splits in a fixed order, for evaluation.
        constant: The test scores of the best prediction that ignores the input.
        embeddings: Where features are integers: how many values each column has.
        notes: What a user should know before trusting a score.
        transforms: What transforms did to the graph, in a line each.
        fully_adjacent: Whether the last layer is to be on the complete graph, whatever the model.
    """

    in_channels: int
    out_channels: int
    level: "Level"
    train: "BatchSource"
    sources: "Mapping[Split, BatchSource]"
    constant: Mapping[str, float]
    embeddings: tuple[int, ...] | None = None
    notes: tuple[str, ...] = ()
    transforms: tuple[str, ...] = ()
    fully_adjacent: bool = False


@dataclass(frozen=True)
class TaskSize:
    """How large the data of a task will be, known before they are made or read.

    Attributes:
        data: Bytes of all splits.
        nodes, edges: Of the largest train batch, both directions of an edge counted.
        in_channels, out_channels, level, embeddings, fully_adjacent: As of `TaskData`.
        graphs: How many graphs that batch has.
    """

    data: float
    nodes: int
    edges: int
    in_channels: int
    out_channels: int
    level: "Level" = "node"
    embeddings: tuple[int, ...] | None = None
    graphs: int = 1
    fully_adjacent: bool = False


@dataclass(frozen=True)
class PublishedValue:
    """A number of a publication: which score it is, of which row and column of which table.

    Attributes:
        metric: The score of this package that it compares with; accuracies are shares here, while
            most tables print percent.
        mean, std: The number, and its standard deviation where the table has one.
        table, row, column: Where it stands, as the publication calls them.
        direction: Where nodes listened; `"any"` for graphs without directions, on which all are
            alike, and where the graph is not used. `None` where it is not known.
    """

    metric: str
    mean: float
    std: float | None
    table: str
    row: str
    column: str
    direction: str | None = None


@dataclass(frozen=True)
class ExtraScore:
    """A score of a task besides those of its objective, computed from them.

    Attributes:
        name: Its name among the scores.
        title, meaning: What reports call it, such as `"normalised"`, and what it is, in a line.
        value: The score from the configuration and the other scores of a split.
        split, digits: The split that reports show it for, and with how many decimals.
        published: What is published for a row and a column by their titles.
    """

    name: str
    title: str
    meaning: str
    value: "Callable[[TrainConfig, Scores], float]"
    split: str = "test"
    digits: int = 3
    published: Callable[[str, str], float | None] = lambda row, column: None


@dataclass(frozen=True)
class TaskEntry:
    """A task as it is registered.

    Attributes:
        name, objective: Its name, and `"regression"` or `"classification"`.
        build: Makes the data of a configuration.
        config: The settings it has.
        defaults: Sections of the configuration for given task settings and a model by name.
        family, summary: The group of experiments it belongs to, and what is predicted, in a line.
        model_defaults: For a model by name, its options in this task's protocol.
        protocol: Where the defaults come from.
        seeds: Of the initialisations in model selection; empty: that of the configuration.
        splits: How many splits of the data model selection goes over, for given task settings;
            `None`: there is just one.
        per_split: Whether a configuration is selected for each split by itself.
        compact: Values of settings that a compact search tries, instead of the usual ones.
        published: What was published for a configuration, where something was.
        extra_scores: Scores besides those of the objective.
        size: How large the data of a configuration are, by which memory is estimated before a run;
            `None`: unknown, and nothing is estimated.
    """

    name: str
    objective: str
    build: "Callable[[TrainConfig, torch.device, ProgressCallback | None], TaskData]"
    config: type[TaskConfig] = TaskConfig
    defaults: Defaults = lambda task, model: {}
    family: str = "own"
    summary: str = ""
    model_defaults: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    protocol: str = ""
    seeds: tuple[int, ...] = ()
    splits: Callable[[TaskConfig], int | None] = lambda settings: None
    per_split: bool = False
    compact: Mapping[str, list[Any]] | None = None
    published: "Callable[[TrainConfig], PublishedValue | None]" = lambda config: None
    extra_scores: tuple[ExtraScore, ...] = ()
    size: "Callable[[TrainConfig], TaskSize] | None" = None


TASKS: Registry[TaskEntry] = Registry("task", "task")


def register_task(
    name: str,
    *,
    objective: str,
    defaults: Mapping[str, Any] | Defaults | None = None,
    **options: Any,
) -> Callable[[Build], Build]:
    """Decorator: makes a task known as `name`, whose data the function makes.

    The function is called as `build(config, device, progress)` and returns `TaskData`.

    Args:
        name: The name for `train`.
        objective: `"regression"` or `"classification"`.
        defaults: Sections of the configuration, `{"loop": {"max_epochs": 100}}`, or a function
            that makes them from the task's settings and the name of the model.
        **options: Further attributes of a [`TaskEntry`][adgn.training.TaskEntry], such as
            `config`, `summary`, `family`, `seeds` and `compact`.

    Example:
        >>> import adgn
        >>> from adgn.training import TaskData, register_task, unregister_task
        >>> @register_task("my-task", objective="regression", summary="my own")
        ... def build(config, device, progress):
        ...     numbers = adgn.data.GraphTransfer("line", 3, "train", num_graphs=8).packed
        ...     batches = adgn.training.PackedBatches(numbers.to(device), 8, seed=config.seed)
        ...     sources = dict.fromkeys(("train", "val", "test"), batches)
        ...     return TaskData(numbers.x.size(1), 1, "node", batches, sources, constant={})
        >>> adgn.train("my-task", loop={"max_epochs": 2}).epochs
        2
        >>> unregister_task("my-task")
    """

    def register(build: Build) -> Build:
        made = defaults if callable(defaults) else lambda task, model: defaults or {}
        TASKS.add(name, TaskEntry(name, objective, build, defaults=made, **options))
        return build

    return register


def unregister_task(name: str) -> None:
    """Forgets a task, so that its name is free: for trials and for cells that are run again."""
    TASKS.remove(name)


def task_entry(name: str) -> TaskEntry:
    """The task of this name."""
    return TASKS.find(name)


def with_extra_scores(config: "TrainConfig", scores: "Scores") -> "Scores":
    """The scores of a split, and what the task declares besides."""
    extra = task_entry(config.task.name).extra_scores
    return {**scores, **{score.name: score.value(config, scores) for score in extra}}


def task_defaults(task: Mapping[str, Any], model: Any = None) -> dict[str, Any]:
    """The sections of a configuration as the protocol of a task has them, for a model section."""
    entry = task_entry(task["name"])
    usual = ModelConfig.model_fields["name"].default
    name = model.get("name", usual) if isinstance(model, Mapping) else usual
    return merged(entry.defaults(task, name), {"model": entry.model_defaults.get(name, {})})
