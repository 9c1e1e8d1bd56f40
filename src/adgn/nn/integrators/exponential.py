"""Exponential integrators: exact in the linear part of a node's own state."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from adgn.nn.integrators.base import ComplexArray, Fields, FloatArray, Integrator, VectorField


@dataclass(frozen=True)
class Exponential(Integrator):
    r"""Exponential time differencing: exact in $\mathbf{M}\mathbf{x}$, explicit in the rest.

    With $N(\mathbf{X}) = F(\mathbf{X}) - \mathbf{X}\mathbf{M}^\top$ and $\varphi_1(\mathbf{Z}) =
    \mathbf{Z}^{-1}(e^\mathbf{Z} - \mathbf{I})$, $\varphi_2(\mathbf{Z}) = \mathbf{Z}^{-1}
    (\varphi_1(\mathbf{Z}) - \mathbf{I})$, all at $\mathbf{Z} = \epsilon\mathbf{M}$:

    $$
    \mathbf{Y} = \mathbf{X}(e^\mathbf{Z})^\top + \epsilon N(\mathbf{X}) \varphi_1^\top, \qquad
    \mathbf{X} \leftarrow \mathbf{Y} \;\text{(order 1)}, \qquad \mathbf{X} \leftarrow \mathbf{Y} +
    \epsilon (N(\mathbf{Y}) - N(\mathbf{X})) \varphi_2^\top \;\text{(order 2)}
    $$

    The exponential is computed once where all steps share their weights. (Cox and Matthews, 2002)
    """

    name: str
    order: int

    @property
    def cost(self) -> str:
        """Rates per step."""
        rates = f"{self.order} rate{'s' if self.order > 1 else ''}"
        return f"{rates}, and the exponential of a [d, d] matrix once per set of weights"

    def states(
        self, fields: Fields, x: Tensor, epsilon: float, first: int, last: int
    ) -> Iterator[Tensor]:
        """See `Integrator`."""
        known: tuple[VectorField, Tensor, Tensor, Tensor] | None = None
        for number in range(first, last):
            rate = fields(number)
            if known is None or known[0].w_self is not rate.w_self:
                known = (rate, *_phi_functions(epsilon * rate.w_self))
            _, whole, one, two = known

            def rest(x: Tensor, rate: VectorField = rate) -> Tensor:
                return rate(x) - x @ rate.w_self.t()

            before = rest(x)
            x = x @ whole.t() + epsilon * (before @ one.t())
            if self.order > 1:
                x = x + epsilon * ((rest(x) - before) @ two.t())
            yield x

    def amplification(self, z: ComplexArray) -> FloatArray:
        """See `Integrator`; of the part that is exact."""
        return np.abs(np.exp(z))


def _phi_functions(z: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The exponential and the two functions, as blocks of the exponential of a larger matrix."""
    size = z.size(0)
    large = z.new_zeros(3 * size, 3 * size)
    one = torch.eye(size, dtype=z.dtype, device=z.device)
    large[:size, :size] = z
    large[:size, size : 2 * size] = one
    large[size : 2 * size, 2 * size :] = one
    blocks = torch.linalg.matrix_exp(large)[:size]
    return blocks[:, :size], blocks[:, size : 2 * size], blocks[:, 2 * size :]
