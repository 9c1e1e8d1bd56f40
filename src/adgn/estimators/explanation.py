"""Which nodes a prediction depends on, by the sensitivity analysis of the package."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from scipy.sparse import csr_matrix
from torch import Tensor

from adgn.analysis import hops_to, sensitivity
from adgn.analysis.probe.hops import NORMALIZATION, HopView
from adgn.data import Graph
from adgn.data.features import csr_from_scipy, csr_to_scipy
from adgn.data.own.inputs import Inputs
from adgn.estimators.members import Member, NetworkModel
from adgn.estimators.ridge import RidgeModel
from adgn.estimators.rows import row_name
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
    place: int,
    *,
    probes: int | None = 8,
) -> Explanation:
    r"""The sensitivity of one row to each node.

    Of a network it is $\|\partial\mathbf{x}_v(L) / \partial\mathbf{x}_u(0)\|$ of
    [`sensitivity`][adgn.analysis.sensitivity]; of a closed-form model
    $\|\sum_k (\mathbf{P}^k)_{vu} \mathbf{W}_k\|$, its derivative. Of a whole graph it is, for a
    network, the mean over the graph's nodes $v$; for a closed-form model, the derivative of the
    graph's output. Each model's is divided by its sum over all nodes and counts as much as the
    model does in the average.

    Args:
        graph: The graph.
        inputs: Its features.
        members: The models.
        average: Their average, `[rows, outputs]`.
        place: The position of the row.
        probes: Random probes of a network's sensitivity; `None`: exactly.
    """
    first, nodes = 0, [place]
    if inputs.node_ptr is not None:  # all nodes of the graph are heard by the readout, no others
        first, last = inputs.node_ptr[place : place + 2].tolist()
        inputs, nodes = _one_graph(inputs, first, last), list(range(last - first))
    total = torch.zeros(inputs.num_nodes, dtype=torch.double)
    distance = torch.full((inputs.num_nodes,), -1)
    for member in members:
        total += member.weight * _shares(member, inputs, nodes, probes)
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
    ids = graph.ids.take(pa.array((first + order).numpy()))
    return Explanation(row_name(graph, place), average[place], ids, share, distance[order])


def _one_graph(inputs: Inputs, first: int, last: int) -> Inputs:
    """The inputs of the graph with these nodes alone."""
    x = inputs.x
    sparse = x.layout == torch.sparse_csr
    x = csr_from_scipy(csr_to_scipy(x)[first:last]) if sparse else x[first:last]
    own = (inputs.edge_index[0] >= first) & (inputs.edge_index[0] < last)
    weight = None if inputs.edge_weight is None else inputs.edge_weight[own]
    edges = (inputs.edge_index[:, own] - first).contiguous()
    pointer, normalized = torch.tensor([0, last - first]), inputs.normalized
    return Inputs(x, edges, weight, inputs.directed, pointer, normalized=normalized)


def _directions(model: NetworkModel | RidgeModel) -> tuple[OperatorDirection, Direction]:
    """How edges are turned for a model, and where its network listens on these."""
    if isinstance(model, RidgeModel):
        return model.view.operator_direction, "in"
    return model.direction, direction_of(model.network)


def _shares(member: Member, inputs: Inputs, nodes: Sequence[int], probes: int | None) -> Tensor:
    """The share of each node in a model's sensitivity, 1 in sum; all 0 where it has none."""
    model = member.model
    if isinstance(model, RidgeModel):
        return _normalised(_ridge_norms(model, inputs, nodes))
    graph, weight = inputs.graph(model.direction)
    total = torch.zeros(inputs.num_nodes, dtype=torch.double)
    for node in nodes:
        found = sensitivity(model.network, inputs.x, graph, node, edge_weight=weight, probes=probes)
        total += _normalised(found.norms.double().cpu())
    return total / len(nodes)


def _normalised(norms: Tensor) -> Tensor:
    total = float(norms.sum())
    return norms / total if total > 0 else norms


def _ridge_norms(model: RidgeModel, inputs: Inputs, nodes: Sequence[int]) -> Tensor:
    """The norm over outputs and features of a row's derivative, for each node."""
    reach = _powers(model.view, inputs, nodes)  # [hops + 1, N]
    blocks = model.weight.view(len(reach), -1, model.weight.size(1)).double()
    if inputs.node_ptr is not None:  # of each hop the mean, the sum and the number of nodes
        width = blocks.size(1) // 2
        blocks = blocks[:, :width] / len(nodes) + blocks[:, width : 2 * width]
    gram = torch.einsum("aij,bij->ab", blocks, blocks)
    squared = torch.einsum("an,ab,bn->n", reach, gram, reach)
    return squared.clamp(min=0).sqrt()


def _powers(view: HopView, inputs: Inputs, nodes: Sequence[int]) -> Tensor:
    """The sum of some rows of each power of the view's operator."""
    row = np.zeros(inputs.num_nodes)
    row[nodes] = 1.0
    rows = [row]
    if view.hops:
        graph, weight = inputs.graph(view.operator_direction)
        operator = graph_operator(
            graph,
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
    return torch.from_numpy(np.stack(rows[-1:] if view.alone else rows))
