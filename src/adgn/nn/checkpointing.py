"""Checkpointing: only the states before some of the steps are kept for the gradient."""

import functools
import math
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from typing import Literal

import torch
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.utils.checkpoint import checkpoint

from adgn.graph.checks import is_traced

Memory = Literal["full", "checkpoint"]
MEMORIES: tuple[Memory, ...] = ("full", "checkpoint")

_recomputable: ContextVar[bool] = ContextVar("recomputable", default=False)


def checkpointed(
    steps: Callable[[Tensor, int, int], Tensor],
    x: Tensor,
    count: int,
    memory: Memory,
    modules: Callable[[int, int], Iterable[object]],
) -> Tensor:
    r"""`steps(x, 0, count)`, with torch's checkpoints where memory is to be saved.

    With `memory="checkpoint"` the states of every $\sqrt{L}$-th of the $L$ steps are kept, and the
    steps between are computed a second time for the gradient, with the same random numbers. Inside
    of such steps, `torch.func` transforms, forward mode and tracing there are no checkpoints.

    `modules` maps the first step and the last + 1 to what takes part in these steps. Of the modules
    among it the second computation finds the buffers (such as the running statistics of a batch
    normalisation) as the first one did, and leaves them as they are.

    Example:
        >>> x = torch.ones(1, requires_grad=True)
        >>> def double(x, first, last):
        ...     return x * 2 ** (last - first)
        >>> checkpointed(double, x, 10, "checkpoint", lambda first, last: [])
        tensor([1024.], grad_fn=<MulBackward0>)
    """
    if memory == "full" or is_traced(x):
        return steps(x, 0, count)
    transformed = torch._C._are_functorch_transforms_active() or forward_ad._current_level >= 0
    if transformed or not torch.is_grad_enabled() or _recomputable.get():
        return steps(x, 0, count)

    def recomputable(x: Tensor, first: int, last: int) -> Tensor:
        token = _recomputable.set(True)
        try:
            return steps(x, first, last)
        finally:
            _recomputable.reset(token)

    for first, last in split_steps(count, checkpoint_interval(count)):
        contexts = functools.partial(_contexts, list(modules(first, last)))
        x = checkpoint(recomputable, x, first, last, use_reentrant=False, context_fn=contexts)
    return x


def _contexts(
    taking_part: list[object],
) -> tuple[AbstractContextManager[None], AbstractContextManager[None]]:
    """The contexts of the first and of the second computation."""
    modules = [each for one in taking_part if isinstance(one, nn.Module) for each in one.modules()]
    return nullcontext(), _EarlierBuffers([m for m in modules if m.training and m._buffers])


class _EarlierBuffers(AbstractContextManager[None]):
    """Inside, modules have the buffers that they had when this was made; then their own again."""

    def __init__(self, modules: list[nn.Module]) -> None:
        self.modules = modules
        self.earlier = [_copies(module._buffers) for module in modules]

    def __enter__(self) -> None:
        self.later = [module._buffers for module in self.modules]
        for module, earlier in zip(self.modules, self.earlier, strict=True):
            # Copies once more: a second backward pass finds them unchanged.
            module._buffers = _copies(earlier)

    def __exit__(self, *_: object) -> None:
        for module, later in zip(self.modules, self.later, strict=True):
            module._buffers = later


def _copies(buffers: dict[str, Tensor | None]) -> dict[str, Tensor | None]:
    return {name: None if b is None else b.detach().clone() for name, b in buffers.items()}


def split_steps(count: int, length: int) -> list[tuple[int, int]]:
    """The first and last + 1 of each `length` steps: (0, 2), (2, 4), (4, 5) of 5 by 2."""
    return [(first, min(first + length, count)) for first in range(0, count, length)]


def checkpoint_interval(count: int) -> int:
    """How many steps lie between checkpoints: the square root of their number, rounded up."""
    return math.isqrt(count - 1) + 1 if count > 1 else 1
