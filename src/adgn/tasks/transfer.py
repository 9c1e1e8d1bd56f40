"""Graph transfer: a number at one node must be reported at another, far away."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field, StrictInt

from adgn._util.progress import ProgressCallback
from adgn.tasks.authors import ROUNDS
from adgn.training.config import TaskConfig
from adgn.training.tasks import TaskData, TaskSize, register_task

if TYPE_CHECKING:  # what brings torch is imported where it is used: listing the tasks is quick
    import torch

    from adgn.training.batches import Split
    from adgn.training.config import TrainConfig

BATCH_SIZE = 100


class TransferConfig(TaskConfig):
    """The graphs."""

    topology: Literal["line", "ring", "crossed_ring"] = Field(
        default="line", description="which graphs"
    )
    distance: StrictInt = Field(default=10, ge=1, description="edges between the two nodes")
    data_seed: StrictInt = Field(default=0, ge=0, description="seed of the numbers")
    train: StrictInt = Field(default=1000, ge=1, description="train graphs")
    val: StrictInt = Field(default=100, ge=1, description="validation graphs")
    test: StrictInt = Field(default=100, ge=1, description="test graphs")


def _defaults(task: Mapping[str, Any], model: str) -> dict[str, Any]:
    distance = task.get("distance", TransferConfig.model_fields["distance"].default)
    layers = math.ceil(1.28 * distance) if isinstance(distance, int) and distance >= 1 else 1
    return {
        # A layer carries the number one edge further; a few more make it easier to train.
        "model": {"hidden_channels": 32, "num_layers": layers, "encoder": "linear_no_bias"},
        "optimizer": {"name": "adam", "lr": 0.002},
        "stopping": {"monitor": "log10_mse", "patience": 100},
        "loop": {"max_epochs": 1000, "batch_size": BATCH_SIZE, "clip_norm": 1.0},
        "seed": 0,
    }


def _size(config: "TrainConfig") -> TaskSize:
    from adgn.data.transfer import transfer_size

    task = TransferConfig.of(config)
    graphs = task.train + task.val + task.test
    nodes, edges, data = transfer_size(task.topology, task.distance, graphs)
    batch = min(config.loop.batch_size or BATCH_SIZE, task.train)
    return TaskSize(data, batch * nodes, batch * edges, 1, 1, graphs=batch)


@register_task(
    "graph-transfer",
    family="transfer",
    summary="the number at one node, reported at another `distance` edges away",
    objective="regression",
    config=TransferConfig,
    defaults=_defaults,
    # The signal needs a large T = Lε to go far; a weight per layer keeps it from growing on
    # the way, and without biases nothing but the signal moves.
    model_defaults={
        "adgn": {"phi": "sum", "epsilon": 1.0, "weight_sharing": False, "bias": False},
        **ROUNDS,
    },
    protocol="the package's own; the paper has no such task",
    seeds=(0, 1, 2, 3),
    size=_size,
    compact={"optimizer.lr": [3e-3, 1e-2], "model.hidden_channels": [16, 32]},
)
def _build(
    config: "TrainConfig", device: "torch.device", progress: ProgressCallback | None
) -> TaskData:
    from adgn.data import GraphTransfer
    from adgn.training.batches import PackedBatches
    from adgn.training.metrics import log10

    task = TransferConfig.of(config)
    counts: dict[Split, int] = {"train": task.train, "val": task.val, "test": task.test}
    packed = {
        split: GraphTransfer(
            task.topology, task.distance, split, num_graphs=count, seed=task.data_seed
        ).packed.to(device)
        for split, count in counts.items()
    }
    batch_size = config.loop.batch_size or BATCH_SIZE
    constant = float((packed["test"].y - packed["train"].y.mean()).double().square().mean())
    return TaskData(
        in_channels=packed["train"].x.size(1),
        out_channels=1,
        level="node",  # the target node's output is read
        train=PackedBatches(packed["train"], batch_size, seed=config.seed),
        sources={split: PackedBatches(graphs, batch_size) for split, graphs in packed.items()},
        constant={"log10_mse": log10(constant)},
    )
