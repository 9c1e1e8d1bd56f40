"""A graph with a self loop, a repeated edge and an isolated node."""

import pytest
import torch


@pytest.fixture
def edge_index():
    return torch.tensor([[0, 1, 1, 2, 3, 3, 4, 0, 0], [1, 0, 2, 1, 3, 4, 3, 1, 4]])


@pytest.fixture
def x():
    return torch.randn(6, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
