r"""Integrators: how $\dot{\mathbf{X}} = F(\mathbf{X})$ is stepped.

Explicit Runge-Kutta and Adams-Bashforth methods add up rates: they are tables of numbers, which the
native kernels run as well as torch. Implicit midpoint, exponential and adaptive methods run in
torch. `INTEGRATORS` has them by name; a table or an object of your own serves as well.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from adgn._util.suggestions import unknown_name
from adgn.nn.integrators.adaptive import Adaptive, solvers
from adgn.nn.integrators.base import Fields, Integrator, Program, VectorField
from adgn.nn.integrators.explicit import (
    AB2,
    AB3,
    EULER,
    HEUN,
    RK3,
    RK4,
    AdamsBashforth,
    RungeKutta,
    moved,
)
from adgn.nn.integrators.exponential import Exponential
from adgn.nn.integrators.midpoint import ImplicitMidpoint

__all__ = [
    "EULER",
    "HEUN",
    "INTEGRATORS",
    "RK3",
    "RK4",
    "AdamsBashforth",
    "Adaptive",
    "Exponential",
    "Fields",
    "ImplicitMidpoint",
    "Integrator",
    "Program",
    "RungeKutta",
    "VectorField",
    "moved",
    "resolve_integrator",
    "solvers",
]

INTEGRATORS: dict[str, Integrator] = {
    integrator.name: integrator
    for integrator in (
        *(EULER, HEUN, RK3, RK4, AB2, AB3),
        ImplicitMidpoint(),
        Exponential("etd1", order=1),
        Exponential("etd2", order=2),
        Adaptive("dopri5", order=5, method="dopri5"),
        Adaptive("bosh3", order=3, method="bosh3"),
    )
}


def resolve_integrator(
    integrator: str | Integrator, options: Mapping[str, Any] | None = None
) -> Integrator:
    """The integrator of a name; an integrator stays as it is.

    Args:
        integrator: A name from `INTEGRATORS`, or an integrator.
        options: What to change about a named one, such as `{"rtol": 1e-8}`.

    Example:
        >>> resolve_integrator("rk4").order
        4
        >>> resolve_integrator("dopri5", {"rtol": 1e-8}).rtol
        1e-08
    """
    if isinstance(integrator, Integrator):
        if options:
            raise ValueError(
                f"integrator_options={dict(options)!r} was given together with an integrator that "
                "has its settings already; name one, or leave them out"
            )
        return integrator
    if integrator not in INTEGRATORS:
        raise unknown_name("integrator", integrator, INTEGRATORS)
    found = INTEGRATORS[integrator]
    if not options:
        return found
    for name in options:
        if name not in found.OPTIONS:
            raise ValueError(
                f"integrator_options={dict(options)!r}: integrator={integrator!r} has no option "
                f"{name!r}; it has {', '.join(found.OPTIONS) or 'none'}"
            )
    return replace(found, **options)  # type: ignore[type-var]
