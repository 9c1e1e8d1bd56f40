"""Integrators that choose their own steps, by torchdiffeq."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any, ClassVar

import torch
from torch import Tensor

from adgn.graph.checks import check_positive
from adgn.nn.integrators.base import Fields, Integrator, VectorField


@dataclass(frozen=True)
class Adaptive(Integrator):
    r"""A Runge-Kutta method that chooses its own steps, by torchdiffeq.

    Where all layers share their weights the whole time $L\epsilon$ is one problem; else each layer
    is one, of time $\epsilon$.

    Attributes:
        name: What it is called.
        order: Of the method.
        method: What torchdiffeq calls it.
        rtol: The relative tolerance of the error of a step.
        atol: The absolute one.
        adjoint: Gradients by integrating the adjoint equation back, with memory for one state, and
            equal to those of the discrete solution only up to the tolerance; `False`: through the
            steps that were taken.
    """

    name: str
    order: int
    method: str
    rtol: float = 1e-5
    atol: float = 1e-7
    adjoint: bool = False
    OPTIONS: ClassVar[tuple[str, ...]] = ("rtol", "atol", "adjoint")

    def __post_init__(self) -> None:
        check_positive("rtol", self.rtol)
        check_positive("atol", self.atol)

    @property
    def cost(self) -> str:
        """Rates per step."""
        return "as many rates as the tolerance takes"

    @torch.compiler.disable(reason="torchdiffeq looks at times")  # type: ignore[no-untyped-call, untyped-decorator]
    def advance(self, fields: Fields, x: Tensor, epsilon: float, first: int, last: int) -> Tensor:
        """See `Integrator`."""
        for rate, count in _runs(fields, first, last):
            x = self._solve(rate, x, [0.0, count * epsilon])[-1]
        return x

    def states(
        self, fields: Fields, x: Tensor, epsilon: float, first: int, last: int
    ) -> Iterator[Tensor]:
        """See `Integrator`; a step ends at each of them."""
        for rate, count in _runs(fields, first, last):
            path = self._solve(rate, x, [epsilon * number for number in range(count + 1)])
            yield from path[1:]
            x = path[-1]

    def _solve(self, rate: VectorField, x: Tensor, times: list[float]) -> Tensor:
        """The states at some times, at each of which a step ends: between steps they are worse."""
        odeint, odeint_adjoint = solvers()
        at = torch.tensor(times, dtype=torch.float64, device=x.device)
        settings: dict[str, Any] = {"method": self.method, "rtol": self.rtol, "atol": self.atol}
        settings["options"] = {"step_t": at[1:]}
        if self.adjoint:
            # The way back has its own times; it starts from the end, where a step ended.
            settings |= {"adjoint_params": rate.tensors(), "adjoint_options": {}}
        solve = odeint_adjoint if self.adjoint else odeint
        path: Tensor = solve(lambda _, states: rate(states), x, at, **settings)
        return path


def solvers() -> tuple[Callable[..., Tensor], Callable[..., Tensor]]:
    """torchdiffeq's `odeint` and `odeint_adjoint`; imported here, for that takes long.

    Its tables are tensors made by the import. Those made in inference mode could never serve a
    gradient again.
    """
    with torch.inference_mode(False):
        from torchdiffeq import odeint, odeint_adjoint
    return odeint, odeint_adjoint


def _runs(fields: Fields, first: int, last: int) -> Iterator[tuple[VectorField, int]]:
    """Fields, and for how many steps in a row each is the same."""
    numbers = range(first, last)
    for _, group in groupby(numbers, key=lambda number: id(fields(number))):
        same = list(group)
        yield fields(same[0]), len(same)
