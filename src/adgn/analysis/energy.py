"""Dirichlet energy by layer: do the states of neighbours become the same?"""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from adgn.analysis.states import layer_states
from adgn.graph import Adjacency, graph_operator
from adgn.graph.checks import check_choice, check_features

Scaling = Literal["none", "degree"]
SCALINGS: tuple[Scaling, ...] = ("none", "degree")
_GATHER_LIMIT = 2**24


@dataclass(frozen=True, eq=False)
class EnergyByLayer:
    r"""Dirichlet energy of the states after $\ell = 0, \dots, L$ layers.

    Attributes:
        energy: `[L + 1]`; $E(\mathbf{X}(\ell))$.
        relative: `[L + 1]`; the energy over the states' mean square norm, which
            multiplying all states by a number does not change. Near zero: neighbours look alike.
    """

    energy: Tensor
    relative: Tensor


def dirichlet_energy(
    x: Tensor,
    edge_index: Adjacency,
    edge_weight: Tensor | None = None,
    *,
    scaling: Scaling = "none",
) -> float:
    r"""The Dirichlet energy of states on a graph, per node.

    $$
    E(\mathbf{X}) = \frac{1}{2N} \sum_{(j, u) \in \mathcal{E}} a_{uj}
        \left\| \frac{\mathbf{x}_u}{s_u} - \frac{\mathbf{x}_j}{s_j} \right\|^2
    $$

    with $s = 1$, or with $s_u = \sqrt{1 + d_u}$ for `scaling="degree"`, the form that
    graph convolutional networks drive to zero. It is zero exactly where all (scaled) states
    of a connected graph are the same.

    Args:
        x: States, `[N, d]`.
        edge_index: The graph; an undirected edge is there in both directions and counts once.
        edge_weight: `[E]`, optional.
        scaling: `"none"` or `"degree"`.

    Example:
        >>> edge = torch.tensor([[0, 1], [1, 0]])
        >>> dirichlet_energy(torch.tensor([[0.0], [2.0]]), edge)  # (2 − 0)² / 2 nodes
        2.0
    """
    check_features(x)
    check_choice("scaling", scaling, SCALINGS)
    x = x.detach().double()
    weight = None if edge_weight is None else edge_weight.detach()
    operator = graph_operator(edge_index, weight, num_nodes=x.size(-2))
    csr, value = operator.pattern.csr, operator.value.detach().to(x)
    if scaling == "degree":
        degree = x.new_zeros(x.size(0)).index_add(0, csr.row.long(), value)
        if bool((degree <= -1).any()):
            raise ValueError("scaling='degree' needs degrees above -1; use scaling='none'")
        x = x / (1 + degree).sqrt().unsqueeze(-1)
    # Differences before squares: the expanded form would cancel just where states are alike.
    step = max(1, _GATHER_LIMIT // max(1, x.size(-1)))
    total = x.new_zeros(())
    pieces = (torch.split(entries, step) for entries in (csr.row, csr.col, value))
    for row, col, weight in zip(*pieces, strict=True):
        total += (weight * (x[row.long()] - x[col.long()]).square().sum(-1)).sum()
    return float(total) / (2 * max(1, x.size(0)))


def energy_by_layer(
    model: nn.Module,
    x: Tensor,
    edge_index: Adjacency,
    *,
    edge_weight: Tensor | None = None,
    scaling: Scaling = "none",
) -> EnergyByLayer:
    r"""The Dirichlet energy $E(\mathbf{X}(\ell))$ after each layer: over-smoothing as a number.

    The arguments are those of [`layer_states`][adgn.analysis.layer_states], and `scaling` that of
    [`dirichlet_energy`][adgn.analysis.dirichlet_energy].

    Example:
        >>> from adgn.nn import ADGN
        >>> path = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
        >>> energy_by_layer(ADGN(4, 8, 1, num_layers=5), torch.eye(3, 4), path).energy.shape
        torch.Size([6])
    """
    states = layer_states(model, x, edge_index, edge_weight)
    energy = torch.tensor(
        [dirichlet_energy(state, edge_index, edge_weight, scaling=scaling) for state in states],
        dtype=torch.float64,
    )
    size = torch.stack([state.double().square().sum(-1).mean() for state in states]).cpu()
    # States that are all zero have no neighbours that differ.
    relative = torch.where(size > 0, energy / torch.where(size > 0, size, 1.0), 0.0)
    return EnergyByLayer(energy, relative)
