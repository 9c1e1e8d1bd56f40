"""The forward-Euler integration that all anti-symmetric layers run through.

`integrate_reference` is the plain loop. `integrate` gives the same result as one autograd node with
its own backward, by the native kernels or by torch, and falls back to the plain loop for all that
only the plain loop can do.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import forward_ad

from adgn.graph import EdgeOperator, Operator, SparseOperator
from adgn.graph.backend import native_library, setting
from adgn.graph.checks import check_count
from adgn.graph.native import calls
from adgn.graph.native.library import DTYPES
from adgn.nn.resolve import Activation, check_choice
from adgn.nn.segments import MEMORIES, Memory, in_segments, root, segments
from adgn.nn.steps import WALK, KnownActivation, NativeStepper, Stepper, TorchStepper, Weights

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
    own: Tensor,
    neighbour: Tensor,
    bias: Tensor | None,
    *,
    epsilon: float,
    act: Activation | None,
    num_steps: int,
    memory: Memory = "full",
) -> Tensor:
    r"""Runs `num_steps` steps of an anti-symmetric layer whose aggregation is linear.

    $$
    \mathbf{X} \leftarrow \mathbf{X} + \epsilon\, \sigma\left(
        \mathbf{X} \mathbf{M}_k^\top + \mathbf{A} \mathbf{X} \mathbf{V}_k^\top
        + \mathbf{b}_k\right)
    $$

    For tanh, relu and the identity this is one autograd node. The native kernels serve where they
    can (see `adgn.graph.backend`), torch elsewhere; `torch.compile` keeps it as one operation.
    Other activations, learned edge weights, autocast, `torch.func` transforms, forward-mode and
    higher derivatives, `torch.export` and `torch.jit.trace` take the plain loop, in which the
    `memory` option works for all but the transforms, forward mode and tracing.

    Args:
        x: States, `[..., N, d]`.
        operator: The graph $\mathbf{A}$, `[N, N]`.
        own: $\mathbf{M} = \mathbf{W} - \mathbf{W}^\top - \gamma \mathbf{I}$, `[K, d, d]`:
            K = 1 set of weights for all steps, or K = `num_steps`.
        neighbour: $\mathbf{V}$, `[K, d, d]`.
        bias: $\mathbf{b}$, `[K, d]`, or `None`.
        epsilon: The step size.
        act: $\sigma$; `None` is the identity.
        num_steps: How many steps.
        memory: `"full"` keeps for the gradient one number per entry of the states and step;
            `"checkpoint"` keeps the states of every $\sqrt{L}$-th of the $L$ steps and
            computes the steps between a second time: memory for $2 \sqrt{L}$ steps, for about a
            third more time.
    """
    check_states(x, operator)
    check_weights(x, own, neighbour, bias, num_steps)
    check_choice("memory", memory, MEMORIES)
    activation = known_activation(act)
    weights = Weights(own, neighbour, bias)
    plain = _why_plain(x, operator, weights, activation)
    if activation is None or plain is not None:
        if setting() == "native":
            raise RuntimeError(
                f"the native kernels are forced, but cannot serve {plain}; use "
                "adgn.graph.set_backend('auto')"
            )
        return _plain(x, operator, weights, epsilon, act, num_steps, memory)
    inputs = [tensor for tensor in (x, own, neighbour, bias) if tensor is not None]
    keep = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in inputs)
    if isinstance(operator, EdgeOperator):
        assert operator.graph is not None  # else it had been told by _why_plain
        # Registered in adgn.nn.ops.
        states: Tensor = torch.ops.adgn.integrate(
            *(x, own, neighbour, bias, *operator.graph),
            *(epsilon, activation, num_steps, memory, keep),
        )[0]
        return states
    run = Run.plan(x, operator, weights, epsilon, activation, num_steps, memory)
    if not keep:
        return run.forward(x, contiguous(weights), keep=False)[0]
    result: Tensor = _Integrate.apply(x, own, neighbour, bias, run)  # type: ignore[no-untyped-call]
    return result


def integrate_reference(
    x: Tensor,
    operator: Operator,
    own: Tensor,
    neighbour: Tensor,
    bias: Tensor | None,
    *,
    epsilon: float,
    act: Activation | None,
    num_steps: int,
    first_step: int = 0,
) -> Tensor:
    """The same integration as plainly as it can be written; `integrate` is tested against it.

    Args:
        x: See `integrate`, as for all others.
        operator: The graph.
        own: `[K, d, d]`.
        neighbour: `[K, d, d]`.
        bias: `[K, d]`, or `None`.
        epsilon: The step size.
        act: The activation.
        num_steps: How many steps.
        first_step: The number of the first of these steps, for K > 1 sets of weights.
    """
    channels = own.size(-1)
    for step in range(first_step, first_step + num_steps):
        which = 0 if own.size(0) == 1 else step
        # One product gives what a node keeps of itself and what it sends to its neighbours.
        both = torch.cat([own[which], neighbour[which]]).t()
        kept, sent = (x @ both).tensor_split((channels,), dim=-1)
        rate = kept + operator @ sent
        if bias is not None:
            rate = rate + bias[which]
        if act is not None:
            rate = act(rate)
        x = torch.add(x, rate, alpha=epsilon)
    return x


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
    x: Tensor, own: Tensor, neighbour: Tensor, bias: Tensor | None, num_steps: int
) -> None:
    """Raises unless there is one set of `[d, d]` weights, or one per step."""
    check_count("num_steps", num_steps)
    channels = x.size(-1)
    sets = own.size(0) if own.dim() == 3 else 0
    expected = (sets, channels, channels)
    if sets not in (1, num_steps) or own.shape != expected or neighbour.shape != expected:
        raise ValueError(
            f"own has shape {list(own.shape)} and neighbour {list(neighbour.shape)}; expected "
            f"[K, {channels}, {channels}] for states of size {channels}, with K = 1 or "
            f"K = num_steps = {num_steps}"
        )
    if bias is not None and bias.shape != (sets, channels):
        raise ValueError(f"bias has shape {list(bias.shape)}; expected {[sets, channels]}")


def _why_plain(
    x: Tensor, operator: Operator, weights: Weights, activation: KnownActivation | None
) -> str | None:
    """What only the plain loop can do, if it is asked for."""
    if activation is None:
        return "this activation"
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
    tensors = (x, operator.value, weights.own, weights.neighbour, weights.bias)
    if len({(t.dtype, t.device) for t in tensors if t is not None}) > 1:
        return "tensors of different dtypes or devices"
    return None


def _stepper(
    x: Tensor,
    operator: SparseOperator,
    weights: Weights,
    epsilon: float,
    activation: KnownActivation,
) -> Stepper:
    pattern = operator.pattern
    library = native_library()
    unfit = "states of more than two dimensions" if x.dim() != 2 else None
    tensors = [x, operator.value, weights.own, weights.neighbour]
    unfit = unfit or calls.unfit(*tensors, *([] if weights.bias is None else [weights.bias]))
    unfit = unfit or calls.unfit_pattern(pattern.csr) or calls.unfit_pattern(pattern.transposed)
    if library is not None and unfit is None:
        return NativeStepper.choose(library, operator, weights, epsilon, activation)
    if setting() == "native":
        raise RuntimeError(
            f"the native kernels are forced, but cannot serve {unfit}; use "
            "adgn.graph.set_backend('auto')"
        )
    return TorchStepper(operator, epsilon, activation)


def _plain(
    x: Tensor,
    operator: Operator,
    weights: Weights,
    epsilon: float,
    act: Activation | None,
    num_steps: int,
    memory: Memory,
) -> Tensor:
    """The plain loop, with torch's checkpoints where memory is to be saved."""

    def some_steps(x: Tensor, first: int, last: int) -> Tensor:
        return integrate_reference(
            x,
            operator,
            weights.own,
            weights.neighbour,
            weights.bias,
            epsilon=epsilon,
            act=act,
            num_steps=last - first,
            first_step=first,
        )

    return in_segments(some_steps, x, num_steps, memory, lambda first, last: [act])


@dataclass(frozen=True)
class Run:
    """One integration, cut into segments of steps."""

    stepper: Stepper
    operator: SparseOperator
    activation: KnownActivation
    epsilon: float
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
        stepper = _stepper(x, operator, weights, epsilon, activation)
        return cls(stepper, operator, activation, epsilon, num_steps, memory)

    def segments(self) -> list[tuple[int, int]]:
        """First and last + 1 of the steps of each segment."""
        if self.memory == "checkpoint":
            return segments(self.num_steps, root(self.num_steps))
        walk = WALK if self.activation == "tanh" else self.num_steps
        return segments(self.num_steps, walk)

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
        self, grad: Tensor, weights: Weights, kept: list[list[Tensor]], sums: Weights | None
    ) -> Tensor:
        """The gradient in the first states; those in the weights are added to `sums`."""
        for (first, last), of_segment in zip(
            reversed(self.segments()), reversed(kept), strict=True
        ):
            steps = weights.of_steps(first, last)
            if self.memory == "checkpoint":
                _, of_segment = self.stepper.forward(of_segment[0], steps, last - first, True)
            segment_sums = None if sums is None else sums.of_steps(first, last)
            grad = self.stepper.backward(grad, steps, last - first, of_segment, segment_sums)
            del of_segment  # before the next segment is computed again
        return grad

    def plain(self, x: Tensor, own: Tensor, neighbour: Tensor, bias: Tensor | None) -> Tensor:
        """The same by the plain loop, whose gradient has a gradient."""
        acts: dict[KnownActivation, Activation | None] = {
            "identity": None,
            "tanh": torch.tanh,
            "relu": torch.relu,
        }
        return integrate_reference(
            x,
            self.operator,
            own,
            neighbour,
            bias,
            epsilon=self.epsilon,
            act=acts[self.activation],
            num_steps=self.num_steps,
        )


class _Integrate(torch.autograd.Function):
    """An integration as one node of the autograd graph."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, own: Tensor, neighbour: Tensor, bias: Tensor | None, run: Run
    ) -> Tensor:
        weights = contiguous(Weights(own, neighbour, bias))
        result, kept = run.forward(x, weights, keep=True)
        ctx.run = run
        ctx.lengths = [len(of_segment) for of_segment in kept]
        # Torch frees what is saved this way as soon as the backward pass is through, and tells if
        # it was changed: so are the operator's values, which the backward pass reads once more.
        value = run.operator.value
        ctx.save_for_backward(x, own, neighbour, bias, value, *(t for part in kept for t in part))
        return result

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, own, neighbour, bias, _, *flat = ctx.saved_tensors
        inputs = [x, own, neighbour, bias]
        wanted = [i for i in range(4) if ctx.needs_input_grad[i]]
        result: list[Tensor | None] = [None] * 5
        if torch.is_grad_enabled():  # create_graph=True: somebody will differentiate this again
            found = torch.autograd.grad(
                ctx.run.plain(*inputs), [inputs[i] for i in wanted], grad, create_graph=True
            )
            for i, gradient in zip(wanted, found, strict=True):
                result[i] = gradient
            return tuple(result)
        weights = contiguous(Weights(own, neighbour, bias))
        sums = weights.zeros() if any(ctx.needs_input_grad[1:4]) else None
        pieces = iter(flat)
        kept = [[next(pieces) for _ in range(length)] for length in ctx.lengths]
        del flat, pieces
        result[0] = ctx.run.backward(grad.contiguous(), weights, kept, sums)
        if sums is not None:
            result[1:4] = sums.own, sums.neighbour, sums.bias
        return tuple(result)


def contiguous(weights: Weights) -> Weights:
    """Detached weights as the kernels read them."""
    bias = None if weights.bias is None else calls.readable(weights.bias.detach())
    own, neighbour = weights.own.detach(), weights.neighbour.detach()
    return Weights(calls.readable(own), calls.readable(neighbour), bias)
