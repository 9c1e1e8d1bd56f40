"""Graph property prediction: distances, diameters and the like on small random graphs."""

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from pydantic import Field, StrictFloat, StrictInt

from adgn.data.property_settings import PropertySettings
from adgn.data.property_targets import TARGETS
from adgn.tasks.published import published_value
from adgn.training.config import TaskConfig
from adgn.training.tasks import Progress, PublishedValue, TaskData, TaskSize, register_task

if TYPE_CHECKING:  # what brings torch is imported where it is used: listing the tasks is quick
    import torch

    from adgn.nn.network import Level
    from adgn.training.config import TrainConfig

__all__ = ["PropertyConfig"]

PAPER_BATCH_SIZE = 512
_PAPER = PropertySettings()


class PropertyConfig(TaskConfig):
    """The data set; the defaults are the paper's."""

    data_seed: StrictInt = Field(
        default=_PAPER.seed, ge=0, lt=2**31, description="seed of the graphs"
    )
    min_nodes: StrictInt = Field(
        default=_PAPER.min_nodes, description="nodes of the smallest graphs"
    )
    train: tuple[StrictInt, StrictInt] = Field(
        default=_PAPER.train,
        description="train split: blocks of graphs (one size each), graphs per block",
    )
    val: tuple[StrictInt, StrictInt] = Field(
        default=_PAPER.val, description="validation split, alike"
    )
    test: tuple[StrictInt, StrictInt] = Field(default=_PAPER.test, description="test split, alike")
    edge_noise: StrictFloat = Field(
        default=_PAPER.edge_noise, description="share of edges moved at random"
    )
    root: str | None = Field(default=None, description='data root; "none": the usual one')

    def settings(self) -> PropertySettings:
        """The settings of the data set."""
        return PropertySettings(
            self.data_seed, self.min_nodes, self.train, self.val, self.test, self.edge_noise
        )


def _defaults(task: Mapping[str, Any], model: str) -> dict[str, Any]:
    return {
        "model": {"hidden_channels": 30, "num_layers": 20, "readout": "mlp"},
        "optimizer": {"name": "adam", "lr": 0.003, "weight_decay": 1e-6},
        "stopping": {"monitor": "log10_mse_paper", "patience": 100},
        "loop": {"max_epochs": 1500, "batch_size": PAPER_BATCH_SIZE},
        "seed": 41,
    }


def _size(level: "Level", config: "TrainConfig") -> TaskSize:
    from adgn.data.property import property_size

    task = config.task
    if not isinstance(task, PropertyConfig):
        raise TypeError(f"task is a {type(task).__name__}; expected PropertyConfig")
    settings = task.settings()
    nodes, edges, data = property_size(settings)
    batch = min(config.loop.batch_size or PAPER_BATCH_SIZE, settings.num_graphs("train"))
    return TaskSize(data, batch * nodes, batch * edges, 2, 1, level)


def _build(
    target: str, config: "TrainConfig", device: "torch.device", progress: Progress | None
) -> TaskData:
    from adgn.data import GraphPropertyDataset
    from adgn.training.batches import PackedBatches

    task, batch_size = config.task, config.loop.batch_size or PAPER_BATCH_SIZE
    if not isinstance(task, PropertyConfig):
        raise TypeError(f"task is a {type(task).__name__}; expected PropertyConfig")
    sets = {
        split: GraphPropertyDataset(
            task.root,
            split,
            target,
            seed=task.data_seed,
            min_nodes=task.min_nodes,
            train=task.train,
            val=task.val,
            test=task.test,
            edge_noise=task.edge_noise,
            progress=progress,
        )
        for split in ("train", "val", "test")
    }
    constant = sets["train"].constant_score()
    packed = {split: dataset.packed.to(device) for split, dataset in sets.items()}
    return TaskData(
        in_channels=packed["train"].x.size(1),
        out_channels=1,
        level=TARGETS[target].level,
        train=PackedBatches(packed["train"], batch_size, seed=config.seed),
        # Evaluation goes by the paper's batches, whose size is part of its metric.
        sources={
            "train": PackedBatches(packed["train"], PAPER_BATCH_SIZE),
            "val": PackedBatches(packed["val"], PAPER_BATCH_SIZE),
            "test": PackedBatches(packed["test"], PAPER_BATCH_SIZE),
        },
        constant={"log10_mse": constant.per_graph, "log10_mse_paper": constant.paper},
    )


def _published(config: "TrainConfig") -> PublishedValue | None:
    from adgn.nn import model_spec

    task = config.task
    if not isinstance(task, PropertyConfig) or task.settings() != _PAPER:
        return None  # other graphs: the paper's number says nothing about them
    spec = model_spec(config.model.name)
    return published_value(task.name, spec.title, config.model.options)


for _target in TARGETS.values():
    _name = f'; the paper calls it "{_target.published_as}"' if _target.published_as else ""
    register_task(
        _target.name,
        family="property",
        summary=f"{_target.description} (per {_target.level}{_name})",
        objective="regression",
        config=PropertyConfig,
        defaults=_defaults,
        published=_published,
        model_defaults={"adgn": {"phi": "sum", "epsilon": 0.1, "gamma": 0.1}},
        protocol="the paper's; 20 layers and 30 units are the largest of its grid",
        seeds=(41, 95, 12, 35),
        size=partial(_size, _target.level),
        compact={
            "optimizer.lr": [3e-3],
            "optimizer.weight_decay": [1e-6],
            "model.num_layers": [5, 10, 20],
            "model.hidden_channels": [30],
        },
    )(partial(_build, _target.name))
