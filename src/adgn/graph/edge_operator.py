"""A graph's operator as a list of edges: for tracing and explaining."""

from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import torch
from torch import Tensor
from torch.autograd import forward_ad

from adgn.graph.adjacency import (
    SELF_LOOP_WEIGHT,
    SPARSE_LAYOUTS,
    Adjacency,
    Normalization,
    graph_operator,
    normalized,
    plain_edges,
    skew_entries,
)
from adgn.graph.checks import (
    check_edge_weight,
    check_same_place,
    is_compiled,
    is_traced,
    records_sizes,
)
from adgn.graph.direction import OperatorDirection, check_operator_direction, union_entries
from adgn.graph.edges import edge_list
from adgn.graph.kernels import multiply_transposed
from adgn.graph.operator import SparseOperator
from adgn.graph.partitioned import PartitionedOperator


@dataclass(frozen=True, eq=False)
class EdgeOperator:
    """A sparse matrix whose entries stay in the order of the edges, repeated ones apart.

    Nothing is sorted, remembered or, while tracing, looked at. `torch.compile` gets the product as
    one operation, which has the native kernels; otherwise it is torch's `index_add`.

    Attributes:
        row: `[entries]`; where each edge ends. The reverses of all edges, for
            `direction="undirected"`, and self loops that a normalisation adds come last.
        col: `[entries]`; where it begins.
        value: `[entries]`.
        shape: `(nodes, nodes)`.
        mask: `[entries]`; what each message is multiplied with, or `None`.
        graph: Edges, edge weights, normalisation and direction, where `torch.compile` records;
            else `None`.

    Example:
        >>> x, path = torch.tensor([[1.0], [2.0], [3.0]]), torch.tensor([[0, 1], [1, 2]])
        >>> operator = edge_operator(path, mask=torch.tensor([1.0, 0.5]), like=x)
        >>> (operator @ x).flatten().tolist()
        [0.0, 1.0, 1.0]
    """

    row: Tensor
    col: Tensor
    value: Tensor
    shape: tuple[int, int]
    mask: Tensor | None = None
    graph: tuple[Tensor, Tensor | None, Normalization, OperatorDirection] | None = None

    @property
    def places(self) -> tuple[Tensor, Tensor]:
        """Row and column of each entry."""
        return self.row, self.col

    @property
    def has_negative_values(self) -> bool:
        """Whether some value is below zero; not known while tracing."""
        return not is_traced(self.value) and bool((self.value < 0).any())

    @property
    def has_zero_values(self) -> bool:
        """Whether some value may be zero."""
        return True

    def with_values(self, value: Tensor) -> "EdgeOperator":
        """The same entries with other values, and the same mask."""
        return replace(self, value=value, graph=None)

    def __matmul__(self, x: Tensor) -> Tensor:
        """`A @ x` for `x` of shape `[..., nodes, channels]`."""
        return self._product(x, transposed=False)

    def transposed_product(self, x: Tensor) -> Tensor:
        """`Aᵀ @ x` for `x` of shape `[..., nodes, channels]`."""
        return self._product(x, transposed=True)

    def _product(self, x: Tensor, *, transposed: bool) -> Tensor:
        if _autocasts(x):
            with torch.autocast(x.device.type, enabled=False):
                return self._product(x.to(self.value.dtype), transposed=transposed)
        if self.graph is not None and not (
            self.value.requires_grad
            or torch._C._are_functorch_transforms_active()
            or forward_ad._current_level >= 0
        ):
            product: Tensor = multiply_op(x, *self.graph, transposed)
            return product
        value = self.value if self.mask is None else self.value * self.mask
        row, col = (self.col, self.row) if transposed else (self.row, self.col)
        messages = value.unsqueeze(-1) * x.index_select(-2, col)
        return torch.zeros_like(x).index_add(-2, row, messages)


Operator: TypeAlias = SparseOperator | EdgeOperator | PartitionedOperator


def edge_operator(
    edge_index: Adjacency,
    edge_weight: Tensor | None = None,
    *,
    normalization: Normalization = "none",
    direction: OperatorDirection = "in",
    like: Tensor,
    mask: Tensor | None = None,
) -> EdgeOperator:
    """The operator of [`graph_operator`][adgn.graph.graph_operator] as a list of edges.

    Args:
        edge_index: The graph, not validated while tracing. A form without edges, such as a sparse
            matrix, interrupts what `torch.compile` records.
        edge_weight: `[E]`.
        normalization: See `graph_operator`.
        direction: See `graph_operator`.
        like: States `[..., N, channels]`.
        mask: `[E]`; what the message of each edge is multiplied with, after the normalisation, and
            that of its reverse too. The messages of self loops that the normalisation brings stay
            as they are.

    Example:
        >>> pair = torch.tensor([[0, 1], [1, 0]])
        >>> edge_operator(pair, normalization="gcn", like=torch.zeros(2, 1)).value
        tensor([0.5000, 0.5000, 0.5000, 0.5000])
    """
    if isinstance(edge_index, EdgeOperator):
        return edge_index
    if not isinstance(edge_index, Tensor) or edge_index.layout in SPARSE_LAYOUTS:
        if mask is not None:
            raise ValueError(
                "an explanation masks the edges of a [2, E] edge_index; pass one in place of a "
                f"{type(edge_index).__name__}"
            )
        return _from_operator(edge_index, edge_weight, normalization, direction, like)
    check_operator_direction(direction)
    num_nodes = like.size(-2)
    if is_traced(like):
        edges = plain_edges(edge_index, num_nodes)
    else:
        edges = edge_list(edge_index, num_nodes, like)
        if edge_weight is not None:
            check_edge_weight(edge_weight, edges.size(1), like)
        if mask is not None and mask.shape != edges.shape[1:]:
            raise ValueError(
                f"the explanation's edge mask has shape {list(mask.shape)}; expected "
                f"[{edges.size(1)}], one entry per column of edge_index"
            )
    source, target = edges.long().unbind()
    value = edge_weight
    if value is None:
        value = torch.ones_like(source, dtype=torch.float32 if _autocasts(like) else like.dtype)
    if direction == "out":
        source, target = target, source
    elif direction == "undirected":
        source, target, count = union_entries(source, target, num_nodes)
        value = torch.cat([value, value]) / count
        mask = None if mask is None else torch.cat([mask, mask])
    own_entry = None
    if normalization in SELF_LOOP_WEIGHT:
        nodes = torch.arange(num_nodes, device=source.device)
        loop = source == target
        # The last self loop of each node, −1 without one: that is the weight put at the end.
        number = torch.where(loop, torch.arange(source.size(0), device=source.device), -1)
        last = torch.full_like(nodes, -1).scatter_reduce(0, target, number, "amax")
        weights = value
        if direction == "undirected":  # of equal entries each has its part of their mean
            mean = value.new_zeros(num_nodes).index_add(0, target, torch.where(loop, value, 0.0))
            weights = torch.where(loop, mean[target], value)
        own = torch.cat([weights, value.new_full((1,), SELF_LOOP_WEIGHT[normalization])])[last]
        value = torch.cat([torch.where(loop, 0.0, value), own])
        source, target = torch.cat([source, nodes]), torch.cat([target, nodes])
        mask = None if mask is None else torch.cat([mask, torch.ones_like(own)])
        own_entry = torch.cat([torch.zeros_like(loop), torch.ones_like(nodes, dtype=torch.bool)])
    if normalization == "skew":
        value = skew_entries(value, target, source, num_nodes, check=not is_traced(like))
        source, target = torch.cat([source, target]), torch.cat([target, source])
        mask = None if mask is None else torch.cat([mask, mask])
    entries = (value, target, source, num_nodes, normalization)
    value = normalized(*entries, check=not is_traced(like), own=own_entry)
    graph = None
    if is_compiled() and mask is None:
        graph = (edge_index, edge_weight, normalization, direction)
    return EdgeOperator(target, source, value, (num_nodes, num_nodes), mask, graph)


def _from_operator(
    edge_index: Adjacency,
    edge_weight: Tensor | None,
    normalization: Normalization,
    direction: OperatorDirection,
    like: Tensor,
) -> EdgeOperator:
    """The entries of an operator, which may have to be built first."""
    if isinstance(edge_index, SparseOperator):
        if edge_weight is not None:
            raise ValueError(
                "edge_weight was given together with an operator, which has its values already; "
                "pass one of the two"
            )
        operator = edge_index
    elif records_sizes() or torch.compiler.is_exporting():
        raise ValueError(
            f"a sparse matrix or {type(edge_index).__name__} cannot be traced or exported; pass a "
            "[2, E] edge_index and edge_weight"
        )
    else:
        settings = {"num_nodes": like.size(-2), "normalization": normalization, "like": like}
        operator = _graph_operator(edge_index, edge_weight, direction=direction, **settings)
    check_same_place("the operator", operator.value, "x", like)
    csr = operator.pattern.csr
    rows = torch.arange(csr.shape[0], device=csr.col.device)
    row = rows.repeat_interleave(csr.rowptr.diff(), output_size=csr.col.size(0))
    return EdgeOperator(row, csr.col.long(), operator.value, csr.shape)


@torch.compiler.disable(  # type: ignore[no-untyped-call, untyped-decorator]
    reason="only a [2, E] edge_index can be part of a compiled graph"
)
def _graph_operator(*args: object, **kwargs: object) -> SparseOperator:
    return graph_operator(*args, **kwargs)  # type: ignore[arg-type]


def _autocasts(tensor: Tensor) -> bool:
    """Whether autocast is on where `tensor` is; torch knows none for meta tensors."""
    return not tensor.is_meta and torch.is_autocast_enabled(tensor.device.type)


@torch.library.custom_op("adgn::multiply", mutates_args=())
def multiply_op(
    x: Tensor,
    edge_index: Tensor,
    edge_weight: Tensor | None,
    normalization: str,
    direction: str,
    transposed: bool,
) -> Tensor:
    """The graph's operator, or its transpose, times `x`; `torch.compile` keeps it whole.

    The graph is validated and built when this runs, see `adgn.graph.graph_operator`.
    """
    operator = graph_operator(
        edge_index,
        edge_weight,
        num_nodes=x.size(-2),
        normalization=normalization,  # type: ignore[arg-type]
        direction=direction,  # type: ignore[arg-type]
        like=x,
    )
    product = multiply_transposed(operator, x) if transposed else operator @ x
    return product.contiguous()


@multiply_op.register_fake
def _(x: Tensor, *_: Any) -> Tensor:
    return x.new_empty(x.shape)


def _setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    _, edge_index, edge_weight, *ctx.kind, ctx.transposed = inputs
    ctx.save_for_backward(edge_index, edge_weight)


def _backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    graph = (*ctx.saved_tensors, *ctx.kind)
    return multiply_op(grad, *graph, not ctx.transposed), None, None, None, None, None


multiply_op.register_autograd(_backward, setup_context=_setup_context)
