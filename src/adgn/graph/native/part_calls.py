"""One step of the native kernels on the part of a graph that a rank has.

The kernels gather states (on the way back: gradients before the weights) by the columns of the
matrix and write the rows. So a matrix may have more columns than rows: what these point to lies
below the own rows, in the same array.
"""

import torch
from torch import Tensor

from adgn.graph.native.calls import ACTIVATIONS, pointer
from adgn.graph.native.library import Integration, Kept, NativeLibrary, buffers


def forward_step(
    library: NativeLibrary, problem: Integration, states: Tensor, keep: bool
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """The states after a step, and states and active of `Kept` in integrate.hpp, for own rows.

    Args:
        library: The kernels.
        problem: One step; its matrix is `[n, n + extra]`.
        states: `[n + extra, width]`, padded with zeros.
        keep: Whether there will be a backward pass.

    Returns:
        `[n + extra, width]`, the rows from `n` on zero, and what is kept, `[n, width]`.
    """
    own, width, dtype = problem.nodes, states.size(1), states.dtype
    kept = buffers.empty(library, (own, width), dtype) if keep else None
    relu = problem.activation == ACTIVATIONS["relu"]
    active = buffers.empty(library, (own, width), torch.uint8) if keep and relu else None
    after = buffers.empty(library, tuple(states.shape), dtype)
    after[own:] = 0
    library.call(
        "adgn_forward",
        *(problem, states.data_ptr(), width, after.data_ptr(), None),
        Kept(pointer(kept), pointer(active), None),
        dtype=dtype,
    )
    return after, kept, active


def backward_step(
    library: NativeLibrary,
    problem: Integration,
    grad: Tensor,
    below: Tensor,
    kept: tuple[Tensor, Tensor | None, Tensor | None],
    grad_weights: tuple[Tensor, Tensor, Tensor | None] | None,
) -> Tensor:
    """The gradient in own states before a step, `[n, width]`.

    Args:
        library: The kernels.
        problem: One step, with the transposed matrix `[n, n + extra]`.
        grad: `[n, width]`, padded with zeros.
        below: `[extra, channels]`; what the columns from `n` on point to.
        kept: What `forward_step` kept, and for tanh the states before the step, `[n, width]`.
        grad_weights: Where the gradients of the weights are added to, if they are needed.
    """
    own, width = grad.shape
    # With a single step the kernel's other arrays in here are not touched.
    spare = buffers.empty(library, (own + below.size(0), width), grad.dtype)
    spare[own:, : below.size(1)] = below
    spare[own:, below.size(1) :] = 0
    before = buffers.empty(library, (own, width), grad.dtype)
    library.call(
        "adgn_backward",
        *(problem, grad.data_ptr(), width, before.data_ptr(), spare.data_ptr()),
        Kept(*map(pointer, kept)),
        *map(pointer, grad_weights or (None, None, None)),
        dtype=grad.dtype,
    )
    return before
