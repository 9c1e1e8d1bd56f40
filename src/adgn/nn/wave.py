r"""Second-order equations $\ddot{\mathbf{X}} = R(\mathbf{X}, \dot{\mathbf{X}})$ on a graph.

All are stepped by symplectic Euler: the velocity first, and the states with the new velocity.
`integrate_wave` is the linear case as one autograd node, by the native kernels; `wave_states` is
the plain loop for all others, to which `integrate_wave` falls back.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from adgn.graph import EdgeOperator, GraphOperator
from adgn.graph.checks import check_choice, check_count, records_sizes
from adgn.graph.native import calls
from adgn.graph.native.library import Scheme, native_library, setting
from adgn.graph.two_way import operators_of
from adgn.nn.steppers import (
    MEMORIES,
    Memory,
    NativeStepper,
    Weights,
    autograd_reason,
    checkpointed,
    not_served,
    unsupported_reason,
)

# From the states and the velocity to the acceleration.
Acceleration = Callable[[Tensor, Tensor], Tensor]


def wave_states(
    acceleration: Acceleration, x: Tensor, v: Tensor, epsilon: float, num_steps: int
) -> Iterator[tuple[Tensor, Tensor]]:
    r"""States and velocity after each step of symplectic Euler.

    $$
    \mathbf{V} \leftarrow \mathbf{V} + \epsilon R(\mathbf{X}, \mathbf{V}), \qquad
    \mathbf{X} \leftarrow \mathbf{X} + \epsilon \mathbf{V}
    $$

    Args:
        acceleration: $R$, from states and velocity.
        x: States, `[..., N, d]`.
        v: Velocity, of the same shape.
        epsilon: The step size.
        num_steps: How many steps.

    Example:
        >>> oscillator = wave_states(lambda x, v: -x, torch.ones(1), torch.zeros(1), 0.5, 2)
        >>> [(x.item(), v.item()) for x, v in oscillator]
        [(0.75, -0.5), (0.3125, -0.875)]
    """
    for _ in range(num_steps):
        v = torch.add(v, acceleration(x, v), alpha=epsilon)
        x = torch.add(x, v, alpha=epsilon)
        yield x, v


def wave_steps(
    acceleration: Acceleration,
    x: Tensor,
    v: Tensor,
    epsilon: float,
    num_steps: int,
    memory: Memory = "full",
    modules: Iterable[object] = (),
) -> tuple[Tensor, Tensor]:
    """The last of `wave_states`, with checkpoints where memory is to be saved.

    `modules` are those that take part in the acceleration, see `adgn.nn.steppers.checkpointed`.

    Example:
        >>> x, v = wave_steps(lambda x, v: -x, torch.ones(1), torch.zeros(1), 0.5, 2)
        >>> x.item(), v.item()
        (0.3125, -0.875)
    """
    check_choice("memory", memory, MEMORIES)

    def some_steps(both: Tensor, first: int, last: int) -> Tensor:
        x, v = both.unbind()
        for pair in wave_states(acceleration, x, v, epsilon, last - first):
            x, v = pair
        return torch.stack((x, v))

    taking_part = list(modules)
    start = torch.stack((x, v))
    x, v = checkpointed(some_steps, start, num_steps, memory, lambda *_: taking_part).unbind()
    return x, v


def wave_energy(x: Tensor, v: Tensor, acceleration: Tensor, epsilon: float = 0.0) -> Tensor:
    r"""The energy of states and velocity for a linear acceleration $R(\mathbf{X}) = -\mathcal{K}
    \mathbf{X}$.

    $$
    E_\epsilon = \tfrac12 \|\mathbf{V}\|^2 + \tfrac12 \langle \mathbf{X}, \mathcal{K} \mathbf{X}
        \rangle - \tfrac{\epsilon}{2} \langle \mathbf{V}, \mathcal{K} \mathbf{X} \rangle
    $$

    With $\epsilon = 0$ it is the energy of the differential equation. With the step size it is what
    symplectic Euler keeps exactly where $\mathcal{K}$ is symmetric.

    Args:
        x: States, `[..., N, d]`.
        v: Velocity, of the same shape.
        acceleration: $R(\mathbf{X})$.
        epsilon: The step size, or 0.

    Shapes: → `[...]`.

    Example:
        >>> x, v = torch.tensor([[0.75]]), torch.tensor([[-0.5]])  # after (1, 0), see wave_states
        >>> wave_energy(x, v, -x, 0.5).item()  # ½, that of (1, 0)
        0.5
    """
    kinetic = v.square() / 2
    potential = -(x - epsilon * v) * acceleration / 2
    return (kinetic + potential).sum((-2, -1))


def integrate_wave(
    x: Tensor,
    v: Tensor,
    operator: GraphOperator,
    w_self: Tensor,
    w_neigh: Tensor,
    *,
    epsilon: float,
    num_steps: int,
    memory: Memory = "full",
) -> tuple[Tensor, Tensor]:
    r"""Runs `num_steps` steps of a linear wave equation on a graph.

    $$
    \mathbf{V} \leftarrow \mathbf{V} + \epsilon (\mathbf{X} \mathbf{M}^\top + \mathbf{A} \mathbf{X}
        \mathbf{K}^\top), \qquad \mathbf{X} \leftarrow \mathbf{X} + \epsilon \mathbf{V}
    $$

    One autograd node by the native kernels where they can serve; else the plain loop, as
    `adgn.nn.integration.integrate` says.

    Args:
        x: States, `[..., N, d]`.
        v: Velocity, of the same shape.
        operator: The graph $\mathbf{A}$, `[N, N]`, or both directions of it.
        w_self: $\mathbf{M}$, `[d, d]`.
        w_neigh: $\mathbf{K}$, `[d, d]`; for both directions one above the other, `[2 d, d]`.
        epsilon: The step size.
        num_steps: How many steps.
        memory: `"full"` keeps the states before each step for the gradient, `"checkpoint"` those
            of every $\sqrt{L}$-th of the $L$ steps.

    Returns:
        The last states and the last velocity.

    Example:
        >>> from adgn.graph import graph_operator
        >>> laplacian = graph_operator(
        ...     torch.tensor([[0, 1], [1, 0]]), num_nodes=2, normalization="laplacian"
        ... )
        >>> x, still = torch.tensor([[1.0], [-1.0]]), torch.zeros(2, 1)
        >>> none, minus = torch.zeros(1, 1), -torch.ones(1, 1)
        >>> integrate_wave(x, still, laplacian, none, minus, epsilon=0.5, num_steps=1)[0].tolist()
        [[0.5], [-0.5]]
    """
    if not records_sizes():
        _check_shapes(x, v, operator, w_self, w_neigh)
    check_count("num_steps", num_steps)
    check_choice("memory", memory, MEMORIES)
    weights = Weights(w_self.unsqueeze(0), w_neigh.unsqueeze(0), None)
    reason = _fallback_reason(x, v, operator, weights)
    if reason is not None:
        if setting() == "native":
            raise not_served(reason)

        def acceleration(x: Tensor, _: Tensor) -> Tensor:
            return linear_acceleration(x, operator, w_self, w_neigh)

        return wave_steps(acceleration, x, v, epsilon, num_steps, memory)
    library = native_library()
    assert library is not None
    stepper = NativeStepper.choose(library, operator, weights, epsilon, "identity")
    if not torch.is_grad_enabled() or not any(
        tensor.requires_grad for tensor in (x, v, w_self, w_neigh)
    ):
        last, moved, _ = WaveRun(stepper, num_steps).forward(x, v, weights.readable(), keep=False)
        return last, moved
    if memory == "full":
        return _apply(x, v, weights, WaveRun(stepper, num_steps))

    def some_steps(both: Tensor, first: int, last: int) -> Tensor:
        x, v = both.unbind()
        return torch.stack(_apply(x, v, weights, WaveRun(stepper, last - first)))

    start = torch.stack((x, v))
    x, v = checkpointed(some_steps, start, num_steps, memory, lambda *_: []).unbind()
    return x, v


def linear_acceleration(
    x: Tensor, operator: GraphOperator, w_self: Tensor, w_neigh: Tensor
) -> Tensor:
    r"""$\mathbf{X} \mathbf{M}^\top + \mathbf{A} \mathbf{X} \mathbf{K}^\top$, see `integrate_wave`.

    Example:
        >>> from adgn.graph import graph_operator
        >>> edge = graph_operator(torch.tensor([[0], [1]]), num_nodes=2)
        >>> one = torch.eye(1)
        >>> linear_acceleration(torch.tensor([[1.0], [2.0]]), edge, -one, one).tolist()
        [[-1.0], [-1.0]]
    """
    return x @ w_self.t() + operator @ (x @ w_neigh.t())


def _check_shapes(
    x: Tensor, v: Tensor, operator: GraphOperator, w_self: Tensor, w_neigh: Tensor
) -> None:
    if x.dim() < 2 or operator.shape != (x.size(-2), x.size(-2)) or v.shape != x.shape:
        raise ValueError(
            f"x has shape {list(x.shape)}, v {list(v.shape)} and the operator "
            f"{list(operator.shape)}; expected states and velocity [..., N, d] and an operator "
            "[N, N] of the same number N of nodes"
        )
    channels, sent = x.size(-1), x.size(-1) * len(operators_of(operator))
    if w_self.shape != (channels, channels) or w_neigh.shape != (sent, channels):
        raise ValueError(
            f"w_self has shape {list(w_self.shape)} and w_neigh {list(w_neigh.shape)}; expected "
            f"[{channels}, {channels}] and [{sent}, {channels}] for states of size {channels}"
        )


def _fallback_reason(x: Tensor, v: Tensor, operator: GraphOperator, weights: Weights) -> str | None:
    """Why the plain loop must serve; `None` where it need not."""
    reason = autograd_reason(x, operator, weights)
    if reason is None and any(isinstance(one, EdgeOperator) for one in operators_of(operator)):
        reason = "waves with torch.compile"
    if reason is None and (v.dtype, v.device) != (x.dtype, x.device):
        reason = "tensors of different dtypes or devices"
    if reason is None and native_library() is None:
        reason = "waves without the native kernels"
    return unsupported_reason(x, operator, weights) if reason is None else reason


@dataclass(frozen=True)
class WaveRun:
    """Steps of a wave in the native kernels, forward and back."""

    stepper: NativeStepper
    num_steps: int

    def forward(
        self, x: Tensor, v: Tensor, weights: Weights, keep: bool
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """The last states and velocity, and the states before each step (if `keep`)."""
        problem = self.stepper.problem(weights, self.num_steps, transposed=False)
        inputs = (self.stepper.library, problem, self._scheme(), x.detach(), v.detach(), keep)
        last, moved, _, starts = calls.scheme_forward(*inputs)
        assert moved is not None
        return last, moved, starts

    def backward(
        self,
        grad: Tensor,
        grad_velocity: Tensor,
        weights: Weights,
        starts: Tensor,
        grads: Weights | None,
    ) -> tuple[Tensor, Tensor]:
        """The gradients in the first states and velocity; those in the weights go to `grads`."""
        problem = self.stepper.problem(weights, self.num_steps, transposed=True)
        into = None if grads is None else (grads.w_self, grads.w_neigh, grads.bias)
        given = (self._scheme(), grad.contiguous(), grad_velocity.contiguous(), (None, starts))
        first, moved = calls.scheme_backward(self.stepper.library, problem, *given, into)
        assert moved is not None
        return first, moved

    def reference(
        self, x: Tensor, v: Tensor, w_self: Tensor, w_neigh: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The same by the plain loop, whose gradient has a gradient."""

        def acceleration(x: Tensor, _: Tensor) -> Tensor:
            return linear_acceleration(x, self.stepper.operator, w_self[0], w_neigh[0])

        return wave_steps(acceleration, x, v, self.stepper.epsilon, self.num_steps)

    def _scheme(self) -> Scheme:
        step = self.stepper.epsilon
        factors = torch.full((self.num_steps, 1), step, dtype=torch.double)
        return calls.scheme(factors, torch.ones(self.num_steps, dtype=torch.uint8), step)


class _Wave(torch.autograd.Function):
    """Some steps of a wave as one node of the autograd graph."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, v: Tensor, w_self: Tensor, w_neigh: Tensor, run: WaveRun
    ) -> tuple[Tensor, Tensor]:
        last, moved, starts = run.forward(x, v, Weights(w_self, w_neigh, None).readable(), True)
        ctx.run = run
        # The operator's values are saved so that torch sees if they were changed.
        values = [one.value for one in operators_of(run.stepper.operator)]
        ctx.save_for_backward(x, v, w_self, w_neigh, starts, *values)
        return last, moved

    @staticmethod
    def backward(ctx: Any, grad: Tensor, grad_velocity: Tensor) -> tuple[Tensor | None, ...]:
        x, v, w_self, w_neigh, starts, *_ = ctx.saved_tensors
        result: list[Tensor | None] = [None] * 5
        if torch.is_grad_enabled():  # create_graph=True: this is to be differentiated again
            inputs = [x, v, w_self, w_neigh]
            wanted = [i for i in range(4) if ctx.needs_input_grad[i]]
            found = torch.autograd.grad(
                ctx.run.reference(*inputs),
                [inputs[i] for i in wanted],
                (grad, grad_velocity),
                create_graph=True,
            )
            for i, gradient in zip(wanted, found, strict=True):
                result[i] = gradient
            return tuple(result)
        weights = Weights(w_self, w_neigh, None).readable()
        grads = weights.zeros() if any(ctx.needs_input_grad[2:4]) else None
        result[:2] = ctx.run.backward(grad, grad_velocity, weights, starts, grads)
        if grads is not None:
            result[2:4] = grads.w_self, grads.w_neigh
        return tuple(result)


def _apply(x: Tensor, v: Tensor, weights: Weights, run: WaveRun) -> tuple[Tensor, Tensor]:
    result: tuple[Tensor, Tensor] = _Wave.apply(x, v, weights.w_self, weights.w_neigh, run)  # type: ignore[no-untyped-call]
    return result
