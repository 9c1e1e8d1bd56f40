"""Explicit Runge-Kutta methods: each is a small table of coefficients, and one stepper serves all.

To add one, add its table to `INTEGRATORS`. The native kernels know forward Euler; all others run as
the plain loop of `adgn.nn.integration`.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from adgn._util.suggestions import unknown_name


@dataclass(frozen=True)
class Integrator:
    r"""The Butcher tableau of an explicit Runge-Kutta method with $s$ stages.

    Attributes:
        name: What it is called.
        order: $p$: halving the step size divides the error at a fixed time by $2^p$.
        a: $s$ rows; row $i$ has the $i$ weights of the stages before it (the first has none).
        b: The $s$ weights of the stages in the step.
    """

    name: str
    order: int
    a: tuple[tuple[float, ...], ...]
    b: tuple[float, ...]

    @property
    def c(self) -> tuple[float, ...]:
        """When each stage is evaluated, as a share of the step."""
        return tuple(float(sum(row)) for row in self.a)


EULER = Integrator("euler", order=1, a=((),), b=(1.0,))
INTEGRATORS = {table.name: table for table in (EULER,)}


def step(
    rate: Callable[[Tensor], Tensor], x: Tensor, epsilon: float, table: Integrator = EULER
) -> Tensor:
    r"""One step of size $\epsilon$ of $\dot{\mathbf{X}} = F(\mathbf{X})$.

    $$
    \mathbf{K}_i = F\Big(\mathbf{X} + \epsilon \sum_{j < i} a_{ij} \mathbf{K}_j\Big), \qquad
    \mathbf{X} \leftarrow \mathbf{X} + \epsilon \sum_i b_i \mathbf{K}_i
    $$

    Args:
        rate: The right-hand side $F$.
        x: The state.
        epsilon: The step size.
        table: The coefficients.

    Example:
        >>> import torch
        >>> step(lambda x: -x, torch.ones(1), 0.5)
        tensor([0.5000])
    """
    stages: list[Tensor] = []
    for row in table.a:
        stages.append(rate(_moved(x, epsilon, row, stages)))
    return _moved(x, epsilon, table.b, stages)


def resolve_integrator(integrator: str | Integrator) -> Integrator:
    """The table of a name; a table stays as it is.

    Example:
        >>> resolve_integrator("euler").order
        1
    """
    if isinstance(integrator, Integrator):
        return integrator
    if integrator not in INTEGRATORS:
        raise unknown_name("integrator", integrator, INTEGRATORS)
    return INTEGRATORS[integrator]


def _moved(x: Tensor, epsilon: float, weights: tuple[float, ...], stages: list[Tensor]) -> Tensor:
    for weight, stage in zip(weights, stages, strict=True):
        if weight:
            x = torch.add(x, stage, alpha=epsilon * weight)
    return x
