"""Explicit integrators: tables of numbers, which the native kernels run as well as torch."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from adgn.nn.integrators.base import ComplexArray, Fields, FloatArray, Integrator, Program


@dataclass(frozen=True)
class RungeKutta(Integrator):
    r"""An explicit Runge-Kutta method with $s$ stages, by its Butcher tableau.

    $$
    \mathbf{K}_i = F\Big(\mathbf{X} + \epsilon \sum_{j < i} a_{ij} \mathbf{K}_j\Big), \qquad
    \mathbf{X} \leftarrow \mathbf{X} + \epsilon \sum_i b_i \mathbf{K}_i
    $$

    Attributes:
        name: What it is called.
        order: See `Integrator`.
        a: $s$ rows; row $i$ has the $i$ weights of the stages before it (the first has none).
        b: The $s$ weights of the stages in the step.

    Example:
        >>> RungeKutta("ralston", order=2, a=((), (2 / 3,)), b=(1 / 4, 3 / 4)).cost
        '2 rates'
    """

    name: str
    order: int
    a: tuple[tuple[float, ...], ...]
    b: tuple[float, ...]
    adds_rates: ClassVar[bool] = True

    def __post_init__(self) -> None:
        shape = [len(row) for row in self.a]
        if shape != list(range(len(self.b))) or not self.b:
            raise ValueError(
                f"the table of integrator={self.name!r} is not valid: a has rows of {shape} "
                f"numbers; for {len(self.b)} weights b give rows of 0, 1, … numbers"
            )

    @property
    def cost(self) -> str:
        """Rates per step."""
        return f"{len(self.b)} rate{'s' if len(self.b) > 1 else ''}"

    def states(
        self, fields: Fields, x: Tensor, epsilon: float, first: int, last: int
    ) -> Iterator[Tensor]:
        """See `Integrator`."""
        for number in range(first, last):
            x = self.step(fields(number), x, epsilon)[0]
            yield x

    def step(
        self, rate: Callable[[Tensor], Tensor], x: Tensor, epsilon: float
    ) -> tuple[Tensor, Tensor]:
        """The states after a step, and the rate before it."""
        stages: list[Tensor] = []
        for row in self.a:
            stages.append(rate(moved(x, epsilon, row, stages)))
        return moved(x, epsilon, self.b, stages), stages[0]

    def program(self, count: int, epsilon: float) -> Program:
        """See `Integrator`."""
        return Program.of(self.rows(epsilon) * count)

    def rows(self, epsilon: float) -> list[tuple[list[float], bool]]:
        """The rows of one step, as `Program.of` takes them."""
        leads_to = [*self.a[1:], self.b]  # what a rate leads to: the next stage, or the step
        return [
            ([epsilon * weight for weight in reversed(row)], number == len(leads_to) - 1)
            for number, row in enumerate(leads_to)
        ]

    def amplification(self, z: ComplexArray) -> FloatArray:
        """See `Integrator`."""
        stages: list[ComplexArray] = []
        for row in self.a:
            stages.append(1 + z * sum((w * k for w, k in zip(row, stages, strict=True)), 0 * z))
        total = 1 + z * sum((w * k for w, k in zip(self.b, stages, strict=True)), 0 * z)
        return np.abs(total)


@dataclass(frozen=True)
class AdamsBashforth(Integrator):
    r"""An explicit multi-step method: one rate per step, and those of the steps before.

    $$
    \mathbf{X}_{n+1} = \mathbf{X}_n + \epsilon \sum_{j=0}^{p-1} w_j\, F(\mathbf{X}_{n-j})
    $$

    The first $p - 1$ steps are of a Runge-Kutta method of the same order. Where steps have weights
    of their own, a rate of an earlier step is one of that step's weights; the equation then jumps
    between steps, and the order is lost.
    """

    name: str
    order: int
    weights: tuple[float, ...]
    start: RungeKutta
    one_step: ClassVar[bool] = False
    adds_rates: ClassVar[bool] = True

    @property
    def cost(self) -> str:
        """Rates per step."""
        return "1 rate"

    def states(
        self, fields: Fields, x: Tensor, epsilon: float, first: int, last: int
    ) -> Iterator[Tensor]:
        """See `Integrator`; the first step here is the first of all."""
        rates: list[Tensor] = []
        for number in range(first, last):
            if len(rates) < self.order - 1:
                x, rate = self.start.step(fields(number), x, epsilon)
                rates.insert(0, rate)
            else:
                rates.insert(0, fields(number)(x))
                x = moved(x, epsilon, self.weights, rates)
                rates.pop()
            yield x

    def program(self, count: int, epsilon: float) -> Program:
        """See `Integrator`."""
        rows: list[tuple[list[float], bool]] = []
        first_rates: list[int] = []  # the number of the rate at the start of each step
        for step in range(count):
            first_rates.append(len(rows))
            if step < self.order - 1:
                rows += self.start.rows(epsilon)
                continue
            row = [0.0] * (len(rows) - first_rates[step - self.order + 1] + 1)
            for back, weight in enumerate(self.weights):
                row[len(rows) - first_rates[step - back]] = epsilon * weight
            rows.append((row, True))
        return Program.of(rows)

    def amplification(self, z: ComplexArray) -> FloatArray:
        """See `Integrator`: the largest root of the characteristic polynomial."""
        flat = np.asarray(z, dtype=np.complex128).ravel()
        companion = np.zeros((len(flat), self.order, self.order), dtype=np.complex128)
        companion[:, 0, :] = flat[:, None] * np.array(self.weights)
        companion[:, 0, 0] += 1
        companion[:, np.arange(1, self.order), np.arange(self.order - 1)] = 1
        roots: FloatArray = np.abs(np.linalg.eigvals(companion)).max(axis=1)
        return roots.reshape(np.shape(z))


def moved(x: Tensor, epsilon: float, weights: tuple[float, ...], stages: list[Tensor]) -> Tensor:
    """`x` plus `epsilon` times the weighed sum of the stages.

    Example:
        >>> moved(torch.ones(1), 0.5, (2.0, 0.0), [torch.ones(1), torch.ones(1)])
        tensor([2.])
    """
    for weight, stage in zip(weights, stages, strict=True):
        if weight:
            x = torch.add(x, stage, alpha=epsilon * weight)
    return x


EULER = RungeKutta("euler", order=1, a=((),), b=(1.0,))
HEUN = RungeKutta("heun", order=2, a=((), (1.0,)), b=(0.5, 0.5))
RK3 = RungeKutta("rk3", order=3, a=((), (0.5,), (-1.0, 2.0)), b=(1 / 6, 2 / 3, 1 / 6))
RK4 = RungeKutta(
    "rk4",
    order=4,
    a=((), (0.5,), (0.0, 0.5), (0.0, 0.0, 1.0)),
    b=(1 / 6, 1 / 3, 1 / 3, 1 / 6),
)
AB2 = AdamsBashforth("ab2", order=2, weights=(3 / 2, -1 / 2), start=HEUN)
AB3 = AdamsBashforth("ab3", order=3, weights=(23 / 12, -16 / 12, 5 / 12), start=RK3)
