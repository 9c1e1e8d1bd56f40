"""A run that takes a fraction of a second."""

from typing import Any

import pytest


@pytest.fixture
def tiny() -> dict[str, Any]:
    """Settings of a run with two batches per epoch, dropout (random numbers), and a schedule."""
    return {
        "task": {"name": "graph-transfer", "distance": 2, "train": 12, "val": 6, "test": 6},
        "model": {"hidden_channels": 4, "dropout": 0.2},
        "schedule": {"name": "cosine"},
        "loop": {"max_epochs": 4, "batch_size": 7},
        "seed": 5,
    }
