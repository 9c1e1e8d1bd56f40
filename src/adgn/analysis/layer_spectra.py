"""Spectrum of one whole layer over the whole graph, exact or matrix-free."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigs
from torch import Tensor, nn

from adgn.analysis.node_spectra import antisymmetric_layers, is_antisymmetric
from adgn.analysis.states import check_layer, in_double, measuring, states_from
from adgn.graph import Adjacency
from adgn.graph.checks import check_choice, check_count, check_positive
from adgn.nn.integrators import EULER

Method = Literal["auto", "exact", "matrix-free"]
METHODS: tuple[Method, ...] = ("auto", "exact", "matrix-free")

# Nodes × channels up to which all eigenvalues are worked out: seconds and tens of megabytes.
EXACT_LIMIT = 1500


@dataclass(frozen=True, eq=False)
class LayerSpectrum:
    r"""Eigenvalues $\mu$ of $\partial\mathbf{X}(\ell) / \partial\mathbf{X}(\ell-1)$.

    Attributes:
        layer: The layer $\ell$, counted from 1.
        size: The size $N d$ of the Jacobian.
        method: `"exact"`: `eigenvalues` are all; `"matrix-free"`: the extreme ones that were asked
            for (largest modulus, largest and smallest real part).
        eigenvalues: Complex, by falling modulus.
        epsilon: The step size of an anti-symmetric layer by forward Euler, otherwise `None`.
        note: Why the matrix-free method was used where that was not asked for, or empty.
    """

    layer: int
    size: int
    method: Method
    eigenvalues: Tensor
    epsilon: float | None
    note: str = ""

    @property
    def spectral_radius(self) -> float:
        r"""The largest $|\mu|$."""
        return float(self.eigenvalues.abs().max())

    @property
    def max_real(self) -> float:
        r"""The largest real part of $\mu$."""
        return float(self.eigenvalues.real.max())

    @property
    def min_real(self) -> float:
        r"""The smallest real part of $\mu$."""
        return float(self.eigenvalues.real.min())

    @property
    def rates(self) -> Tensor | None:
        r"""$\lambda = (\mu - 1) / \epsilon$, those of the right-hand side; `None` without ε."""
        return None if self.epsilon is None else (self.eigenvalues - 1) / self.epsilon


def layer_spectrum(
    model: nn.Module,
    x: Tensor,
    edge_index: Adjacency,
    *,
    edge_weight: Tensor | None = None,
    layer: int = 1,
    method: Method = "auto",
    count: int = 6,
    tolerance: float = 1e-6,
    seed: int = 0,
) -> LayerSpectrum:
    r"""The spectrum of one discrete layer, all nodes and their interaction included.

    $$
    \mathbf{M} = \frac{\partial\, \mathrm{vec}\,\mathbf{X}(\ell)}
        {\partial\, \mathrm{vec}\,\mathbf{X}(\ell - 1)} \in \mathbb{R}^{Nd \times Nd}
    $$

    For an anti-symmetric layer $\mathbf{M} = \mathbf{I} + \epsilon\, \mathbf{S}\,(\mathbf{I}
    \otimes (\mathbf{W} - \mathbf{W}^\top - \gamma\mathbf{I}) + \mathbf{A} \otimes \mathbf{V})$.
    A perturbation dies out where all $|\mu| < 1$ and grows along an eigenvector with $|\mu| > 1$.

    `"exact"` builds $\mathbf{M}$ by $Nd$ vector-Jacobian products; `"matrix-free"` finds extreme
    eigenvalues by ARPACK from vector-Jacobian products alone ($\mathbf{M}^\top$ has the same
    eigenvalues); `"auto"` is exact up to $Nd = 1500$. All in double precision.

    Args:
        model: Any model whose states are known by layer, see
            [`layer_states`][adgn.analysis.layer_states].
        x: Features (for a bare layer: states), `[N, in_channels]`.
        edge_index: The graph.
        edge_weight: `[E]`, optional.
        layer: Which layer, counted from 1.
        method: `"auto"`, `"exact"` or `"matrix-free"`.
        count: How many eigenvalues of each kind the matrix-free method looks for.
        tolerance: The relative accuracy of the matrix-free eigenvalues.
        seed: For ARPACK's first vector.

    Example:
        >>> from adgn.nn import AntiSymmetricConv
        >>> conv = AntiSymmetricConv(2, phi="sum", gamma=0.0, epsilon=0.5, act=None)
        >>> with torch.no_grad():
        ...     _ = conv.W.copy_(torch.tensor([[0.0, 1.0], [0.0, 0.0]]))
        ...     _ = conv.phi.lin.weight.zero_()
        >>> spectrum = layer_spectrum(conv, torch.ones(2, 2), torch.tensor([[0, 1], [1, 0]]))
        >>> spectrum.method, round(spectrum.spectral_radius, 4)  # |1 ± 0.5 i|
        ('exact', 1.118)
    """
    check_choice("method", method, METHODS)
    check_count("count", count)
    check_positive("tolerance", tolerance)
    with measuring(model):
        propagation, states, graph, weight = in_double(model, x, edge_index, edge_weight)
        trajectory = states_from(propagation, states.requires_grad_(), graph, weight)
        check_layer(layer, len(trajectory) - 1)
        before, after = trajectory[layer - 1], trajectory[layer]
        if before.shape != after.shape:
            raise ValueError(
                f"layer {layer} maps {list(before.shape)} to {list(after.shape)}; eigenvalues need "
                "states of one size: choose another layer"
            )
        epsilon = None
        if is_antisymmetric(propagation):
            conv = antisymmetric_layers(propagation)[layer - 1]
            epsilon = conv.epsilon if conv.integrator == EULER else None
        size = before.numel()
        if method == "exact" and size > EXACT_LIMIT:
            raise ValueError(
                f"method='exact' with {before.size(0)} nodes × {before.size(1)} channels: "
                f"{_exact_cost(size)}; the limit is {EXACT_LIMIT}. Use method='matrix-free'"
            )
        large = method == "auto" and size > EXACT_LIMIT
        note = f"Extreme eigenvalues only: {_exact_cost(size)}." if large else ""
        if method == "auto":
            method = "matrix-free" if large else "exact"
        if method == "exact":
            found = torch.linalg.eigvals(dense_jacobian(before, after))
        else:
            found = _extreme_eigenvalues(before, after, count, tolerance, seed)
    found = found[found.abs().argsort(descending=True, stable=True)]
    return LayerSpectrum(layer, size, method, found, epsilon, note)


def dense_jacobian(before: Tensor, after: Tensor) -> Tensor:
    """`[after.numel(), before.numel()]`; one vector-Jacobian product for each row."""
    directions = torch.eye(after.numel(), dtype=after.dtype, device=after.device)
    rows = [pull_back(before, after, d.view_as(after)).flatten() for d in directions]
    return torch.stack(rows)


def pull_back(before: Tensor, after: Tensor, direction: Tensor) -> Tensor:
    """The vector-Jacobian product of `direction` (of `after`'s shape) with ∂after/∂before."""
    (gradient,) = torch.autograd.grad(
        after, before, direction, retain_graph=True, allow_unused=True, materialize_grads=True
    )
    return gradient


def _exact_cost(size: int) -> str:
    return (
        f"all eigenvalues of a matrix of size {size} would take {8 * size**2 / 1e9:,.2f} GB and "
        f"about {10 * size**3:.1e} operations"
    )


def _extreme_eigenvalues(
    before: Tensor, after: Tensor, count: int, tolerance: float, seed: int
) -> Tensor:
    size = before.numel()
    if size < count + 3:
        raise ValueError(
            f"method='matrix-free' finds at most {max(size - 3, 0)} eigenvalues of a matrix of "
            f"size {size}, but count={count}; use method='exact'"
        )

    def product(vector: Any) -> Any:
        direction = torch.as_tensor(np.ascontiguousarray(vector).reshape(-1)).to(after)
        return pull_back(before, after, direction.view_as(after)).flatten().cpu().numpy()

    operator = LinearOperator((size, size), matvec=product, dtype=np.float64)
    start = np.random.default_rng(seed).standard_normal(size)
    found = [_arpack(operator, which, count, tolerance, start) for which in ("LM", "LR", "SR")]
    return torch.as_tensor(np.unique(np.concatenate(found).round(12)))


class NotConvergedError(RuntimeError):
    """The eigenvalue solver gave up."""


def _arpack(operator: LinearOperator, which: str, count: int, tolerance: float, start: Any) -> Any:
    size = operator.shape[0]
    tried = 0
    # More basis vectors are what helps where eigenvalues crowd together.
    for basis in (max(4 * count, 40), max(12 * count, 120)):
        if tried == size:
            break
        tried = min(basis, size)
        try:
            settings = {"v0": start, "ncv": tried, "maxiter": 100, "tol": tolerance}
            return eigs(operator, count, which=which, return_eigenvectors=False, **settings)
        except ArpackNoConvergence as error:
            converged = len(error.eigenvalues)
    raise NotConvergedError(
        f"ARPACK found {converged} of {count} eigenvalues ({which}) of a matrix of size {size} "
        f"with {tried} basis vectors; ask for fewer with count=1, or for less accuracy with "
        f"tolerance={10 * tolerance:g}"
    )
