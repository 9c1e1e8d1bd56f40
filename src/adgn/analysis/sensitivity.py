"""How much a node's last state depends on every node's first state."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import dijkstra
from torch import Tensor, nn

from adgn.analysis.layer_spectra import pull_back
from adgn.analysis.states import (
    check_layer,
    check_node,
    first_states,
    measuring,
    propagation_of,
    states_from,
)
from adgn.graph import Adjacency, Direction, OperatorDirection, graph_operator
from adgn.graph.checks import check_count
from adgn.nn.base import direction_of


@dataclass(frozen=True, eq=False)
class Sensitivity:
    r"""$\|\partial\mathbf{x}_v(\ell) / \partial\mathbf{x}_u(0)\|_F$ for one $v$ and all $u$.

    Attributes:
        node: The node $v$.
        norms: `[N]`; the norm for each node $u$.
        distance: `[N]`; the hops from $u$ to $v$ along the edges, -1 where there is no way.
        probes: With how many random probes it was estimated; `None`: exactly.
    """

    node: int
    norms: Tensor
    distance: Tensor
    probes: int | None

    def by_distance(self) -> "DistanceProfile":
        """The norms grouped by distance."""
        return _profile(self.distance, self.norms)


@dataclass(frozen=True, eq=False)
class DistanceProfile:
    """Sensitivity against distance; nodes without a way to the measured one are left out.

    Attributes:
        distance: `[D]`; 0, 1, 2, ...
        mean: `[D]`; the mean norm over the pairs at that distance.
        largest: `[D]`; the largest norm.
        pairs: `[D]`; how many pairs there are.
    """

    distance: Tensor
    mean: Tensor
    largest: Tensor
    pairs: Tensor

    def reach(self, share: float = 0.01) -> int:
        """The farthest distance with a mean above 0 and of at least `share` of the largest mean.

        It is 0 where all means are 0, as in a network so deep that nothing arrives at all.

        Example:
            >>> mean = torch.tensor([2.0, 1.0, 0.001])
            >>> DistanceProfile(torch.arange(3), mean, mean, torch.ones(3)).reach()
            1
        """
        if not 0 < share <= 1:
            raise ValueError(f"share={share!r} is not valid; it must be in (0, 1]")
        felt = (self.mean > 0) & (self.mean >= share * self.mean.max())
        return int(self.distance[felt].max()) if bool(felt.any()) else 0


def sensitivity(
    model: nn.Module,
    x: Tensor,
    edge_index: Adjacency,
    node: int,
    *,
    edge_weight: Tensor | None = None,
    layer: int | None = None,
    probes: int | None = None,
    seed: int = 0,
) -> Sensitivity:
    r"""How much one node's state after the last layer depends on each node's first state.

    $$
    s_v(u) = \left\| \frac{\partial \mathbf{x}_v(L)}{\partial \mathbf{x}_u(0)} \right\|_F
    $$

    Exactly by $d$ backward passes, one for each channel of $\mathbf{x}_v(L)$; or estimated
    by $k$ of them, $s_v(u)^2 \approx \frac{1}{k}\sum_i \|\mathbf{g}_i^\top
    \partial\mathbf{x}_v / \partial\mathbf{x}_u\|^2$ with standard normal $\mathbf{g}_i$, whose
    relative standard error is at most $\sqrt{2/k}$. One state per layer is kept in memory.

    Args:
        model: Any model with an encoder and a propagation, or a propagation.
        x: Features (for a bare propagation: states), `[N, in_channels]`.
        edge_index: The graph.
        node: The node $v$.
        edge_weight: `[E]`, optional.
        layer: After this many layers, instead of all.
        probes: The number $k$ of random probes; by default the exact norms.
        seed: For the probes.

    Example:
        >>> from adgn.nn import ADGN
        >>> path = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
        >>> result = sensitivity(ADGN(4, 8, 1, num_layers=1), torch.ones(3, 4), path, node=0)
        >>> result.distance.tolist(), float(result.norms[2])  # one layer reaches one hop
        ([0, 1, 2], 0.0)
    """
    with measuring(model):
        start = first_states(model, x).requires_grad_()
        check_node(node, start.size(0))
        propagation = propagation_of(model)
        if layer is None:
            end: Tensor = propagation(start, edge_index, edge_weight)
        else:
            states = states_from(propagation, start, edge_index, edge_weight)
            check_layer(layer, len(states) - 1)
            end = states[layer]
        norms = _row_norms(start, end, node, probes, seed)
    heard = direction_of(model)
    distance = hops_to(node, edge_index, start.size(0), heard).to(norms.device)
    return Sensitivity(node, norms, distance, probes)


def sensitivity_by_distance(
    model: nn.Module,
    x: Tensor,
    edge_index: Adjacency,
    *,
    nodes: Sequence[int] | None = None,
    edge_weight: Tensor | None = None,
    probes: int | None = None,
    seed: int = 0,
) -> DistanceProfile:
    """The sensitivity of several nodes (all by default) grouped by distance.

    `nodes` are those whose last state is looked at; the other arguments are those of
    [`sensitivity`][adgn.analysis.sensitivity].

    Example:
        >>> from adgn.nn import ADGN
        >>> path = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
        >>> profile = sensitivity_by_distance(ADGN(4, 8, 1, num_layers=4), torch.ones(3, 4), path)
        >>> profile.distance.tolist(), profile.pairs.tolist()
        ([0, 1, 2], [3, 4, 2])
    """
    with measuring(model):
        start = first_states(model, x).requires_grad_()
        chosen = range(start.size(0)) if nodes is None else nodes
        if len(chosen) == 0:
            raise ValueError("nodes=[] names no node; pass at least one, or None for all")
        end: Tensor = propagation_of(model)(start, edge_index, edge_weight)
        norms, distances, heard = [], [], direction_of(model)
        for node in chosen:
            check_node(node, start.size(0))
            norms.append(_row_norms(start, end, node, probes, seed + node))
            distances.append(hops_to(node, edge_index, start.size(0), heard).to(start.device))
    return _profile(torch.cat(distances), torch.cat(norms))


def sensitivity_by_depth(
    model: nn.Module,
    x: Tensor,
    edge_index: Adjacency,
    node: int,
    *,
    edge_weight: Tensor | None = None,
    probes: int | None = None,
    seed: int = 0,
) -> Tensor:
    r"""$\|\partial\mathbf{x}_v(\ell) / \partial\mathbf{x}_u(0)\|_F$, `[L + 1, N]`: layer by layer.

    The arguments are those of [`sensitivity`][adgn.analysis.sensitivity].

    Example:
        >>> from adgn.nn import ADGN
        >>> path = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
        >>> norms = sensitivity_by_depth(ADGN(4, 8, 1, num_layers=3), torch.ones(3, 4), path, 0)
        >>> (norms > 0).int().tolist()  # the signal comes nearer by one hop a layer
        [[1, 0, 0], [1, 1, 0], [1, 1, 1], [1, 1, 1]]
    """
    with measuring(model):
        start = first_states(model, x).requires_grad_()
        check_node(node, start.size(0))
        states = states_from(propagation_of(model), start, edge_index, edge_weight)
        return torch.stack([_row_norms(start, state, node, probes, seed) for state in states])


def hops_to(
    node: int, edge_index: Adjacency, num_nodes: int, direction: Direction = "in"
) -> Tensor:
    """`[N]`; the edges on the shortest way from each node to `node`, -1 where there is none.

    It goes along the edges, or as messages go where nodes listen in another `direction`.

    Example:
        >>> hops_to(2, torch.tensor([[0, 1], [1, 2]]), num_nodes=4)
        tensor([ 2,  1,  0, -1])
    """
    check_node(node, num_nodes)
    one_way: OperatorDirection = "undirected" if direction == "both" else direction
    csr = graph_operator(edge_index, num_nodes=num_nodes, direction=one_way).pattern.csr
    col, rowptr = csr.col.cpu().numpy(), csr.rowptr.cpu().numpy()
    # Rows are targets: walking from row to column goes against the edges, from v to its sources.
    against = csr_matrix((np.ones(len(col)), col, rowptr), shape=csr.shape)
    hops = dijkstra(against, indices=node, unweighted=True)
    return torch.as_tensor(np.where(np.isinf(hops), -1, hops).astype(np.int64))


def _row_norms(start: Tensor, end: Tensor, node: int, probes: int | None, seed: int) -> Tensor:
    channels = end.size(-1)
    if probes is None:
        directions = torch.eye(channels, dtype=end.dtype, device=end.device)
    else:
        check_count("probes", probes)
        generator = torch.Generator().manual_seed(seed)
        drawn = torch.randn(probes, channels, generator=generator, dtype=torch.float64)
        directions = (drawn / probes**0.5).to(end)
    # In double precision: squares of small sensitivities would underflow in single.
    squared = torch.zeros(start.size(0), dtype=torch.float64, device=start.device)
    for direction in directions:
        squared += pull_back(start, end[node], direction).double().square().sum(-1)
    return squared.sqrt()


def _profile(distance: Tensor, norms: Tensor) -> DistanceProfile:
    reached = distance >= 0
    distance, norms = distance[reached], norms[reached]
    kinds, group, pairs = torch.unique(distance, return_inverse=True, return_counts=True)
    total = norms.new_zeros(kinds.numel()).index_add(0, group, norms)
    largest = norms.new_zeros(kinds.numel()).scatter_reduce(0, group, norms, "amax")
    return DistanceProfile(kinds, total / pairs, largest, pairs)
