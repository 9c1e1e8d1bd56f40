"""A graph with a self loop, a repeated edge and an isolated node, and PyG's layers beside ours."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn


@pytest.fixture
def edge_index():
    return torch.tensor([[0, 1, 1, 2, 3, 3, 4, 0, 0], [1, 0, 2, 1, 3, 4, 3, 1, 4]])


@pytest.fixture
def edge_weight():
    return 0.5 + torch.rand(9, dtype=torch.float64, generator=torch.Generator().manual_seed(5))


@pytest.fixture
def x():
    return torch.randn(6, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(3))


@pytest.fixture
def assert_same_as_pyg() -> Callable[..., None]:
    """Gives PyG's layer our weights and compares outputs and all gradients."""

    def check(ours: nn.Module, theirs: nn.Module, x: Tensor, *inputs: Tensor, **named: Tensor):
        theirs.double().load_state_dict(ours.double().state_dict())
        outs, grads = [], []
        for layer in (ours, theirs):
            state = x.clone().requires_grad_()
            out = layer(state, *inputs, **named)
            outs.append(out)
            leaves = [state, *layer.parameters()]
            grads.append(torch.autograd.grad(out.square().sum(), leaves))
        torch.testing.assert_close(outs[0], outs[1], rtol=1e-10, atol=1e-12)
        names = ["x", *(name for name, _ in ours.named_parameters())]
        assert names[1:] == [name for name, _ in theirs.named_parameters()]
        for name, left, right in zip(names, *grads, strict=True):
            torch.testing.assert_close(
                left, right, rtol=1e-9, atol=1e-11, msg=lambda m, n=name: f"gradient of {n}: {m}"
            )

    return check
