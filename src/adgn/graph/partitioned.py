"""A graph whose nodes are spread over ranks: each applies its rows of the operator.

A rank owns some nodes and has their rows of the operator $\\mathbf{A}$. Columns of nodes that other
ranks own are its halo: their states come by an `Exchange` before they are multiplied, and on the
way back the gradients for them go to their owners. Layers apply a `PartitionedOperator` as any
other, and compute all else for the nodes of their rank alone.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

import torch
from torch import Tensor

from adgn.graph.cache import lazy_property
from adgn.graph.checks import check_edge_weight
from adgn.graph.kernels import columns_first, csr_matmul
from adgn.graph.operator import CSR, SparseOperator, SparsePattern
from adgn.graph.parts import GraphPart

if TYPE_CHECKING:
    from adgn.graph.adjacency import Normalization
    from adgn.graph.direction import OperatorDirection

_INT32_LIMIT = 2**31 - 1
Received = Callable[[], Tensor]


class Exchange(Protocol):
    """Moves rows between ranks; what is returned waits for them to have come."""

    def send(
        self, rows: Tensor, out: list[int], into: list[int], place: Tensor | None = None
    ) -> Received:
        """Sends `out[q]` rows to each rank `q`, one rank after another; gets `into[q]` of each.

        `place`, `[sum(into), channels]` and contiguous, is where they are written, if it is given.
        """
        ...


@dataclass(frozen=True)
class Halo:
    """Which rows a rank sends to and gets from each other one, in lists that are made once.

    Attributes:
        sent: `[rows]`; the places of the sent rows among the rank's own, by receiver.
        out: How many go to each rank.
        into: How many come from each.
        exchanged: Whether any rank exchanges anything; if not, none waits for another.
    """

    sent: Tensor
    out: list[int]
    into: list[int]
    exchanged: bool

    @property
    def size(self) -> int:
        """The rows that come in for one product."""
        return sum(self.into)


@dataclass(frozen=True, eq=False)
class Matrix:
    """Entries with their values, without a transpose: what a kernel needs for one way."""

    csr: CSR
    value: Tensor

    def appended(self, row: Tensor, col: Tensor, value: Tensor, columns: int) -> "Matrix":
        """The matrix with `columns` more columns and entries in these, counted from the first."""
        csr = self.csr
        (rows, before), old, new = csr.shape, csr.col.numel(), row.numel()
        order = torch.argsort(row, stable=True)
        row = row[order]
        added = torch.bincount(row, minlength=rows)
        # How far entries move: by those that are added to the rows before theirs.
        move = torch.zeros(old + 1, dtype=torch.long, device=row.device)
        move.index_add_(0, csr.rowptr[1:].long(), added)
        place = move[:-1].cumsum_(0).add_(torch.arange(old, device=row.device))
        behind = csr.rowptr[row + 1] + torch.arange(new, device=row.device)
        dtype = torch.int32 if old + new <= _INT32_LIMIT else torch.int64
        merged = torch.empty(old + new, dtype=dtype, device=row.device)
        merged[place], merged[behind] = csr.col.to(dtype), (col[order] + before).to(dtype)
        values = value.new_empty(old + new)
        values[place], values[behind] = self.value, value[order]
        rowptr = csr.rowptr.to(torch.long, copy=True)
        rowptr[1:] += added.cumsum(0)
        return Matrix(CSR(rowptr.to(dtype), merged, (rows, before + columns)), values)


class PartitionedOperator:
    """The rows of an operator that belong to the nodes of this rank.

    Its shape is that of its own nodes, `(n, n)`: it multiplies their states, and takes those of the
    halo from their owners. All ranks must multiply at the same time, with as many channels. It is
    differentiable to any order, where all ranks differentiate too.

    Args:
        own: `[n, n]`; the columns of own nodes.
        border: `[b, halo]`; the columns of the halo, for those rows that have some.
        border_rows: `[b]`; which rows these are.
        halo: What is sent.
        exchange: How.
    """

    def __init__(
        self,
        own: SparseOperator,
        border: SparseOperator,
        border_rows: Tensor,
        halo: Halo,
        exchange: Exchange,
    ) -> None:
        self.own = own
        self.border = border
        self.border_rows = border_rows
        self.halo = halo
        self.exchange = exchange

    @property
    def shape(self) -> tuple[int, int]:
        """`(n, n)`, of the nodes of this rank."""
        return self.own.shape

    @property
    def values(self) -> tuple[Tensor, ...]:
        """The entries, for checks of dtype, device and changes; none requires a gradient."""
        return self.own.value, self.border.value

    def bytes_per_product(self, channels: int) -> int:
        """What comes in from other ranks for one product, in bytes."""
        return self.halo.size * channels * self.own.value.element_size()

    def __matmul__(self, x: Tensor) -> Tensor:
        """`A @ x` for `x` of shape `[..., n, channels]`."""
        return self._product(x, transposed=False)

    def transposed_product(self, x: Tensor) -> Tensor:
        """`Aᵀ @ x` for `x` of shape `[..., n, channels]`."""
        return self._product(x, transposed=True)

    def multiply_back(self, x: Tensor) -> Tensor:
        """`Aᵀ @ x` without a gradient."""
        return columns_first(x, self.shape[0], self._backward)

    @lazy_property
    def reaching(self) -> "Matrix":
        """`[n, n + halo]`: what multiplies own states with those of the halo below them."""
        border_row, border_col = self.border.places
        own = Matrix(self.own.pattern.csr, self.own.value)
        row, size = self.border_rows[border_row], self.halo.size
        return own.appended(row, border_col, self.border.value, size)

    @lazy_property
    def collecting(self) -> "Matrix":
        """`[n, n + sent]`: the transpose of the own part, and a sum of what others send back."""
        own = Matrix(self.own.pattern.transposed, self.own.transposed_value)
        sent, count = self.halo.sent, self.halo.sent.numel()
        places = torch.arange(count, device=sent.device)
        return own.appended(sent, places, self.own.value.new_ones(count), count)

    @lazy_property
    def returning(self) -> "Matrix":
        """`[halo, n]`: what multiplies gradients of own rows to those of the halo."""
        border = self.border
        csr = border.pattern.transposed
        col = self.border_rows.index_select(0, csr.col).to(csr.col.dtype)
        shape = (self.halo.size, self.shape[0])
        return Matrix(CSR(csr.rowptr, col, shape), border.transposed_value)

    @lazy_property
    def without_halo(self) -> int:
        """So many of the first rows have no column in the halo."""
        return int(self.border_rows.min()) if self.border_rows.numel() else self.shape[0]

    @lazy_property
    def without_sent(self) -> int:
        """So many of the first rows no other rank needs: nothing comes back for them."""
        return int(self.halo.sent.min()) if self.halo.sent.numel() else self.shape[0]

    def send_states(self, states: Tensor, channels: int) -> Callable[[], object]:
        """Sends states to those that need them; what is returned waits for those of the halo.

        `states`, `[n + halo, width]`, has own states above; the first `channels` columns of the
        other rows are written.
        """
        halo, own = self.halo, self.shape[0]
        if not halo.exchanged:
            return lambda: None
        rows = states[:own, :channels].index_select(0, halo.sent)
        return self._send(rows, halo.out, halo.into, states[own:])

    def send_back(self, gradients: Tensor, channels: int) -> Callable[[], object]:
        """Sends gradients for the halo to its owners; what is returned waits for those of others.

        `gradients`, `[n + sent, width]`, has above what is multiplied with the transposed operator;
        the first `channels` columns of the other rows are written.
        """
        halo, own = self.halo, self.shape[0]
        if not halo.exchanged:
            return lambda: None
        matrix = self.returning
        rows = csr_matmul(matrix.csr, matrix.value, gradients[:own])[:, :channels]
        return self._send(rows, halo.into, halo.out, gradients[own:])

    def _send(
        self, rows: Tensor, out: list[int], into: list[int], below: Tensor
    ) -> Callable[[], object]:
        if rows.size(1) == below.size(1):
            return self.exchange.send(rows, out, into, below)
        received, place = self.exchange.send(rows, out, into), below[:, : rows.size(1)]
        return lambda: place.copy_(received())

    def _product(self, x: Tensor, *, transposed: bool) -> Tensor:
        if x.dim() < 2 or x.size(-2) != self.shape[0]:
            raise ValueError(
                f"x has shape {list(x.shape)}; this rank has {self.shape[0]} nodes, and its part "
                f"of the operator multiplies [..., {self.shape[0]}, channels]"
            )

        def product(x: Tensor) -> Tensor:
            found: Tensor = _Product.apply(x, self, transposed)  # type: ignore[no-untyped-call]
            return found

        return columns_first(x, self.shape[0], product)

    def _forward(self, x: Tensor) -> Tensor:
        halo = self.halo
        coming = None
        if halo.exchanged:
            coming = self.exchange.send(x.index_select(0, halo.sent), halo.out, halo.into)
        # While rows are under way: all that needs none of them.
        product = csr_matmul(self.own.pattern.csr, self.own.value, x)
        if coming is not None:
            outside = coming()
            if outside.size(0):
                part = csr_matmul(self.border.pattern.csr, self.border.value, outside)
                product.index_add_(0, self.border_rows, part)
        return product

    def _backward(self, grad: Tensor) -> Tensor:
        coming = None
        if self.halo.exchanged:
            outside = csr_matmul(self.returning.csr, self.returning.value, grad)
            coming = self.exchange.send(outside, self.halo.into, self.halo.out)
        product = csr_matmul(self.own.pattern.transposed, self.own.transposed_value, grad)
        if coming is not None:
            product.index_add_(0, self.halo.sent, coming())
        return product

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(
            f"{name!r} is not there for a graph that is spread over ranks: a method that looks at "
            "single edges (attention, edge features, learned edge weights) needs the graph whole. "
            "Train it in one process, or take a method that applies the graph's operator"
        )


class _Product(torch.autograd.Function):
    """`A @ x` or `Aᵀ @ x`; the backward of one is the other."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, operator: PartitionedOperator, transposed: bool) -> Tensor:
        ctx.operator, ctx.transposed = operator, transposed
        return operator._backward(x) if transposed else operator._forward(x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        back: Tensor = _Product.apply(grad.contiguous(), ctx.operator, not ctx.transposed)  # type: ignore[no-untyped-call]
        return back, None, None


class PartitionedGraph:
    """The part of a graph that belongs to one rank; layers take it in place of `edge_index`.

    An operator is made from the edges of own nodes alone. Degrees of neighbours, which some
    operators divide by, come from their owners. All ranks ask for the same operators, in the same
    order, for they run the same network.

    Args:
        part: What this rank has of the graph.
        exchange: How rows are exchanged with the others; `None` where nothing is multiplied, or no
            edge joins two ranks.

    Attributes:
        nodes: `[n]`; the numbers of the nodes of this rank: first those without an edge to another
            rank, whose rows need no exchange, then the others, each ascending.

    Example:
        >>> from adgn.graph.parts import cut_part
        >>> path = torch.tensor([[0, 1], [1, 2]])  # 0 → 1 → 2
        >>> part = PartitionedGraph(cut_part(path, None, torch.zeros(3), 0, 1), exchange=None)
        >>> operator = part.operator("none", torch.float32)
        >>> (operator @ torch.tensor([[1.0], [2.0], [3.0]])).flatten().tolist()
        [0.0, 1.0, 2.0]
    """

    def __init__(self, part: GraphPart, exchange: Exchange | None) -> None:
        self.part = part
        self.exchange = exchange
        order = _inner_first(part)
        self._number, self._owner = part.number[order], part.owner[order]
        self._place = torch.empty_like(order)  # of each node of the part in this order
        self._place[order] = torch.arange(order.numel(), device=order.device)
        self.nodes = self._number[: int(part.own.sum())]
        self._ascending, self._row = self.nodes.sort()
        self._operators: dict[Hashable, PartitionedOperator] = {}

    @property
    def num_nodes(self) -> int:
        """The nodes of this rank."""
        return self.nodes.numel()

    def rows_of(self, nodes: Tensor) -> tuple[Tensor, Tensor]:
        """Which of some nodes, by number, are this rank's (a mask), and their rows here."""
        if not self.num_nodes:
            return torch.zeros_like(nodes, dtype=torch.bool), nodes.new_empty(0)
        place = torch.searchsorted(self._ascending, nodes).clamp_max_(self.num_nodes - 1)
        mine = self._ascending[place] == nodes
        return mine, self._row[place[mine]]

    def operator(
        self,
        normalization: "Normalization",
        dtype: torch.dtype,
        direction: "OperatorDirection" = "in",
    ) -> PartitionedOperator:
        """This rank's rows of an operator, made when first asked for."""
        from adgn.graph.adjacency import for_weights

        kind = for_weights(normalization, self.part.normalized)
        key = (kind, dtype, direction)
        if key not in self._operators:
            self._operators[key] = self._made(kind, dtype, direction)
        return self._operators[key]

    def _made(
        self, normalization: "Normalization", dtype: torch.dtype, direction: "OperatorDirection"
    ) -> PartitionedOperator:
        from adgn.graph.adjacency import EdgeLayout, check_degree

        part, count = self.part, self.num_nodes
        source, target = (self._place.index_select(0, ends) for ends in part.edge_index)
        if part.edge_weight is not None:
            like = torch.empty(0, dtype=dtype, device=source.device)
            check_edge_weight(part.edge_weight, source.numel(), like)
        layout = EdgeLayout.build(source, target, self._number.numel(), normalization, direction)
        del source, target
        rows = _Rows.of(layout.pattern.csr, self._owner, count, part.size, part.spread)

        def of_all_ranks(degree: Tensor) -> Tensor:
            """Degrees of own nodes, which are whole here, and from their owners of the halo."""
            found = torch.ones_like(degree)
            found[:count] = own = degree[:count]
            if rows.halo.exchanged:
                assert self.exchange is not None
                sent = own[rows.halo.sent].view(-1, 1)
                coming = self.exchange.send(sent, rows.halo.out, rows.halo.into)()
                found[rows.halo_places] = coming.view(-1)
            if normalization != "laplacian":
                kind: Normalization = "mean" if normalization == "skew" else normalization
                check_degree(found, kind, self._number)
            return found

        value = layout.operator(part.edge_weight, dtype, of_all_ranks).value
        del layout
        return rows.operator(value, self.exchange)


def _inner_first(part: GraphPart) -> Tensor:
    """The nodes of a part: own ones that touch own nodes alone, other own ones, and the others."""
    own, (source, target) = part.own, part.edge_index
    joining = own.index_select(0, source) != own.index_select(0, target)
    kind = torch.full((own.numel(),), 2, dtype=torch.int8, device=own.device)
    kind[own] = 0
    for ends in (source[joining].long(), target[joining].long()):
        kind[ends[own[ends]]] = 1
    return torch.argsort(kind, stable=True)


@dataclass(frozen=True, eq=False)
class _Rows:
    """Where the rows of own nodes, which are the first, are in an operator of a part of a graph.

    Attributes:
        csr: The operator's entries.
        count: How many own nodes there are.
        inside: `[entries]`; whether an entry is in an own row and an own column.
        border: The slots of own rows in columns of the halo, and their row and column there.
        border_rows: `[b]`; the own rows that have some of these.
        halo: What is sent.
        halo_places: `[halo]`; the places of the halo among the nodes of the part.
    """

    csr: CSR
    count: int
    inside: Tensor
    border: tuple[Tensor, Tensor, Tensor]
    border_rows: Tensor
    halo: Halo
    halo_places: Tensor

    @classmethod
    def of(cls, csr: CSR, owner: Tensor, count: int, size: int, spread: bool) -> "_Rows":
        owner, row, col = owner.long(), csr.row, csr.col
        nodes = max(1, owner.numel())
        mine, my_column = row < count, col < count
        # By owner and then by number, which is the order in which owners send them.
        outside = (mine & ~my_column).nonzero().view(-1)
        ends = col[outside].long()
        keys, column = torch.unique(owner[ends] * nodes + ends, return_inverse=True)
        border_rows, border_row = torch.unique(row[outside].long(), return_inverse=True)
        slots = (my_column & ~mine).nonzero().view(-1)  # other ranks' rows that need own nodes
        needed = torch.unique(owner[row[slots].long()] * nodes + col[slots].long())
        halo = Halo(
            sent=needed % nodes,
            out=torch.bincount(needed // nodes, minlength=size).tolist(),
            into=torch.bincount(keys // nodes, minlength=size).tolist(),
            exchanged=spread,
        )
        inside = mine & my_column
        border = (outside, border_row, column)
        return cls(csr, count, inside, border, border_rows, halo, keys % nodes)

    def operator(self, value: Tensor, exchange: Exchange | None) -> PartitionedOperator:
        """The rows with the values of the operator."""
        slots, row, col = self.border
        shape = (self.border_rows.numel(), self.halo.size)
        pattern, slot = SparsePattern.from_entries(row, col, shape)
        ordered = value.new_empty(value[slots].numel())
        ordered[slot.long()] = value[slots]  # each entry has a slot of its own
        border = SparseOperator(pattern, ordered)
        return PartitionedOperator(
            self._own(value),
            border,
            self.border_rows,
            self.halo,
            exchange,  # type: ignore[arg-type]
        )

    def _own(self, value: Tensor) -> SparseOperator:
        """Own rows and columns, which are in order already."""
        slots = self.inside.nonzero().view(-1)
        row, col = self.csr.row[slots], self.csr.col[slots]
        rowptr = torch.zeros(self.count + 1, dtype=torch.long, device=row.device)
        rowptr[1:] = torch.bincount(row, minlength=self.count).cumsum(0)
        csr = CSR(rowptr.to(col.dtype), col, (self.count, self.count))
        return SparseOperator(SparsePattern.from_csr(csr), value[slots])
