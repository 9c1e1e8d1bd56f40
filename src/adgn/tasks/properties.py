"""Graph property prediction: distances, diameters and the like on small random graphs."""

from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING

from pydantic import Field, StrictFloat, StrictInt

from adgn._util.progress import ProgressCallback
from adgn.data.property_targets import TARGETS, PropertySettings
from adgn.tasks.authors import ROUNDS
from adgn.tasks.published import published_for
from adgn.training.config import TaskConfig
from adgn.training.tasks import PublishedValue, TaskData, TaskSize, register_task

if TYPE_CHECKING:  # what brings torch is imported where it is used: listing the tasks is quick
    import torch

    from adgn.nn.network import Level
    from adgn.training.batches import Split
    from adgn.training.config import TrainConfig

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


def _size(level: "Level", config: "TrainConfig") -> TaskSize:
    from adgn.data.property import property_size

    settings = PropertyConfig.of(config).settings()
    nodes, edges, data = property_size(settings)
    batch = min(config.loop.batch_size or PAPER_BATCH_SIZE, settings.num_graphs("train"))
    return TaskSize(data, batch * nodes, batch * edges, 2, 1, level, graphs=batch)


def _build(
    target: str, config: "TrainConfig", device: "torch.device", progress: ProgressCallback | None
) -> TaskData:
    from adgn.data import GraphPropertyDataset
    from adgn.training.batches import PackedBatches

    task = PropertyConfig.of(config)
    options = {**asdict(task.settings()), "progress": progress}
    splits: tuple[Split, ...] = ("train", "val", "test")
    sets = {split: GraphPropertyDataset(task.root, split, target, **options) for split in splits}
    constant = sets["train"].constant_score()
    packed = {split: dataset.packed.to(device) for split, dataset in sets.items()}
    batch_size = config.loop.batch_size or PAPER_BATCH_SIZE
    return TaskData(
        in_channels=packed["train"].x.size(1),
        out_channels=1,
        level=TARGETS[target].level,
        train=PackedBatches(packed["train"], batch_size, seed=config.seed),
        # Evaluation goes by the paper's batches, whose size is part of its metric.
        sources={split: PackedBatches(packed[split], PAPER_BATCH_SIZE) for split in splits},
        constant={"log10_mse": constant.per_graph, "log10_mse_paper": constant.paper},
    )


def _published(config: "TrainConfig") -> PublishedValue | None:
    # Of other graphs the paper's number says nothing.
    return published_for(config) if PropertyConfig.of(config).settings() == _PAPER else None


for _target in TARGETS.values():
    _name = f'; the paper calls it "{_target.published_as}"' if _target.published_as else ""
    register_task(
        _target.name,
        family="property",
        summary=f"{_target.description} (per {_target.level}{_name})",
        objective="regression",
        config=PropertyConfig,
        defaults={
            "model": {"hidden_channels": 30, "num_layers": 20, "readout": "mlp"},
            "optimizer": {"name": "adam", "lr": 0.003, "weight_decay": 1e-6},
            "stopping": {"monitor": "log10_mse_paper", "patience": 100},
            "loop": {"max_epochs": 1500, "batch_size": PAPER_BATCH_SIZE},
            "seed": 41,
        },
        published=_published,
        model_defaults={
            "adgn": {"phi": "sum", "epsilon": 0.1, "gamma": 0.1},
            "gesn": {"readout": "ridge"},
            **ROUNDS,
        },
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
