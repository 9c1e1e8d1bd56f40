"""The largest connected component of a graph."""

import torch
from torch import Tensor
from torch_geometric.data import Data

from adgn.data.rewiring import take_nodes
from adgn.transforms.components import component_nodes


def largest_component(data: Data) -> Data:
    """The part of a graph that is its largest connected component (edges taken as undirected).

    Of components of the same size, the one with the smallest node number is taken. Node-level
    tensors (features, sparse ones too, labels, masks) keep the chosen nodes in their order;
    `node_id` says which they were. The protocol of Shchur et al. (2018) takes this step; the
    A-DGN paper does not.

    Example:
        >>> graph = Data(x=torch.eye(3), edge_index=torch.tensor([[1, 2], [2, 1]]))
        >>> part = largest_component(graph)
        >>> part.node_id.tolist(), part.edge_index.tolist()
        ([1, 2], [[0, 1], [1, 0]])
    """
    nodes = int(data.num_nodes)
    members = component_nodes(data.edge_index.cpu().numpy(), nodes)
    kept = torch.from_numpy(members).to(data.edge_index.device)
    new_number = torch.full((nodes,), -1, device=kept.device)
    new_number[kept] = torch.arange(kept.numel(), device=kept.device)
    inside = new_number[data.edge_index[0]] >= 0

    part = take_nodes(data, kept)
    part.edge_index = new_number[data.edge_index[:, inside]]
    for name, value in data:
        if name != "edge_index" and isinstance(value, Tensor) and data.is_edge_attr(name):
            part[name] = value[inside]
    part.node_id = kept
    return part
