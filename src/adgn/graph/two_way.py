"""A graph's operator together with that of the reversed graph."""

from dataclasses import dataclass
from typing import TypeAlias

import torch
from torch import Tensor

from adgn.graph.checks import records_sizes
from adgn.graph.edge_operator import EdgeOperator, Operator
from adgn.graph.kernels import multiply_transposed
from adgn.graph.operator import SparseOperator
from adgn.graph.partitioned import PartitionedOperator


@dataclass(frozen=True, eq=False)
class TwoWayOperator:
    r"""The pair $[\mathbf{A}_{\mathrm{in}}, \mathbf{A}_{\mathrm{out}}]$ for `direction="both"`.

    It multiplies two states per node that stand next to each other,
    $\mathbf{A}_{\mathrm{in}} \mathbf{Y}_1 + \mathbf{A}_{\mathrm{out}} \mathbf{Y}_2$, so that with
    weights $\mathbf{V} = [\mathbf{V}_1; \mathbf{V}_2]$, one above the other, `operator @ (x @
    V.t())` sums what a node hears in both directions.

    Attributes:
        inward: The operator of the graph.
        outward: That of the graph with all edges reversed. For a normalisation it is not the
            transpose: its degrees are those of the reversed graph.

    Example:
        >>> from adgn.graph import graph_operator
        >>> path = torch.tensor([[0, 1], [1, 2]])  # 0 → 1 → 2
        >>> pair = TwoWayOperator(
        ...     graph_operator(path, num_nodes=3),
        ...     graph_operator(path, num_nodes=3, direction="out"),
        ... )
        >>> x = torch.tensor([[1.0], [2.0], [3.0]])
        >>> (pair @ torch.cat([x, 10 * x], dim=-1)).flatten().tolist()
        [20.0, 31.0, 2.0]
    """

    inward: Operator
    outward: Operator

    def __post_init__(self) -> None:
        if not records_sizes() and self.inward.shape != self.outward.shape:
            raise ValueError(
                f"the operators have shapes {list(self.inward.shape)} and "
                f"{list(self.outward.shape)}; both must be of the same nodes"
            )

    @property
    def shape(self) -> tuple[int, int]:
        """`(nodes, nodes)`, of each of the two."""
        return self.inward.shape

    def __matmul__(self, y: Tensor) -> Tensor:
        """The sum of both products, for `y` of shape `[..., nodes, 2 channels]`."""
        if y.size(-1) % 2:
            raise ValueError(
                f"y has shape {list(y.shape)}; a TwoWayOperator multiplies two states per node "
                "next to each other, [..., nodes, 2 channels]"
            )
        first, second = y.tensor_split(2, dim=-1)
        return self.inward @ first + self.outward @ second


GraphOperator: TypeAlias = Operator | TwoWayOperator


def operators_of(operator: GraphOperator) -> tuple[Operator, ...]:
    """The one operator, or the two, of which `operator` consists."""
    if isinstance(operator, TwoWayOperator):
        return operator.inward, operator.outward
    return (operator,)


def values_of(operator: GraphOperator) -> tuple[Tensor, ...]:
    """The entries of all operators of which `operator` consists."""
    found: list[Tensor] = []
    for one in operators_of(operator):
        found += one.values if isinstance(one, PartitionedOperator) else (one.value,)
    return tuple(found)


def is_partitioned(operator: GraphOperator) -> bool:
    """Whether it is this rank's part of a graph that is spread over ranks."""
    return any(isinstance(one, PartitionedOperator) for one in operators_of(operator))


def sparse_operators_of(operator: GraphOperator) -> tuple[SparseOperator, ...]:
    """The same where none of them is a list of edges."""
    found = tuple(one for one in operators_of(operator) if isinstance(one, SparseOperator))
    assert len(found) == len(operators_of(operator))
    return found


def multiply_back(operator: GraphOperator, x: Tensor) -> Tensor:
    """The transposed products of one or two operators, next to each other, without a gradient."""
    products = []
    for one in operators_of(operator):
        if isinstance(one, PartitionedOperator):
            products.append(one.multiply_back(x))
        else:
            assert isinstance(one, SparseOperator)
            products.append(multiply_transposed(one, x))
    return products[0] if len(products) == 1 else torch.cat(products, dim=-1)


def compiled_graph(
    operator: GraphOperator,
) -> tuple[Tensor, Tensor | None, str, str] | None:
    """Edges, weights, normalisation and direction that `torch.compile` records, if it does."""
    graphs = [one.graph for one in operators_of(operator) if isinstance(one, EdgeOperator)]
    first = graphs[0] if graphs else None
    if len(graphs) < len(operators_of(operator)) or first is None or len(graphs) == 1:
        return first
    second = graphs[1]
    if second is None or first[0] is not second[0] or first[1] is not second[1]:
        return None
    one_kind = first[2] == second[2] and (first[3], second[3]) == ("in", "out")
    return (*first[:3], "both") if one_kind else None
