"""Graphs of PyG: one `Data`, or a list or data set of them."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor
from torch_geometric.data import Batch, Data, Dataset

from adgn.data.features import csr_from_scipy, csr_to_scipy
from adgn.data.own.arrays import graph_from_arrays
from adgn.data.own.graph import Graph, Level
from adgn.data.packed import offsets
from adgn.data.root import GraphInputError

USED = {"x", "edge_index", "y", "edge_weight", "edge_attr", "train_mask", "val_mask", "test_mask"}
PASSED_OVER = {"num_nodes", "batch", "ptr"}


def graph_from_pyg(
    data: Any,
    *,
    target_name: str,
    directed: bool | None,
    level: Level | None,
) -> Graph:
    """See `Graph.from_pyg`."""
    if isinstance(data, Batch):
        data = data.to_data_list()
    elif isinstance(data, Dataset) and len(data) == 1:
        data = data[0]
    single = isinstance(data, Data)
    graphs = [data] if single else _list(data)
    for number, graph in enumerate(graphs):
        _check(graph, "data" if single else f"data[{number}]", graphs[0])
    counts = torch.tensor([graph.num_nodes for graph in graphs])
    shifts = offsets(counts)[:-1].tolist()
    index = torch.cat([g.edge_index + s for g, s in zip(graphs, shifts, strict=True)], dim=1)
    y, found = _targets(graphs, single)
    if level is not None and found is not None and level != found:
        raise GraphInputError(f"level={level!r}, but y has one row per {found}")
    made = graph_from_arrays(
        _joined(graphs, "x"),
        index,
        y,
        edge_weight=_joined(graphs, "edge_weight"),
        ids=np.concatenate([np.arange(count) for count in counts.tolist()]),
        feature_names=None,
        target_name=target_name,
        directed=directed,
        graph_of_node=None if single else torch.arange(len(graphs)).repeat_interleave(counts),
        level=found or level,
    )
    attributes = _joined(graphs, "edge_attr")
    changes: dict[str, Any] = {"origin": "data", "notes": (*made.notes, *_unused(graphs))}
    if attributes is not None:
        columns = attributes.reshape(index.shape[1], -1).cpu().numpy()
        names = [f"edge_attr{place}" for place in range(columns.shape[1])]
        changes["edge_columns"] = pa.table([np.ascontiguousarray(c) for c in columns.T], names)
        changes["edge_ends"] = index
    if made.level == "node" and all("train_mask" in graph for graph in graphs):
        changes["split"], note = _split(graphs)
        changes["notes"] += note
    return replace(made, **changes)


def _list(data: Any) -> list[Data]:
    if not isinstance(data, Iterable) or isinstance(data, str):
        raise GraphInputError(
            f"data is of the type {type(data).__name__}; give a Data of PyG, or a list of them"
        )
    graphs = list(data)
    if not graphs:
        raise GraphInputError("data is empty; give at least one graph")
    for number, graph in enumerate(graphs):
        if not isinstance(graph, Data):
            raise GraphInputError(
                f"data[{number}] is of the type {type(graph).__name__}; give graphs of PyG's class "
                "Data (of a HeteroData: to_homogeneous())"
            )
    return graphs


def _check(graph: Data, name: str, first: Data) -> None:
    if graph.num_nodes is None or graph.num_nodes == 0:
        raise GraphInputError(f"{name} has no nodes; leave it out")
    if graph.edge_index is None:
        raise GraphInputError(f"{name} has no edge_index; give one, of shape [2, 0] without edges")
    for attribute in ("x", "y", "edge_weight", "edge_attr"):
        if (graph.get(attribute) is None) != (first.get(attribute) is None):
            raise GraphInputError(
                f"{name} and data[0] differ: one has {attribute}, the other has not"
            )


def _joined(graphs: list[Data], attribute: str) -> Tensor | None:
    values = [graph.get(attribute) for graph in graphs]
    if values[0] is None:
        return None
    if len(values) == 1:
        tensor: Tensor = values[0]
        return tensor.detach()
    if attribute == "x" and values[0].layout != torch.strided:
        import scipy.sparse

        stacked = scipy.sparse.vstack([csr_to_scipy(value.to_sparse_csr()) for value in values])
        return csr_from_scipy(stacked.tocsr())
    widths = {tuple(value.shape[1:]) for value in values}
    if len(widths) > 1:
        raise GraphInputError(f"graphs have {attribute} of different widths: {sorted(widths)}")
    return torch.cat([value.detach() for value in values])


def _targets(graphs: list[Data], single: bool) -> tuple[Tensor | None, Level | None]:
    values = [graph.y for graph in graphs]
    if values[0] is None:
        return None, None
    values = [torch.as_tensor(value) for value in values]
    values = [value.reshape(1) if value.dim() == 0 else value for value in values]
    pairs = list(zip(graphs, values, strict=True))
    of_nodes = all(value.shape[0] == graph.num_nodes for graph, value in pairs)
    of_graphs = all(value.shape[0] == 1 for value in values)
    if not of_nodes and not of_graphs:
        raise GraphInputError(
            f"y has {values[0].shape[0]} rows for the first graph of {graphs[0].num_nodes} nodes; "
            "give one row per node, or one row per graph"
        )
    target = torch.cat(values)
    if target.dim() == 2 and target.shape[1] == 1:
        target = target.squeeze(1)
    return target, "graph" if of_graphs and (not of_nodes or not single) else "node"


def _split(graphs: list[Data]) -> tuple[pa.Array | None, tuple[str, ...]]:
    """The masks as one column; several splits beside one another are left out."""
    if graphs[0].train_mask.dim() != 1:
        number = graphs[0].train_mask.shape[1]
        return None, (f"data: train_mask has {number} splits and is not used; choose one of them",)
    parts = np.full(sum(int(graph.num_nodes or 0) for graph in graphs), None, dtype=object)
    for attribute, part in (("train_mask", "train"), ("val_mask", "valid"), ("test_mask", "test")):
        mask = _joined(graphs, attribute)
        if mask is not None:
            parts[mask.cpu().numpy().astype(bool)] = part
    return pa.array(parts, pa.string()), ()


def _unused(graphs: list[Data]) -> tuple[str, ...]:
    names = sorted({name for graph in graphs for name in graph.keys()} - USED - PASSED_OVER)  # noqa: SIM118
    if not names:
        return ()
    return (f"data: {len(names)} attribute(s) are not used: {', '.join(names)}",)
