"""Geom-GCN: neighbours in the graph and in a plane, told apart by where they are."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from adgn.graph import Adjacency, SparseOperator, SparsePattern
from adgn.graph.adjacency import Normalization
from adgn.graph.geometry import PlaneGeometry
from adgn.nn.base import GraphConvolution
from adgn.nn.models.diffusion import DiffusionOptions
from adgn.nn.network import Model
from adgn.nn.registry import register_model

DIVISIONS = 9  # four quadrants of neighbours in the graph, four in the plane, and the node itself


@dataclass(frozen=True, eq=False)
class Divisions:
    """Who hears whom in each division; made once per graph.

    Attributes:
        patterns: Of each division, `[N, N]`.
        slots: For the quadrants of the graph, the entries of its operator that are there.
        near_count: `[N]`; how many near nodes each node has in the plane.
    """

    patterns: list[SparsePattern]
    slots: list[Tensor]
    near_count: Tensor

    @classmethod
    def of(cls, pattern: SparsePattern) -> "Divisions":
        """The divisions of the graph with this pattern, remembered with it."""
        known = pattern.__dict__.get("_divisions")
        if known is None:
            known = pattern.__dict__.setdefault("_divisions", cls._build(pattern))
        divisions: Divisions = known
        return divisions

    @classmethod
    def _build(cls, pattern: SparsePattern) -> "Divisions":
        geometry = PlaneGeometry.of(pattern)
        row, col = pattern.csr.row.long(), pattern.csr.col.long()
        nodes = torch.arange(pattern.shape[0], device=row.device)

        def quadrant(receiver: Tensor, sender: Tensor) -> Tensor:
            right, above = (geometry.plane[sender] > geometry.plane[receiver]).unbind(1)
            return 2 * right.long() + above.long()

        number = torch.where(row == col, -1, quadrant(row, col))
        slots = [(number == k).nonzero().squeeze(-1) for k in range(4)]
        ends = [(row[slot], col[slot]) for slot in slots]
        receiver, sender = geometry.near
        number = quadrant(receiver, sender)
        ends += [(receiver[number == k], sender[number == k]) for k in range(4)]
        patterns = [
            SparsePattern.from_entries(*pair, pattern.shape)[0] for pair in (*ends, (nodes, nodes))
        ]
        return cls(patterns, slots, torch.bincount(receiver, minlength=len(nodes)))

    def operators(self, operator: SparseOperator) -> list[SparseOperator]:
        r"""The nine operators, with entries $w_{uj} / \sqrt{d_u d_j}$ of the merged graph."""
        weights = [operator.value.index_select(0, slot) for slot in self.slots]
        ones = operator.value.new_ones
        weights += [ones(pattern.csr.col.numel()) for pattern in self.patterns[4:]]
        degree = self.near_count.to(operator.value.dtype) + 1
        for pattern, weight in zip(self.patterns[:4], weights, strict=False):
            degree = degree.index_add(0, pattern.csr.row, weight)
        scale = degree.rsqrt()
        return [
            SparseOperator(
                pattern,
                weight
                * scale.index_select(0, pattern.csr.row)
                * scale.index_select(0, pattern.csr.col),
            )
            for pattern, weight in zip(self.patterns, weights, strict=True)
        ]


class GeomGCNPropagation(GraphConvolution, nn.Module):
    """The layers of Geom-GCN, see [`GeomGCN`][adgn.nn.models.GeomGCN]."""

    normalization: Normalization = "none"

    def __init__(self, channels: int, num_layers: int, options: DiffusionOptions) -> None:
        super().__init__()
        self.channels = channels
        self.direction = options.direction
        self.dropout = nn.Dropout(options.dropout)
        sizes = [channels, *(DIVISIONS * channels for _ in range(num_layers - 1))]
        self.weights = nn.ParameterList(torch.empty(DIVISIONS, size, channels) for size in sizes)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws new weights."""
        for weight in self.weights:
            for division in weight:
                nn.init.xavier_uniform_(division)

    def forward(
        self, x: Tensor, edge_index: Adjacency, edge_weight: Tensor | None = None
    ) -> Tensor:
        """The states after the last layer."""
        return self.trajectory(x, edge_index, edge_weight)[-1]

    def trajectory(
        self, x: Tensor, edge_index: Adjacency, edge_weight: Tensor | None = None
    ) -> list[Tensor]:
        """`x` and the states after each layer; those between layers are nine times as wide."""
        operator = self.operator(x, edge_index, edge_weight)
        if not isinstance(operator, SparseOperator):
            raise ValueError(
                "Geom-GCN places the nodes of a graph in a plane, which cannot be traced, exported "
                "or explained; call it without torch.compile"
            )
        if operator.has_negative_values:
            raise ValueError(
                "edge_weight has negative entries; Geom-GCN divides by roots of degrees: give "
                "weights of at least 0"
            )
        operators = Divisions.of(operator.pattern).operators(operator)
        states = [x]
        for number, weight in enumerate(self.weights, start=1):
            x = states[-1] if number == 1 else self.dropout(states[-1])
            sent = (x @ weight.transpose(0, 1).flatten(1)).split(self.channels, 1)
            heard = [one @ part.contiguous() for one, part in zip(operators, sent, strict=True)]
            last = number == len(self.weights)
            states.append(torch.stack(heard).mean(0) if last else torch.cat(heard, 1).relu())
        return states

    def extra_repr(self) -> str:
        """Size and direction, for `repr`."""
        return f"{self.channels}, num_layers={len(self.weights)}, direction={self.direction!r}"


@register_model(
    "geomgcn",
    title="Geom-GCN (Isomap computed here)",
    paper="https://arxiv.org/abs/2002.05287",
    rule=r"\mathbf{x}_u^\ell = \sigma\Big(\operatorname*{concat}_{i=1}^{9} "
    r"\sum_{j \in \mathcal{N}_i(u)} \frac{w_{uj}}{\sqrt{d_u d_j}} "
    r"\mathbf{W}_i \mathbf{x}_j^{\ell-1}\Big)",
    memory="9nd",
    time="81nd^2 + md",
    options=DiffusionOptions,
    note="The authors ship embeddings for their graphs; here nodes are placed by Isomap, once per "
    "graph, for connected components of up to 8192 nodes. A layer reaches one hop, or wherever the "
    "plane has near nodes. States between layers are nine times as wide; the last layer is the "
    "mean of the divisions. `dropout` acts between layers too. A graph that is its own mirror "
    "image has no left and right: there the numbering of nodes decides. Stored self loops are "
    "replaced by one of weight 1, and edge weights must not be negative.",
)
class GeomGCN(Model):
    r"""The [geometric graph convolutional network](https://arxiv.org/abs/2002.05287).

    $$
    \mathbf{x}_u' = \sigma\left(\operatorname*{concat}_{i} \sum_{j \in \mathcal{N}_i(u)}
        \frac{w_{uj}}{\sqrt{d_u d_j}} \mathbf{W}_i \mathbf{x}_j\right)
    $$

    The nodes that $u$ hears are in nine divisions $\mathcal{N}_i(u)$: neighbours in the graph by
    the quadrant they are in, seen from $u$; nodes near $u$ in the plane likewise; and $u$ itself. A
    node that is both a neighbour and near is in both. Degrees $d$ are those of all divisions
    together. Hidden layers put the divisions next to each other; the last takes their mean, without
    $\sigma$. See `adgn.graph.geometry.PlaneGeometry` for the plane.

    Example:
        >>> from adgn.nn import build_model
        >>> model = build_model("geomgcn", 3, 16, 2, num_layers=2)
        >>> model(torch.randn(3, 3), torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])).shape
        torch.Size([3, 2])
    """

    build_propagation = GeomGCNPropagation
