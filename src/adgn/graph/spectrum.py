"""The spectral radius of a graph, by products with its operator alone."""

import torch
from torch import Tensor

from adgn.graph.cache import cached
from adgn.graph.checks import is_traced
from adgn.graph.edge_operator import Operator
from adgn.graph.operator import SparseOperator

# Growth is averaged over the last 48 products: a multiple of the periods 2, 3, 4, 6 and 8, with
# which the growth of a bipartite or cyclic graph comes and goes.
_BEFORE, _AVERAGED = 16, 48


def spectral_radius(
    operator: Operator, batch: Tensor | None = None, num_graphs: int | None = None
) -> Tensor:
    r"""The spectral radius $\rho(|\mathbf{A}|)$ of an operator, for each graph of a batch.

    Power iteration from a vector of ones, 64 products. The radius is the mean growth over the last
    48, which is within a percent also where the largest eigenvalues are close to each other or
    have one magnitude, as in bipartite graphs. Of a graph without cycles it is exactly zero, where
    its longest path has fewer than 64 edges. It is worked out once per operator.

    Args:
        operator: The graph, see [`graph_operator`][adgn.graph.graph_operator]. Of negative values
            the magnitude counts.
        batch: `[N]`; the graph of each node. `None`: there is one.
        num_graphs: How many graphs there are; by default the largest number in `batch` plus one.

    Returns:
        `[graphs]`; without `batch` `[1]`.

    Example:
        >>> from adgn.graph import graph_operator
        >>> ring = torch.tensor([[0, 1, 2, 1, 2, 0], [1, 2, 0, 0, 1, 2]])  # degree 2
        >>> round(spectral_radius(graph_operator(ring, num_nodes=3)).item(), 3)
        2.0
    """
    nodes = operator.shape[0]
    if batch is None:
        count = 1
    elif num_graphs is not None:
        count = num_graphs
    else:  # while tracing no number can be looked at; no graph without nodes has a larger one
        count = nodes if is_traced(batch) else int(batch.max()) + 1 if nodes else 0

    def work_out() -> Tensor:
        return _mean_growth(operator, batch, count)

    if not isinstance(operator, SparseOperator) or operator.value.requires_grad:
        return work_out()
    known = (operator.value,) if batch is None else (operator.value, batch)
    # Patterns belong to values for good: an operator with the same values is the same operator.
    return cached(known, ("spectral radius", id(operator.pattern), count), work_out)


def _mean_growth(operator: Operator, batch: Tensor | None, count: int) -> Tensor:
    if operator.has_negative_values:
        operator = operator.with_values(operator.value.abs())
    x = operator.value.new_ones(operator.shape[0], 1)
    graph = x.new_zeros(x.shape[0], dtype=torch.long) if batch is None else batch.long()
    total = ended = x.new_zeros(count)
    for product in range(_BEFORE + _AVERAGED):
        # Not `sum`, whose last bits depend on the number of threads.
        size = x.new_zeros(count).index_add(0, graph, x.squeeze(-1))
        over = size == 0  # of a graph without cycles nothing is left at the end of its paths
        ended = torch.where(over, 1.0, ended)
        size = torch.where(over, 1.0, size)
        x = operator @ (x / size.index_select(0, graph).unsqueeze(-1))
        if product >= _BEFORE:
            total = total + size.log()
    return torch.where(ended > 0, 0.0, (total / _AVERAGED).exp())
