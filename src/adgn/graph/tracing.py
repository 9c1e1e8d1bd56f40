"""Whether operations are done or only recorded."""

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor


def is_traced(tensor: Tensor) -> bool:
    """Whether what is done with `tensor` is recorded: its entries are then not to be looked at.

    So it is for `torch.compile`, `torch.export` and `torch.jit.trace`, and for meta and fake
    tensors, which have no entries.

    Example:
        >>> is_traced(torch.empty(3)), is_traced(torch.empty(3, device="meta"))
        (False, True)
    """
    return (
        torch.compiler.is_compiling()
        or records_sizes()
        or tensor.is_meta
        or isinstance(tensor, FakeTensor)
    )


def records_sizes() -> bool:
    """Whether `torch.jit.trace` records: the sizes of tensors are then no numbers to compare."""
    return bool(torch.jit.is_tracing())  # type: ignore[attr-defined, no-untyped-call]


def is_compiled() -> bool:
    """Whether `torch.compile` records, and not `torch.export`, which wants torch's operations."""
    return torch.compiler.is_compiling() and not torch.compiler.is_exporting()
