"""Random walks on a graph, as operators: where the walkers of each node are after each step."""

import torch
from torch import Tensor

from adgn.graph.cache import outside_transforms
from adgn.graph.checks import check_count
from adgn.graph.operator import SparseOperator, SparsePattern


def walk_operators(
    operator: SparseOperator, steps: int, walks: int, generator: torch.Generator | None = None
) -> list[SparseOperator]:
    r"""Walks from all nodes: for each step the operator of the mean over a node's walkers.

    From node $u$ a walker goes to $j$ with probability $p_{uj}$, an entry of the operator divided
    by the sum of its row. The operator of step $s$ has the
    share of $u$'s walkers that are at $j$ after $s$ steps; its expectation is $\mathbf{P}^s$. A
    walker at a node whose row is empty has nowhere to go: it ends, and counts as zero from then on,
    as in $\mathbf{P}^s$.

    Args:
        operator: $\mathbf{P}$, or weights to which the probabilities are proportional; a row may
            be empty.
        steps: How many steps each walk has.
        walks: How many walks begin at each node.
        generator: Where the random numbers come from; by default torch's generator of the device,
            as for dropout.

    Example:
        >>> from adgn.graph import graph_operator
        >>> ring = torch.tensor([[0, 1, 2], [1, 2, 0]])  # a node hears one other: nothing is random
        >>> operator = graph_operator(ring, num_nodes=3, normalization="mean")
        >>> [o.to_dense()[0].tolist() for o in walk_operators(operator, steps=2, walks=5)]
        [[0.0, 0.0, 1.0], [0.0, 1.0, 0.0]]
    """
    check_count("steps", steps)
    check_count("walks", walks)
    if operator.has_negative_values:
        raise ValueError(
            "edge_weight has negative numbers, which are no probabilities of a walk; give weights "
            "from 0 on"
        )
    with torch.no_grad(), outside_transforms(operator.value):
        return _walk(operator, steps, walks, generator)


def _walk(
    operator: SparseOperator, steps: int, walks: int, generator: torch.Generator | None
) -> list[SparseOperator]:
    csr, nodes = operator.pattern.csr, operator.shape[0]
    device = operator.value.device
    rowptr, col = csr.rowptr.long(), csr.col.long()
    # In double precision: sums of all rows so far, in which a row's numbers must be told apart.
    reached = torch.cat(
        [operator.value.new_zeros(1, dtype=torch.float64), operator.value.double().cumsum(0)]
    )
    start = torch.arange(nodes, device=device).repeat_interleave(walks)
    place, alive = start.clone(), torch.ones_like(start, dtype=torch.bool)
    made = []
    for _ in range(steps):
        low, high = reached[rowptr[place]], reached[rowptr[place + 1]]
        drawn = torch.rand(place.numel(), dtype=torch.float64, device=device, generator=generator)
        # The first entry whose sum is above the drawn one; entries of weight zero are never it.
        slot = torch.searchsorted(reached[1:], low + drawn * (high - low), right=True)
        alive = alive & (high > low)
        # Rounding may not carry a walker into the next row.
        slot = slot.clamp(max=max(col.numel() - 1, 0)).minimum(rowptr[place + 1] - 1).clamp(min=0)
        if col.numel():
            place = torch.where(alive, col[slot], place)
        made.append(_shares(start[alive], place[alive], nodes, walks, operator.value.dtype))
    return made


def _shares(row: Tensor, col: Tensor, nodes: int, walks: int, dtype: torch.dtype) -> SparseOperator:
    pattern, slot = SparsePattern.from_entries(row, col, (nodes, nodes))
    counts = torch.zeros(pattern.csr.col.numel(), dtype=dtype, device=row.device)
    counts.index_add_(0, slot.long(), torch.ones_like(row, dtype=dtype))
    return SparseOperator(pattern, counts / walks)
