"""Options that many models have, declared once; each model gives its own default."""

from typing import Annotated

from pydantic import Field

from adgn.graph import Direction, OperatorDirection
from adgn.nn.integrators import Integrator
from adgn.nn.steppers import Memory

StepSize = Annotated[float, Field(gt=0, allow_inf_nan=False, description="the step size ε")]
KeptMemory = Annotated[
    Memory, Field(description="what is kept for the gradient; `checkpoint` keeps far less")
]
AnyDirection = Annotated[
    Direction,
    Field(
        description="where a node listens: `in`, `out`, `undirected`, or `both` (weights for each "
        "direction)"
    ),
]
OneDirection = Annotated[
    OperatorDirection, Field(description="where a node listens: `in`, `out` or `undirected`")
]
AnyIntegrator = Annotated[
    str | Integrator, Field(description="how the differential equation is stepped, as for `adgn`")
]
BlockMLP = Annotated[
    str | None,
    Field(
        description="the activation of the MLP (linear, activation, linear) after the steps of "
        "each block; `None`: no MLP"
    ),
]
