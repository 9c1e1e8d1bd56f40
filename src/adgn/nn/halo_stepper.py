"""Steps of the native kernels on a graph that is spread over ranks.

States of own nodes and, below them, of the halo: before a step those of the halo come from their
owners. On the way back what own nodes have for the halo goes to its owners before the kernel runs,
so that weights are applied to own nodes alone.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from torch import Tensor
from torch.nn.functional import pad

from adgn.graph import GraphOperator, PartitionedOperator
from adgn.graph.native import calls
from adgn.graph.native.library import Integration, NativeLibrary
from adgn.graph.native.part_calls import backward_step, forward_step
from adgn.graph.partitioned import Matrix
from adgn.nn.base import KnownActivation
from adgn.nn.integrators import EULER, Integrator
from adgn.nn.steppers import Stepper, Weights, states_backwards


def halo_stepper(
    library: NativeLibrary | None,
    x: Tensor,
    operator: GraphOperator,
    weights: Weights,
    epsilon: float,
    activation: KnownActivation,
    integrator: Integrator,
) -> "HaloStepper | None":
    """The stepper for a partitioned graph, where it serves."""
    if library is None or integrator != EULER or not isinstance(operator, PartitionedOperator):
        return None
    if x.dim() != 2 or calls.unsupported_reason(x, *operator.values, *weights.tensors()):
        return None
    for one in (operator.reaching, operator.collecting):
        if calls.unsupported_pattern_reason(one.csr):
            return None
    return HaloStepper(operator, epsilon, activation, library)


@dataclass(frozen=True)
class HaloStepper(Stepper):
    """One step at a time, an exchange before each."""

    library: NativeLibrary

    @property
    def _part(self) -> PartitionedOperator:
        assert isinstance(self.operator, PartitionedOperator)
        return self.operator

    def forward(
        self, x: Tensor, weights: Weights, count: int, keep: bool
    ) -> tuple[Tensor, list[Tensor]]:
        """See `Stepper`."""
        part, (own, channels) = self._part, x.shape
        width = calls.padded_width(channels, x.dtype)
        states = pad(x, (0, width - channels, 0, part.halo.size))
        kept: list[Tensor] = []
        if keep and self.activation == "tanh":
            kept.append(states[:own])
        for step in range(count):
            states[own:, :channels] = part.halo_of(states[:own, :channels])
            problem = self._problem(part.reaching, weights.of_steps(step, step + 1), part.halo.size)
            states, *made = forward_step(self.library, problem, states, keep)
            kept += [tensor for tensor in made if tensor is not None]
        return states[:own, :channels].clone(), kept

    def backward(
        self, grad: Tensor, weights: Weights, count: int, kept: list[Tensor], grads: Weights | None
    ) -> Tensor:
        """See `Stepper`."""
        part, channels = self._part, grad.size(1)
        width = calls.padded_width(channels, grad.dtype)
        g = calls.readable(pad(grad, (0, width - channels)))
        before: Iterator[Tensor] | None = None
        if self.activation == "tanh":
            first, *kept = kept
            before = states_backwards(first, kept, self.epsilon)
        each = len(kept) // count
        for step in reversed(range(count)):
            states, *others = kept[each * step : each * (step + 1)]
            active = others[0] if others else None
            start = None if before is None else calls.readable(next(before))
            below = part.back_from_border(self._sloped_border(g, states, active, channels))
            here = None if grads is None else grads.of_steps(step, step + 1)
            g = backward_step(
                self.library,
                self._problem(part.collecting, weights.of_steps(step, step + 1), below.size(0)),
                g,
                below,
                (states, active, start),
                None if here is None else (here.w_self, here.w_neigh, here.bias),
            )
        return g[:, :channels].clone() if width > channels else g

    def _sloped_border(
        self, g: Tensor, states: Tensor, active: Tensor | None, channels: int
    ) -> Tensor:
        r"""$\epsilon\, \mathbf{g} \odot \sigma'$ of the rows with neighbours in the halo."""
        rows = self._part.border_rows
        r = g.index_select(0, rows)[:, :channels] * self.epsilon
        if self.activation == "tanh":
            t = states.index_select(0, rows)[:, :channels]
            return r * (1 - t * t)
        if active is not None:
            return r * active.index_select(0, rows)[:, :channels].bool()
        return r

    def _problem(self, matrix: Matrix, weights: Weights, extra: int) -> Integration:
        return calls.integration(
            self.library,
            matrix.csr,
            calls.readable(matrix.value),
            *(weights.w_self, weights.w_neigh, weights.bias),
            None,
            self.epsilon,
            self.activation,
            1,
            extra=extra,
        )
