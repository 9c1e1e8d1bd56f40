"""Numbers too small to be computed with quickly."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def flushed_denormals() -> Iterator[None]:
    """Takes numbers below the smallest normal one (1.2e-38 in single precision) for zero.

    Weight decay and vanishing gradients bring weights, gradients and the optimiser's averages
    down there and keep them there for hundreds of epochs, where a processor takes several times as
    long for each operation; no score can tell such a number from zero. The processor's setting
    holds for the calling thread (and those that it starts) and is put back at the end.
    """
    before = flushing_denormals()
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(before)


def flushing_denormals() -> bool:
    """Whether the processor does so now; torch has no word for it, so it is tried."""
    return float(torch.tensor(1e-39, dtype=torch.float32).mul(0.5)) == 0.0
