"""The sparse product as an operation that `torch.compile` keeps whole."""

from typing import Any

import torch
from torch import Tensor

from adgn.graph.adjacency import graph_operator
from adgn.graph.kernels import multiply as multiply_operator
from adgn.graph.kernels import multiply_transposed


@torch.library.custom_op("adgn::multiply", mutates_args=())
def multiply(
    x: Tensor, edge_index: Tensor, edge_weight: Tensor | None, normalization: str, transposed: bool
) -> Tensor:
    """The graph's operator, or its transpose, times `x`: differentiable in `x`.

    The operator is validated and built when this runs, once per graph.

    Args:
        x: States, `[..., N, channels]`.
        edge_index: `[2, E]`.
        edge_weight: `[E]`, or `None`.
        normalization: See `adgn.graph.graph_operator`.
        transposed: Whether it is the transpose.
    """
    operator = graph_operator(
        edge_index,
        edge_weight,
        num_nodes=x.size(-2),
        normalization=normalization,  # type: ignore[arg-type]
        like=x,
    )
    product = multiply_transposed(operator, x) if transposed else multiply_operator(operator, x)
    return product.contiguous()


@multiply.register_fake
def _(x: Tensor, *_: Any) -> Tensor:
    return x.new_empty(x.shape)


def _setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    _, edge_index, edge_weight, ctx.normalization, ctx.transposed = inputs
    ctx.save_for_backward(edge_index, edge_weight)


def _backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    graph = (*ctx.saved_tensors, ctx.normalization)
    return multiply(grad, *graph, not ctx.transposed), None, None, None, None


multiply.register_autograd(_backward, setup_context=_setup_context)
