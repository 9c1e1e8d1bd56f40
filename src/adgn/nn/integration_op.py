"""`integrate` as an operation that `torch.compile` keeps whole."""

import itertools
import weakref
from typing import Any

import torch
from torch import Tensor

from adgn.graph import TwoWayOperator, graph_operator
from adgn.graph.checks import check_finite
from adgn.nn.integration_run import Run
from adgn.nn.steppers import Weights

# What forward passes keep for backward ones: compiled graphs can hand on tensors of known number
# and size only. It lives as long as the tensor with its number.
_kept: dict[int, tuple[Run, list[list[Tensor]]]] = {}
_numbers = itertools.count()


@torch.library.custom_op("adgn::integrate", mutates_args=())
def integrate_op(
    x: Tensor,
    w_self: Tensor,
    w_neigh: Tensor,
    bias: Tensor | None,
    edge_index: Tensor,
    edge_weight: Tensor | None,
    normalization: str,
    direction: str,
    epsilon: float,
    activation: str,
    num_steps: int,
    memory: str,
    keep: bool,
) -> tuple[Tensor, Tensor]:
    """`integrate` as an operation that `torch.compile` keeps whole.

    The graph is validated and built when this runs, see `adgn.graph.graph_operator`. `keep` says
    whether there will be a backward pass. Returns the last states, and the number of what is kept.
    """
    check_finite("x", x)
    weights = Weights(w_self, w_neigh, bias).readable()
    graph = (edge_index, edge_weight, normalization, direction)
    run = _run(x, weights, graph, epsilon, activation, num_steps, memory)
    out, kept = run.forward(x, weights, keep)
    number = next(_numbers)
    handle = torch.tensor([number])
    if keep:
        _kept[number] = (run, kept)
        weakref.finalize(handle, _kept.pop, number, None).atexit = False
    return out, handle


@torch.library.custom_op("adgn::integrate_backward", mutates_args=())
def integrate_backward_op(
    grad: Tensor,
    handle: Tensor,
    x: Tensor,
    w_self: Tensor,
    w_neigh: Tensor,
    bias: Tensor | None,
    edge_index: Tensor,
    edge_weight: Tensor | None,
    normalization: str,
    direction: str,
    epsilon: float,
    activation: str,
    num_steps: int,
    memory: str,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The gradients in `x`, `w_self`, `w_neigh` and `bias` (empty without one).

    What `integrate_op` kept is found by its number; where that tensor was copied in between, the
    forward pass is done again.
    """
    weights = Weights(w_self, w_neigh, bias).readable()
    graph = (edge_index, edge_weight, normalization, direction)
    known = _kept.get(int(handle))
    if known is None:
        run = _run(x, weights, graph, epsilon, activation, num_steps, memory)
        _, kept = run.forward(x, weights, True)
    else:
        run, kept = known
    grads = weights.zeros()
    grad_x = run.backward(grad, weights, kept, grads)
    return grad_x, grads.w_self, grads.w_neigh, x.new_empty(0) if grads.bias is None else grads.bias


def _run(
    x: Tensor, weights: Weights, graph: tuple[Tensor, Tensor | None, Any, Any], *settings: Any
) -> Run:
    edge_index, edge_weight, normalization, direction = graph
    operators = [
        graph_operator(
            *(edge_index, edge_weight),
            num_nodes=x.size(-2),
            normalization=normalization,
            direction=one,
            like=x,
        )
        for one in (("in", "out") if direction == "both" else (direction,))
    ]
    operator = operators[0] if len(operators) == 1 else TwoWayOperator(*operators)
    return Run.plan(x, operator, weights, *settings)


@integrate_op.register_fake
def _(x: Tensor, *_: Any) -> tuple[Tensor, Tensor]:
    return x.new_empty(x.shape), torch.empty(1, dtype=torch.int64, device="cpu")


@integrate_backward_op.register_fake
def _(
    grad: Tensor,
    _: Tensor,
    x: Tensor,
    w_self: Tensor,
    w_neigh: Tensor,
    bias: Tensor | None,
    *__: Any,
) -> tuple[Tensor, ...]:
    shapes = (x.shape, w_self.shape, w_neigh.shape, (0,) if bias is None else bias.shape)
    return tuple(x.new_empty(shape) for shape in shapes)


def _setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    x, w_self, w_neigh, bias, edge_index, edge_weight, *ctx.settings, _ = inputs
    ctx.save_for_backward(output[1], x, w_self, w_neigh, bias, edge_index, edge_weight)


def _backward(ctx: Any, grad: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
    grad_x, w_self, w_neigh, bias = integrate_backward_op(grad, *ctx.saved_tensors, *ctx.settings)
    has_bias = ctx.saved_tensors[4] is not None
    return grad_x, w_self, w_neigh, bias if has_bias else None, *[None] * 9


integrate_op.register_autograd(_backward, setup_context=_setup_context)
