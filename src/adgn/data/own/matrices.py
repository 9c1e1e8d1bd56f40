"""Features given as an array, and blocks of features put together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
import torch
from numpy.typing import NDArray
from torch import Tensor

from adgn.data.features import SPARSE_UP_TO, csr_from_scipy, csr_to_scipy
from adgn.data.own.columns import Block
from adgn.data.root import GraphInputError

WIDE = 50  # columns from which on a block of mostly zeros is scaled, but not shifted


@dataclass(frozen=True)
class ArrayPlan:
    """What is done with an array of features: `(x[:, kept] − mean) / scale`.

    Args:
        width: The number of columns that the array has.
        kept: The columns that are not always the same.
        mean: Of each kept column; 0 where it stays as it is.
        scale: What each kept column is divided by; 1 where it stays as it is.
        names: The names of the kept columns.
        zero_or_one: How many of the kept columns have only 0 and 1.
        mostly_zero: How many are numbers that are mostly zero, which are scaled but not shifted.
    """

    width: int
    kept: tuple[int, ...]
    mean: tuple[float, ...]
    scale: tuple[float, ...]
    names: tuple[str, ...]
    zero_or_one: int = 0
    mostly_zero: int = 0

    def to_json(self) -> dict[str, Any]:
        """All of it in types that JSON has."""
        return {key: list(v) if isinstance(v, tuple) else v for key, v in vars(self).items()}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "ArrayPlan":
        """What `to_json` gave."""
        values: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list | tuple) else value
            for key, value in content.items()
        }
        return cls(**values)


def plan_array(x: Tensor, names: Sequence[str] | None, rows: NDArray[np.int64] | None) -> ArrayPlan:
    """Decides what becomes of an array: constant columns go, 0 and 1 stay, numbers are scaled.

    Args:
        x: `[n, F]`, dense or CSR.
        names: Of its columns; `x0`, `x1`, … by default.
        rows: The rows whose values may be looked at; `None`: all.
    """
    matrix = csr_to_scipy(x) if x.layout == torch.sparse_csr else x.numpy()
    chosen = matrix if rows is None else matrix[rows]
    low, high, entries, total, squares, binary = _statistics(chosen)
    count = chosen.shape[0]
    kept = np.flatnonzero(low != high)
    mostly_zero = entries <= SPARSE_UP_TO * count
    shifted = ~binary
    if int((mostly_zero & ~binary)[kept].sum()) >= WIDE:
        shifted &= ~mostly_zero
    mean = np.where(shifted, total / count, 0.0)
    deviation = np.sqrt(np.maximum(squares / count - mean**2, 0))
    scaled_only = mostly_zero & ~binary & ~shifted & (low != high)
    scale = np.where(shifted, deviation, 1.0)
    if scaled_only.any():
        scale[scaled_only] = np.sqrt(squares[scaled_only].sum() / entries[scaled_only].sum())
    scale[scale == 0] = 1.0
    labels = [f"x{place}" for place in range(x.shape[1])] if names is None else names
    return ArrayPlan(
        width=x.shape[1],
        kept=tuple(kept.tolist()),
        mean=tuple(mean[kept].tolist()),
        scale=tuple(scale[kept].tolist()),
        names=tuple(labels[place] for place in kept.tolist()),
        zero_or_one=int(binary[kept].sum()),
        mostly_zero=int(scaled_only.sum()),
    )


def encode_array(plan: ArrayPlan, x: Tensor | None) -> Block:
    """The features of an array, by a plan that was made before."""
    width = 0 if x is None else x.shape[1]
    if x is None or width != plan.width:
        raise GraphInputError(
            f"x has {width:,} columns; the model was trained with {plan.width:,}: give the same "
            "ones, in the same order"
        )
    kept = np.array(plan.kept, dtype=np.int64)
    mean, scale = np.array(plan.mean), np.array(plan.scale)
    if x.layout == torch.sparse_csr and not mean.any():
        entries = csr_to_scipy(x)[:, kept].tocoo()
        values = (entries.data / scale[entries.col]).astype(np.float32)
        return Block(rows=entries.row, columns=entries.col, values=values)
    dense = x.to_dense() if x.layout == torch.sparse_csr else x
    scaled = (dense.numpy()[:, kept] - mean) / scale
    return Block(dense=scaled.astype(np.float32))


def assemble(blocks: Sequence[tuple[Block, int]], rows: int, *, sparse: bool) -> Tensor:
    """The features of several columns side by side.

    Args:
        blocks: Each with its number of features.
        rows: The number of rows.
        sparse: As torch CSR.
    """
    width = sum(features for _, features in blocks)
    starts = np.cumsum([0, *(features for _, features in blocks)])
    if not sparse:
        dense = np.zeros((rows, width), dtype=np.float32)
        for (block, features), start in zip(blocks, starts, strict=False):
            if block.dense is not None:
                dense[:, start : start + features] = block.dense
            else:
                dense[block.rows, block.columns + start] = block.values
        return torch.from_numpy(dense)
    parts = [_entries(block) for block, _ in blocks]
    row = np.concatenate([part[0] for part in parts])
    shifted = [part[1] + start for part, start in zip(parts, starts, strict=False)]
    values = np.concatenate([part[2] for part in parts])
    matrix = scipy.sparse.coo_matrix((values, (row, np.concatenate(shifted))), (rows, width))
    return csr_from_scipy(matrix.tocsr())


def count_entries(blocks: Sequence[tuple[Block, int]]) -> int:
    """How many features of all rows are not zero."""
    found = 0
    for block, _ in blocks:
        values = block.values if block.dense is None else block.dense
        found += 0 if values is None else int(np.count_nonzero(values))
    return found


def _entries(block: Block) -> tuple[Any, Any, Any]:
    if block.dense is None:
        return block.rows, block.columns, block.values
    rows, columns = block.dense.nonzero()
    return rows, columns, block.dense[rows, columns]


def _statistics(matrix: Any) -> tuple[Any, ...]:
    """Of each column: least, largest, entries that are not zero, sum, squares, only 0 and 1."""
    if scipy.sparse.issparse(matrix):
        low = matrix.min(axis=0).toarray().ravel().astype(np.float64)
        high = matrix.max(axis=0).toarray().ravel().astype(np.float64)
        double = matrix.astype(np.float64)
        entries = np.bincount(matrix.indices[matrix.data != 0], minlength=matrix.shape[1])
        total = np.asarray(double.sum(axis=0)).ravel()
        squares = np.asarray(double.multiply(double).sum(axis=0)).ravel()
        odd = matrix.copy()
        odd.data = ((odd.data != 0) & (odd.data != 1)).astype(np.float32)
        binary = np.asarray(odd.sum(axis=0)).ravel() == 0
        return low, high, entries, total, squares, binary
    double = matrix.astype(np.float64)
    return (
        double.min(axis=0),
        double.max(axis=0),
        np.count_nonzero(double, axis=0),
        double.sum(axis=0),
        (double**2).sum(axis=0),
        ((double == 0) | (double == 1)).all(axis=0),
    )
