"""Features of nodes and of their neighbours, some hops away: what closed-form models read."""

from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

import numpy as np
import torch
from sklearn.utils.extmath import randomized_svd
from torch import Tensor

from adgn.data.features import csr_to_scipy
from adgn.estimators.inputs import Inputs
from adgn.graph import OperatorDirection, graph_operator, sparse_features
from adgn.graph.adjacency import Normalization

HopOperator = Literal["mean", "gcn", "sum"]
OPERATORS: tuple[HopOperator, ...] = get_args(HopOperator)
NORMALIZATION: dict[HopOperator, Normalization] = {"mean": "mean", "gcn": "gcn", "sum": "none"}
_LARGEST_BLOCK = 60_000_000  # entries of the dense features of one hop
_FEWEST_COMPONENTS, _MOST_COMPONENTS = 16, 512


@dataclass(frozen=True)
class HopView:
    r"""$[\mathbf{X}, \mathbf{P}\mathbf{X}, \dots, \mathbf{P}^k\mathbf{X}]$, for an operator P.

    Attributes:
        hops: The number $k$; 0 is the features alone.
        direction: Where a node listens, see [`turned`][adgn.graph.turned].
        operator: `"mean"` over neighbours, `"gcn"` (symmetrically normalised, with self loops) or
            `"sum"`.
    """

    hops: int = 0
    direction: OperatorDirection = "in"
    operator: HopOperator = "mean"

    @property
    def name(self) -> str:
        """What tables call it."""
        if self.hops == 0:
            return "features alone"
        return f"{self.hops} hop{'s' * (self.hops > 1)}, {self.direction}, {self.operator}"

    def to_json(self) -> dict[str, Any]:
        """Its settings."""
        return asdict(self)


def reduction(inputs: Inputs, rows: Tensor, seed: int = 0) -> Tensor | None:
    """`[F, r]`: the leading directions of the features, where all of them would be too many.

    Args:
        inputs: The features.
        rows: The nodes whose features may be looked at.
        seed: Of the randomised decomposition.

    Returns:
        `None` where the features are few enough to be used as they are.
    """
    nodes, features = inputs.x.shape
    if nodes * features <= _LARGEST_BLOCK:
        return None
    components = max(_FEWEST_COMPONENTS, min(_MOST_COMPONENTS, _LARGEST_BLOCK // nodes))
    if components >= features:
        return None
    x = csr_to_scipy(inputs.x) if inputs.x.layout == torch.sparse_csr else inputs.x.numpy()
    chosen = rows.numpy()
    if len(chosen) > 20 * components:
        step = len(chosen) / (20 * components)
        chosen = chosen[np.arange(0, len(chosen), step).astype(np.int64)]
    _, _, directions = randomized_svd(x[chosen], components, n_iter=2, random_state=seed)
    return torch.from_numpy(np.ascontiguousarray(directions.T, dtype=np.float32))


def hop_blocks(inputs: Inputs, view: HopView, projection: Tensor | None = None) -> list[Tensor]:
    """The features of each hop from 0 on: `[N, F]` each, or `[G, 2 F + 1]` of whole graphs.

    Of a graph they are the mean and the sum over its nodes, and the number of these.
    """
    x = _dense(inputs.x, projection)
    blocks = [x]
    if view.hops:
        edges, weight = inputs.edges(view.direction)
        operator = graph_operator(
            edges,
            weight,
            num_nodes=inputs.num_nodes,
            normalization=NORMALIZATION[view.operator],
            like=x,
        )
        for _ in range(view.hops):
            x = operator @ x
            blocks.append(x)
    if inputs.node_ptr is None:
        return blocks
    return [_pooled(block, inputs) for block in blocks]


def _dense(x: Tensor, projection: Tensor | None) -> Tensor:
    if projection is None:
        return x.to_dense() if x.layout == torch.sparse_csr else x
    return sparse_features(x) @ projection if x.layout == torch.sparse_csr else x @ projection


def _pooled(block: Tensor, inputs: Inputs) -> Tensor:
    owner, graphs = inputs.graph_of_node, inputs.num_rows
    total = block.new_zeros(graphs, block.size(1)).index_add(0, owner, block)
    count = torch.bincount(owner, minlength=graphs).to(block).view(-1, 1)
    return torch.cat([total / count.clamp(min=1), total, count], dim=1)
