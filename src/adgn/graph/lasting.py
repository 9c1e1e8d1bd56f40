"""Tensors that are remembered must outlive the mode in which they happen to be made."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor
from torch._functorch.pyfunctorch import temporarily_clear_interpreter_stack


@contextmanager
def lasting(*made_from: Tensor) -> Iterator[None]:
    """What is made in here from `made_from` serves later too.

    In inference mode results could never be saved for a backward pass, and inside `torch.func.grad`
    and the like they would belong to that transform alone. Where a tensor that goes in belongs to a
    transform itself, nothing can be done, and nothing is.
    """
    if any(torch._C._functorch.is_functorch_wrapped_tensor(tensor) for tensor in made_from):
        yield
        return
    with torch.inference_mode(False), temporarily_clear_interpreter_stack():
        yield
