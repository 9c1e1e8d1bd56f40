"""One way in for every form a graph comes in: edge list, `EdgeIndex`, sparse matrix, operator.

Self loops, weights and normalisation on the way from edges to an operator are `EdgeLayout`.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, Union, cast, get_args

import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch_geometric import EdgeIndex

from adgn.graph.cache import cached
from adgn.graph.checks import (
    check_choice,
    check_edge_index,
    check_edge_weight,
    check_entries,
    check_same_place,
)
from adgn.graph.direction import OperatorDirection, check_operator_direction
from adgn.graph.operator import SparseOperator, SparsePattern
from adgn.graph.partitioned import PartitionedGraph, PartitionedOperator

if TYPE_CHECKING:
    from adgn.graph.blocks import SelectedGraphs
    from adgn.graph.edge_operator import EdgeOperator
    from adgn.graph.two_way import TwoWayOperator

Normalization = Literal["none", "mean", "sym", "laplacian", "skew", "loops", "gcn", "gcn-improved"]
NORMALIZATIONS: tuple[Normalization, ...] = get_args(Normalization)
# The weight of the self loop of a node without one, where each node has an entry for its own state.
SELF_LOOP_WEIGHT = {"loops": 1.0, "gcn": 1.0, "gcn-improved": 2.0, "laplacian": 0.0}
# Of weights that are an operator already these are made; all others are these weights as they are.
MADE_FROM_OPERATORS: tuple[Normalization, ...] = ("laplacian", "skew")
SPARSE_LAYOUTS = (torch.sparse_coo, torch.sparse_csr, torch.sparse_csc)

# A [2, E] edge list, PyG's EdgeIndex (a Tensor too), a torch sparse matrix, an operator or two of
# them, a batch out of many prepared graphs, or the part of a graph that a rank has.
Adjacency: TypeAlias = Union[
    Tensor,
    SparseOperator,
    "EdgeOperator",
    "TwoWayOperator",
    "SelectedGraphs",
    PartitionedGraph,
    PartitionedOperator,
]
Degrees: TypeAlias = Callable[[Tensor], Tensor]


def for_weights(normalization: Normalization, normalized: bool) -> Normalization:
    """What is left to do with weights that may be an operator already."""
    return "none" if normalized and normalization not in MADE_FROM_OPERATORS else normalization


def graph_operator(
    edge_index: Adjacency,
    edge_weight: Tensor | None = None,
    *,
    num_nodes: int,
    normalization: Normalization = "none",
    direction: OperatorDirection = "in",
    like: Tensor | None = None,
) -> SparseOperator:
    r"""The sparse operator of a graph, built and validated once per graph.

    Row $u$ weighs the messages that node $u$ receives: with `normalization="none"`
    $a_{uj} = \sum_{e: j \to u} w_e$; with `"mean"` each row is divided by its sum; with `"gcn"`
    $a_{uj} = \hat{w}_{uj} / \sqrt{\hat{d}_u \hat{d}_j}$, where $\hat{w}$ has a self
    loop of weight 1 (2 for `"gcn-improved"`) at each node without one and $\hat{d}_u$ is
    the sum of the weights that come into $u$; with `"loops"` $a_{uj} = \hat{w}_{uj}$. With `"sym"`
    $a_{uj} = w_{uj} / \sqrt{d_u d_j}$, without self loops, where a $d$ of zero gives zero; with
    `"laplacian"` the operator is $\mathbf{D} - \mathbf{A}$, in which self loops cancel. With
    `"skew"` it is $\tilde{\mathbf{A}} - \tilde{\mathbf{A}}^\top$, antisymmetric, where
    $\tilde{\mathbf{A}}$ is the operator of `"mean"`.

    With another `direction` it is the operator of the graph whose edges are turned: degrees too
    are those of the turned graph.

    Passing the same tensors again returns the same operator; a tensor that was changed in place
    is another graph.

    Args:
        edge_index: `[2, E]` node indices, row 0 the sources and row 1 the targets; or PyG's
            `EdgeIndex`; or a sparse `[N, N]` tensor in PyG's `adj_t` form, whose rows are the
            targets and whose values are the edge weights; or an operator, returned as it is, for
            it was built with a normalisation and a direction; or a batch of prepared graphs
            ([`GraphBlocks`][adgn.graph.GraphBlocks]); or the part of a graph that a rank has
            (`adgn.graph.partitioned`).
        edge_weight: `[E]`; gradients flow to it. All ones by default.
        num_nodes: The number of nodes.
        normalization: `"none"`, `"mean"`, `"sym"`, `"laplacian"`, `"skew"`, `"loops"`, `"gcn"` or
            `"gcn-improved"`.
        direction: `"in"`: a node hears the sources of its incoming edges; `"out"`: the targets of
            its outgoing edges; `"undirected"`: all of them, each once, with the mean of the
            weights of edges that become one.
        like: The tensor whose dtype and device the operator must have; by default the weights',
            or torch's default dtype and the edges' device.

    Example:
        >>> edge_index = torch.tensor([[0, 1], [1, 0]])
        >>> graph_operator(edge_index, num_nodes=2, normalization="gcn").to_dense()
        tensor([[0.5000, 0.5000],
                [0.5000, 0.5000]])
        >>> once = graph_operator(edge_index, num_nodes=2)
        >>> graph_operator(edge_index, num_nodes=2) is once
        True
    """
    if like is not None and torch.is_autocast_enabled(like.device.type):
        like = like.new_empty(0, dtype=torch.float32)  # autocast's sparse products are in single
    if isinstance(edge_index, SparseOperator | PartitionedOperator):
        # A rank's part stands for an operator; what it cannot do raises.
        return _checked_operator(cast(SparseOperator, edge_index), edge_weight, num_nodes, like)
    if hasattr(edge_index, "operator"):  # a batch of prepared graphs
        if edge_weight is not None:
            raise ValueError(
                "edge_weight was given together with prepared graphs, which bring their weights; "
                "pass it to GraphBlocks"
            )
        dtype = torch.get_default_dtype() if like is None else like.dtype
        operator = edge_index.operator(normalization, dtype, direction)
        return _checked_operator(cast(SparseOperator, operator), None, num_nodes, like)
    layout = getattr(edge_index, "layout", torch.strided)
    if layout not in (torch.strided, *SPARSE_LAYOUTS):
        raise TypeError(
            f"edge_index has layout {layout}; sparse matrices may be "
            f"{', '.join(map(str, SPARSE_LAYOUTS))}: pass edge_index.to_sparse_csr()"
        )
    if not isinstance(edge_index, Tensor):
        raise TypeError(
            f"edge_index is a {type(edge_index).__name__}; expected a [2, E] tensor, a "
            "torch_geometric.EdgeIndex, a torch sparse tensor or a SparseOperator (a "
            "torch_sparse.SparseTensor converts with .to_torch_sparse_csr_tensor())"
        )
    check_choice("normalization", normalization, NORMALIZATIONS)
    check_operator_direction(direction)
    if like is not None:
        check_same_place("edge_index", edge_index, "x", like)
    if edge_index.layout in SPARSE_LAYOUTS:
        if edge_weight is not None:
            raise ValueError(
                "edge_weight was given together with a sparse edge_index, whose values are the "
                "weights already; pass one of the two"
            )
        return _from_sparse(edge_index, num_nodes, normalization, direction, like)
    return _from_edges(edge_index, edge_weight, num_nodes, normalization, direction, like)


def sparse_features(x: Tensor) -> SparseOperator:
    """A CSR feature matrix as an operator, with the transpose that the encoder's gradient needs.

    Example:
        >>> x = torch.tensor([[0.0, 2.0], [0.0, 0.0]])
        >>> sparse = torch.sparse_csr_tensor([0, 1, 1], [1], [2.0], (2, 2), check_invariants=True)
        >>> bool((sparse_features(sparse) @ torch.eye(2) == x).all())
        True
    """

    def build() -> SparseOperator:
        row, col, value = entries(x)
        pattern, slot = SparsePattern.from_entries(row, col, (x.size(0), x.size(1)))
        return SparseOperator(
            pattern, value.new_zeros(pattern.csr.col.numel()).index_add(0, slot, value)
        )

    return cached((x,), "features", build)


def _from_edges(
    edge_index: Tensor,
    edge_weight: Tensor | None,
    num_nodes: int,
    normalization: Normalization,
    direction: OperatorDirection,
    like: Tensor | None,
) -> SparseOperator:
    reference = like if like is not None else edge_weight
    dtype = torch.get_default_dtype() if reference is None else reference.dtype

    def build_layout(direction: OperatorDirection) -> EdgeLayout:
        if direction == "out":
            return layout_of("in").reversed()
        edges = plain_edges(edge_index, num_nodes)
        check_edge_index(edges, num_nodes)
        ends = (edges[0].long(), edges[1].long())
        return EdgeLayout.build(*ends, num_nodes, normalization, direction)

    def layout_of(direction: OperatorDirection) -> EdgeLayout:
        key = ("layout", normalization, num_nodes, direction)
        return cached((edge_index,), key, lambda: build_layout(direction))

    key = ("operator", normalization, num_nodes, direction, dtype)

    def build() -> SparseOperator:
        layout = layout_of(direction)  # the edges are checked before the weights
        if edge_weight is not None:
            like_weight = edge_weight if like is None else like
            check_edge_weight(edge_weight, edge_index.size(1), like_weight)
        return layout.operator(edge_weight, dtype)

    if edge_weight is None:
        return cached((edge_index,), key, build)
    if _is_differentiated(edge_weight):
        return build()  # its history or tangent belongs to this step alone
    return cached((edge_index, edge_weight), key, build)


def plain_edges(edge_index: Tensor, num_nodes: int) -> Tensor:
    """The tensor behind an `EdgeIndex`, whose size must be the graph's; others as they are."""
    if not isinstance(edge_index, EdgeIndex):
        return edge_index
    sizes = [size for size in edge_index.sparse_size() if size is not None]
    if any(size != num_nodes for size in sizes):
        raise ValueError(
            f"edge_index is an EdgeIndex with sparse_size={tuple(edge_index.sparse_size())}, but x "
            f"has {num_nodes} nodes; give it sparse_size=({num_nodes}, {num_nodes})"
        )
    edges: Tensor = edge_index.as_tensor()
    return edges


def _is_differentiated(weight: Tensor) -> bool:
    """Whether a derivative is taken in `weight`, backward, forward or by `torch.func`."""
    return (
        weight.requires_grad
        or bool(torch._C._functorch.is_functorch_wrapped_tensor(weight))
        or forward_ad.unpack_dual(weight).tangent is not None  # type: ignore[no-untyped-call]
    )


def _from_sparse(
    adjacency: Tensor,
    num_nodes: int,
    normalization: Normalization,
    direction: OperatorDirection,
    like: Tensor | None,
) -> SparseOperator:
    if adjacency.shape != (num_nodes, num_nodes):
        raise ValueError(
            f"the sparse edge_index has shape {list(adjacency.shape)}; expected "
            f"[{num_nodes}, {num_nodes}] for {num_nodes} nodes"
        )
    if adjacency.requires_grad:
        raise ValueError(
            "the sparse edge_index requires a gradient, which would be lost; pass a [2, E] "
            "edge_index and the weights as edge_weight, through which gradients flow"
        )

    def build() -> SparseOperator:
        target, source, weight = entries(adjacency)
        check_edge_weight(weight, weight.numel(), weight if like is None else like)
        layout = EdgeLayout.build(source, target, num_nodes, normalization, direction)
        return layout.operator(weight, weight.dtype)

    dtype = None if like is None else like.dtype
    return cached((adjacency,), ("operator", normalization, num_nodes, direction, dtype), build)


def entries(matrix: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Row, column and value of each entry of a torch sparse matrix, in the order of its entries.

    All are checked, for torch makes sparse tensors unchecked.

    Example:
        >>> row, col, value = entries(torch.tensor([[0.0, 7.0], [0.0, 0.0]]).to_sparse_csr())
        >>> row.tolist(), col.tolist(), value.tolist()
        ([0], [1], [7.0])
    """
    matrix = matrix.detach()
    if matrix.layout == torch.sparse_coo:
        (row, col), value = matrix._indices(), matrix._values()
    else:
        by_rows = matrix.layout == torch.sparse_csr
        pointers = matrix.crow_indices() if by_rows else matrix.ccol_indices()
        inner = matrix.col_indices() if by_rows else matrix.row_indices()
        _check_pointers("crow_indices" if by_rows else "ccol_indices", pointers, inner.numel())
        groups = torch.arange(pointers.numel() - 1, device=inner.device, dtype=inner.dtype)
        outer = groups.repeat_interleave(pointers.diff(), output_size=inner.numel())
        (row, col), value = (outer, inner) if by_rows else (inner, outer), matrix.values()
    check_entries(row, col, (matrix.size(0), matrix.size(1)))
    return row, col, value


def _check_pointers(name: str, pointers: Tensor, num_entries: int) -> None:
    """Raises unless the pointers count entries: torch would read whatever they point to."""
    wrong = pointers < torch.cat([pointers.new_zeros(1), pointers[:-1]])
    wrong[0] |= pointers[0] != 0
    wrong[-1] |= pointers[-1] != num_entries
    if bool(wrong.any()):
        place = int(wrong.nonzero()[0])
        raise ValueError(
            f"{name}[{place}] = {int(pointers[place])} of the sparse matrix is not valid; "
            f"{name} must ascend from 0 to the number of its entries, {num_entries}"
        )


def _checked_operator(
    operator: SparseOperator, edge_weight: Tensor | None, num_nodes: int, like: Tensor | None
) -> SparseOperator:
    if edge_weight is not None:
        raise ValueError(
            "edge_weight was given together with an operator, which has its values already; "
            "pass one of the two"
        )
    if operator.shape != (num_nodes, num_nodes):
        raise ValueError(
            f"the operator has shape {list(operator.shape)}, but x has {num_nodes} nodes"
        )
    if like is not None:
        value = operator.values[0] if isinstance(operator, PartitionedOperator) else operator.value
        check_same_place("the operator", value, "x", like)
        if value.dtype != like.dtype and not torch.is_autocast_enabled(like.device.type):
            raise TypeError(
                f"the operator has dtype {value.dtype}, but x {like.dtype}; build it with "
                "graph_operator(..., like=x)"
            )
    return operator


@dataclass(frozen=True, eq=False)
class EdgeLayout:
    """Where each edge of one graph ends up in the operator: all of it that weights do not change.

    It is worked out once per graph; `operator` then puts weights into it with a few
    index operations, differentiably, so that even learned edge weights sort nothing in a step.

    Attributes:
        pattern: The operator's pattern.
        normalization: See [`graph_operator`][adgn.graph.graph_operator].
        slot: `[edges kept + self loops]`; the slot each of them is added to. For `"skew"` `[2 E]`:
            those of the edges, and then those of their reverses.
        kept: The edges that are no self loops (all of them without normalisation), or `None`
            for all.
        loop_node: The nodes that bring a self loop of their own...
        loop_edge: ... and the edge that it is. Of several self loops of a node the last counts.
        union_slot: For `direction="undirected"`, `[2 E]`: for each edge, and then for each reverse,
            the edge of the union that it is. All of the above are then about those.
        union_count: How many there are of each.

    Example:
        >>> source, target = torch.tensor([0, 1]), torch.tensor([1, 0])
        >>> layout = EdgeLayout.build(source, target, 2, "mean")
        >>> layout.operator(torch.tensor([3.0, 5.0]), torch.float32).to_dense().tolist()
        [[0.0, 1.0], [1.0, 0.0]]
    """

    pattern: SparsePattern
    normalization: Normalization
    slot: Tensor
    kept: Tensor | None = None
    loop_node: Tensor | None = None
    loop_edge: Tensor | None = None
    union_slot: Tensor | None = None
    union_count: Tensor | None = None

    @classmethod
    def build(
        cls,
        source: Tensor,
        target: Tensor,
        num_nodes: int,
        normalization: Normalization,
        direction: OperatorDirection = "in",
    ) -> "EdgeLayout":
        """Lays out the edges `source[e] → target[e]`; the operator's rows are the targets."""
        shape = (num_nodes, num_nodes)
        if direction == "out":
            return cls.build(target, source, num_nodes, normalization)
        if direction == "undirected":
            row, col = torch.cat([target, source]), torch.cat([source, target])
            union, slot = SparsePattern.from_entries(row, col, shape)
            layout = cls.build(union.csr.col.long(), union.csr.row.long(), num_nodes, normalization)
            return replace(layout, union_slot=slot, union_count=torch.bincount(slot))
        if normalization == "skew":
            target, source = torch.cat([target, source]), torch.cat([source, target])
        if normalization not in SELF_LOOP_WEIGHT:
            pattern, slot = SparsePattern.from_entries(target, source, shape)
            return cls(pattern, normalization, slot)
        is_loop = source == target
        kept = (~is_loop).nonzero().squeeze(-1)
        nodes = torch.arange(num_nodes, device=source.device, dtype=source.dtype)
        pattern, slot = SparsePattern.from_entries(
            torch.cat([target[kept], nodes]), torch.cat([source[kept], nodes]), shape
        )
        loops = is_loop.nonzero().squeeze(-1)
        last = torch.full((num_nodes,), -1, device=source.device, dtype=torch.long)
        last = last.scatter_reduce(0, source[loops].long(), loops, "amax")
        loop_node = (last >= 0).nonzero().squeeze(-1)
        return cls(pattern, normalization, slot, kept, loop_node, last[loop_node])

    def reversed(self) -> "EdgeLayout":
        """The layout of the same edges, each reversed; nothing is sorted for it."""
        pattern = self.pattern.reversed
        # Slot i of our pattern is slot order[i] of its transpose.
        order = pattern.to_transposed
        assert order is not None
        return replace(self, pattern=pattern, slot=order.index_select(0, self.slot))

    def operator(
        self, edge_weight: Tensor | None, dtype: torch.dtype, degrees: Degrees | None = None
    ) -> SparseOperator:
        """The operator with these weights (all ones for `None`).

        `degrees` is told the sums of rows, and says what to divide by: those of the whole graph,
        where the edges are a part of it.
        """
        entries = self._entry_weights(edge_weight, dtype)
        row, col = self.pattern.csr.row.long(), self.pattern.csr.col.long()
        count = self.pattern.shape[0]
        if self.normalization == "skew":
            edges = self.slot[: entries.numel()]
            entries = skew_entries(entries, row[edges], col[edges], count, degrees=degrees)
        value = entries.new_zeros(self.pattern.csr.col.numel()).index_add(0, self.slot, entries)
        value = normalized(value, row, col, count, self.normalization, degrees=degrees)
        return SparseOperator(self.pattern, value)

    def _entry_weights(self, edge_weight: Tensor | None, dtype: torch.dtype) -> Tensor:
        """The weight of each entry of `slot`: edges first, then one self loop per node."""
        like: dict[str, Any] = {"dtype": dtype, "device": self.slot.device}
        if self.union_slot is not None and self.union_count is not None and edge_weight is not None:
            both = torch.cat([edge_weight, edge_weight])
            total = both.new_zeros(self.union_count.numel()).index_add(0, self.union_slot, both)
            edge_weight = total / self.union_count
        if self.kept is None or self.loop_node is None:
            count = self.slot.numel() // (2 if self.normalization == "skew" else 1)
            return torch.ones(count, **like) if edge_weight is None else edge_weight
        num_nodes = self.pattern.shape[0]
        loops = torch.full((num_nodes,), SELF_LOOP_WEIGHT[self.normalization], **like)
        if edge_weight is None:
            own, edges = (torch.ones(t.numel(), **like) for t in (self.loop_node, self.kept))
        else:
            own, edges = edge_weight[self.loop_edge], edge_weight[self.kept]
        return torch.cat([edges, loops.index_put((self.loop_node,), own)])


def normalized(
    value: Tensor,
    row: Tensor,
    col: Tensor,
    num_nodes: int,
    normalization: Normalization,
    *,
    check: bool = True,
    own: Tensor | None = None,
    degrees: Degrees | None = None,
) -> Tensor:
    r"""The normalised entries: $a_{uj} / d_u$ for `"mean"`, $\hat{d}_u^{-1/2} \hat{d}_j^{-1/2}
    a_{uj}$ for `"gcn"` and `"sym"`, with $d$ the row sums; a row whose sum is zero becomes zero.
    For `"laplacian"` $-a_{uj}$, and $d_u - a_{uu}$ in each node's `own` entry, by default the one
    on the diagonal.
    """
    if normalization in ("none", "loops", "skew"):
        return value
    degree = value.new_zeros(num_nodes).index_add(0, row, value)
    if degrees is not None:
        degree = degrees(degree)
    if normalization == "laplacian":
        return torch.where(row == col if own is None else own, degree[row], 0.0) - value
    if check:
        check_degree(degree, normalization)
    empty = degree == 0
    degree = torch.where(empty, 1.0, degree)  # keeps the gradient of the untaken branch finite
    if normalization == "mean":
        return torch.where(empty[row], 0.0, value / degree[row])
    scale = torch.where(empty, 0.0, degree.rsqrt())
    # The product of the two scales first: it is the same number for (u, j) and (j, u), so a
    # symmetric graph gives an exactly symmetric operator.
    return (scale[row] * scale[col]) * value


def skew_entries(
    value: Tensor,
    row: Tensor,
    col: Tensor,
    num_nodes: int,
    *,
    check: bool = True,
    degrees: Degrees | None = None,
) -> Tensor:
    r"""The entries of $\tilde{\mathbf{A}}$, and then those of $-\tilde{\mathbf{A}}^\top$."""
    mean = normalized(value, row, col, num_nodes, "mean", check=check, degrees=degrees)
    return torch.cat([mean, -mean])


def check_degree(
    degree: Tensor, normalization: Normalization, number: Tensor | None = None
) -> None:
    """Raises where the weights that come into a node, by its `number`, have a negative sum."""
    if bool((degree < 0).any()):
        place = int((degree < 0).nonzero()[0])
        node = place if number is None else int(number[place])
        raise ValueError(
            f"edge_weight gives node {node} the degree {float(degree[place]):.6g}; {normalization} "
            "normalisation needs degrees that are not negative: use another, such as 'none'"
        )
