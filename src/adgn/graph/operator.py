"""A sparse linear map in CSR together with its transpose: what a graph is to the layers.

What is worked out of it once is kept here too: of an object for good, of tensors until they change
or end.
"""

import os
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import InitVar, dataclass
from typing import Any, Generic, TypeVar, overload

import torch
from torch import Tensor
from torch._functorch.pyfunctorch import temporarily_clear_interpreter_stack
from torch.multiprocessing.reductions import StorageWeakRef
from torch_geometric import EdgeIndex

from adgn.graph.checks import check_entries
from adgn.graph.kernels import multiply
from adgn.graph.native import calls
from adgn.graph.native.library import buffers, native_library

_INT32_LIMIT = 2**31 - 1
Result = TypeVar("Result")
_Entries = OrderedDict[Hashable, tuple[Any, Any]]  # state and weak references, and what was built
_PER_TENSOR = 16  # variants of one graph


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


class lazy_property(Generic[Result]):  # noqa: N801 - used like functools.cached_property
    """A property that is worked out at its first use, without a lock.

    Up to Python 3.11 `functools.cached_property` holds a lock while it works, and a process forked
    at that moment would wait for it for ever.
    """

    def __init__(self, work_out: Callable[[Any], Result]) -> None:
        self.work_out = work_out
        self.__doc__ = work_out.__doc__

    @overload
    def __get__(self, instance: None, owner: type) -> "lazy_property[Result]": ...
    @overload
    def __get__(self, instance: object, owner: type) -> Result: ...
    def __get__(self, instance: object | None, owner: type) -> "lazy_property[Result] | Result":
        if instance is None:
            return self
        result = self.work_out(instance)
        # The entry hides this descriptor from now on.
        first: Result = instance.__dict__.setdefault(self.work_out.__name__, result)
        return first


def tensor_state(tensor: Tensor) -> Hashable | None:
    """What differs after every write that torch counts and after `tensor.data = other`.

    `None` where nothing is known of writes: for tensors made in inference mode, and inside
    `torch.func`. The state keeps no memory alive.
    """
    if tensor.is_inference() or torch._C._functorch.is_functorch_wrapped_tensor(tensor):
        return None
    if isinstance(tensor, EdgeIndex):  # wraps a tensor that can be written to itself
        inner = tensor.as_tensor()
        return tensor._version, inner._version, *_memory(inner)
    if tensor.layout == torch.sparse_coo:
        return tensor._version, *_memory(tensor._indices()), *_memory(tensor._values())
    entries = tensor if tensor.layout == torch.strided else tensor.values()
    return tensor._version, *_memory(entries)


def _memory(tensor: Tensor) -> tuple[Hashable, ...]:
    """Where and how the numbers lie; a weak reference keeps an address from being used again."""
    storage = StorageWeakRef(tensor.untyped_storage())  # type: ignore[no-untyped-call]
    return storage, tensor.storage_offset(), tensor.shape, tensor.stride()


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
    of the transpose, is then worked out anew (see `adgn.graph.operator.tensor_state`).

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


class TensorCache:
    """Remembers what was built from tensors, by identity and state (`tensor_state`) of each.

    Writes that torch cannot count, through `tensor.data` or shared NumPy memory, are not seen: call
    `clear` after such a write. Nothing here keeps a tensor alive.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        # By the owner's number, in one dictionary: a fork in the middle of a change finds an owner
        # with its entries or without them, never half of it.
        self._owners: dict[int, tuple[weakref.ref[Tensor], _Entries]] = {}
        self.hits = 0
        self.misses = 0

    def get(
        self, tensors: tuple[Tensor, ...], key: Hashable, build: Callable[[], Result]
    ) -> Result:
        """What `build` returns, built at the first call with these tensors and this key."""
        owner, *others = tensors
        full_key = (key, *(id(other) for other in others))
        state = tuple(tensor_state(tensor) for tensor in tensors)
        if None in state:
            return build()  # what is written into such a tensor would not be seen
        with self._lock:
            entries = self._entries_of(owner)
            known = entries.get(full_key)
            if known is not None:
                (known_state, known_others), built = known
                same = (ref() is other for ref, other in zip(known_others, others, strict=True))
                if known_state == state and all(same):
                    self.hits += 1
                    entries.move_to_end(full_key)
                    result: Result = built
                    return result
        built_now = build()
        with self._lock:
            self.misses += 1
            entries = self._entries_of(owner)
            references = tuple(weakref.ref(other) for other in others)
            entries[full_key] = ((state, references), built_now)
            while len(entries) > _PER_TENSOR:
                entries.popitem(last=False)
        return built_now

    def clear(self) -> None:
        """Forgets everything."""
        with self._lock:
            # Out of reach first: an entry may hold the last reference to another one's owner.
            owners, self._owners = self._owners, {}
            owners.clear()

    def after_fork(self) -> None:
        """In a child: another thread of the parent may have held the lock."""
        self._lock = threading.RLock()

    def __len__(self) -> int:
        with self._lock:
            # A list first: while entries are counted, tensors may end in this very thread.
            return sum(len(entries) for _, entries in list(self._owners.values()))

    def _entries_of(self, owner: Tensor) -> _Entries:
        number = id(owner)
        known = self._owners.get(number)
        if known is not None and known[0]() is owner:
            return known[1]

        def forget(dead: weakref.ref[Tensor]) -> None:
            with self._lock:
                # The number may belong to a newer tensor by now.
                if number in self._owners and self._owners[number][0] is dead:
                    del self._owners[number]

        entries: _Entries = OrderedDict()
        self._owners[number] = (weakref.ref(owner, forget), entries)
        return entries


_cache = TensorCache()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_cache.after_fork)


def cached(tensors: tuple[Tensor, ...], key: Hashable, build: Callable[[], Result]) -> Result:
    """`TensorCache.get` of the package's one cache."""

    def build_outside() -> Result:
        with outside_transforms(*tensors):
            return build()

    return _cache.get(tensors, key, build_outside)


def clear_cache() -> None:
    """Forgets all operators that were built, and gives memory that waits for the next step back.

    Needed only to have that memory, or after writing into an `edge_index` in a way torch cannot
    see, such as through `tensor.data` or a NumPy array that shares its memory.

    Example:
        >>> from adgn.graph import graph_operator
        >>> edges = torch.tensor([[0], [1]])
        >>> operator = graph_operator(edges, num_nodes=2)
        >>> edges.data[1, 0] = 0  # torch does not see this
        >>> clear_cache()
        >>> graph_operator(edges, num_nodes=2).to_dense().tolist()
        [[1.0, 0.0], [0.0, 0.0]]
    """
    _cache.clear()
    buffers.clear()


def cache_info() -> dict[str, int]:
    """How many look-ups found an operator (`hits`) or built one (`misses`), and `size`.

    Example:
        >>> from adgn.graph import graph_operator
        >>> edge_index = torch.tensor([[0, 1], [1, 0]])
        >>> _ = graph_operator(edge_index, num_nodes=2)
        >>> before = cache_info()
        >>> _ = graph_operator(edge_index, num_nodes=2)
        >>> after = cache_info()
        >>> after["hits"] > before["hits"], after["misses"] == before["misses"]
        (True, True)
    """
    return {"hits": _cache.hits, "misses": _cache.misses, "size": len(_cache)}
