"""How steps are run: checkpoints, and integrations of linear aggregations forward and back.

Checkpoints keep only the states before some of the steps. Euler steps, by torch and by the native
kernels, keep one number per entry of the states and step. For tanh that is what the activation
returned, t: its slope is 1 − t², and the states before a step are found from the first ones by
adding ε t for each step between, as the forward pass did: they are the same to the last bit. (From
the last states back, x − ε t would leave few digits of small x.) The backward pass of the last step
stores some of the states that it adds up, so that those before the other steps are few additions
away. For the other activations the states are kept themselves (and for relu, where it was active).
Steps that add up several rates keep all rates and the states before each step.
"""

import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, replace
from itertools import islice
from typing import Literal

import torch
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.utils.checkpoint import checkpoint

from adgn.graph import EdgeOperator, GraphOperator, NeededNodes
from adgn.graph.checks import is_traced
from adgn.graph.native import calls
from adgn.graph.native.library import DTYPES, Integration, NativeLibrary, Scheme
from adgn.graph.two_way import (
    compiled_graph,
    is_partitioned,
    multiply_back,
    operators_of,
    sparse_operators_of,
    values_of,
)
from adgn.nn.base import KnownActivation
from adgn.nn.integrators import EULER, Integrator

Memory = Literal["full", "checkpoint"]
MEMORIES: tuple[Memory, ...] = ("full", "checkpoint")

# Blocks whose states take more than this (in bytes, four arrays of them) leave the second-level
# cache; so do weights and their gradients.
_BLOCK_BYTES = 2**20
_WEIGHT_BYTES = 2**18
# Graphs whose states take less (four arrays again) are worked on by one thread.
_TINY_BYTES = 2**18

_recomputable: ContextVar[bool] = ContextVar("recomputable", default=False)


def check_memory(memory: Memory, integrator: Integrator) -> None:
    """Raises unless steps of the integrator can be computed a second time."""
    if memory == "checkpoint" and not integrator.one_step:
        raise ValueError(
            f"memory='checkpoint' is not available for integrator={integrator.name!r}, whose steps "
            "need the rates of earlier ones; give memory='full', or a one-step integrator"
        )


def checkpointed(
    steps: Callable[[Tensor, int, int], Tensor],
    x: Tensor,
    count: int,
    memory: Memory,
    modules: Callable[[int, int], Iterable[object]],
) -> Tensor:
    r"""`steps(x, 0, count)`, with torch's checkpoints where memory is to be saved.

    With `memory="checkpoint"` the states of every $\sqrt{L}$-th of the $L$ steps are kept, and the
    steps between are computed a second time for the gradient, with the same random numbers. Inside
    of such steps, `torch.func` transforms, forward mode and tracing there are no checkpoints.

    `modules` maps the first step and the last + 1 to what takes part in these steps. Of the modules
    among it the second computation finds the buffers (such as the running statistics of a batch
    normalisation) as the first one did, and leaves them as they are.

    Example:
        >>> x = torch.ones(1, requires_grad=True)
        >>> def double(x, first, last):
        ...     return x * 2 ** (last - first)
        >>> checkpointed(double, x, 10, "checkpoint", lambda first, last: [])
        tensor([1024.], grad_fn=<MulBackward0>)
    """
    if memory == "full" or is_traced(x):
        return steps(x, 0, count)
    transformed = torch._C._are_functorch_transforms_active() or forward_ad._current_level >= 0
    if transformed or not torch.is_grad_enabled() or _recomputable.get():
        return steps(x, 0, count)

    def recomputable(x: Tensor, first: int, last: int) -> Tensor:
        token = _recomputable.set(True)
        try:
            return steps(x, first, last)
        finally:
            _recomputable.reset(token)

    for first, last in split_steps(count, checkpoint_interval(count)):
        contexts = functools.partial(_contexts, list(modules(first, last)))
        x = checkpoint(recomputable, x, first, last, use_reentrant=False, context_fn=contexts)
    return x


def _contexts(
    taking_part: list[object],
) -> tuple[AbstractContextManager[None], AbstractContextManager[None]]:
    """The contexts of the first and of the second computation."""
    modules = [each for one in taking_part if isinstance(one, nn.Module) for each in one.modules()]
    return nullcontext(), _EarlierBuffers([m for m in modules if m.training and m._buffers])


class _EarlierBuffers(AbstractContextManager[None]):
    """Inside, modules have the buffers that they had when this was made; then their own again."""

    def __init__(self, modules: list[nn.Module]) -> None:
        self.modules = modules
        self.earlier = [_copies(module._buffers) for module in modules]

    def __enter__(self) -> None:
        self.later = [module._buffers for module in self.modules]
        for module, earlier in zip(self.modules, self.earlier, strict=True):
            # Copies once more: a second backward pass finds them unchanged.
            module._buffers = _copies(earlier)

    def __exit__(self, *_: object) -> None:
        for module, later in zip(self.modules, self.later, strict=True):
            module._buffers = later


def _copies(buffers: dict[str, Tensor | None]) -> dict[str, Tensor | None]:
    return {name: None if b is None else b.detach().clone() for name, b in buffers.items()}


def split_steps(count: int, length: int) -> list[tuple[int, int]]:
    """The first and last + 1 of each `length` steps: (0, 2), (2, 4), (4, 5) of 5 by 2."""
    return [(first, min(first + length, count)) for first in range(0, count, length)]


def checkpoint_interval(count: int) -> int:
    """How many steps lie between checkpoints: the square root of their number, rounded up."""
    return math.isqrt(count - 1) + 1 if count > 1 else 1


@dataclass(frozen=True)
class Weights:
    """The weights of all steps: `[K, d, d]` (twice) and `[K, d]`; K is 1 or the number of steps.

    With both directions `w_neigh` is `[K, 2 d, d]`.
    """

    w_self: Tensor
    w_neigh: Tensor
    bias: Tensor | None

    def tensors(self) -> list[Tensor]:
        """Those that are there."""
        return [t for t in (self.w_self, self.w_neigh, self.bias) if t is not None]

    def of_step(self, step: int) -> tuple[Tensor, Tensor, Tensor | None]:
        """The weights of one step: `[d, d]` (twice) and `[d]`."""
        which = 0 if self.w_self.size(0) == 1 else step
        bias = None if self.bias is None else self.bias[which]
        return self.w_self[which], self.w_neigh[which], bias

    def of_steps(self, first: int, last: int) -> "Weights":
        """Those of the steps `first` to `last - 1`."""
        return self if self.w_self.size(0) == 1 else self._each(lambda tensor: tensor[first:last])

    def zeros(self) -> "Weights":
        """Zeros of the same shapes."""
        return self._each(torch.zeros_like)

    def readable(self) -> "Weights":
        """Detached, as the kernels read them."""
        return self._each(lambda tensor: calls.readable(tensor.detach()))

    def _each(self, function: Callable[[Tensor], Tensor]) -> "Weights":
        bias = None if self.bias is None else function(self.bias)
        return Weights(function(self.w_self), function(self.w_neigh), bias)


@dataclass(frozen=True)
class Stepper(ABC):
    """Runs steps on one graph forward and back; `kept` is what forward hands to backward."""

    operator: GraphOperator
    epsilon: float
    activation: KnownActivation

    @property
    def integrator(self) -> Integrator:
        """What the steps are of."""
        return EULER

    def of_steps(self, first: int, last: int) -> "Stepper":
        """What runs the steps `first` to `last - 1`; most run any."""
        return self

    @property
    def adds_up_states(self) -> bool:
        """Whether a backward pass over many steps takes more additions per step than over few."""
        return self.activation == "tanh" and self.integrator == EULER

    @abstractmethod
    def forward(
        self, x: Tensor, weights: Weights, count: int, keep: bool
    ) -> tuple[Tensor, list[Tensor]]:
        """The states after `count` steps, and what `backward` will need (if `keep`)."""

    @abstractmethod
    def backward(
        self, grad: Tensor, weights: Weights, count: int, kept: list[Tensor], grads: Weights | None
    ) -> Tensor:
        """The gradient in the first states; those in the weights are added to `grads`."""


@dataclass(frozen=True)
class TorchStepper(Stepper):
    """The steps in torch's operations, on any device."""

    def forward(
        self, x: Tensor, weights: Weights, count: int, keep: bool
    ) -> tuple[Tensor, list[Tensor]]:
        """See `Stepper`."""
        kept = [x] if keep and self.activation == "tanh" else []
        for step in range(count):
            w_self, w_neigh, bias = weights.of_step(step)
            t, sent = (x @ torch.cat([w_self, w_neigh]).t()).tensor_split((w_self.size(0),), dim=-1)
            t = self.operator @ sent + t
            if bias is not None:
                t += bias
            if self.activation == "tanh":
                t.tanh_()
                kept += [t] if keep else []
            elif keep:
                kept += [x] + [t > 0] * (self.activation == "relu")
            if self.activation == "relu":
                t.relu_()
            x = torch.add(x, t, alpha=self.epsilon)
        return x, kept

    def backward(
        self, grad: Tensor, weights: Weights, count: int, kept: list[Tensor], grads: Weights | None
    ) -> Tensor:
        """See `Stepper`."""
        if self.activation == "tanh":
            first, *activated = kept
            before = states_backwards(first, activated, self.epsilon)
        for step in reversed(range(count)):
            w_self, w_neigh, _ = weights.of_step(step)
            r = grad * self.epsilon
            if self.activation == "tanh":
                x, t = next(before), activated[step]
                r = torch.addcmul(r, r * t, t, value=-1)
            elif self.activation == "relu":
                x, active = kept[2 * step], kept[2 * step + 1]
                r = r.masked_fill_(~active, 0)
            else:
                x = kept[step]
            both = torch.cat([r, multiply_back(self.operator, r)], dim=-1)
            grad = grad + both @ torch.cat([w_self, w_neigh])
            if grads is not None:
                w_self_grad, w_neigh_grad, bias_grad = grads.of_step(step)
                product = both.flatten(0, -2).t() @ x.flatten(0, -2)
                w_self_grad += product[: w_self.size(0)]
                w_neigh_grad += product[w_self.size(0) :]
                if bias_grad is not None:
                    bias_grad += r.flatten(0, -2).sum(0)
        return grad


def states_backwards(first: Tensor, activated: list[Tensor], epsilon: float) -> Iterator[Tensor]:
    """The states before each step, the last step first, from those before the first step."""

    def states(x: Tensor, additions: list[Tensor]) -> Iterator[Tensor]:
        yield x
        for t in additions:
            x = torch.add(x, t, alpha=epsilon)
            yield x

    interval = checkpoint_interval(len(activated))
    checkpoints = list(islice(states(first, activated[:-1]), 0, None, interval))
    for begin, end in reversed(split_steps(len(activated), interval)):
        yield from reversed(list(states(checkpoints.pop(), activated[begin : end - 1])))


@dataclass(frozen=True)
class NativeStepper(Stepper):
    """The steps in the native kernels: CPU, states `[N, d]`."""

    library: NativeLibrary
    block_ptr: Tensor | None

    @property
    def adds_up_states(self) -> bool:
        """See `Stepper`; there is room for the states of all steps of one block."""
        return super().adds_up_states and self.block_ptr is None

    @classmethod
    def choose(
        cls,
        library: NativeLibrary,
        operator: GraphOperator,
        weights: Weights,
        epsilon: float,
        activation: KnownActivation,
        integrator: Integrator = EULER,
    ) -> "NativeStepper":
        """Works block by block where the graph is many small ones, else step by step.

        A tiny graph is one block: it stays in the cache for all steps, without a hand-over between
        threads at each of them.
        """
        first, *second = sparse_operators_of(operator)
        block_ptr = first.pattern.block_ptr
        sets, channels, _ = weights.w_self.shape
        itemsize = weights.w_self.element_size()
        row_bytes = calls.padded_width(channels, weights.w_self.dtype) * itemsize
        if (2 + len(second)) * sets * channels * row_bytes > _WEIGHT_BYTES:
            block_ptr = None
        elif 4 * operator.shape[0] * row_bytes <= _TINY_BYTES:
            block_ptr = first.pattern.one_block
        elif block_ptr is not None:
            largest = int(block_ptr.diff().max()) if block_ptr.numel() > 1 else 0
            fits = 4 * largest * row_bytes <= _BLOCK_BYTES
            enough = block_ptr.numel() > torch.get_num_threads()
            block_ptr = calls.readable(block_ptr.long()) if fits and enough else None
        settings = (operator, epsilon, activation, library, block_ptr)
        return cls(*settings) if integrator == EULER else NativeSchemeStepper(*settings, integrator)

    def forward(
        self, x: Tensor, weights: Weights, count: int, keep: bool
    ) -> tuple[Tensor, list[Tensor]]:
        """See `Stepper`."""
        problem = self.problem(weights, count, transposed=False)
        last, states, active = calls.forward(self.library, problem, x, keep)
        first = x if keep and self.activation == "tanh" else None
        return last, [tensor for tensor in (states, active, first) if tensor is not None]

    def backward(
        self, grad: Tensor, weights: Weights, count: int, kept: list[Tensor], grads: Weights | None
    ) -> Tensor:
        """See `Stepper`."""
        states, *other = kept
        active = other[0] if self.activation == "relu" else None
        first = other[0] if self.activation == "tanh" else None
        return calls.backward(
            self.library,
            self.problem(weights, count, transposed=True),
            grad,
            (states, active, first),
            None if grads is None else (grads.w_self, grads.w_neigh, grads.bias),
        )

    @property
    def step_rows(self) -> tuple[int, ...] | None:
        """How many of the first rows each step computes; `None` for all."""
        return None

    def problem(self, weights: Weights, count: int, *, transposed: bool) -> Integration:
        """`count` steps as C++ reads them; `transposed` for the way back."""
        matrices = []
        for one in sparse_operators_of(self.operator):
            csr = one.pattern.transposed if transposed else one.pattern.csr
            value = one.transposed_value if transposed else one.value
            matrices.append((csr, calls.readable(value.detach())))
        return calls.integration(
            self.library,
            *matrices[0],
            weights.w_self,
            weights.w_neigh,
            weights.bias,
            self.block_ptr,
            self.epsilon,
            self.activation,
            count,
            matrices[1] if len(matrices) > 1 else None,
            step_rows=self.step_rows,
        )


@dataclass(frozen=True)
class NeededStepper(NativeStepper):
    """Steps that compute only the states which what is read depends on."""

    needed: NeededNodes

    @property
    def step_rows(self) -> tuple[int, ...]:
        """How many of the first rows each step computes."""
        return self.needed.counts[1:]

    def of_steps(self, first: int, last: int) -> "NeededStepper":
        """See `Stepper`."""
        needed = self.needed.between(first, last)
        return replace(self, operator=needed.operator, needed=needed)


@dataclass(frozen=True)
class NativeSchemeStepper(NativeStepper):
    """The steps of an integrator that adds up rates, in the native kernels."""

    scheme: Integrator

    @property
    def integrator(self) -> Integrator:
        """What the steps are of."""
        return self.scheme

    def forward(
        self, x: Tensor, weights: Weights, count: int, keep: bool
    ) -> tuple[Tensor, list[Tensor]]:
        """See `Stepper`."""
        problem = self.problem(weights, count, transposed=False)
        last, _, rates, starts = calls.scheme_forward(
            self.library, problem, self._scheme(count), x, None, keep
        )
        return last, [tensor for tensor in (rates, starts) if tensor is not None]

    def backward(
        self, grad: Tensor, weights: Weights, count: int, kept: list[Tensor], grads: Weights | None
    ) -> Tensor:
        """See `Stepper`."""
        rates, starts = kept
        return calls.scheme_backward(
            self.library,
            self.problem(weights, count, transposed=True),
            self._scheme(count),
            grad,
            None,
            (rates, starts),
            None if grads is None else (grads.w_self, grads.w_neigh, grads.bias),
        )[0]

    def _scheme(self, count: int) -> Scheme:
        program = self.scheme.program(count, self.epsilon)
        return calls.scheme(program.factors, program.ends_step, None)


def unsupported_reason(x: Tensor, operator: GraphOperator, weights: Weights) -> str | None:
    """Why the kernels cannot integrate this; `None` where they can."""
    if x.dim() != 2:
        return "states of more than two dimensions"
    if is_partitioned(operator):
        return "a graph that is spread over ranks"
    operators = sparse_operators_of(operator)
    reason = calls.unsupported_reason(x, *(one.value for one in operators), *weights.tensors())
    for one in operators:
        reason = reason or calls.unsupported_pattern_reason(one.pattern.csr)
        reason = reason or calls.unsupported_pattern_reason(one.pattern.transposed)
    return reason


def autograd_reason(x: Tensor, operator: GraphOperator, weights: Weights) -> str | None:
    """Why only torch's own operations can be differentiated as asked; `None` where need not be."""
    values = values_of(operator)
    if any(value.requires_grad for value in values):
        return "edge weights that require a gradient"
    edge_lists = [isinstance(one, EdgeOperator) for one in operators_of(operator)]
    if any(edge_lists) and compiled_graph(operator) is None:
        return "tracing, explanations and meta tensors"
    if torch._C._are_functorch_transforms_active():
        return "a torch.func transform"
    if forward_ad._current_level >= 0:
        return "forward-mode differentiation"
    if torch.is_autocast_enabled(x.device.type):
        return "autocast"
    if x.dtype not in DTYPES:  # half precision: to be rounded where torch rounds
        return f"dtype {x.dtype}"
    if len({(t.dtype, t.device) for t in (x, *values, *weights.tensors())}) > 1:
        return "tensors of different dtypes or devices"
    return None


def not_served(reason: str | None) -> RuntimeError:
    """The error where the native kernels are forced and cannot serve."""
    return RuntimeError(
        f"the native kernels are forced, but cannot serve {reason}; use "
        "adgn.graph.set_backend('auto')"
    )
