"""The integration that all anti-symmetric layers with a linear aggregation run through.

`integrate_reference` is the plain loop. `integrate` gives the same result as one autograd node with
a backward pass written by hand, by the native kernels or by torch. It falls back to the plain loop
for all that only the plain loop can do.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import forward_ad

from adgn.graph import EdgeOperator, Operator, SparseOperator
from adgn.graph.backend import native_library, setting
from adgn.graph.checks import check_count
from adgn.graph.native.library import DTYPES
from adgn.nn.checkpointing import MEMORIES, Memory, checkpointed, segment_length, split_steps
from adgn.nn.field import VectorField
from adgn.nn.integrators import EULER, Integrator, resolve_integrator, step
from adgn.nn.resolve import Activation, check_choice
from adgn.nn.steps import (
    REVERSIBLE_STEPS,
    KnownActivation,
    NativeStepper,
    Stepper,
    TorchStepper,
    Weights,
    unsupported_reason,
)

_KNOWN_FUNCTIONS: dict[Any, KnownActivation] = {
    torch.tanh: "tanh",
    Tensor.tanh: "tanh",
    torch.relu: "relu",
    nn.functional.relu: "relu",
    Tensor.relu: "relu",
}
_KNOWN_MODULES: dict[type[nn.Module], KnownActivation] = {
    nn.Identity: "identity",
    nn.Tanh: "tanh",
    nn.ReLU: "relu",
}


def integrate(
    x: Tensor,
    operator: Operator,
    w_self: Tensor,
    w_neigh: Tensor,
    bias: Tensor | None,
    *,
    epsilon: float,
    act: Activation | None,
    num_steps: int,
    memory: Memory = "full",
    integrator: str | Integrator = "euler",
) -> Tensor:
    r"""Runs `num_steps` steps of an anti-symmetric layer whose aggregation is linear.

    $$
    \mathbf{X} \leftarrow \mathbf{X} + \epsilon\, \sigma\left(
        \mathbf{X} \mathbf{M}_k^\top + \mathbf{A} \mathbf{X} \mathbf{V}_k^\top
        + \mathbf{b}_k\right)
    $$

    For tanh, relu and the identity this is one autograd node. The native kernels serve where they
    can (see `adgn.graph.backend`), torch elsewhere; `torch.compile` keeps it as one operation.
    Other activations and integrators, learned edge weights, autocast, `torch.func` transforms,
    forward-mode and higher derivatives, `torch.export` and `torch.jit.trace` take the plain loop,
    in which the `memory` option works for all but the transforms, forward mode and tracing.

    Args:
        x: States, `[..., N, d]`.
        operator: The graph $\mathbf{A}$, `[N, N]`.
        w_self: $\mathbf{M} = \mathbf{W} - \mathbf{W}^\top - \gamma \mathbf{I}$, `[K, d, d]`:
            K = 1 set of weights for all steps, or K = `num_steps`.
        w_neigh: $\mathbf{V}$, `[K, d, d]`.
        bias: $\mathbf{b}$, `[K, d]`, or `None`.
        epsilon: The step size.
        act: $\sigma$; `None` is the identity.
        num_steps: How many steps.
        memory: `"full"` keeps for the gradient one number per entry of the states and step;
            `"checkpoint"` keeps the states of every $\sqrt{L}$-th of the $L$ steps and
            computes the steps between a second time: memory for $2 \sqrt{L}$ steps, for about a
            third more time.
        integrator: A name or a table, see `adgn.nn.integrators`; others than forward Euler take the
            plain loop.
    """
    check_states(x, operator)
    check_weights(x, w_self, w_neigh, bias, num_steps)
    check_choice("memory", memory, MEMORIES)
    integrator = resolve_integrator(integrator)
    activation = known_activation(act)
    weights = Weights(w_self, w_neigh, bias)
    reason = _fallback_reason(x, operator, weights, activation, integrator)
    if activation is None or reason is not None:
        if setting() == "native":
            raise _not_served(reason)

        def some_steps(x: Tensor, first: int, last: int) -> Tensor:
            return integrate_reference(
                *(x, operator, w_self, w_neigh, bias),
                epsilon=epsilon,
                act=act,
                num_steps=last - first,
                first_step=first,
                integrator=integrator,
            )

        return checkpointed(some_steps, x, num_steps, memory, lambda first, last: [act])
    keep = torch.is_grad_enabled() and any(t.requires_grad for t in (x, *weights.tensors()))
    if isinstance(operator, EdgeOperator):
        assert operator.graph is not None  # else `_fallback_reason` had given one
        # Registered in adgn.nn.ops.
        states: Tensor = torch.ops.adgn.integrate(
            *(x, w_self, w_neigh, bias, *operator.graph),
            *(epsilon, activation, num_steps, memory, keep),
        )[0]
        return states
    run = Run.plan(x, operator, weights, epsilon, activation, num_steps, memory)
    if not keep:
        return run.forward(x, weights.readable(), keep=False)[0]
    result: Tensor = _Integrate.apply(x, w_self, w_neigh, bias, run)  # type: ignore[no-untyped-call]
    return result


def integrate_reference(
    x: Tensor,
    operator: Operator,
    w_self: Tensor,
    w_neigh: Tensor,
    bias: Tensor | None,
    *,
    epsilon: float,
    act: Activation | None,
    num_steps: int,
    first_step: int = 0,
    integrator: Integrator = EULER,
) -> Tensor:
    """The same as a plain loop over the vector field; `integrate` is tested against it.

    The arguments are those of `integrate`, without `memory`. `first_step` is the number of the
    first of these steps, for K > 1 sets of weights.
    """
    weights = Weights(w_self, w_neigh, bias)
    for number in range(first_step, first_step + num_steps):
        x = step(_field(operator, weights, number, act), x, epsilon, integrator)
    return x


def _field(
    operator: Operator, weights: Weights, number: int, act: Activation | None
) -> VectorField:
    w_self, w_neigh, bias = weights.of_step(number)
    return VectorField(w_self, lambda x: operator @ (x @ w_neigh.t()), bias, act)


def known_activation(act: Activation | None) -> KnownActivation | None:
    """The activation's name where its slope is known here; a module with hooks is unknown."""
    if act is None:
        return "identity"
    if not isinstance(act, nn.Module):
        return _KNOWN_FUNCTIONS.get(act)
    if act._forward_hooks or act._forward_pre_hooks or act._backward_hooks:
        return None
    return _KNOWN_MODULES.get(type(act))


def check_states(x: Tensor, operator: Operator) -> None:
    """Raises unless there is one state for each node of the graph."""
    if x.dim() < 2 or operator.shape != (x.size(-2), x.size(-2)):
        raise ValueError(
            f"x has shape {list(x.shape)} and the operator {list(operator.shape)}; expected states "
            "[..., N, d] and an operator [N, N] of the same number N of nodes"
        )


def check_weights(
    x: Tensor, w_self: Tensor, w_neigh: Tensor, bias: Tensor | None, num_steps: int
) -> None:
    """Raises unless there is one set of `[d, d]` weights, or one per step."""
    check_count("num_steps", num_steps)
    channels = x.size(-1)
    sets = w_self.size(0) if w_self.dim() == 3 else 0
    expected = (sets, channels, channels)
    if sets not in (1, num_steps) or w_self.shape != expected or w_neigh.shape != expected:
        raise ValueError(
            f"w_self has shape {list(w_self.shape)} and w_neigh {list(w_neigh.shape)}; expected "
            f"[K, {channels}, {channels}] for states of size {channels}, with K = 1 or "
            f"K = num_steps = {num_steps}"
        )
    if bias is not None and bias.shape != (sets, channels):
        raise ValueError(f"bias has shape {list(bias.shape)}; expected {[sets, channels]}")


def _fallback_reason(
    x: Tensor,
    operator: Operator,
    weights: Weights,
    activation: KnownActivation | None,
    integrator: Integrator,
) -> str | None:
    """Why the plain loop must serve; `None` where it need not."""
    if activation is None:
        return "this activation"
    if integrator != EULER:
        return f"integrator={integrator.name!r}"
    if operator.value.requires_grad:
        return "edge weights that require a gradient"
    if isinstance(operator, EdgeOperator) and operator.graph is None:
        return "tracing, explanations and meta tensors"
    if torch._C._are_functorch_transforms_active():
        return "a torch.func transform"
    if forward_ad._current_level >= 0:
        return "forward-mode differentiation"
    if torch.is_autocast_enabled(x.device.type):
        return "autocast"
    if x.dtype not in DTYPES:  # half precision: to be rounded where torch rounds
        return f"dtype {x.dtype}"
    if len({(t.dtype, t.device) for t in (x, operator.value, *weights.tensors())}) > 1:
        return "tensors of different dtypes or devices"
    return None


def _not_served(reason: str | None) -> RuntimeError:
    return RuntimeError(
        f"the native kernels are forced, but cannot serve {reason}; use "
        "adgn.graph.set_backend('auto')"
    )


@dataclass(frozen=True)
class Run:
    """One integration, cut into segments of steps."""

    stepper: Stepper
    num_steps: int
    memory: Memory

    @classmethod
    def plan(
        cls,
        x: Tensor,
        operator: SparseOperator,
        weights: Weights,
        epsilon: float,
        activation: KnownActivation,
        num_steps: int,
        memory: Memory,
    ) -> "Run":
        """An integration that begins with the states `x`."""
        library = native_library()
        reason = unsupported_reason(x, operator, weights)
        if library is not None and reason is None:
            stepper = NativeStepper.choose(library, operator, weights, epsilon, activation)
            return cls(stepper, num_steps, memory)
        if setting() == "native":
            raise _not_served(reason)
        return cls(TorchStepper(operator, epsilon, activation), num_steps, memory)

    def segments(self) -> list[tuple[int, int]]:
        """First and last + 1 of the steps of each segment."""
        if self.memory == "checkpoint":
            return split_steps(self.num_steps, segment_length(self.num_steps))
        tanh = self.stepper.activation == "tanh"
        return split_steps(self.num_steps, REVERSIBLE_STEPS if tanh else self.num_steps)

    def forward(self, x: Tensor, weights: Weights, keep: bool) -> tuple[Tensor, list[list[Tensor]]]:
        """The last states; for each segment what is kept of it: its first states, or its steps."""
        if not keep:
            return self.stepper.forward(x, weights, self.num_steps, False)[0], []
        kept = []
        for first, last in self.segments():
            steps = weights.of_steps(first, last)
            if self.memory == "checkpoint":
                kept.append([x])
                x, _ = self.stepper.forward(x, steps, last - first, False)
            else:
                x, of_segment = self.stepper.forward(x, steps, last - first, True)
                kept.append(of_segment)
        return x, kept

    def backward(
        self, grad: Tensor, weights: Weights, kept: list[list[Tensor]], grads: Weights | None
    ) -> Tensor:
        """The gradient in the first states; those in the weights are added to `grads`."""
        for (first, last), of_segment in zip(
            reversed(self.segments()), reversed(kept), strict=True
        ):
            steps = weights.of_steps(first, last)
            if self.memory == "checkpoint":
                _, of_segment = self.stepper.forward(of_segment[0], steps, last - first, True)
            segment_grads = None if grads is None else grads.of_steps(first, last)
            grad = self.stepper.backward(grad, steps, last - first, of_segment, segment_grads)
            del of_segment  # before the next segment is computed again
        return grad

    def reference(self, x: Tensor, w_self: Tensor, w_neigh: Tensor, bias: Tensor | None) -> Tensor:
        """The same by the plain loop, whose gradient has a gradient."""
        acts: dict[KnownActivation, Activation | None] = {
            "identity": None,
            "tanh": torch.tanh,
            "relu": torch.relu,
        }
        stepper = self.stepper
        return integrate_reference(
            *(x, stepper.operator, w_self, w_neigh, bias),
            epsilon=stepper.epsilon,
            act=acts[stepper.activation],
            num_steps=self.num_steps,
        )


class _Integrate(torch.autograd.Function):
    """An integration as one node of the autograd graph."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, w_self: Tensor, w_neigh: Tensor, bias: Tensor | None, run: Run
    ) -> Tensor:
        result, kept = run.forward(x, Weights(w_self, w_neigh, bias).readable(), keep=True)
        ctx.run = run
        ctx.lengths = [len(of_segment) for of_segment in kept]
        # Torch frees what is saved this way after the backward pass, and raises if it was changed
        # before. The operator's values are saved for this check alone.
        value = run.stepper.operator.value
        ctx.save_for_backward(x, w_self, w_neigh, bias, value, *(t for part in kept for t in part))
        return result

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, w_self, w_neigh, bias, _, *flat = ctx.saved_tensors
        result: list[Tensor | None] = [None] * 5
        if torch.is_grad_enabled():  # create_graph=True: this is to be differentiated again
            inputs = [x, w_self, w_neigh, bias]
            wanted = [i for i in range(4) if ctx.needs_input_grad[i]]
            found = torch.autograd.grad(
                ctx.run.reference(*inputs), [inputs[i] for i in wanted], grad, create_graph=True
            )
            for i, gradient in zip(wanted, found, strict=True):
                result[i] = gradient
            return tuple(result)
        weights = Weights(w_self, w_neigh, bias).readable()
        grads = weights.zeros() if any(ctx.needs_input_grad[1:4]) else None
        pieces = iter(flat)
        kept = [[next(pieces) for _ in range(length)] for length in ctx.lengths]
        del flat, pieces
        result[0] = ctx.run.backward(grad.contiguous(), weights, kept, grads)
        if grads is not None:
            result[1:4] = grads.w_self, grads.w_neigh, grads.bias
        return tuple(result)
