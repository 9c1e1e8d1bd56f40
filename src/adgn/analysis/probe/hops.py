"""Features of nodes and of their neighbours, some hops away: what closed-form models read."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

import numpy as np
import torch
from torch import Tensor

from adgn.data.features import csr_to_scipy
from adgn.data.own.inputs import Inputs
from adgn.graph import Direction, OperatorDirection, graph_operator, sparse_features
from adgn.graph.adjacency import Normalization

HopOperator = Literal["mean", "gcn", "sum", "laplacian", "shell"]
OPERATORS: tuple[HopOperator, ...] = get_args(HopOperator)
LAYER_OPERATORS: tuple[HopOperator, ...] = ("mean", "gcn", "sum")  # those that networks have
NORMALIZATION: dict[HopOperator, Normalization] = {
    "mean": "mean",
    "gcn": "gcn",
    "sum": "none",
    "laplacian": "none",
}
_LARGEST_BLOCK = 60_000_000  # entries of the dense features of one hop
_FEWEST_COMPONENTS, _MOST_COMPONENTS = 16, 512


@dataclass(frozen=True)
class HopView:
    r"""$[\mathbf{X}, \mathbf{P}\mathbf{X}, \dots, \mathbf{P}^k\mathbf{X}]$, for an operator P.

    Attributes:
        hops: The number $k$; 0 is the features alone.
        direction: Where a node listens: `"in"`, `"out"`, `"undirected"`, see
            [`turned`][adgn.graph.turned]; or `"both"`, the blocks of in and out side by side.
        operator: `"mean"` over neighbours, `"gcn"` (symmetrically normalised, with self loops),
            `"sum"`, `"laplacian"` (the degree times the node's own, less the sum over neighbours)
            or `"shell"` (the mean over the nodes at a distance of exactly $k$, no power).
        alone: The features of hop $k$ only, $\mathbf{P}^k\mathbf{X}$.
    """

    hops: int = 0
    direction: Direction = "in"
    operator: HopOperator = "mean"
    alone: bool = False

    @property
    def name(self) -> str:
        """What tables call it."""
        if self.hops == 0:
            return "features alone"
        only = "hop only" if self.alone else "hop" + "s" * (self.hops > 1)
        return f"{self.hops} {only}, {self.direction}, {self.operator}"

    @property
    def operator_direction(self) -> OperatorDirection:
        """The direction as one operator has it; `both` has two and raises."""
        if self.direction == "both":
            raise ValueError(f"{self.name}: direction='both' is two operators, 'in' and 'out'")
        return self.direction

    def to_json(self) -> dict[str, Any]:
        """Its settings."""
        return asdict(self)


def reduction(
    inputs: Inputs, rows: Tensor, seed: int = 0, *, most: int | None = None
) -> Tensor | None:
    """`[F, r]`: the leading directions of the features, where all of them would be too many.

    Args:
        inputs: The features.
        rows: The nodes whose features may be looked at.
        seed: Of the randomised decomposition.
        most: How many directions there may be at most; `None`: as many as memory has room for.

    Returns:
        `None` where the features are few enough to be used as they are.
    """
    nodes, features = inputs.x.shape
    components = features if most is None else most
    if nodes * min(features, components) > _LARGEST_BLOCK:
        room = max(_FEWEST_COMPONENTS, min(_MOST_COMPONENTS, _LARGEST_BLOCK // nodes))
        components = min(components, room)
    if components >= features:
        return None
    from sklearn.utils.extmath import randomized_svd  # takes seconds to import

    x = csr_to_scipy(inputs.x) if inputs.x.layout == torch.sparse_csr else inputs.x.numpy()
    chosen = rows.numpy()
    if len(chosen) > 20 * components:
        step = len(chosen) / (20 * components)
        chosen = chosen[np.arange(0, len(chosen), step).astype(np.int64)]
    components = min(components, len(chosen))
    _, _, directions = randomized_svd(x[chosen], components, n_iter=2, random_state=seed)
    return torch.from_numpy(np.ascontiguousarray(directions.T, dtype=np.float32))


def dense_features(inputs: Inputs, projection: Tensor | None = None) -> Tensor:
    """`[N, F]` or `[N, r]`: the features, dense, projected where there is a projection."""
    x = inputs.x
    if projection is None:
        return x.to_dense() if x.layout == torch.sparse_csr else x
    return sparse_features(x) @ projection if x.layout == torch.sparse_csr else x @ projection


def powers(
    inputs: Inputs, direction: OperatorDirection, operator: HopOperator, x: Tensor
) -> Iterator[Tensor]:
    r"""$\mathbf{P}\mathbf{X}, \mathbf{P}^2\mathbf{X}, \dots$ without end, each when asked for."""
    graph, weight = inputs.graph(direction)
    matrix = graph_operator(
        graph,
        weight,
        num_nodes=inputs.num_nodes,
        normalization=NORMALIZATION[operator],
        like=x,
    )
    degree = matrix @ x.new_ones(len(x), 1) if operator == "laplacian" else None
    while True:
        arrived = matrix @ x
        x = arrived if degree is None else degree * x - arrived
        yield x


def hop_blocks(inputs: Inputs, view: HopView, projection: Tensor | None = None) -> list[Tensor]:
    """The features of each hop of a view: `[N, F]` each, or `[G, 2 F + 1]` of whole graphs.

    Of a graph they are the mean and the sum over its nodes, and the number of these.
    """
    x = dense_features(inputs, projection)
    blocks = [x]
    if view.hops:
        if view.operator == "shell":
            raise ValueError(f"{view.name}: operator='shell' has no powers; use shell_features")
        following = powers(inputs, view.operator_direction, view.operator, x)
        blocks += [next(following) for _ in range(view.hops)]
    return [pooled(block, inputs) for block in (blocks[-1:] if view.alone else blocks)]


def pooled(block: Tensor, inputs: Inputs) -> Tensor:
    """The features of rows: those of nodes as they are, of whole graphs pooled over their nodes."""
    if inputs.node_ptr is None:
        return block
    owner, graphs = inputs.graph_of_node, inputs.num_rows
    total = block.new_zeros(graphs, block.size(1)).index_add(0, owner, block)
    count = torch.bincount(owner, minlength=graphs).to(block).view(-1, 1)
    return torch.cat([total / count.clamp(min=1), total, count], dim=1)
