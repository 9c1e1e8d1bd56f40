"""When forward Euler is stable: |1 + ελ| for the eigenvalues λ of the right-hand side."""

import math

import torch
from torch import Tensor

from adgn.graph.checks import check_finite, check_positive
from adgn.nn.integrators import EULER

# Rounding of the eigenvalues must not decide whether a marginal case counts as stable.
TOLERANCE = 1e-9


def amplification(eigenvalues: Tensor, epsilon: float) -> Tensor:
    r"""$|1 + \epsilon \lambda|$: how much one Euler step stretches each eigenvector.

    Example:
        >>> amplification(torch.tensor([-2 + 0j, 1j]), 1.0)
        tensor([1.0000, 1.4142])
    """
    check_positive("epsilon", epsilon)
    grown, _ = EULER.step(lambda y: eigenvalues * y, torch.ones_like(eigenvalues), epsilon)
    return grown.abs()


def largest_stable_step(eigenvalues: Tensor) -> float:
    r"""The largest $\epsilon$ with $|1 + \epsilon\lambda| \le 1$ for all eigenvalues.

    $$
    \epsilon_{\max} = \min_{\lambda \ne 0} \frac{-2\, \mathrm{Re}\, \lambda}{|\lambda|^2}
    $$

    It is 0 where an eigenvalue other than zero has no negative real part (no step is stable), and
    infinite where all are zero.

    Example:
        >>> largest_stable_step(torch.tensor([-0.1 + 1j, -0.1 - 1j])) # 2 · 0.1 / 1.01
        0.198...
    """
    values = eigenvalues.detach().flatten().to(torch.complex128)
    check_finite("eigenvalues", torch.view_as_real(values))
    size = values.abs()
    values, size = values[size > TOLERANCE], size[size > TOLERANCE]
    if values.numel() == 0:
        return math.inf
    return max(0.0, float((-2 * values.real / size.square()).min()))


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
