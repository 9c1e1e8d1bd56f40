"""What an integrator is, and the right-hand side that it steps."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from adgn.nn.base import Activation

ComplexArray = npt.NDArray[np.complex128]
FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class VectorField:
    r"""$F(\mathbf{X}) = \sigma(\mathbf{X} \mathbf{M}^\top + \Phi(\mathbf{X}) + \mathbf{b})$, the
    right-hand side of $\dot{\mathbf{X}} = F(\mathbf{X})$ on one graph.

    Attributes:
        w_self: $\mathbf{M} = \mathbf{W} - \mathbf{W}^\top - \gamma \mathbf{I}$, `[d, d]`.
        phi: The aggregation $\Phi$ on this graph, from states to states.
        bias: $\mathbf{b}$, `[d]`, or `None`.
        act: $\sigma$; `None` is the identity.
        learned: Other tensors that it is differentiated in, for adjoint methods.

    Example:
        >>> rotation = torch.tensor([[0.0, 1.0], [-1.0, 0.0]])
        >>> VectorField(rotation, torch.zeros_like, None, None)(torch.tensor([[1.0, 0.0]]))
        tensor([[ 0., -1.]])
    """

    w_self: Tensor
    phi: Callable[[Tensor], Tensor]
    bias: Tensor | None
    act: Activation | None
    learned: tuple[Tensor, ...] = ()

    def __call__(self, x: Tensor) -> Tensor:
        """The rate of change of the states `[..., N, d]`."""
        h = self.pre_activation(x)
        return h if self.act is None else self.act(h)

    def pre_activation(self, x: Tensor) -> Tensor:
        """What the activation is applied to."""
        h = x @ self.w_self.t() + self.phi(x)
        return h if self.bias is None else h + self.bias

    def tensors(self) -> tuple[Tensor, ...]:
        """All that it is differentiated in besides the states."""
        own = [self.w_self, *([] if self.bias is None else [self.bias]), *self.learned]
        return tuple(tensor for tensor in own if tensor.requires_grad)


# The right-hand side of each step, by its number: steps may have weights of their own.
Fields = Callable[[int], VectorField]


class Program(NamedTuple):
    """Steps as sums of rates: what the native kernels run.

    Attributes:
        factors: `[rates, history]`, double. Rate `e` is taken where the one before it led to. It
            leads to the states before the step plus the sum of `factors[e, h]` times rate `e - h`.
        ends_step: `[rates]`, bytes: whether what it leads to is the start of the next step.
    """

    factors: Tensor
    ends_step: Tensor

    @classmethod
    def of(cls, rows: list[tuple[list[float], bool]]) -> "Program":
        """From rows of factors, the newest rate first, and whether each ends a step."""
        history = max(len(row) for row, _ in rows)
        factors = torch.zeros(len(rows), history, dtype=torch.double)
        for number, (row, _) in enumerate(rows):
            factors[number, : len(row)] = torch.tensor(row, dtype=torch.double)
        return cls(factors, torch.tensor([ends for _, ends in rows], dtype=torch.uint8))


class Integrator(ABC):
    """A way to step a differential equation.

    Attributes:
        name: What it is called.
        order: $p$: halving the step size divides the error at a fixed time by $2^p$.
        one_step: Whether a step needs nothing of the steps before it; then steps can be computed
            again from the states between them, which `memory="checkpoint"` does.
        adds_rates: Whether steps are sums of rates, as `program` gives them.
    """

    name: str
    order: int
    one_step: ClassVar[bool] = True
    adds_rates: ClassVar[bool] = False
    OPTIONS: ClassVar[tuple[str, ...]] = ()  # the fields that users set by name

    @property
    @abstractmethod
    def cost(self) -> str:
        """What a step costs, in words."""

    @abstractmethod
    def states(
        self, fields: Fields, x: Tensor, epsilon: float, first: int, last: int
    ) -> Iterator[Tensor]:
        r"""The states after each of the steps `first` to `last - 1` of size $\epsilon$."""

    def advance(self, fields: Fields, x: Tensor, epsilon: float, first: int, last: int) -> Tensor:
        r"""The states after the steps `first` to `last - 1` of size $\epsilon$.

        Example:
            >>> from adgn.nn.integrators import EULER
            >>> decay = VectorField(-torch.eye(1), torch.zeros_like, None, None)
            >>> EULER.advance(lambda step: decay, torch.ones(1, 1), 0.5, 0, 2)
            tensor([[0.2500]])
        """
        for state in self.states(fields, x, epsilon, first, last):
            x = state
        return x

    def program(self, count: int, epsilon: float) -> Program:
        """`count` steps as sums of rates, where that is all they are."""
        raise NotImplementedError(f"integrator={self.name!r} does more than to add up rates")

    def amplification(self, z: ComplexArray) -> FloatArray:
        r"""By how much a step multiplies $x$ for $\dot{x} = \lambda x$, $z = \epsilon\lambda$.

        For several steps at once, the largest growth per step. The step is stable where it is at
        most 1.
        """
        raise NotImplementedError(f"integrator={self.name!r} has no region of stability")
