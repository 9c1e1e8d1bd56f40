"""Node features as a sparse matrix where that is worth it."""

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from adgn.graph.kernels import torch_csr

# The share of non-zero entries up to which features are kept as CSR. A stored entry takes 12 bytes
# (value and column) against 4 bytes for every entry of a dense matrix, so at this share CSR takes
# 3/8 of the memory; the product with a dense weight does an eighth of the arithmetic.
SPARSE_UP_TO = 1 / 8


def csr_from_scipy(matrix: scipy.sparse.csr_matrix) -> Tensor:
    """A SciPy CSR matrix as a torch CSR tensor: float32 values, int64 indices."""
    return csr_from_parts(
        torch.from_numpy(matrix.indptr),
        torch.from_numpy(matrix.indices),
        torch.from_numpy(matrix.data),
        matrix.shape,
    )


def csr_from_parts(
    indptr: Tensor, indices: Tensor, values: Tensor, shape: tuple[int, int]
) -> Tensor:
    """A torch CSR tensor from its three arrays, checked: float32 values, int64 indices."""
    return torch_csr(indptr.long(), indices.long(), values.float(), shape, check=True)


def csr_to_scipy(x: Tensor) -> scipy.sparse.csr_matrix:
    """A torch CSR tensor as a SciPy CSR matrix that shares its memory where it can."""
    x = x.cpu()
    arrays = (x.values().numpy(), x.col_indices().numpy(), x.crow_indices().numpy())
    return scipy.sparse.csr_matrix(arrays, shape=tuple(x.shape))


def as_stored(x: Tensor | scipy.sparse.csr_matrix) -> Tensor | scipy.sparse.csr_matrix:
    """Features in the form in which they are kept: CSR where it is worth it, dense elsewhere."""
    if isinstance(x, Tensor):
        dense = x.numpy()
        entries = int(np.count_nonzero(dense))
        return scipy.sparse.csr_matrix(dense) if entries <= SPARSE_UP_TO * dense.size else x
    rows, columns = x.shape
    if x.nnz <= SPARSE_UP_TO * rows * columns:
        return x
    return torch.from_numpy(x.toarray()).float()


def rows_sum_to_one(x: Tensor) -> Tensor:
    """Features with each row divided by its sum; rows of zeros stay. Dense or CSR, none negative.

    Example:
        >>> rows_sum_to_one(torch.tensor([[1.0, 3.0], [0.0, 0.0]])).tolist()
        [[0.25, 0.75], [0.0, 0.0]]
    """
    sparse = x.layout == torch.sparse_csr
    entries = x.values() if sparse else x
    if entries.numel() and bool((entries < 0).any()):
        raise ValueError("features has negative entries; only rows without can be made to sum to 1")
    if not sparse:
        sums = x.sum(dim=1, keepdim=True)
        return x / sums.masked_fill(sums == 0, 1)
    starts = x.crow_indices()
    rows = torch.repeat_interleave(starts.diff())
    sums = entries.new_zeros(x.size(0)).index_add_(0, rows, entries)
    values = entries / sums.masked_fill(sums == 0, 1)[rows]
    return torch_csr(starts, x.col_indices(), values, (x.size(0), x.size(1)), check=False)


def select_rows(x: Tensor, rows: Tensor) -> Tensor:
    """Rows of a dense or CSR matrix, in the given order."""
    if x.layout == torch.sparse_csr:
        return csr_from_scipy(csr_to_scipy(x)[rows.cpu().numpy()]).to(x.device)
    return x[rows]
