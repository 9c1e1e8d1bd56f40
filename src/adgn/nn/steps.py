"""Some Euler steps forward, and back again: by torch, and by the native kernels.

Both keep, per step, one number per entry of the states. For tanh that is what the activation
returned, t: its slope is 1 − t², and the states before a step are found from the first ones by
adding ε t for each step between, as the forward pass did: they are the same to the last bit. (From
the last states back, x − ε t would leave few digits of small x.) The backward pass of the last step
stores some of the states that it adds up, so that those before the other steps are few additions
away. For the other activations the states are kept themselves (and for relu, where it was active).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

import torch
from torch import Tensor

from adgn.graph import SparseOperator
from adgn.graph.kernels import multiply_transposed
from adgn.graph.native import calls
from adgn.graph.native.library import Integration, NativeLibrary
from adgn.nn.checkpointing import checkpoint_interval, split_steps
from adgn.nn.resolve import KnownActivation

# Blocks whose states take more than this (in bytes, four arrays of them) leave the second-level
# cache; so do weights and their gradients.
_BLOCK_BYTES = 2**20
_WEIGHT_BYTES = 2**18


@dataclass(frozen=True)
class Weights:
    """The weights of all steps: `[K, d, d]` (twice) and `[K, d]`; K is 1 or the number of steps."""

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

    operator: SparseOperator
    epsilon: float
    activation: KnownActivation

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
            before = self._states_backwards(first, activated)
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
            both = torch.cat([r, multiply_transposed(self.operator, r)], dim=-1)
            grad = grad + both @ torch.cat([w_self, w_neigh])
            if grads is not None:
                w_self_grad, w_neigh_grad, bias_grad = grads.of_step(step)
                product = both.flatten(0, -2).t() @ x.flatten(0, -2)
                w_self_grad += product[: w_self.size(0)]
                w_neigh_grad += product[w_self.size(0) :]
                if bias_grad is not None:
                    bias_grad += r.flatten(0, -2).sum(0)
        return grad

    def _states_backwards(self, first: Tensor, activated: list[Tensor]) -> Iterator[Tensor]:
        """The states before each step, the last step first, from those before the first step."""

        def states(x: Tensor, additions: list[Tensor]) -> Iterator[Tensor]:
            yield x
            for t in additions:
                x = torch.add(x, t, alpha=self.epsilon)
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

    @classmethod
    def choose(
        cls,
        library: NativeLibrary,
        operator: SparseOperator,
        weights: Weights,
        epsilon: float,
        activation: KnownActivation,
    ) -> "NativeStepper":
        """Works block by block where the graph is many small ones, else step by step."""
        block_ptr = operator.pattern.block_ptr
        if block_ptr is not None:
            sets, channels, _ = weights.w_self.shape
            itemsize = weights.w_self.element_size()
            width = calls.padded_width(channels, weights.w_self.dtype)
            largest = int(block_ptr.diff().max()) if block_ptr.numel() > 1 else 0
            fits = (
                block_ptr.numel() > torch.get_num_threads()
                and 4 * largest * width * itemsize <= _BLOCK_BYTES
                and 2 * sets * channels * width * itemsize <= _WEIGHT_BYTES
            )
            block_ptr = calls.readable(block_ptr.long()) if fits else None
        return cls(operator, epsilon, activation, library, block_ptr)

    def forward(
        self, x: Tensor, weights: Weights, count: int, keep: bool
    ) -> tuple[Tensor, list[Tensor]]:
        """See `Stepper`."""
        problem = self._problem(weights, count, transposed=False)
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
            self._problem(weights, count, transposed=True),
            grad,
            (states, active, first),
            None if grads is None else (grads.w_self, grads.w_neigh, grads.bias),
        )

    def _problem(self, weights: Weights, count: int, *, transposed: bool) -> Integration:
        pattern = self.operator.pattern
        value = self.operator.transposed_value if transposed else self.operator.value
        return calls.integration(
            self.library,
            pattern.transposed if transposed else pattern.csr,
            calls.readable(value.detach()),
            weights.w_self,
            weights.w_neigh,
            weights.bias,
            self.block_ptr,
            self.epsilon,
            self.activation,
            count,
        )


def unsupported_reason(x: Tensor, operator: SparseOperator, weights: Weights) -> str | None:
    """Why the kernels cannot integrate this; `None` where they can."""
    if x.dim() != 2:
        return "states of more than two dimensions"
    return (
        calls.unsupported_reason(x, operator.value, *weights.tensors())
        or calls.unsupported_pattern_reason(operator.pattern.csr)
        or calls.unsupported_pattern_reason(operator.pattern.transposed)
    )
