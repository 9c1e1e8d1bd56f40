"""The vector field of an anti-symmetric layer, and the explicit Runge-Kutta methods that step it.

An integrator is a small table of coefficients, and one stepper serves all: to add one, add its
table to `INTEGRATORS`. The native kernels know forward Euler; all others run as the plain loop of
`adgn.nn.integration`.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from adgn._util.suggestions import unknown_name
from adgn.nn.base import Activation


@dataclass(frozen=True, eq=False)
class VectorField:
    r"""$F(\mathbf{X}) = \sigma(\mathbf{X} \mathbf{M}^\top + \Phi(\mathbf{X}) + \mathbf{b})$, the
    right-hand side of $\dot{\mathbf{X}} = F(\mathbf{X})$ on one graph.

    Attributes:
        w_self: $\mathbf{M} = \mathbf{W} - \mathbf{W}^\top - \gamma \mathbf{I}$, `[d, d]`.
        phi: The aggregation $\Phi$ on this graph, from states to states.
        bias: $\mathbf{b}$, `[d]`, or `None`.
        act: $\sigma$; `None` is the identity.

    Example:
        >>> rotation = torch.tensor([[0.0, 1.0], [-1.0, 0.0]])
        >>> VectorField(rotation, torch.zeros_like, None, None)(torch.tensor([[1.0, 0.0]]))
        tensor([[ 0., -1.]])
    """

    w_self: Tensor
    phi: Callable[[Tensor], Tensor]
    bias: Tensor | None
    act: Activation | None

    def __call__(self, x: Tensor) -> Tensor:
        """The rate of change of the states `[..., N, d]`."""
        h = self.pre_activation(x)
        return h if self.act is None else self.act(h)

    def pre_activation(self, x: Tensor) -> Tensor:
        """What the activation is applied to."""
        h = x @ self.w_self.t() + self.phi(x)
        return h if self.bias is None else h + self.bias


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
        >>> step(lambda x: -x, torch.ones(1), 0.5)
        tensor([0.5000])
    """
    stages: list[Tensor] = []
    for row in table.a:
        stages.append(rate(_moved(x, epsilon, row, stages)))
    return _moved(x, epsilon, table.b, stages)


def _moved(x: Tensor, epsilon: float, weights: tuple[float, ...], stages: list[Tensor]) -> Tensor:
    for weight, stage in zip(weights, stages, strict=True):
        if weight:
            x = torch.add(x, stage, alpha=epsilon * weight)
    return x


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
