r"""Integrators: how $\dot{\mathbf{X}} = F(\mathbf{X})$ is stepped.

Explicit Runge-Kutta and Adams-Bashforth methods add up rates: they are tables of numbers, which the
native kernels run as well as torch. Implicit midpoint, exponential and adaptive methods run in
torch. `INTEGRATORS` has them by name; a table or an object of your own serves as well.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from adgn._util.suggestions import unknown_name
from adgn.graph.checks import check_positive
from adgn.nn.base import Activation
from adgn.nn.implicit import implicit_rate

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
INTEGRATORS: dict[str, Integrator] = {
    integrator.name: integrator
    for integrator in (
        *(EULER, HEUN, RK3, RK4),
        AdamsBashforth("ab2", order=2, weights=(3 / 2, -1 / 2), start=HEUN),
        AdamsBashforth("ab3", order=3, weights=(23 / 12, -16 / 12, 5 / 12), start=RK3),
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
