"""Tree-NeighborsMatch: the value of one leaf must reach the root past all others."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pydantic import Field, StrictInt

from adgn._util.progress import ProgressCallback
from adgn.tasks.nodes import constant_scores
from adgn.tasks.published import published_for, published_normalised_accuracy
from adgn.training.config import TaskConfig
from adgn.training.tasks import ExtraScore, TaskData, TaskSize, register_task

if TYPE_CHECKING:  # what brings torch is imported where it is used: listing the tasks is quick
    import torch

    from adgn.training.config import TrainConfig
    from adgn.training.metrics import Scores

MAX_PASSES = 50_000
_AT_BEST = {"ties": False, "target": 1.0}  # stop once all is right


class TreeConfig(TaskConfig):
    """The trees."""

    radius: StrictInt = Field(
        default=3, ge=2, description="depth of the trees; the leaves are 2^radius"
    )
    data_seed: StrictInt = Field(
        default=11, ge=0, lt=2**32, description="of the values and the split"
    )
    permutations: StrictInt | None = Field(
        default=None, ge=1, description='permutations of the values; "none": the protocol\'s number'
    )


def _radius(task: Mapping[str, Any]) -> int:
    radius = task.get("radius", TreeConfig.model_fields["radius"].default)
    return radius if isinstance(radius, int) and radius >= 2 else 2  # a wrong one is told later


def tree_layers(model: str, radius: int) -> int:
    """The layers of a model in the protocol: the radius for baselines, as Alon and Yahav had them.

    A-DGN has one more, as in the paper.

    Example:
        >>> tree_layers("gcn", 3), tree_layers("adgn", 3)
        (3, 4)
    """
    return radius + 1 if model == "adgn" else radius


def _batch_size(radius: int) -> int:
    return 64 if radius <= 3 else 1024 if radius <= 6 else 2048


def _defaults(task: Mapping[str, Any], model: str) -> dict[str, Any]:
    radius = _radius(task)
    passes, batch = 1000 if radius == 2 else 100, {"batch_size": _batch_size(radius)}
    return {
        "model": {
            "hidden_channels": 32,
            "num_layers": tree_layers(model, radius),
            "encoder": "embedding",
            "readout": "linear_no_bias",
        },
        "optimizer": {"name": "adam", "lr": 0.001},
        "schedule": {"name": "plateau", "factor": 0.5, "patience": 10, "threshold": 1e-4},
        "stopping": {"split": "train", "monitor": "accuracy", "patience": 20, **_AT_BEST},
        "loop": {"max_epochs": MAX_PASSES // passes, "passes_per_epoch": passes, **batch},
        "seed": 11,
    }


def _size(config: "TrainConfig") -> TaskSize:
    from adgn.data.trees import tree_size

    task = TreeConfig.of(config)
    graphs, data = tree_size(task.radius, task.permutations)
    classes = 2 ** min(task.radius, 60) + 1
    batch = min(config.loop.batch_size or _batch_size(task.radius), max(1, graphs))
    nodes = 2 * classes * batch
    known = (classes, classes)
    return TaskSize(data, nodes, 2 * nodes, 2, classes, embeddings=known, graphs=batch)


def normalised_accuracy(config: "TrainConfig", scores: "Scores") -> float:
    """Accuracy per trained unit, as the paper defines it: 100 · accuracy / (d · distinct layers).

    Example:
        >>> from adgn.training import resolve_config
        >>> normalised_accuracy(resolve_config("tree-neighbors-match"), {"accuracy": 1.0})
        3.125
    """
    shared = config.model.options.get("weight_sharing", False)
    layers = 1 if shared else config.model.num_layers
    return 100 * scores["accuracy"] / (config.model.hidden_channels * layers)


@register_task(
    "tree-neighbors-match",
    family="trees",
    summary="the value of the leaf whose key the root asks for (train accuracy counts)",
    objective="classification",
    config=TreeConfig,
    defaults=_defaults,
    published=lambda config: published_for(config, radius=TreeConfig.of(config).radius),
    size=_size,
    model_defaults={"adgn": {"phi": "sum", "epsilon": 1.0, "gamma": 0.1, "act": "relu"}},
    protocol="Alon and Yahav's, as the paper takes it over; ε = 1 and ReLU as in its "
    "reference code (the paper's table says ε = 0.1, which learns far more slowly)",
    compact={"model.hidden_channels": [32, 64]},
    extra_scores=(
        ExtraScore(
            name="normalised_accuracy",
            title="normalised",
            meaning="accuracy in percent per trained unit",
            value=normalised_accuracy,
            split="train",
            digits=2,  # as many as the paper has
            published=published_normalised_accuracy,
        ),
    ),
)
def _build(
    config: "TrainConfig", device: "torch.device", progress: ProgressCallback | None
) -> TaskData:
    from adgn.data import TreeNeighborsMatch
    from adgn.training.batches import PackedBatches

    task = TreeConfig.of(config)
    options: dict[str, Any] = {"seed": task.data_seed, "num_permutations": task.permutations}
    trees, others = (TreeNeighborsMatch(task.radius, s, **options) for s in ("train", "test"))
    train, test, classes = trees.packed.to(device), others.packed.to(device), trees.num_classes
    batch_size = config.loop.batch_size or _batch_size(task.radius)
    return TaskData(
        in_channels=train.x.size(1),
        out_channels=classes,
        level="node",  # the root's output is read
        train=PackedBatches(train, batch_size, seed=config.seed),
        sources={
            "train": PackedBatches(train, batch_size),
            "test": PackedBatches(test, batch_size),
        },
        constant=constant_scores(train.y.cpu(), test.y.cpu(), classes),
        embeddings=(classes, classes),
    )
