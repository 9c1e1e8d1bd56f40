"""Steps of the native kernels on a graph that is spread over ranks.

States of own nodes and, below them, of the halo: for a step those of the halo come from their
owners. On the way back what own nodes have for the halo goes to its owners before weights are
applied, so that they are applied to own nodes alone. While rows are under way, those that need none
of them are computed: they are the first, see `PartitionedGraph`.
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from adgn.graph import GraphOperator, PartitionedOperator
from adgn.graph.native import calls
from adgn.graph.native.library import Integration, NativeLibrary, buffers
from adgn.graph.native.part_calls import BackwardSteps, step_forward
from adgn.graph.partitioned import Matrix
from adgn.nn.base import KnownActivation
from adgn.nn.integrators import EULER, Integrator
from adgn.nn.steppers import Stepper, Weights


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
    """One step at a time, with an exchange in each.

    For tanh it keeps the first states and what the activation returned in each step, else the
    states before each step with those of the halo; for relu also where it was active.
    """

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
        tanh, relu = self.activation == "tanh", self.activation == "relu"
        width, inner = calls.padded_width(channels, x.dtype), part.without_halo
        problem = self._problem(part.reaching, weights, count, part.halo.size)
        shape = (count, own, width)
        activated = buffers.empty(self.library, shape, x.dtype) if keep and tanh else None
        active = buffers.empty(self.library, shape, torch.uint8) if keep and relu else None
        states = self._states(own + part.halo.size, width, channels, x)
        before = [states]
        for step in range(count):
            arrive = part.send_states(states, channels)
            last = step + 1 == count
            after = self._states(own if last else states.size(0), width, channels, x[:0])
            arrays = (states, after, (activated, active, None))
            step_forward(self.library, problem, step, (0, inner), *arrays)
            arrive()
            step_forward(self.library, problem, step, (inner, own), *arrays)
            states = after
            if keep and not tanh and not last:
                before.append(states)
        result = states if width == channels else states[:, :channels].clone()
        kept = [tensor for tensor in (activated, active) if tensor is not None]
        return result, kept + before if keep else []

    def backward(
        self, grad: Tensor, weights: Weights, count: int, kept: list[Tensor], grads: Weights | None
    ) -> Tensor:
        """See `Stepper`."""
        part, (own, channels) = self._part, grad.shape
        tanh, relu = self.activation == "tanh", self.activation == "relu"
        width, inner = calls.padded_width(channels, grad.dtype), part.without_sent
        sent = part.halo.sent.numel()
        marks, before = (kept[0], kept[1:]) if tanh or relu else (None, kept)
        back = BackwardSteps(
            self.library,
            self._problem(part.collecting, weights, count, sent),
            calls.readable(grad if width == channels else pad(grad, (0, width - channels))),
            sent,
            (marks if tanh else None, marks if relu else None, before[0] if tanh else None),
            None if grads is None else (grads.w_self, grads.w_neigh, grads.bias),
        )
        for step in reversed(range(count)):
            start = None if tanh else before[step]
            arrive = part.send_back(back.r, channels)
            back.step(step, (0, inner), start)
            arrive()
            back.step(step, (inner, own), start)
            back.next_step()
        return back.g if width == channels else back.g[:, :channels].clone()

    def _states(self, rows: int, width: int, channels: int, first: Tensor) -> Tensor:
        """Room for states, of which the first are given; what is not of the kernels is zero."""
        states = buffers.empty(self.library, (rows, width), first.dtype)
        if width > channels:
            states[:, channels:] = 0
        states[: first.size(0), :channels] = first
        return states

    def _problem(self, matrix: Matrix, weights: Weights, count: int, extra: int) -> Integration:
        return calls.integration(
            self.library,
            matrix.csr,
            calls.readable(matrix.value),
            *(weights.w_self, weights.w_neigh, weights.bias),
            None,
            self.epsilon,
            self.activation,
            count,
            extra=extra,
        )
