"""The implicit midpoint rule."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from adgn.nn.implicit import implicit_rate
from adgn.nn.integrators.base import ComplexArray, Fields, FloatArray, Integrator


@dataclass(frozen=True)
class ImplicitMidpoint(Integrator):
    r"""$\mathbf{X} \leftarrow \mathbf{X} + \epsilon \mathbf{K}$ with $\mathbf{K} = F(\mathbf{X} +
    \tfrac{\epsilon}{2} \mathbf{K})$, solved by fixed-point iteration, or by Newton's method with
    GMRES where that does not contract.

    It keeps quadratic invariants: of a linear field with an antisymmetric matrix, the norm. The
    gradient is that of the equation's solution, by the implicit function theorem.

    Attributes:
        tolerance: The residual of the equation, relative to the size of $\mathbf{K}$; `None`: 64
            times the precision of the numbers.
        most: The most rates that are taken for one step; where they do not suffice, an error says
            how far it came.
    """

    tolerance: float | None = None
    most: int = 500
    name: str = "implicit-midpoint"
    order: int = 2
    OPTIONS: ClassVar[tuple[str, ...]] = ("tolerance", "most")

    @property
    def cost(self) -> str:
        """Rates per step."""
        return "as many rates as the tolerance takes"

    def states(
        self, fields: Fields, x: Tensor, epsilon: float, first: int, last: int
    ) -> Iterator[Tensor]:
        """See `Integrator`."""
        tolerance = 64 * torch.finfo(x.dtype).eps if self.tolerance is None else self.tolerance
        for number in range(first, last):
            rate = implicit_rate(fields(number), x, epsilon / 2, tolerance, self.most)
            x = torch.add(x, rate, alpha=epsilon)
            yield x

    def amplification(self, z: ComplexArray) -> FloatArray:
        """See `Integrator`."""
        return np.abs((1 + z / 2) / (1 - z / 2))
