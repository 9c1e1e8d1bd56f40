"""A user's file for tests of ranks: a task with one graph, a ring with some longer edges."""

import torch
from pydantic import Field

from adgn.training import FullGraph, TaskData, register_task
from adgn.training.config import TaskConfig

NODES = 24


class RingConfig(TaskConfig):
    """How the targets are drawn."""

    draw: int = Field(default=0, description="seed of the targets")


@register_task("ring", objective="classification", config=RingConfig, summary="for tests")
def build(config, device, progress):
    """Features and classes at random, two thirds of the nodes to learn from."""
    generator = torch.Generator().manual_seed(RingConfig.of(config).draw)
    numbers = torch.arange(NODES)
    there = torch.cat([numbers, numbers, numbers])
    back = torch.cat([(numbers + 1) % NODES, (numbers + 2) % NODES, (numbers * 5) % NODES])
    edges = torch.stack([torch.cat([there, back]), torch.cat([back, there])]).to(device)
    x = torch.randn(NODES, 3, generator=generator).to(device)
    y = torch.randint(0, 3, (NODES,), generator=generator).to(device)
    sources = {
        split: FullGraph(x, edges, y, numbers % 3 == place)
        for place, split in enumerate(("train", "val", "test"))
    }
    return TaskData(3, 3, "node", sources["train"], sources, constant={})
