"""Steps of the native kernels for some rows at a time, on the part of a graph that a rank has.

The kernels gather states (on the way back: gradients before the weights) by the columns of the
matrix and write the rows. So a matrix may have more columns than rows: what these point to lies
below the own rows, in the same array. It must have come before the rows that need it are computed.
"""

from torch import Tensor

from adgn.graph.native.calls import CHECKPOINT_COUNT, KeptTensors, pointer
from adgn.graph.native.library import Integration, Kept, NativeLibrary, buffers

GradWeights = tuple[Tensor, Tensor, Tensor | None]


def step_forward(
    library: NativeLibrary,
    problem: Integration,
    step: int,
    rows: tuple[int, int],
    x: Tensor,
    after: Tensor,
    kept: KeptTensors,
) -> None:
    """Writes the states of the rows from the first to before the last of `rows` after a step.

    Args:
        library: The kernels.
        problem: All steps; the matrix is `[n, n + extra]`.
        step: Which one.
        rows: First and last + 1.
        x: `[n + extra, width]`, padded with zeros; the states before the step.
        after: `[n or more, width]`.
        kept: States, active and first of `Kept` in integrate.hpp, of all steps.
    """
    library.call(
        "adgn_step_forward",
        *(problem, step, *rows, x.data_ptr(), after.data_ptr(), Kept(*map(pointer, kept))),
        dtype=x.dtype,
    )


class BackwardSteps:
    """Steps backward: `g` is the gradient in own states, `[n, width]`, which each step changes.

    Args:
        library: The kernels.
        problem: All steps, with the transposed matrix, `[n, n + extra]`.
        grad: `[n, width]`, padded with zeros.
        extra: How many columns more than rows the matrix has.
        kept: States, active and first of `Kept` in integrate.hpp, of all steps; first is for tanh.
        grad_weights: Where the gradients of the weights are added to, if they are needed.

    Attributes:
        r: `[n + extra, width]`; what the next step back gathers. The rows from `n` on are the
            caller's to write, before rows that need them are computed.
    """

    def __init__(
        self,
        library: NativeLibrary,
        problem: Integration,
        grad: Tensor,
        extra: int,
        kept: KeptTensors,
        grad_weights: GradWeights | None,
    ) -> None:
        self._library, self._problem, self._kept = library, problem, kept
        self._grad_weights = grad_weights
        (own, width), dtype = grad.shape, grad.dtype
        self.g = buffers.empty(library, (own, width), dtype)
        self.r = buffers.empty(library, (own + extra, width), dtype)
        self._r_before = buffers.empty(library, (own + extra, width), dtype)
        for array in (self.r, self._r_before):
            array[own:] = 0  # padding stays zero
        self._checkpoints: Tensor | None = None
        if kept[2] is not None and grad_weights is not None:
            self._checkpoints = buffers.empty(library, (CHECKPOINT_COUNT, own, width), dtype)
        library.call(
            "adgn_start_backward",
            *(problem, grad.data_ptr(), self.g.data_ptr(), self.r.data_ptr()),
            Kept(*map(pointer, kept)),
            dtype=dtype,
        )

    def step(self, step: int, rows: tuple[int, int], before: Tensor | None = None) -> None:
        """Goes back through a step for the rows from the first to before the last of `rows`.

        `before`, `[n or more, width]`, has the states before the step; not for tanh.
        """
        states, active, first = self._kept
        kept = (states, active, first if before is None else before)
        self._library.call(
            "adgn_step_backward",
            *(self._problem, step, *rows, self.g.data_ptr(), self.r.data_ptr()),
            *(self._r_before.data_ptr(), pointer(self._checkpoints), Kept(*map(pointer, kept))),
            *map(pointer, self._grad_weights or (None, None, None)),
            dtype=self.g.dtype,
        )

    def next_step(self) -> None:
        """All rows of a step are done."""
        self.r, self._r_before = self._r_before, self.r
