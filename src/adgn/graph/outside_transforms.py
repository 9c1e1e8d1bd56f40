"""Makes tensors that are cached outside of the transform or mode that happens to be active."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor
from torch._functorch.pyfunctorch import temporarily_clear_interpreter_stack


@contextmanager
def outside_transforms(*made_from: Tensor) -> Iterator[None]:
    """What is computed inside from `made_from` can be used after the active transform has ended.

    In inference mode results could never be saved for a backward pass, and inside `torch.func.grad`
    and the like they would belong to that transform alone. Where a tensor that goes in belongs to a
    transform itself, nothing can be done, and nothing is.
    """
    if any(torch._C._functorch.is_functorch_wrapped_tensor(tensor) for tensor in made_from):
        yield
        return
    with torch.inference_mode(False), temporarily_clear_interpreter_stack():
        yield
