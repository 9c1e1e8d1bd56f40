"""How alike the states of an edge's two nodes are."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad

from adgn.graph.checks import records_sizes
from adgn.graph.edge_operator import EdgeOperator, Operator
from adgn.graph.native import edge_calls
from adgn.graph.native.library import native_library
from adgn.graph.operator import SparseOperator


def edge_cosine(operator: Operator, x: Tensor, floor: float = 1e-9) -> Tensor:
    r"""The cosine of the states of both nodes, for each entry of a graph's operator.

    $$
    c_{uj} = \frac{\langle \mathbf{x}_u, \mathbf{x}_j \rangle}
        {\max(\lVert \mathbf{x}_u \rVert \lVert \mathbf{x}_j \rVert, \mathrm{floor})}
    $$

    Args:
        operator: A graph's operator; its values play no part.
        x: `[N, channels]`; gradients flow to it.
        floor: What keeps the states of length zero apart from a division by zero: their cosines are
            zero.

    Returns:
        `[entries]`, in the order of `operator.value`.

    Example:
        >>> from adgn.graph import graph_operator
        >>> path = graph_operator(torch.tensor([[0, 1], [1, 2]]), num_nodes=3)  # 0 → 1 → 2
        >>> edge_cosine(path, torch.tensor([[1.0, 0.0], [3.0, 4.0], [-3.0, -4.0]]))
        tensor([ 0.6000, -1.0000])
    """
    if not records_sizes() and (x.dim() != 2 or x.size(0) != operator.shape[0]):
        raise ValueError(
            f"x has shape {list(x.shape)}; the operator of shape {list(operator.shape)} needs "
            f"[{operator.shape[0]}, channels]"
        )
    if (
        isinstance(operator, EdgeOperator)
        or torch._C._are_functorch_transforms_active()
        or forward_ad._current_level >= 0
    ):
        return edge_cosine_reference(operator, x, floor)
    csr, library = operator.pattern.csr, native_library()
    if library is None or edge_calls.unsupported_reason(csr, x) is not None:
        return edge_cosine_reference(operator, x, floor)
    cosines: Tensor = _EdgeCosine.apply(x, operator, floor, library)  # type: ignore[no-untyped-call]
    return cosines


def edge_cosine_reference(operator: Operator, x: Tensor, floor: float = 1e-9) -> Tensor:
    """The same as plainly as it can be written; the kernels are tested against it.

    Example:
        >>> from adgn.graph import graph_operator
        >>> loop = graph_operator(torch.tensor([[0], [0]]), num_nodes=1)
        >>> edge_cosine_reference(loop, torch.tensor([[3.0, 4.0]]))
        tensor([1.])
    """
    row, col = operator.places
    # index_select: the gradient of plain indexing depends on the number of threads.
    dots = (x.index_select(0, row) * x.index_select(0, col)).sum(-1)
    norm = _norms(x)
    sizes = norm.index_select(0, row) * norm.index_select(0, col)
    return dots / sizes.clamp(min=floor)


def _norms(x: Tensor) -> Tensor:
    """The length of each row; its gradient at zero is zero."""
    square = x.square().sum(-1)
    empty = square == 0
    return torch.where(empty, 0.0, torch.where(empty, 1.0, square).sqrt())


class _EdgeCosine(torch.autograd.Function):
    """The cosines by the native kernels, forward and backward."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, operator: SparseOperator, floor: float, library: Any
    ) -> Tensor:
        norm = _norms(x.detach())
        cosine = edge_calls.cosines(library, operator.pattern.csr, x, norm, floor)
        ctx.operator, ctx.floor, ctx.library = operator, floor, library
        ctx.save_for_backward(x, norm, cosine)
        return cosine

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, None, None, None]:
        x, norm, cosine = ctx.saved_tensors
        if torch.is_grad_enabled():  # create_graph=True: this is to be differentiated again
            again = edge_cosine_reference(ctx.operator, x, ctx.floor)
            (grad_x,) = torch.autograd.grad(again, x, grad, create_graph=True)
            return grad_x, None, None, None
        csr = ctx.operator.pattern.csr
        grad_x = edge_calls.cosines_backward(ctx.library, csr, x, norm, ctx.floor, cosine, grad)
        return grad_x, None, None, None
