"""From an edge list to a sparse operator: self loops, weights, normalisation."""

from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from adgn.graph.operator import SparseOperator, SparsePattern

Normalization = Literal["none", "mean", "loops", "gcn", "gcn-improved"]
NORMALIZATIONS: tuple[Normalization, ...] = ("none", "mean", "loops", "gcn", "gcn-improved")
SELF_LOOP_WEIGHT = {"loops": 1.0, "gcn": 1.0, "gcn-improved": 2.0}


@dataclass(frozen=True, eq=False)
class EdgeLayout:
    """Where each edge of one graph ends up in the operator: all of it that weights do not change.

    It is worked out once per graph; `operator` then puts weights into it with a few
    index operations, differentiably, so that even learned edge weights sort nothing in a step.

    Attributes:
        pattern: The operator's pattern.
        normalization: See [`graph_operator`][adgn.graph.graph_operator].
        slot: `[edges kept + self loops]`; the slot each of them is added to.
        kept: The edges that are no self loops (all of them without normalisation), or `None`
            for all.
        loop_node: The nodes that bring a self loop of their own...
        loop_edge: ... and the edge that it is. Of several self loops of a node the last counts.

    Example:
        >>> source, target = torch.tensor([0, 1]), torch.tensor([1, 0])
        >>> layout = EdgeLayout.build(source, target, 2, "mean")
        >>> layout.operator(torch.tensor([3.0, 5.0]), torch.float32).to_dense().tolist()
        [[0.0, 1.0], [1.0, 0.0]]
    """

    pattern: SparsePattern
    normalization: Normalization
    slot: Tensor
    kept: Tensor | None = None
    loop_node: Tensor | None = None
    loop_edge: Tensor | None = None

    @classmethod
    def build(
        cls, source: Tensor, target: Tensor, num_nodes: int, normalization: Normalization
    ) -> "EdgeLayout":
        """Lays out the edges `source[e] → target[e]`; the operator's rows are the targets."""
        shape = (num_nodes, num_nodes)
        if normalization not in SELF_LOOP_WEIGHT:
            pattern, slot = SparsePattern.from_entries(target, source, shape)
            return cls(pattern, normalization, slot)
        is_loop = source == target
        kept = (~is_loop).nonzero().squeeze(-1)
        nodes = torch.arange(num_nodes, device=source.device, dtype=source.dtype)
        pattern, slot = SparsePattern.from_entries(
            torch.cat([target[kept], nodes]), torch.cat([source[kept], nodes]), shape
        )
        loops = is_loop.nonzero().squeeze(-1)
        last = torch.full((num_nodes,), -1, device=source.device, dtype=torch.long)
        last = last.scatter_reduce(0, source[loops].long(), loops, "amax")
        loop_node = (last >= 0).nonzero().squeeze(-1)
        return cls(pattern, normalization, slot, kept, loop_node, last[loop_node])

    def operator(self, edge_weight: Tensor | None, dtype: torch.dtype) -> SparseOperator:
        """The operator with these weights (all ones for `None`)."""
        entries = self._entry_weights(edge_weight, dtype)
        value = entries.new_zeros(self.pattern.csr.col.numel()).index_add(0, self.slot, entries)
        row, col = self.pattern.csr.row.long(), self.pattern.csr.col.long()
        value = normalized(value, row, col, self.pattern.shape[0], self.normalization)
        return SparseOperator(self.pattern, value)

    def _entry_weights(self, edge_weight: Tensor | None, dtype: torch.dtype) -> Tensor:
        """The weight of each entry of `slot`: edges first, then one self loop per node."""
        like: dict[str, Any] = {"dtype": dtype, "device": self.slot.device}
        if self.kept is None or self.loop_node is None:
            return torch.ones(self.slot.numel(), **like) if edge_weight is None else edge_weight
        num_nodes = self.pattern.shape[0]
        loops = torch.full((num_nodes,), SELF_LOOP_WEIGHT[self.normalization], **like)
        if edge_weight is None:
            own, edges = (torch.ones(t.numel(), **like) for t in (self.loop_node, self.kept))
        else:
            own, edges = edge_weight[self.loop_edge], edge_weight[self.kept]
        return torch.cat([edges, loops.index_put((self.loop_node,), own)])


def normalized(
    value: Tensor,
    row: Tensor,
    col: Tensor,
    num_nodes: int,
    normalization: Normalization,
    *,
    check: bool = True,
) -> Tensor:
    r"""The normalised entries: $a_{uj} / d_u$ for `"mean"`, $\hat{d}_u^{-1/2} \hat{d}_j^{-1/2}
    a_{uj}$ for `"gcn"`, with $d$ the row sums; a row whose sum is zero becomes zero.
    """
    if normalization not in ("mean", "gcn", "gcn-improved"):
        return value
    degree = value.new_zeros(num_nodes).index_add(0, row, value)
    if check:
        check_degree(degree, normalization)
    empty = degree == 0
    degree = torch.where(empty, 1.0, degree)  # keeps the gradient of the untaken branch finite
    if normalization == "mean":
        return torch.where(empty[row], 0.0, value / degree[row])
    scale = torch.where(empty, 0.0, degree.rsqrt())
    # The product of the two scales first: it is the same number for (u, j) and (j, u), so a
    # symmetric graph gives an exactly symmetric operator.
    return (scale[row] * scale[col]) * value


def check_degree(degree: Tensor, normalization: Normalization) -> None:
    """Raises where the weights that come into a node have a negative sum."""
    if bool((degree < 0).any()):
        node = int((degree < 0).nonzero()[0])
        raise ValueError(
            f"edge_weight gives node {node} the degree {float(degree[node]):.6g}; {normalization} "
            "normalisation needs degrees that are not negative: use another, such as 'none'"
        )
