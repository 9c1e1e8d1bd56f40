"""Growth of a small perturbation of the first states (stability in the sense of Lyapunov)."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from adgn.analysis.states import check_node, in_double, measuring, states_from
from adgn.graph import Adjacency
from adgn.graph.checks import check_count, check_positive


@dataclass(frozen=True, eq=False)
class PerturbationGrowth:
    r"""$\|\tilde{\mathbf{X}}(\ell) - \mathbf{X}(\ell)\|_F / \delta$ for $\ell = 0, \dots, L$.

    Attributes:
        growth: `[trials, L + 1]`; each row starts at 1.
        delta: The size of the perturbations.
    """

    growth: Tensor
    delta: float

    @property
    def by_layer(self) -> Tensor:
        """`[L + 1]`; the geometric mean over the trials."""
        return self.growth.log().mean(0).exp()

    @property
    def total(self) -> float:
        """The growth over all layers (geometric mean over the trials)."""
        return float(self.by_layer[-1])

    @property
    def per_layer(self) -> float:
        """The factor per layer that gives the total."""
        return float(self.total ** (1 / (self.growth.size(1) - 1)))


def perturbation_growth(
    model: nn.Module,
    x: Tensor,
    edge_index: Adjacency,
    *,
    delta: float = 1e-6,
    trials: int = 8,
    node: int | None = None,
    edge_weight: Tensor | None = None,
    seed: int = 0,
) -> PerturbationGrowth:
    r"""How a perturbation of size $\delta$ of the first states grows from layer to layer.

    The solution is stable if for each $\omega > 0$ there is a $\delta > 0$ such that
    $\|\tilde{\mathbf{X}}(0) - \mathbf{X}(0)\| \le \delta$ implies
    $\|\tilde{\mathbf{X}}(\ell) - \mathbf{X}(\ell)\| \le \omega$ at all layers (Definition 1
    of the paper). Measured is

    $$
    g(\ell) = \frac{\|\tilde{\mathbf{X}}(\ell) - \mathbf{X}(\ell)\|_F}{\delta}
    $$

    for random directions, in double precision: $g \approx 1$ keeps what was put in, a vanishing
    $g$ forgets it, a growing one amplifies noise as well.

    Args:
        model: Any model whose states are known by layer, see
            [`layer_states`][adgn.analysis.layer_states].
        x: Features (for a bare propagation: states), `[N, in_channels]`.
        edge_index: The graph.
        delta: The size $\delta$ of the perturbation, in the norm over all nodes.
        trials: How many random directions.
        node: Perturb only this node; by default all.
        edge_weight: `[E]`, optional.
        seed: For the directions.

    Example:
        >>> from adgn.nn import ADGN
        >>> path = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
        >>> result = perturbation_growth(ADGN(4, 8, 1, num_layers=20), torch.ones(3, 4), path)
        >>> result.by_layer.shape, 0.2 < result.total < 10
        (torch.Size([21]), True)
    """
    check_positive("delta", delta)
    check_count("trials", trials)
    with measuring(model), torch.no_grad():
        propagation, start, graph, weight = in_double(model, x, edge_index, edge_weight)
        if node is not None:
            check_node(node, start.size(0))
        plain = states_from(propagation, start, graph, weight)
        generator = torch.Generator().manual_seed(seed)
        growth = []
        for _ in range(trials):
            shape = start.shape if node is None else start.shape[1:]
            noise = torch.randn(shape, generator=generator, dtype=torch.float64).to(start.device)
            moved = start.clone()
            moved[slice(None) if node is None else node] += noise * (delta / noise.norm())
            perturbed = states_from(propagation, moved, graph, weight)
            moves = [(b - a).norm() for a, b in zip(plain, perturbed, strict=True)]
            # By what enters the first layer; that is nothing where rounding loses the perturbation.
            entered = moves[0] if moves[0] > 0 else delta
            growth.append(torch.stack(moves) / entered)
    return PerturbationGrowth(torch.stack(growth), delta)
