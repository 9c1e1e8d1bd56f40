"""Which nodes a prediction depends on, by the sensitivity analysis of the package."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from scipy.sparse import csr_matrix
from torch import Tensor

from adgn.analysis import hops_to, sensitivity
from adgn.data import Graph, GraphInputError
from adgn.estimators.hops import NORMALIZATION, HopView
from adgn.estimators.inputs import Inputs
from adgn.estimators.members import Member, NetworkModel
from adgn.estimators.ridge import RidgeModel
from adgn.graph import Direction, OperatorDirection, graph_operator
from adgn.nn.base import direction_of


@dataclass(frozen=True, eq=False)
class Explanation:
    """What the prediction of one row depends on.

    Attributes:
        id: Its id.
        output: Probabilities of the classes, or values, of the row.
        nodes: The ids of all nodes that it depends on, the most important one first.
        share: `[nodes]`; the share of each in the sensitivity, 1 in sum.
        distance: `[nodes]`; the edges between the node and the row, along the direction in which
            models listen, -1 where there is no way; of a whole graph 0.
    """

    id: Any
    output: Tensor
    nodes: pa.Array
    share: Tensor
    distance: Tensor

    def by_distance(self) -> dict[int, float]:
        """The share of all nodes at each distance."""
        shares: dict[int, float] = {}
        for distance, share in zip(self.distance.tolist(), self.share.tolist(), strict=True):
            shares[distance] = shares.get(distance, 0.0) + share
        return dict(sorted(shares.items()))


def explain_row(
    graph: Graph,
    inputs: Inputs,
    members: Sequence[Member],
    average: Tensor,
    row: Any,
    *,
    probes: int | None = 8,
) -> Explanation:
    r"""The sensitivity of one row to each node.

    Of a network it is $\|\partial\mathbf{x}_v(L) / \partial\mathbf{x}_u(0)\|$ of
    [`sensitivity`][adgn.analysis.sensitivity]; of a closed-form model
    $\|\sum_k (\mathbf{P}^k)_{vu} \mathbf{W}_k\|$, its derivative. Each model's is divided by its
    sum over all nodes and counts as much as the model does in the average.

    Args:
        graph: The graph.
        inputs: Its features.
        members: The models.
        average: Their average, `[rows, outputs]`.
        row: The id.
        probes: Random probes of a network's sensitivity; `None`: exactly.
    """
    place = _position(graph, row)
    total = torch.zeros(inputs.num_nodes, dtype=torch.double)
    if inputs.node_ptr is None:
        nodes, inner = [place], inputs
    else:  # all nodes of the graph are heard by the readout
        first, last = inputs.node_ptr[place : place + 2].tolist()
        nodes, inner = list(range(first, last)), inputs
    distance = torch.full((inputs.num_nodes,), -1)
    for member in members:
        for node in nodes:
            norms = _norms(member, inner, node, probes)
            if float(norms.sum()) > 0:
                total += member.weight * norms / norms.sum() / len(nodes)
        if inputs.node_ptr is None:
            direction, heard = _directions(member.model)
            hops = hops_to(place, inputs.edges(direction)[0], inputs.num_nodes, heard)
            nearer = (hops >= 0) & ((distance < 0) | (hops < distance))
            distance = torch.where(nearer, hops, distance)
        else:
            distance[nodes] = 0
    order = total.argsort(descending=True, stable=True)
    order = order[total[order] > 0]
    share = total[order] / total.sum() if order.numel() else total[order]
    ids = graph.ids.take(pa.array(order.numpy()))
    return Explanation(row, average[place], ids, share, distance[order])


def _position(graph: Graph, row: Any) -> int:
    ids = graph.row_ids
    try:
        wanted = pa.scalar(row).cast(ids.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise GraphInputError(
            f"{row!r} is no id of {graph.origin}, whose ids are {ids.type} ({ids[0]}, …)"
        ) from error
    place = int(pc.index(ids, wanted).as_py())
    if place < 0:
        raise GraphInputError(
            f"{row!r} is not among the {len(ids):,} ids of {graph.origin} (such as {ids[0]})"
        )
    return place


def _directions(model: NetworkModel | RidgeModel) -> tuple[OperatorDirection, Direction]:
    """How edges are turned for a model, and where its network listens on these."""
    if isinstance(model, RidgeModel):
        return model.view.direction, "in"
    return model.direction, direction_of(model.network)


def _norms(member: Member, inputs: Inputs, node: int, probes: int | None) -> Tensor:
    model = member.model
    if isinstance(model, NetworkModel):
        edges, weight = inputs.edges(model.direction)
        found = sensitivity(model.network, inputs.x, edges, node, edge_weight=weight, probes=probes)
        return found.norms.double().cpu()
    return _ridge_norms(model, inputs, node)


def _ridge_norms(model: RidgeModel, inputs: Inputs, node: int) -> Tensor:
    """The norm over outputs and features of the derivative, for each node."""
    weight = model.weight
    if inputs.node_ptr is not None:  # means, sums and a count for each hop: sums are felt alike
        return torch.ones(inputs.num_nodes, dtype=torch.double) * (
            inputs.graph_of_node == inputs.graph_of_node[node]
        )
    width = weight.size(0) // (model.view.hops + 1)
    blocks = weight.view(model.view.hops + 1, width, -1).double()
    reach = _powers(model.view, inputs, node)  # [hops + 1, N]
    gram = torch.einsum("aij,bij->ab", blocks, blocks)
    squared = torch.einsum("an,ab,bn->n", reach, gram, reach)
    return squared.clamp(min=0).sqrt()


def _powers(view: HopView, inputs: Inputs, node: int) -> Tensor:
    """Row `node` of each power of the view's operator."""
    row = np.zeros(inputs.num_nodes)
    row[node] = 1.0
    rows = [row]
    if view.hops:
        edges, weight = inputs.edges(view.direction)
        operator = graph_operator(
            edges,
            weight,
            num_nodes=inputs.num_nodes,
            normalization=NORMALIZATION[view.operator],
        )
        csr = operator.pattern.csr
        matrix = csr_matrix(
            (operator.value.double().numpy(), csr.col.numpy(), csr.rowptr.numpy()), shape=csr.shape
        )
        for _ in range(view.hops):
            rows.append(matrix.T @ rows[-1])
    return torch.from_numpy(np.stack(rows))
