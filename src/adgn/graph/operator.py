"""A sparse linear map in CSR together with its transpose: what a graph is to the layers."""

from collections.abc import Callable
from dataclasses import InitVar, dataclass

import torch
from torch import Tensor

from adgn.graph.cache import Result, lazy_property, outside_transforms, tensor_state
from adgn.graph.checks import check_entries
from adgn.graph.kernels import multiply
from adgn.graph.native import calls
from adgn.graph.native.library import native_library

_INT32_LIMIT = 2**31 - 1


@dataclass(frozen=True, eq=False)
class CSR:
    """Where the entries of one `[rows, columns]` matrix are, row by row.

    Attributes:
        rowptr: `[rows + 1]`; row `i` has the slots `rowptr[i]` to `rowptr[i + 1] - 1`.
        col: `[slots]`; the column of each slot, ascending within a row, each once.
        shape: `(rows, columns)`.

    Example:
        >>> csr = CSR(torch.tensor([0, 2, 2, 3]), torch.tensor([0, 1, 1]), (3, 2))
        >>> csr.row.tolist()  # row 1 is empty
        [0, 0, 2]
    """

    rowptr: Tensor
    col: Tensor
    shape: tuple[int, int]

    @classmethod
    def from_entries(cls, row: Tensor, col: Tensor, shape: tuple[int, int]) -> tuple["CSR", Tensor]:
        """Entries sorted, repeated ones merged, and for each entry its slot."""
        library = native_library()
        found = None if library is None else calls.sort_entries(library, row, col, shape)
        if found is not None:
            rowptr, sorted_col, slot = found
            return cls(rowptr, sorted_col, shape), slot
        check_entries(row, col, shape)
        rows, columns = shape
        key = row.long() * columns + col.long()
        unique, slot = torch.unique(key, sorted=True, return_inverse=True)
        row, col = unique // max(columns, 1), unique % max(columns, 1)
        small = max(rows, columns, row.numel()) <= _INT32_LIMIT
        dtype = torch.int32 if small else torch.int64
        return cls(_pointers(row, rows, dtype), col.to(dtype), shape), slot

    @lazy_property
    def row(self) -> Tensor:
        """The row of each slot, `[slots]`."""
        with outside_transforms(self.rowptr, self.col):
            # How many rows have begun, but for the first, is the row of a slot. (Not
            # repeat_interleave: torch's threads, which it always asks for, hang in a forked child.)
            begun = self.col.new_zeros(self.col.numel() + 1)
            begun.index_add_(0, self.rowptr[1:-1].long(), begun.new_ones(max(0, self.shape[0] - 1)))
            return begun[:-1].cumsum(0, dtype=self.col.dtype)


@dataclass(frozen=True, eq=False)
class SparsePattern:
    """Where a sparse matrix and its transpose have entries, without the values.

    Index arrays are 32-bit wherever they fit: half the memory traffic, and the form that
    CPU and GPU sparse libraries take without a conversion at each call.

    Attributes:
        csr: The matrix.
        transposed: Its transpose; the same object for a symmetric pattern.
        to_transposed: `[slots]`; slot `i` of the transpose holds slot `to_transposed[i]`
            of the matrix. `None` where both come from a larger matrix with its values.
        block_ptr: `[blocks + 1]`; where the matrix is known to be block-diagonal (a batch of small
            graphs), the first row of each block. `None` where nothing is known.

    Example:
        >>> row, col = torch.tensor([1, 0, 1]), torch.tensor([0, 2, 0])  # (1, 0) twice
        >>> pattern, slot = SparsePattern.from_entries(row, col, (2, 3))
        >>> pattern.csr.col.tolist(), slot.tolist()
        ([2, 0], [1, 0, 1])
        >>> pattern.is_symmetric
        False
    """

    csr: CSR
    transposed: CSR
    to_transposed: Tensor | None
    block_ptr: Tensor | None = None

    @classmethod
    def from_entries(
        cls, row: Tensor, col: Tensor, shape: tuple[int, int]
    ) -> tuple["SparsePattern", Tensor]:
        """The pattern of entries, repeated ones merged, and for each entry its slot in it."""
        csr, slot = CSR.from_entries(row, col, shape)
        return cls.from_csr(csr), slot

    @classmethod
    def from_csr(cls, csr: CSR) -> "SparsePattern":
        """The pattern of a matrix, with its transpose."""
        library = native_library()
        turned = (csr.shape[1], csr.shape[0])
        if library is not None and calls.unsupported_pattern_reason(csr) is None:
            rowptr, sorted_col, order = calls.transpose(library, csr.rowptr, csr.col, csr.shape)
            return cls._with_transpose(csr, CSR(rowptr, sorted_col, turned), order)
        col, dtype = csr.col.long(), csr.col.dtype
        order = torch.argsort(col, stable=True)
        transposed = CSR(_pointers(col, csr.shape[1], dtype), csr.row[order], turned)
        return cls._with_transpose(csr, transposed, order)

    @classmethod
    def _with_transpose(cls, csr: CSR, transposed: CSR, order: Tensor) -> "SparsePattern":
        same = csr.shape == transposed.shape and torch.equal(csr.rowptr, transposed.rowptr)
        same = same and torch.equal(csr.col, transposed.col)
        return cls(csr, csr if same else transposed, order)

    @property
    def is_symmetric(self) -> bool:
        """Whether the matrix and its transpose have their entries in the same places."""
        return self.transposed is self.csr

    @property
    def shape(self) -> tuple[int, int]:
        """`(rows, columns)`."""
        return self.csr.shape

    @lazy_property
    def one_block(self) -> Tensor:
        """All rows as one block: a `block_ptr` of `[0, rows]`, always the same tensor."""
        return torch.tensor([0, self.csr.shape[0]], device="cpu")

    def transpose_values(self, value: Tensor) -> Tensor:
        """Values in the order of `csr`, put in the order of `transposed`."""
        return value.index_select(0, self._transposing_order)

    @lazy_property
    def reversed(self) -> "SparsePattern":
        """The pattern of the transpose, of the same arrays."""
        order = self._transposing_order
        with outside_transforms(order):
            return SparsePattern(self.transposed, self.csr, torch.argsort(order), self.block_ptr)

    @lazy_property
    def _transposing_order(self) -> Tensor:
        if self.to_transposed is not None:
            return self.to_transposed
        # Sorting by column, rows staying ascending, is what transposing means.
        library = native_library()
        if library is not None and calls.unsupported_pattern_reason(self.csr) is None:
            calls.check_pattern(library, self.csr)
            return calls.transpose(library, self.csr.rowptr, self.csr.col, self.csr.shape)[2]
        with outside_transforms(self.csr.col):
            return torch.argsort(self.csr.col, stable=True)


@dataclass(frozen=True, eq=False)
class SparseOperator:
    r"""A sparse matrix $\mathbf{A}$ that multiplies node states: `operator @ x`.

    For a graph, row $u$ holds the weights of the edges that end in node $u$, so that
    `(operator @ x)[u]` is $\sum_{j \in \mathcal{N}_u} a_{uj} \mathbf{x}_j$. The transpose,
    which the gradient needs, is built together with the matrix and never again. The product is
    differentiable in `x` and, where `value` requires a gradient, in the values.

    `value` may be learned or changed in place. What is known of it, such as the values in the order
    of the transpose, is then worked out anew (see `adgn.graph.cache.tensor_state`).

    Args:
        pattern: Where the entries are.
        value: `[slots]`; their values, in the order of `pattern.csr`.
        known_transposed_value: The values in the order of `pattern.transposed`, where they are
            known already; otherwise they are worked out when first needed.

    Example:
        >>> from adgn.graph import graph_operator
        >>> path = torch.tensor([[0, 1], [1, 2]])  # 0 → 1 → 2
        >>> graph_operator(path, num_nodes=3) @ torch.tensor([[1.0], [2.0], [3.0]])
        tensor([[0.],
                [1.],
                [2.]])
    """

    pattern: SparsePattern
    value: Tensor
    known_transposed_value: InitVar[Tensor | None] = None

    def __post_init__(self, known_transposed_value: Tensor | None) -> None:
        if known_transposed_value is not None:
            self._of_values("transposed", lambda: known_transposed_value)

    @classmethod
    def from_entries(
        cls, row: Tensor, col: Tensor, value: Tensor, shape: tuple[int, int]
    ) -> "SparseOperator":
        """The matrix of entries in any order; repeated ones are added up.

        Args:
            row: `[E]`; the row of each entry.
            col: `[E]`; its column.
            value: `[E]`; its value.
            shape: `(rows, columns)`.

        Example:
            >>> row, col = torch.tensor([1, 0, 1]), torch.tensor([0, 1, 0])
            >>> SparseOperator.from_entries(row, col, torch.ones(3), (2, 2)).to_dense().tolist()
            [[0.0, 1.0], [2.0, 0.0]]
        """
        pattern, slot = SparsePattern.from_entries(row, col, shape)
        entries = value.new_zeros(pattern.csr.col.numel())
        return cls(pattern, entries.index_add(0, slot, value))

    @property
    def shape(self) -> tuple[int, int]:
        """`(rows, columns)`."""
        return self.pattern.shape

    @property
    def num_entries(self) -> int:
        """How many entries are stored; repeated edges count once."""
        return self.value.numel()

    @property
    def transposed_value(self) -> Tensor:
        """The values in the order of `pattern.transposed`, without a gradient."""
        return self._of_values("transposed", self._transpose_values)

    @property
    def has_negative_values(self) -> bool:
        """Whether some value is below zero."""
        return self._of_values("negative", lambda: bool((self.value < 0).any()))

    @property
    def has_zero_values(self) -> bool:
        """Whether some stored value is zero."""
        return self._of_values("zero", lambda: bool((self.value == 0).any()))

    @property
    def one_value(self) -> float | None:
        """The value of all entries, where they have the same; else `None`."""
        return self._of_values("one", self._find_one_value)

    @property
    def is_symmetric(self) -> bool:
        """Whether the operator is its own transpose, so that one set of arrays serves both."""
        return self.pattern.is_symmetric and self.transposed_value is self.value

    def __matmul__(self, x: Tensor) -> Tensor:
        """`A @ x` for `x` of shape `[..., columns, channels]`."""
        return multiply(self, x)

    def transposed_product(self, x: Tensor) -> Tensor:
        """`Aᵀ @ x` for `x` of shape `[..., rows, channels]`, differentiable as `A @ x` is."""
        return multiply(self, x, transposed=True)

    def to_dense(self) -> Tensor:
        """The whole matrix, for tests and small graphs."""
        return self.value.new_zeros(self.shape).index_put(self.places, self.value)

    @property
    def places(self) -> tuple[Tensor, Tensor]:
        """Row and column of each entry, as indices."""
        return self.pattern.csr.row.long(), self.pattern.csr.col.long()

    def with_values(self, value: Tensor) -> "SparseOperator":
        """The same entries with other values."""
        return SparseOperator(self.pattern, value)

    def _transpose_values(self) -> Tensor:
        with outside_transforms(self.value):
            turned = self.pattern.transpose_values(self.value.detach())
        constant = not self.value.requires_grad
        if constant and self.pattern.is_symmetric and torch.equal(turned, self.value):
            return self.value
        return turned

    def _find_one_value(self) -> float | None:
        first = self.value[:1]
        return float(first) if first.numel() and bool((self.value == first).all()) else None

    def _of_values(self, name: str, work_out: Callable[[], Result]) -> Result:
        """What `work_out` returns, worked out anew where the values have changed since."""
        # Nothing is remembered of learned values: torch's fused optimisers change them uncounted.
        state = None if self.value.requires_grad else tensor_state(self.value)
        known: dict[str, tuple[object, Result]] = self.__dict__.setdefault("_known", {})
        if state is None:
            return work_out()
        if name not in known or known[name][0] != state:
            known[name] = (state, work_out())
        return known[name][1]


def _pointers(sorted_or_not: Tensor, rows: int, dtype: torch.dtype) -> Tensor:
    counts = torch.bincount(sorted_or_not, minlength=rows)
    return torch.cat([counts.new_zeros(1), counts.cumsum(0)]).to(dtype)
