"""torch's own CSR tensors, made in one place."""

import functools
import warnings

import torch
from torch import Tensor

__all__ = ["torch_csr"]


def torch_csr(
    rowptr: Tensor, col: Tensor, value: Tensor, shape: tuple[int, int], *, check: bool
) -> Tensor:
    """A torch CSR tensor; with `check` torch makes sure that the arrays fit each other."""
    _take_beta_notice()
    return torch.sparse_csr_tensor(rowptr, col, value, shape, check_invariants=check)


@functools.cache
def _take_beta_notice() -> None:
    """Torch warns once per process that CSR tensors are in beta. This takes the warning, which
    tells users of the package nothing, and is done once since filters are slow and not thread-safe.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta", UserWarning)
        torch.sparse_csr_tensor([0, 1], [0], [1.0], (1, 1), check_invariants=False)
