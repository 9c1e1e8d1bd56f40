"""Attention along edges: a softmax over what comes into a node, and the sum weighed with it."""

import math
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.nn import functional

from adgn.graph.edge_operator import EdgeOperator, Operator
from adgn.graph.native import edge_calls
from adgn.graph.native.library import native_library
from adgn.graph.operator import SparseOperator


def attend(
    operator: Operator,
    states: Tensor,
    *,
    heads: int,
    negative_slope: float = 0.2,
    keep: Tensor | None = None,
) -> Tensor:
    r"""What each node hears by attention, head by head.

    $$
    \mathbf{y}_u = \sum_j \alpha_{uj} \mathbf{s}_j, \qquad
    \alpha_{uj} = \frac{w_{uj} \exp \operatorname{LeakyReLU}(a_j + b_u)}
        {\sum_k w_{uk} \exp \operatorname{LeakyReLU}(a_k + b_u)}
    $$

    over the entries $w_{uj} \geq 0$ of a graph's operator; a node without any hears zero.

    Args:
        operator: The graph; an entry counts as often as its value says.
        states: `[N, heads * (channels + 2)]`: what each node sends, $\mathbf{s}$ of all heads, then
            its part $a$ of the logits as a source, then its part $b$ as a target. One array, for
            one product makes it.
        heads: How many heads.
        negative_slope: Of LeakyReLU.
        keep: `[heads, entries]`; what $\alpha$ is multiplied with, for dropout.

    Returns:
        `[N, heads * channels]`.

    Example:
        >>> from adgn.graph import graph_operator
        >>> star = graph_operator(torch.tensor([[1, 2], [0, 0]]), num_nodes=3)
        >>> states = torch.tensor([[0.0, 0.0, 0.0], [1.0, 5.0, 0.0], [3.0, 5.0, 0.0]])
        >>> attend(star, states, heads=1).flatten().tolist()  # the mean of 1 and 3
        [2.0, 0.0, 0.0]
    """
    if operator.has_negative_values:
        raise ValueError(
            "edge_weight has negative entries; attention counts an edge as often as its weight "
            "says, which must be at least 0"
        )
    if (
        isinstance(operator, EdgeOperator)
        or operator.value.requires_grad
        or torch._C._are_functorch_transforms_active()
        or forward_ad._current_level >= 0
    ):
        return attend_reference(operator, states, heads, negative_slope, keep)
    tensors = (states, operator.value) if keep is None else (states, operator.value, keep)
    library = native_library()
    if library is None or edge_calls.unsupported_reason(operator.pattern.csr, *tensors) is not None:
        return attend_reference(operator, states, heads, negative_slope, keep)
    settings = (operator, heads, negative_slope, library)
    result: Tensor = _Attend.apply(states, keep, *settings)  # type: ignore[no-untyped-call]
    return result


def attend_reference(
    operator: Operator, states: Tensor, heads: int, negative_slope: float, keep: Tensor | None
) -> Tensor:
    """The same as plainly as it can be written; the kernels are tested against it.

    Example:
        >>> from adgn.graph import graph_operator
        >>> loop = graph_operator(torch.tensor([[0], [0]]), num_nodes=1)
        >>> attend_reference(loop, torch.tensor([[7.0, 1.0, 2.0]]), 1, 0.2, None)
        tensor([[7.]])
    """
    channels = states.size(-1) // heads - 2
    sent = states[:, : heads * channels].reshape(-1, heads, channels)
    source, target = states[:, heads * channels :].reshape(-1, 2, heads).unbind(1)
    row, col = operator.places
    # index_select throughout: the gradient of plain indexing depends on the number of threads.
    logits = functional.leaky_relu(
        source.index_select(0, col) + target.index_select(0, row), negative_slope
    )
    weight = operator.value.unsqueeze(-1)
    silent = weight == 0 if operator.has_zero_values else None
    share = edge_softmax(logits, row, states.size(0), weight, silent)
    if keep is not None:
        share = share * keep.t()
    parts = [
        operator.with_values(alpha.contiguous()) @ part
        for alpha, part in zip(share.unbind(1), sent.unbind(1), strict=True)
    ]
    return torch.cat(parts, -1)


def edge_softmax(
    logits: Tensor,
    target: Tensor,
    num_nodes: int,
    weight: Tensor | None = None,
    silent: Tensor | None = None,
) -> Tensor:
    """The softmax over the edges that come into a node, `[edges, heads]`.

    Args:
        logits: `[edges, heads]`.
        target: `[edges]`; the node that each edge comes into.
        num_nodes: The number of nodes.
        weight: `[edges, 1]`; how often an edge counts.
        silent: `[edges, 1]`; whether that is not at all, where it may be.

    Example:
        >>> edge_softmax(torch.tensor([[1.0], [1.0], [9.0]]), torch.tensor([0, 0, 1]), 2).tolist()
        [[0.5], [0.5], [1.0]]
    """
    # The largest logit of a target is taken off all of them, so that exp cannot overflow.
    index = target.unsqueeze(-1).expand_as(logits)
    counted = logits.detach()
    if silent is not None:
        counted = counted.masked_fill(silent, -torch.inf)
    top = logits.new_full((num_nodes, logits.size(1)), -torch.inf)
    top = top.scatter_reduce(0, index, counted, "amax")
    share = logits - top.index_select(0, target)
    if silent is not None:
        # The logit of an edge of weight 0 may exceed the largest one by any amount, or by ∞ where a
        # target has no other edges; it must be finite before the weight makes it 0.
        share = share.masked_fill(share == torch.inf, 0.0)
        share = share.clamp(max=math.log(torch.finfo(share.dtype).max) / 2)
    share = share.exp()
    if weight is not None:
        share = share * weight
    total = share.new_zeros(num_nodes, share.size(1)).index_add(0, target, share)
    total = torch.where(total == 0, 1.0, total)  # a node without neighbours
    return share / total.index_select(0, target)


class _Attend(torch.autograd.Function):
    """Attention by the native kernels; of each entry one number per head is kept."""

    @staticmethod
    def forward(
        ctx: Any,
        states: Tensor,
        keep: Tensor | None,
        operator: SparseOperator,
        heads: int,
        slope: float,
        library: Any,
    ) -> Tensor:
        csr = operator.pattern.csr
        kept = edge_calls.attention(library, csr, operator.value, states, heads, slope, keep)
        ctx.settings = (operator, heads, slope)
        ctx.library = library
        # The values are saved for torch's check alone that nothing changed them meanwhile.
        ctx.save_for_backward(states, keep, operator.value, *kept)
        return kept[0]

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        states, keep, _, *kept = ctx.saved_tensors
        operator, heads, slope = ctx.settings
        if torch.is_grad_enabled():  # create_graph=True: this is to be differentiated again
            again = attend_reference(operator, states, heads, slope, keep)
            (grad_states,) = torch.autograd.grad(again, states, grad, create_graph=True)
        else:
            csr, library = operator.pattern.csr, ctx.library
            grad_states = edge_calls.attention_backward(
                library, csr, states, heads, slope, tuple(kept), grad
            )
        return grad_states, None, None, None, None, None
