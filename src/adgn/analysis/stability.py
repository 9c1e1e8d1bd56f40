"""When a step is stable: by how much it stretches the eigenvectors of the right-hand side."""

import math

import torch
from torch import Tensor

from adgn.graph.checks import check_finite, check_positive
from adgn.nn.integrators import EULER, Integrator, resolve_integrator

# Rounding of the eigenvalues must not decide whether a marginal case counts as stable.
TOLERANCE = 1e-9
# Steps are looked at from 1 / this to this many times the time scale of the fastest eigenvalue.
_RANGE = 1e3
_SAMPLES = 2000


def amplification(
    eigenvalues: Tensor, epsilon: float, integrator: str | Integrator = EULER
) -> Tensor:
    r"""$|R(\epsilon\lambda)|$: how much one step stretches each eigenvector.

    For forward Euler it is $|1 + \epsilon \lambda|$; for multi-step methods the largest growth
    per step.

    Example:
        >>> amplification(torch.tensor([-2 + 0j, 1j]), 1.0)
        tensor([1.0000, 1.4142])
        >>> amplification(torch.tensor([-2 + 0j, 1j]), 1.0, "rk4")
        tensor([0.3333, 0.9939])
    """
    check_positive("epsilon", epsilon)
    values = (epsilon * eigenvalues.detach()).cpu().to(torch.complex128).numpy()
    grown = torch.from_numpy(resolve_integrator(integrator).amplification(values))
    return grown.to(eigenvalues.real.dtype).to(eigenvalues.device)


def largest_stable_step(eigenvalues: Tensor, integrator: str | Integrator = EULER) -> float:
    r"""The largest $\epsilon$ such that no step up to it stretches an eigenvector.

    For forward Euler

    $$
    \epsilon_{\max} = \min_{\lambda \ne 0} \frac{-2\, \mathrm{Re}\, \lambda}{|\lambda|^2}.
    $$

    For others it is found by search, to about 1 ‰. It is 0 where no step is stable, and infinite
    where all are (up to a thousand times the time scale of the fastest eigenvalue).

    Example:
        >>> largest_stable_step(torch.tensor([-0.1 + 1j, -0.1 - 1j])) # 2 · 0.1 / 1.01
        0.198...
        >>> round(largest_stable_step(torch.tensor([1j, -1j]), "rk4"), 3)  # √8
        2.828
    """
    scheme = resolve_integrator(integrator)
    values = eigenvalues.detach().flatten().to(torch.complex128)
    check_finite("eigenvalues", torch.view_as_real(values))
    size = values.abs()
    values, size = values[size > TOLERANCE], size[size > TOLERANCE]
    if values.numel() == 0:
        return math.inf
    if scheme == EULER:
        return max(0.0, float((-2 * values.real / size.square()).min()))

    def stable(epsilon: float) -> bool:
        return bool((amplification(values, epsilon, scheme) <= 1 + TOLERANCE).all())

    scale = 1 / float(size.max())
    steps = torch.logspace(-math.log10(_RANGE), math.log10(_RANGE), _SAMPLES, dtype=torch.float64)
    low = 0.0
    for high in (steps * scale).tolist():
        if not stable(high):
            break
        low = high
    else:
        return math.inf
    if low == 0.0:
        return 0.0
    while high - low > 1e-4 * low:
        middle = (low + high) / 2
        low, high = (middle, high) if stable(middle) else (low, middle)
    return low


def smallest_stable_gamma(eigenvalues: Tensor, epsilon: float) -> float | None:
    r"""The smallest $\gamma \ge 0$ that makes $|1 + \epsilon(\lambda - \gamma)| \le 1$.

    $$
    \gamma_{\min} = \max_\lambda \left( \mathrm{Re}\,\lambda
        + \frac{1 - \sqrt{1 - \epsilon^2\, (\mathrm{Im}\,\lambda)^2}}{\epsilon} \right)
    $$

    for eigenvalues at $\gamma = 0$ that $\gamma$ shifts as they are, which is so for
    $\sigma' = 1$. `None` where no $\gamma$ does it, because $\epsilon\,|\mathrm{Im}\,\lambda| > 1$
    for some eigenvalue, or because the most damped one would overshoot.

    Example:
        >>> smallest_stable_gamma(torch.tensor([1j, -1j]), 0.1)
        0.0501...
        >>> smallest_stable_gamma(torch.tensor([1j, -1j]), 2.0) is None
        True
    """
    check_positive("epsilon", epsilon)
    values = eigenvalues.detach().flatten().to(torch.complex128)
    check_finite("eigenvalues", torch.view_as_real(values))
    rest = 1 - (epsilon * values.imag).square()
    if values.numel() == 0:
        return 0.0
    if bool((rest < 0).any()):
        return None
    root = rest.sqrt()
    low = float((values.real + (1 - root) / epsilon).max())
    high = float((values.real + (1 + root) / epsilon).min())
    low = max(0.0, low)
    return low if low <= high else None
