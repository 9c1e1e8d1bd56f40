"""The integration that all anti-symmetric layers with a linear aggregation run through.

`integrate_reference` is the plain loop. `integrate` gives the same result as one autograd node with
a backward pass written by hand, by the native kernels or by torch. It falls back to the plain loop
for all that only the plain loop can do.
"""

import itertools
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from adgn.graph import EdgeOperator, GraphOperator, NeededNodes, TwoWayOperator, graph_operator
from adgn.graph.checks import check_choice, check_count, check_finite
from adgn.graph.native.library import native_library, setting
from adgn.graph.two_way import compiled_graph, operators_of, values_of
from adgn.nn.base import Activation, KnownActivation, known_activation
from adgn.nn.halo_stepper import halo_stepper
from adgn.nn.integrators import EULER, Integrator, VectorField, resolve_integrator
from adgn.nn.steppers import (
    MEMORIES,
    Memory,
    NativeStepper,
    NeededStepper,
    Stepper,
    TorchStepper,
    Weights,
    autograd_reason,
    check_memory,
    checkpoint_interval,
    checkpointed,
    not_served,
    split_steps,
    unsupported_reason,
)

# For tanh the states are kept before each so many steps, see `adgn.nn.steppers`.
REVERSIBLE_STEPS = 16


def integrate(
    x: Tensor,
    operator: GraphOperator | NeededNodes,
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

    That is forward Euler. For tanh, relu and the identity this is one autograd node. The native
    kernels serve where they can (see `adgn.graph.backend`), torch elsewhere; `torch.compile` keeps
    it as one operation. Other activations and integrators, learned edge weights, autocast,
    `torch.func` transforms, forward-mode and higher derivatives, `torch.export` and
    `torch.jit.trace` take the plain loop, in which the `memory` option works for all but the
    transforms, forward mode and tracing.

    Args:
        x: States, `[..., N, d]`.
        operator: The graph $\mathbf{A}$, `[N, N]`; or both directions of it, for $\mathbf{A}
            \mathbf{X} \mathbf{V}^\top$ of each; or the nodes that are needed of it, for forward
            Euler, in whose order the states then are: the result has the last of them.
        w_self: $\mathbf{M} = \mathbf{W} - \mathbf{W}^\top - \gamma \mathbf{I}$, `[K, d, d]`:
            K = 1 set of weights for all steps, or K = `num_steps`.
        w_neigh: $\mathbf{V}$, `[K, d, d]`; for both directions one above the other, `[K, 2 d, d]`.
        bias: $\mathbf{b}$, `[K, d]`, or `None`.
        epsilon: The step size.
        act: $\sigma$; `None` is the identity.
        num_steps: How many steps.
        memory: `"full"` keeps for the gradient one number per entry of the states and step;
            `"checkpoint"` keeps the states of every $\sqrt{L}$-th of the $L$ steps and
            computes the steps between a second time: memory for $2 \sqrt{L}$ steps, for about a
            third more time.
        integrator: A name or an integrator, see `adgn.nn.integrators`. Those that add up rates
            (Runge-Kutta, Adams-Bashforth) run in the native kernels, or as the plain loop; forward
            Euler has a backward pass by hand in torch too. Others take the plain loop.
    """
    scheme = resolve_integrator(integrator)
    needed = operator if isinstance(operator, NeededNodes) else None
    if needed is not None:
        operator = needed.operator
        _check_needed(needed, num_steps, scheme)
    assert not isinstance(operator, NeededNodes)
    _check_shapes(x, operator, w_self, w_neigh, bias, num_steps)
    check_choice("memory", memory, MEMORIES)
    check_memory(memory, scheme)
    activation = known_activation(act)
    weights = Weights(w_self, w_neigh, bias)
    reason = _fallback_reason(x, operator, weights, activation, scheme, needed)
    if activation is None or reason is not None:
        if setting() == "native":
            raise not_served(reason)

        fields = _fields(operator, weights, act)

        def some_steps(x: Tensor, first: int, last: int) -> Tensor:
            if needed is not None:
                return _needed_steps(x, needed, weights, epsilon, act, first, last)
            return scheme.advance(fields, x, epsilon, first, last)

        return checkpointed(some_steps, x, num_steps, memory, lambda first, last: [act])
    keep = torch.is_grad_enabled() and any(t.requires_grad for t in (x, *weights.tensors()))
    graph = compiled_graph(operator)
    if graph is not None:
        settings = (epsilon, activation, num_steps, memory, keep)
        states: Tensor = integrate_op(x, w_self, w_neigh, bias, *graph, *settings)[0]
        return states
    run = Run.plan(x, operator, weights, epsilon, activation, num_steps, memory, scheme, needed)
    if not keep:
        return run.forward(x, weights.readable(), keep=False)[0]
    result: Tensor = _Integrate.apply(x, w_self, w_neigh, bias, run)  # type: ignore[no-untyped-call]
    return result


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
        return _needed_steps(x, operator, weights, epsilon, act, 0, num_steps)
    fields = _fields(operator, Weights(w_self, w_neigh, bias), act)
    return integrator.advance(fields, x, epsilon, 0, num_steps)


def _fields(
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


def _needed_steps(
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


def _check_needed(needed: NeededNodes, num_steps: int, integrator: Integrator) -> None:
    """Raises unless it was worked out for these steps."""
    if integrator != EULER or needed.num_layers != num_steps:
        raise ValueError(
            f"the needed nodes are those of {needed.num_layers} Euler steps, but num_steps="
            f"{num_steps} and integrator={integrator.name!r}; give the operator of the whole graph"
        )


def _check_shapes(
    x: Tensor,
    operator: GraphOperator,
    w_self: Tensor,
    w_neigh: Tensor,
    bias: Tensor | None,
    num_steps: int,
) -> None:
    """Raises unless there is a state per node, and one set of `[d, d]` weights, or one per step."""
    if x.dim() < 2 or operator.shape != (x.size(-2), x.size(-2)):
        raise ValueError(
            f"x has shape {list(x.shape)} and the operator {list(operator.shape)}; expected states "
            "[..., N, d] and an operator [N, N] of the same number N of nodes"
        )
    check_count("num_steps", num_steps)
    channels = x.size(-1)
    sets = w_self.size(0) if w_self.dim() == 3 else 0
    expected = (sets, channels, channels)
    sent = channels * len(operators_of(operator))
    fits = w_self.shape == expected and w_neigh.shape == (sets, sent, channels)
    if sets not in (1, num_steps) or not fits:
        raise ValueError(
            f"w_self has shape {list(w_self.shape)} and w_neigh {list(w_neigh.shape)}; expected "
            f"[K, {channels}, {channels}] and [K, {sent}, {channels}] for states of size "
            f"{channels}, with K = 1 or K = num_steps = {num_steps}"
        )
    if bias is not None and bias.shape != (sets, channels):
        raise ValueError(f"bias has shape {list(bias.shape)}; expected {[sets, channels]}")


def _fallback_reason(
    x: Tensor,
    operator: GraphOperator,
    weights: Weights,
    activation: KnownActivation | None,
    integrator: Integrator,
    needed: NeededNodes | None,
) -> str | None:
    """Why the plain loop must serve; `None` where it need not."""
    if activation is None:
        return "this activation"
    if needed is not None:
        if native_library() is None:
            return "some of the nodes without the native kernels"
        reason = unsupported_reason(x, operator, weights)
        if reason is not None:
            return f"some of the nodes and {reason}"
    if integrator != EULER:
        named = f"integrator={integrator.name!r}"
        if not integrator.adds_rates:
            return named
        if any(isinstance(one, EdgeOperator) for one in operators_of(operator)):
            return f"{named} with torch.compile"
        if native_library() is None:
            return f"{named} without the native kernels"
        reason = unsupported_reason(x, operator, weights)
        if reason is not None:
            return f"{named} and {reason}"
    return autograd_reason(x, operator, weights)


@dataclass(frozen=True)
class Run:
    """One integration, with checkpoints on the way."""

    stepper: Stepper
    num_steps: int
    memory: Memory

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
            return cls(stepper, num_steps, memory)
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
        if not keep:
            return self.stepper.forward(x, weights, self.num_steps, False)[0], []
        kept = []
        for first, last in self.between_checkpoints():
            steps, stepper = weights.of_steps(first, last), self.stepper.of_steps(first, last)
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
        between = self.between_checkpoints()
        for (first, last), kept_here in zip(reversed(between), reversed(kept), strict=True):
            steps, stepper = weights.of_steps(first, last), self.stepper.of_steps(first, last)
            if self.memory == "checkpoint":
                _, kept_here = stepper.forward(kept_here[0], steps, last - first, True)
            grads_here = None if grads is None else grads.of_steps(first, last)
            grad = stepper.backward(grad, steps, last - first, kept_here, grads_here)
            del kept_here  # before the steps from the checkpoint before are computed again
        return grad

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


class _Integrate(torch.autograd.Function):
    """An integration as one node of the autograd graph."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, w_self: Tensor, w_neigh: Tensor, bias: Tensor | None, run: Run
    ) -> Tensor:
        result, kept = run.forward(x, Weights(w_self, w_neigh, bias).readable(), keep=True)
        ctx.run = run
        ctx.lengths = [len(kept_here) for kept_here in kept]
        # Torch frees what is saved this way after the backward pass, and raises if it was changed
        # before. The operator's values are saved for this check alone.
        values = values_of(run.stepper.operator)
        ctx.num_values = len(values)
        pieces = (t for part in kept for t in part)
        ctx.save_for_backward(x, w_self, w_neigh, bias, *values, *pieces)
        return result

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, w_self, w_neigh, bias, *flat = ctx.saved_tensors
        flat = flat[ctx.num_values :]
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


# What forward passes keep for backward ones: compiled graphs can hand on tensors of known number
# and size only. It lives as long as the tensor with its number.
_kept: dict[int, list[list[Tensor]]] = {}
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
        _kept[number] = kept
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
    run = _run(x, weights, graph, epsilon, activation, num_steps, memory)
    kept = _kept.get(int(handle))
    if kept is None:
        _, kept = run.forward(x, weights, True)
    grads = weights.zeros()
    grad_x = run.backward(grad.contiguous(), weights, kept, grads)
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
