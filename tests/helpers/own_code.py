"""A user's file for tests of plugins: a model, an aggregation and a task."""

import torch
from pydantic import Field

from adgn.data import GraphTransfer
from adgn.nn import LinearAggregation, Model, ModelOptions, register_aggregation, register_model
from adgn.training import ExtraScore, PackedBatches, TaskData, register_task
from adgn.training.config import TaskConfig


@register_aggregation("own-mean")
class MeanAggregation(LinearAggregation):
    """The mean of the neighbours' states."""

    normalization = "mean"


class OwnOptions(ModelOptions):
    """The options of the model."""

    share: float = Field(0.5, ge=0, le=1, description="of the neighbours' states")


class OwnSteps(torch.nn.Module):
    """States mixed with those of neighbours."""

    def __init__(self, channels, num_layers, share):
        super().__init__()
        self.phi, self.num_layers, self.share = MeanAggregation(channels), num_layers, share

    def forward(self, x, edge_index, edge_weight=None):
        """The states after all layers."""
        for _ in range(self.num_layers):
            x = torch.lerp(x, torch.tanh(self.phi(x, edge_index, edge_weight)), self.share)
        return x


@register_model("own-model", options=OwnOptions)
class OwnModel(Model):
    """A model of a user."""

    @staticmethod
    def build_propagation(channels, num_layers, options):
        """The steps."""
        return OwnSteps(channels, num_layers, options.share)


class OwnConfig(TaskConfig):
    """The settings of the task."""

    graphs: int = Field(default=8, ge=1, description="graphs per split")


@register_task(
    "own-task",
    objective="regression",
    config=OwnConfig,
    summary="the number at the other end of a line",
    defaults={"loop": {"max_epochs": 2}, "model": {"num_layers": 3, "hidden_channels": 4}},
    compact={"optimizer.lr": [0.1, 0.01], "model.hidden_channels": [4], "model.share": [0.5]},
    seeds=(1, 2),
    extra_scores=(
        ExtraScore(
            "rmse", "root", "root of the error", lambda config, scores: scores["mse"] ** 0.5
        ),
    ),
)
def build(config, device, progress):
    """The data."""
    splits = {
        split: GraphTransfer("line", 2, split, num_graphs=config.task.graphs).packed.to(device)
        for split in ("train", "val", "test")
    }
    sources = {split: PackedBatches(graphs, 8) for split, graphs in splits.items()}
    train = PackedBatches(splits["train"], 8, seed=config.seed)
    return TaskData(splits["train"].x.size(1), 1, "node", train, sources, constant={"mse": 1.0})
