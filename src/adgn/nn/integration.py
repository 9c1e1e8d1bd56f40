"""The forward-Euler integration that all anti-symmetric layers run through."""

import torch
from torch import Tensor

from adgn.graph import SparseOperator
from adgn.nn.resolve import Activation


def integrate(
    x: Tensor,
    operator: SparseOperator,
    own: Tensor,
    neighbour: Tensor,
    bias: Tensor | None,
    *,
    epsilon: float,
    act: Activation | None,
    num_steps: int,
) -> Tensor:
    r"""Runs `num_steps` steps of one linear-aggregation layer.

    $$
    \mathbf{X} \leftarrow \mathbf{X} + \epsilon\, \sigma\left(
        \mathbf{X} \mathbf{M}^\top + \mathbf{A} \mathbf{X} \mathbf{V}^\top + \mathbf{b}\right)
    $$

    This is the seam for faster kernels: everything a step needs is here, and nothing else.

    Args:
        x: States, `[..., N, d]`.
        operator: The graph $\mathbf{A}$, `[N, N]`.
        own: $\mathbf{M} = \mathbf{W} - \mathbf{W}^\top - \gamma \mathbf{I}$, `[d, d]`.
        neighbour: $\mathbf{V}$, `[d, d]`.
        bias: $\mathbf{b}$, `[d]`, or `None`.
        epsilon: The step size.
        act: $\sigma$; `None` is the identity.
        num_steps: How many steps.
    """
    # One product gives what a node keeps of itself and what it sends to its neighbours.
    both = torch.cat([own, neighbour]).t()
    channels = own.size(0)
    for _ in range(num_steps):
        kept, sent = (x @ both).tensor_split((channels,), dim=-1)
        rate = kept + operator @ sent
        if bias is not None:
            rate = rate + bias
        if act is not None:
            rate = act(rate)
        x = torch.add(x, rate, alpha=epsilon)
    return x
