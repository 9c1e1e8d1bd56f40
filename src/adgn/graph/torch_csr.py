"""torch's own CSR tensors, made in one place."""

import functools
import warnings

import torch
from torch import Tensor

__all__ = ["torch_csr"]


def torch_csr(
    rowptr: Tensor, col: Tensor, value: Tensor, shape: tuple[int, int], *, check: bool
) -> Tensor:
    """A torch CSR tensor from its three arrays.

    Args:
        rowptr: `[rows + 1]`; where each row begins.
        col: `[entries]`; the columns.
        value: `[entries]`.
        shape: Rows and columns.
        check: Whether torch makes sure that the arrays fit each other.

    Example:
        >>> one, two = torch.tensor([0, 1, 1]), torch.tensor([1])
        >>> torch_csr(one, two, torch.tensor([5.0]), (2, 2), check=True).to_dense().tolist()
        [[0.0, 5.0], [0.0, 0.0]]
    """
    _hear_beta_notice()
    return torch.sparse_csr_tensor(rowptr, col, value, shape, check_invariants=check)


@functools.cache
def _hear_beta_notice() -> None:
    """torch says once per process that CSR tensors are in beta: not to people who asked for none.

    Taken here once, since the products of every layer come by, where changing the filters of
    warnings would cost time and is not safe between threads.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta", UserWarning)
        torch.sparse_csr_tensor([0, 1], [0], [1.0], (1, 1), check_invariants=False)
