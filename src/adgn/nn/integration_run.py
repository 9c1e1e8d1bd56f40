"""How linear aggregations are integrated: by the plain loop, or in steps with checkpoints."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from adgn.graph import GraphOperator, NeededNodes
from adgn.graph.locality import Renumbered, renumbered
from adgn.graph.native import calls
from adgn.graph.native.library import native_library, setting
from adgn.graph.two_way import values_of
from adgn.nn.base import Activation, KnownActivation
from adgn.nn.halo_stepper import halo_stepper
from adgn.nn.integrators import EULER, Integrator, VectorField
from adgn.nn.steppers import (
    Memory,
    NativeStepper,
    NeededStepper,
    Stepper,
    TorchStepper,
    Weights,
    checkpoint_interval,
    not_served,
    split_steps,
    unsupported_reason,
)

# For tanh the states are kept before each so many steps, see `adgn.nn.steppers`.
REVERSIBLE_STEPS = 16
# With fewer steps than this, finding a better order of the nodes takes as long as many passes.
RENUMBERED_STEPS = 4


def integrate_reference(
    x: Tensor,
    operator: GraphOperator | NeededNodes,
    w_self: Tensor,
    w_neigh: Tensor,
    bias: Tensor | None,
    *,
    epsilon: float,
    act: Activation | None,
    num_steps: int,
    integrator: Integrator = EULER,
) -> Tensor:
    """The same as a plain loop; `integrate` is tested against it."""
    if isinstance(operator, NeededNodes):
        weights = Weights(w_self, w_neigh, bias)
        return needed_steps(x, operator, weights, epsilon, act, 0, num_steps)
    fields = fields_of_steps(operator, Weights(w_self, w_neigh, bias), act)
    return integrator.advance(fields, x, epsilon, 0, num_steps)


def fields_of_steps(
    operator: GraphOperator, weights: Weights, act: Activation | None
) -> Callable[[int], VectorField]:
    """The right-hand side of each step; the same object for steps with the same weights."""

    known: dict[int, VectorField] = {}

    def of_step(number: int) -> VectorField:
        which = number if weights.w_self.size(0) > 1 else 0
        if which not in known:
            w_self, w_neigh, bias = weights.of_step(which)
            learned = (w_neigh, *values_of(operator))
            known[which] = VectorField(
                w_self, lambda x: operator @ (x @ w_neigh.t()), bias, act, learned
            )
        return known[which]

    return of_step


def needed_steps(
    x: Tensor,
    needed: NeededNodes,
    weights: Weights,
    epsilon: float,
    act: Activation | None,
    first: int,
    last: int,
) -> Tensor:
    """Euler's steps `first` to `last - 1`, each for the nodes that are still needed after it."""
    for step in range(first, last):
        w_self, w_neigh, bias = weights.of_step(step)
        count = needed.counts[step + 1]
        before = x[:count]
        h = before @ w_self.t() + (needed.layer(step) @ (x @ w_neigh.t()))[:count]
        h = h if bias is None else h + bias
        x = before + epsilon * (h if act is None else act(h))
    return x


@dataclass(frozen=True)
class Run:
    """One integration, with checkpoints on the way.

    Where the nodes are `renumbered`, the steps are run with the new numbers; what goes in and comes
    out has those that were given.
    """

    stepper: Stepper
    num_steps: int
    memory: Memory
    renumbered: Renumbered | None = None

    @classmethod
    def plan(
        cls,
        x: Tensor,
        operator: GraphOperator,
        weights: Weights,
        epsilon: float,
        activation: KnownActivation,
        num_steps: int,
        memory: Memory,
        integrator: Integrator = EULER,
        needed: NeededNodes | None = None,
    ) -> "Run":
        """An integration that begins with the states `x`."""
        library = native_library()
        spread = halo_stepper(library, x, operator, weights, epsilon, activation, integrator)
        if spread is not None:
            return cls(spread, num_steps, memory)
        reason = unsupported_reason(x, operator, weights)
        if library is not None and needed is not None:  # or the plain loop would serve
            kind = (operator, epsilon, activation, library, None)
            return cls(NeededStepper(*kind, needed), num_steps, memory)
        if library is not None and reason is None:
            settings = (library, operator, weights, epsilon, activation, integrator)
            stepper = NativeStepper.choose(*settings)
            order = None
            if stepper.block_ptr is None and num_steps >= RENUMBERED_STEPS:
                width = calls.padded_width(x.size(1), x.dtype)
                order = renumbered(library, operator, width * x.element_size())
            return cls(stepper, num_steps, memory, order)
        if setting() == "native":
            raise not_served(reason)
        return cls(TorchStepper(operator, epsilon, activation), num_steps, memory)

    def between_checkpoints(self) -> list[tuple[int, int]]:
        """First and last + 1 of the steps from each checkpoint to the next."""
        interval = self.num_steps
        if self.memory == "checkpoint":
            interval = checkpoint_interval(self.num_steps)
        elif self.stepper.adds_up_states:
            interval = REVERSIBLE_STEPS
        return split_steps(self.num_steps, interval)

    def forward(self, x: Tensor, weights: Weights, keep: bool) -> tuple[Tensor, list[list[Tensor]]]:
        """The last states; for each checkpoint its states, or what is kept of the steps from it."""
        new = self.renumbered
        x, kept = self._forward(x if new is None else new.there(x), weights, keep)
        return x if new is None else new.back(x), kept

    def _forward(
        self, x: Tensor, weights: Weights, keep: bool
    ) -> tuple[Tensor, list[list[Tensor]]]:
        if not keep:
            return self._stepper.forward(x, weights, self.num_steps, False)[0], []
        kept = []
        for first, last in self.between_checkpoints():
            steps, stepper = weights.of_steps(first, last), self._stepper.of_steps(first, last)
            if self.memory == "checkpoint":
                kept.append([x])
                x, _ = stepper.forward(x, steps, last - first, False)
            else:
                x, kept_here = stepper.forward(x, steps, last - first, True)
                kept.append(kept_here)
        return x, kept

    def backward(
        self, grad: Tensor, weights: Weights, kept: list[list[Tensor]], grads: Weights | None
    ) -> Tensor:
        """The gradient in the first states; those in the weights are added to `grads`."""
        new = self.renumbered
        grad = grad.contiguous() if new is None else new.there(grad)
        between = self.between_checkpoints()
        for (first, last), kept_here in zip(reversed(between), reversed(kept), strict=True):
            steps, stepper = weights.of_steps(first, last), self._stepper.of_steps(first, last)
            if self.memory == "checkpoint":
                _, kept_here = stepper.forward(kept_here[0], steps, last - first, True)
            grads_here = None if grads is None else grads.of_steps(first, last)
            grad = stepper.backward(grad, steps, last - first, kept_here, grads_here)
            del kept_here  # before the steps from the checkpoint before are computed again
        return grad if new is None else new.back(grad)

    @property
    def _stepper(self) -> Stepper:
        """What runs the steps, with the new numbers where there are some."""
        if self.renumbered is None:
            return self.stepper
        return replace(self.stepper, operator=self.renumbered.operator)

    def reference(self, x: Tensor, w_self: Tensor, w_neigh: Tensor, bias: Tensor | None) -> Tensor:
        """The same by the plain loop, whose gradient has a gradient."""
        epsilon, count = self.stepper.epsilon, self.num_steps
        act = {"identity": None, "tanh": torch.tanh, "relu": torch.relu}[self.stepper.activation]
        stepper = self.stepper
        operator = stepper.needed if isinstance(stepper, NeededStepper) else stepper.operator
        inputs = (x, operator, w_self, w_neigh, bias)
        integrator = self.stepper.integrator
        return integrate_reference(
            *inputs, epsilon=epsilon, act=act, num_steps=count, integrator=integrator
        )
