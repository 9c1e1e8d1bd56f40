"""Some Euler steps forward, and back again: by torch, and by the native kernels.

Both keep, per step, one number per entry of the states. For tanh that is what the activation
returned, t: its slope is 1 − t², and the states before a step are found from the first ones by
adding ε t for each step between, as the forward pass did: they are the same to the last bit. (From
the last states back, x − ε t would leave few digits of small x.) The caller begins afresh every
`WALK` steps; in between, some states are noted when the additions are made for the last step, so
that those before the other steps are few additions away. For the other activations the states are
kept themselves (and for relu, where it was active).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Literal, Protocol

import torch
from torch import Tensor

from adgn.graph import SparseOperator
from adgn.graph.kernels import multiply_transposed
from adgn.graph.native import calls
from adgn.graph.native.library import NativeLibrary
from adgn.nn.segments import root, segments

KnownActivation = Literal["identity", "tanh", "relu"]
WALK = 16

# Blocks whose states take more than this (in bytes, four arrays of them) leave the second-level
# cache; so do weights and their gradients.
_BLOCK_BYTES = 2**20
_WEIGHT_BYTES = 2**18


@dataclass(frozen=True)
class Weights:
    """The weights of all steps: `[K, d, d]` (twice) and `[K, d]`; K is 1 or the number of steps."""

    own: Tensor
    neighbour: Tensor
    bias: Tensor | None

    def of_steps(self, first: int, last: int) -> "Weights":
        """Those of the steps `first` to `last - 1`."""
        if self.own.size(0) == 1:
            return self
        bias = None if self.bias is None else self.bias[first:last]
        return Weights(self.own[first:last], self.neighbour[first:last], bias)

    def zeros(self) -> "Weights":
        """Zeros of the same shapes."""
        bias = None if self.bias is None else torch.zeros_like(self.bias)
        return Weights(torch.zeros_like(self.own), torch.zeros_like(self.neighbour), bias)


class Stepper(Protocol):
    """Runs steps forward and back; `kept` is what forward hands to backward."""

    def forward(
        self, x: Tensor, weights: Weights, count: int, keep: bool
    ) -> tuple[Tensor, list[Tensor]]:
        """The states after `count` steps, and what `backward` will need (if `keep`)."""

    def backward(
        self, grad: Tensor, weights: Weights, count: int, kept: list[Tensor], sums: Weights | None
    ) -> Tensor:
        """The gradient in the first states; those in the weights are added to `sums`."""


@dataclass(frozen=True)
class TorchStepper:
    """The steps in torch's operations, on any device."""

    operator: SparseOperator
    epsilon: float
    activation: KnownActivation

    def forward(
        self, x: Tensor, weights: Weights, count: int, keep: bool
    ) -> tuple[Tensor, list[Tensor]]:
        """See `Stepper`."""
        kept = [x] if keep and self.activation == "tanh" else []
        for step in range(count):
            own, neighbour, bias = _at(weights, step)
            t, sent = (x @ torch.cat([own, neighbour]).t()).tensor_split((own.size(0),), dim=-1)
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
        self, grad: Tensor, weights: Weights, count: int, kept: list[Tensor], sums: Weights | None
    ) -> Tensor:
        """See `Stepper`."""
        if self.activation == "tanh":
            first, *activated = kept
            before = self._states_backwards(first, activated)
        for step in reversed(range(count)):
            own, neighbour, _ = _at(weights, step)
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
            grad = grad + both @ torch.cat([own, neighbour])
            if sums is not None:
                own_sum, neighbour_sum, bias_sum = _at(sums, step)
                product = both.flatten(0, -2).t() @ x.flatten(0, -2)
                own_sum += product[: own.size(0)]
                neighbour_sum += product[own.size(0) :]
                if bias_sum is not None:
                    bias_sum += r.flatten(0, -2).sum(0)
        return grad

    def _states_backwards(self, first: Tensor, activated: list[Tensor]) -> Iterator[Tensor]:
        """The states before each step, the last step first, from those before the first step."""

        def states(x: Tensor, additions: list[Tensor]) -> Iterator[Tensor]:
            yield x
            for t in additions:
                x = torch.add(x, t, alpha=self.epsilon)
                yield x

        between = root(len(activated))
        marks = list(islice(states(first, activated[:-1]), 0, None, between))
        for begin, end in reversed(segments(len(activated), between)):
            yield from reversed(list(states(marks.pop(), activated[begin : end - 1])))


@dataclass(frozen=True)
class NativeStepper:
    """The steps in the native kernels: CPU, states `[N, d]`."""

    library: NativeLibrary
    operator: SparseOperator
    epsilon: float
    activation: KnownActivation
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
            sets, channels, _ = weights.own.shape
            itemsize = weights.own.element_size()
            width = calls.padded_width(channels, weights.own.dtype)
            largest = int(block_ptr.diff().max()) if block_ptr.numel() > 1 else 0
            if (
                block_ptr.numel() <= torch.get_num_threads()
                or 4 * largest * width * itemsize > _BLOCK_BYTES
                or 2 * sets * channels * width * itemsize > _WEIGHT_BYTES
            ):
                block_ptr = None
            else:
                block_ptr = calls.readable(block_ptr.long())
        return cls(library, operator, epsilon, activation, block_ptr)

    def forward(
        self, x: Tensor, weights: Weights, count: int, keep: bool
    ) -> tuple[Tensor, list[Tensor]]:
        """See `Stepper`."""
        steps = self._steps(weights, count, transposed=False)
        last, states, active = calls.forward(self.library, steps, x, keep)
        first = x if keep and self.activation == "tanh" else None
        return last, [tensor for tensor in (states, active, first) if tensor is not None]

    def backward(
        self, grad: Tensor, weights: Weights, count: int, kept: list[Tensor], sums: Weights | None
    ) -> Tensor:
        """See `Stepper`."""
        states, *other = kept
        active = other[0] if self.activation == "relu" else None
        first = other[0] if self.activation == "tanh" else None
        return calls.backward(
            self.library,
            self._steps(weights, count, transposed=True),
            grad,
            (states, active, first),
            None if sums is None else (sums.own, sums.neighbour, sums.bias),
        )

    def _steps(self, weights: Weights, count: int, *, transposed: bool) -> calls.Steps:
        pattern = self.operator.pattern
        value = self.operator.transposed_value if transposed else self.operator.value
        return calls.Steps(
            csr=pattern.transposed if transposed else pattern.csr,
            value=calls.readable(value.detach()),
            own=weights.own,
            neighbour=weights.neighbour,
            bias=weights.bias,
            block_ptr=self.block_ptr,
            epsilon=self.epsilon,
            activation=self.activation,
            count=count,
        )


def _at(weights: Weights, step: int) -> tuple[Tensor, Tensor, Tensor | None]:
    """The weights of one step."""
    which = 0 if weights.own.size(0) == 1 else step
    bias = None if weights.bias is None else weights.bias[which]
    return weights.own[which], weights.neighbour[which], bias
