"""The largest connected component of a graph."""

import numpy as np
import scipy.sparse
import torch
from scipy.sparse.csgraph import connected_components
from torch import Tensor
from torch_geometric.data import Data

from adgn.data.features import select_rows


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
    row, column = data.edge_index.cpu().numpy()
    matrix = scipy.sparse.coo_matrix((np.ones(row.size, dtype=bool), (row, column)), (nodes, nodes))
    _, component = connected_components(matrix, directed=False)
    kept = torch.from_numpy(np.flatnonzero(component == np.bincount(component).argmax()))
    kept = kept.to(data.edge_index.device)
    new_number = torch.full((nodes,), -1, device=kept.device)
    new_number[kept] = torch.arange(kept.numel(), device=kept.device)
    inside = new_number[data.edge_index[0]] >= 0

    part = Data()
    for name, value in data:
        if name == "edge_index":
            part.edge_index = new_number[value[:, inside]]
        elif not isinstance(value, Tensor):
            part[name] = value
        elif data.is_edge_attr(name):
            part[name] = value[inside]
        else:
            part[name] = select_rows(value, kept) if data.is_node_attr(name) else value
    part.node_id = kept
    return part
