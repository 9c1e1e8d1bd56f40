"""The integration that all anti-symmetric layers with a linear aggregation run through.

`integrate` gives the same result as the plain loop (`integration_run.integrate_reference`) as one
autograd node with a backward pass written by hand, by the native kernels or by torch. It falls back
to the plain loop for all that only the plain loop can do.
"""

from typing import Any

import torch
from torch import Tensor

from adgn.graph import EdgeOperator, GraphOperator, NeededNodes
from adgn.graph.checks import check_choice, check_count
from adgn.graph.native.library import native_library, setting
from adgn.graph.two_way import compiled_graph, operators_of, values_of
from adgn.nn.base import Activation, KnownActivation, known_activation
from adgn.nn.integration_op import integrate_op
from adgn.nn.integration_run import Run, fields_of_steps, needed_steps
from adgn.nn.integrators import EULER, Integrator, resolve_integrator
from adgn.nn.steppers import (
    MEMORIES,
    Memory,
    Weights,
    autograd_reason,
    check_memory,
    checkpointed,
    not_served,
    unsupported_reason,
)


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

        fields = fields_of_steps(operator, weights, act)

        def some_steps(x: Tensor, first: int, last: int) -> Tensor:
            if needed is not None:
                return needed_steps(x, needed, weights, epsilon, act, first, last)
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
        result[0] = ctx.run.backward(grad, weights, kept, grads)
        if grads is not None:
            result[1:4] = grads.w_self, grads.w_neigh, grads.bias
        return tuple(result)
