"""Equations with the unknown on both sides, and the gradients of their solutions."""

import math
from collections.abc import Callable

import torch
from torch import Tensor

_PATIENCE = 5  # iterations within which the residual must have become half as large
_DIRECTIONS = 40  # of GMRES, before it starts anew
_SHORTEST = 1e-3  # part of a step of Newton's method
_INNER = 1e-4  # how far GMRES reduces the residual in one step of Newton's method


def implicit_rate(
    rate: Callable[[Tensor], Tensor], x: Tensor, shift: float, tolerance: float, most: int
) -> Tensor:
    r"""The solution of $\mathbf{K} = F(\mathbf{X} + s \mathbf{K})$.

    Its gradient follows from the implicit function theorem: with $\mathbf{J}$ the Jacobian of $F$
    at the solution, a gradient $\mathbf{g}$ in $\mathbf{K}$ is $(\mathbf{I} - s
    \mathbf{J}^\top)^{-1} \mathbf{g}$ in $F$. It has no gradient of its own.

    Args:
        rate: $F$.
        x: The states.
        shift: $s$.
        tolerance: Of the residual, relative to the size of $\mathbf{K}$.
        most: The most evaluations of $F$ for one equation.

    Example:
        >>> half = implicit_rate(lambda x: -x, torch.ones(1).double(), 1.0, 1e-12, 100)
        >>> round(float(half), 9)
        -0.5
    """
    with torch.no_grad():
        found = _solve(lambda k: rate(x + shift * k), rate(x), tolerance, most)
    if not torch.is_grad_enabled():
        return found
    value = rate(x + shift * found)
    if not value.requires_grad:
        return found
    # The same on a graph of its own, through which a gradient in K is sent again and again.
    at = found.clone().requires_grad_()
    again = rate(x.detach() + shift * at)

    def through(gradient: Tensor | None) -> Tensor | None:
        if gradient is None:
            return None
        if torch.is_grad_enabled():
            raise RuntimeError(
                "integrator='implicit-midpoint' has first derivatives only; take another integrator"
            )

        def step(v: Tensor) -> Tensor:
            return gradient + torch.autograd.grad(again, at, v, retain_graph=True)[0]

        return _solve(step, gradient, tolerance, most, linear=True)

    value.register_hook(through)  # type: ignore[no-untyped-call]
    return value


def _solve(
    step: Callable[[Tensor], Tensor],
    start: Tensor,
    tolerance: float,
    most: int,
    *,
    linear: bool = False,
) -> Tensor:
    """The fixed point of `step`: by iteration while that contracts, else by Newton's method."""
    k, best, since = start, float("inf"), 0
    for taken in range(1, most + 1):
        new = step(k)
        residual, size = float((new - k).norm()), float(new.norm())
        if residual <= tolerance * max(size, float(k.norm())):
            return new
        k = new
        since = 0 if residual <= best / 2 else since + 1
        best = min(best, residual)
        if since >= _PATIENCE or not residual < float("inf"):
            return _newton(step, start, tolerance, most - taken, linear)
    raise _no_solution(residual / size, tolerance, most)


def _newton(
    step: Callable[[Tensor], Tensor], k: Tensor, tolerance: float, most: int, linear: bool
) -> Tensor:
    """The root of `k - step(k)`, by Newton's method without a Jacobian."""
    left, tried = most, k
    while True:
        new = step(k)
        residual = new - k
        size, norm = float(new.norm()), float(residual.norm())
        left -= 1
        if norm <= tolerance * max(size, float(k.norm())):
            return new
        if left <= 0 or not norm < float("inf"):
            raise _no_solution(norm / max(size, 1e-300), tolerance, most)

        def times(v: Tensor, k: Tensor = k, new: Tensor = new) -> Tensor:
            if linear:
                return v - (step(k + v) - new)
            width = math.sqrt(torch.finfo(k.dtype).eps) * (1 + float(k.norm())) / float(v.norm())
            return v - (step(k + width * v) - new) / width

        moved, used = _gmres(times, residual, _INNER, min(_DIRECTIONS, left))
        left -= used
        share = 1.0
        while share > _SHORTEST and left > 0:  # as far as it makes the residual smaller
            tried = torch.add(k, moved, alpha=share)
            left -= 1
            if float((step(tried) - tried).norm()) < (1 - share / 10) * norm:
                break
            share /= 2
        k = tried


def _gmres(
    times: Callable[[Tensor], Tensor], right: Tensor, tolerance: float, most: int
) -> tuple[Tensor, int]:
    """An approximate solution of `times(v) = right`, and how many products it took."""
    size = float(right.norm())
    basis = [right / size]
    table = torch.zeros(most + 1, most, dtype=torch.double)
    for column in range(most):
        new = times(basis[-1])
        for row, direction in enumerate(basis):
            table[row, column] = float((direction * new).sum())
            new = new - table[row, column].item() * direction
        table[column + 1, column] = float(new.norm())
        wanted = torch.zeros(column + 2, 1, dtype=torch.double)
        wanted[0] = size
        part = table[: column + 2, : column + 1]
        weights = torch.linalg.lstsq(part, wanted).solution
        rest = float((part @ weights - wanted).norm())
        if rest <= tolerance * size or float(table[column + 1, column]) <= 1e-14 * size:
            break
        basis.append(new / float(table[column + 1, column]))
    used = column + 1
    moved = torch.zeros_like(right)
    for weight, direction in zip(weights[:, 0].tolist(), basis, strict=False):
        moved = moved + weight * direction
    return moved, used


def _no_solution(reached: float, tolerance: float, most: int) -> ArithmeticError:
    return ArithmeticError(
        f"the equation of an implicit step has a relative residual of {reached:.1e} after {most} "
        f"rates, where tolerance={tolerance:.1e} was asked for; give a smaller epsilon, a larger "
        "tolerance, or more rates (`most`)"
    )
