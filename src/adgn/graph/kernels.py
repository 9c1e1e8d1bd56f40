"""How a sparse operator is applied: by the native kernels where they serve, else by torch."""

import functools
import inspect
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.autograd import forward_ad

from adgn.graph.native import calls, edge_calls
from adgn.graph.native.library import DTYPES, native_library

if TYPE_CHECKING:
    from adgn.graph.operator import CSR, SparseOperator

# Rows of the gradient of the values are dot products of gathered states; so many numbers
# at most are gathered at once, which bounds the memory that a large graph needs for them.
_GATHER_LIMIT = 2**25


def multiply(operator: "SparseOperator", x: Tensor, *, transposed: bool = False) -> Tensor:
    """`operator @ x` for `x` of shape `[..., columns, channels]`, differentiable in both.

    With `transposed`, `operatorᵀ @ x` for `x` of shape `[..., rows, channels]`.
    """
    rows, columns = reversed(operator.shape) if transposed else operator.shape
    if x.dim() < 2 or x.size(-2) != columns:
        kind = "transposed operator" if transposed else "operator"
        raise ValueError(
            f"x has shape {list(x.shape)}; the {kind} of shape {[rows, columns]} multiplies "
            f"[..., {columns}, channels]"
        )
    if torch.is_autocast_enabled(x.device.type):
        # Sparse products have no half-precision kernel on every device.
        with torch.autocast(x.device.type, enabled=False):
            return multiply(operator, x.to(operator.value.dtype), transposed=transposed)
    return columns_first(x, rows, lambda x: _apply(operator.value, x, operator, transposed))


def multiply_transposed(operator: "SparseOperator", x: Tensor) -> Tensor:
    """`operatorᵀ @ x` for `x` of shape `[..., rows, channels]`, without a gradient."""
    csr, value = operator.pattern.transposed, operator.transposed_value.detach()
    return columns_first(x, csr.shape[0], lambda x: csr_matmul(csr, value, x))


def columns_first(x: Tensor, rows: int, product: Callable[[Tensor], Tensor]) -> Tensor:
    """The product with `[..., nodes, channels]`, whose leading dimensions become more channels."""
    if x.dim() == 2:
        return product(x)
    flat = x.movedim(-2, 0)
    return product(flat.flatten(1)).view(rows, *flat.shape[1:]).movedim(0, -2)


def multiply_reference(operator: "SparseOperator", x: Tensor) -> Tensor:
    """The same product, as plainly as it can be written: gather, weigh, add up.

    The kernels are tested against it.

    Example:
        >>> from adgn.graph import graph_operator
        >>> operator = graph_operator(torch.tensor([[0, 1], [1, 2]]), num_nodes=3)  # 0 → 1 → 2
        >>> multiply_reference(operator, torch.tensor([[1.0], [2.0], [3.0]])).flatten().tolist()
        [0.0, 1.0, 2.0]
    """
    csr = operator.pattern.csr
    messages = operator.value.unsqueeze(-1) * x[csr.col.long()]
    return x.new_zeros(csr.shape[0], x.size(-1)).index_add(0, csr.row.long(), messages)


def csr_matmul(csr: "CSR", value: Tensor, x: Tensor) -> Tensor:
    """The product of a CSR matrix and `[columns, channels]`, without a gradient."""
    library = native_library()
    if (
        library is not None
        and calls.unsupported_reason(value, x) is None
        and calls.unsupported_pattern_reason(csr) is None
    ):
        return calls.multiply(library, csr, value, x)
    if value.device.type == "cpu" and value.dtype not in DTYPES:
        # torch has no sparse product for half precision here: the sums are made in single.
        return csr_matmul(csr, value.float(), x.float()).to(value.dtype)
    matrix = torch_csr(csr.rowptr, csr.col, value, csr.shape, check=False)
    if not torch.is_autocast_enabled(value.device.type):
        return matrix @ x
    with torch.autocast(value.device.type, enabled=False):  # also in a backward pass
        return matrix @ x


def _apply(value: Tensor, x: Tensor, operator: "SparseOperator", transposed: bool) -> Tensor:
    # What transforms need of a function costs more than a product on a small graph.
    plain = not torch._C._are_functorch_transforms_active() and forward_ad._current_level < 0
    function = _PlainMultiply if plain else _Multiply
    product: Tensor = function.apply(value, x, operator, transposed)  # type: ignore[no-untyped-call]
    return product


class _Multiply(torch.autograd.Function):
    """`A @ x` or `Aᵀ @ x`; the backward of one is the other, so it nests to any order."""

    @staticmethod
    def forward(value: Tensor, x: Tensor, operator: "SparseOperator", transposed: bool) -> Tensor:
        pattern = operator.pattern
        if not transposed:
            return csr_matmul(pattern.csr, value, x)
        same = _shares_memory(value, operator.value)
        turned = operator.transposed_value.detach() if same else pattern.transpose_values(value)
        return csr_matmul(pattern.transposed, turned, x)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        value, x, ctx.operator, ctx.transposed = inputs
        # x is needed only for the gradient of the values: not keeping it saves one state per layer.
        ctx.save_for_backward(value, x if ctx.needs_input_grad[0] else None)
        ctx.save_for_forward(value, x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, None, None]:
        value, x = ctx.saved_tensors
        grad_value = grad_x = None
        if ctx.needs_input_grad[0]:
            ends = (x, grad) if ctx.transposed else (grad, x)
            grad_value = edge_dot(ctx.operator, *ends)
        if ctx.needs_input_grad[1]:
            grad_x = _apply(value, grad, ctx.operator, not ctx.transposed)
        return grad_value, grad_x, None, None

    @staticmethod
    def jvp(ctx: Any, value_tangent: Tensor | None, x_tangent: Tensor | None, *_: None) -> Tensor:
        value, x = ctx.saved_tensors
        parts = []
        if x_tangent is not None:
            parts.append(_apply(value, x_tangent, ctx.operator, ctx.transposed))
        if value_tangent is not None:
            parts.append(_apply(value_tangent, x, ctx.operator, ctx.transposed))
        return sum(parts[1:], parts[0])

    @staticmethod
    def vmap(
        _: Any,
        dims: tuple[int | None, ...],
        value: Tensor,
        x: Tensor,
        operator: Any,
        transposed: bool,
    ) -> tuple[Tensor, int]:
        value_dim, x_dim = dims[:2]
        if value_dim is not None:
            values = value.movedim(value_dim, 0)
            states = x.movedim(x_dim, 0) if x_dim is not None else x.expand(len(values), *x.shape)
            products = [
                _apply(v, s, operator, transposed) for v, s in zip(values, states, strict=True)
            ]
            return torch.stack(products), 0
        # One wide product for the whole batch: the columns of x are independent of each other.
        assert x_dim is not None
        wide = x.movedim(x_dim, 1)
        product = _apply(value, wide.flatten(1), operator, transposed)
        return product.view(-1, *wide.shape[1:]), 1


class _PlainMultiply(torch.autograd.Function):
    """The same outside of transforms and forward mode."""

    @staticmethod
    def forward(
        ctx: Any, value: Tensor, x: Tensor, operator: "SparseOperator", transposed: bool
    ) -> Tensor:
        ctx.operator, ctx.transposed = operator, transposed
        ctx.save_for_backward(value, x if ctx.needs_input_grad[0] else None)
        return _Multiply.forward(value, x, operator, transposed)

    backward = _Multiply.backward


# `apply` asks for the signature at every call; working it out anew each time would take as long as
# a product on a small graph.
_Multiply.forward.__signature__ = inspect.signature(_Multiply.forward)  # type: ignore[attr-defined]


def _shares_memory(value: Tensor, other: Tensor) -> bool:
    """Whether these are the same numbers; inside `torch.func` that is not to be seen."""
    if torch._C._functorch.is_functorch_wrapped_tensor(other):
        return False
    return value is other or value.data_ptr() == other.data_ptr()


def edge_dot(operator: "SparseOperator", left: Tensor, right: Tensor) -> Tensor:
    r"""$\langle \mathbf{l}_u, \mathbf{r}_j \rangle$ for each entry $(u, j)$ of an operator.

    It is the gradient of `operator @ right` in the operator's values, where that of the product is
    `left`. Differentiable to any order; the values of the operator play no part.

    Args:
        operator: Its pattern says which products are wanted.
        left: `[rows, channels]`.
        right: `[columns, channels]`.

    Returns:
        `[entries]`, in the order of `operator.value`.

    Example:
        >>> from adgn.graph import graph_operator
        >>> path = graph_operator(torch.tensor([[0, 1], [1, 2]]), num_nodes=3)  # 0 → 1 → 2
        >>> x = torch.tensor([[1.0], [2.0], [3.0]])
        >>> edge_dot(path, x, x).tolist()  # of nodes 1 and 0, and of nodes 2 and 1
        [2.0, 6.0]
    """
    shapes = [(size, left.size(-1)) for size in operator.shape]
    for name, tensor, shape in zip(("left", "right"), (left, right), shapes, strict=True):
        if tensor.shape != shape:
            raise ValueError(f"{name} has shape {list(tensor.shape)}; expected {list(shape)}")
    if torch._C._are_functorch_transforms_active() or forward_ad._current_level >= 0:
        return _gathered_dots(operator.pattern.csr, left, right)
    dots: Tensor = _EdgeDot.apply(left, right, operator)  # type: ignore[no-untyped-call]
    return dots


class _EdgeDot(torch.autograd.Function):
    """The dot products along edges; their gradients are products with them as values."""

    @staticmethod
    def forward(ctx: Any, left: Tensor, right: Tensor, operator: "SparseOperator") -> Tensor:
        ctx.operator = operator
        ctx.save_for_backward(left, right)
        csr, library = operator.pattern.csr, native_library()
        if library is not None and edge_calls.unsupported_reason(csr, left, right) is None:
            return edge_calls.edge_dots(library, csr, left, right)
        return _gathered_dots(csr, left, right)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        left, right = ctx.saved_tensors
        weighted = ctx.operator.with_values(grad)
        grad_left = grad_right = None
        if ctx.needs_input_grad[0]:
            grad_left = _apply(grad, right, weighted, False)
        if ctx.needs_input_grad[1]:
            grad_right = _apply(grad, left, weighted, True)
        return grad_left, grad_right, None


def _gathered_dots(csr: "CSR", left: Tensor, right: Tensor) -> Tensor:
    """The same in torch, and the reference: gather both rows of each entry, multiply, add up."""
    step = max(1, _GATHER_LIMIT // max(1, left.size(-1)))
    row, col = torch.split(csr.row, step), torch.split(csr.col, step)
    return torch.cat(
        [
            (left.index_select(0, r) * right.index_select(0, c)).sum(-1)
            for r, c in zip(row, col, strict=True)
        ]
    )


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
