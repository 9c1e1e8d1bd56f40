"""Transforms of data: what belongs to nodes follows them, and slow results are kept on disk."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from adgn.data.features import select_rows
from adgn.data.files import cache_path, load_or_build, sha256_of_tensors
from adgn.data.root import cache_folder, data_root
from adgn.transforms import EdgeGraph, Transform, TransformLike, apply_each, resolve_transforms

_REPORT = "report."


def transformed(
    data: Data, transform: TransformLike, *, root: str | os.PathLike[str] | None = None
) -> Data:
    """Data whose graph was transformed; features, labels, masks and splits follow the nodes.

    Args:
        data: One graph, with `edge_index` and, where it has weights, `edge_weight`.
        transform: A name, settings, a transform or a list, see
            [`resolve_transforms`][adgn.transforms.resolve_transforms].
        root: The data root, below which results are kept; see
            [`data_root`][adgn.data.data_root].

    Returns:
        New data. Where nodes were left out, `node_id` says which ones are there. `edge_weight` is
        there where the transforms gave weights. `normalized` says that these are an operator
        already, `fully_adjacent` that the last layer is to be on the complete graph, and
        `transform_notes` what was done, in a line for each transform.

    Example:
        >>> data = Data(x=torch.eye(3), edge_index=torch.tensor([[0, 1], [1, 0]]))
        >>> part = transformed(data, ["largest_component", "reverse"])
        >>> part.x.shape, part.node_id.tolist(), part.transform_notes
        (torch.Size([2, 3]), [0, 1], ['weak component: 1 nodes left out'])
    """
    if not isinstance(data, Data):
        raise TypeError(
            f"data is a {type(data).__name__}; give PyG data, Data(x=x, edge_index=edge_index), or "
            "apply the transform itself to an EdgeGraph(edge_index, num_nodes)"
        )
    transforms = resolve_transforms(transform)
    nodes = int(data.num_nodes or 0)
    for name, value in data:
        if name not in ("edge_index", "edge_weight") and data.is_edge_attr(name):
            raise ValueError(
                f"data.{name} has a row for each edge, and a transform changes the edges; leave "
                f"it out: del data.{name}"
            )
        if name in ("batch", "ptr") and isinstance(value, Tensor):
            raise ValueError(
                "data is a batch of many graphs; transform each of them before they are put "
                "together: [transformed(one, ...) for one in graphs]"
            )
    before = EdgeGraph(data.edge_index, nodes, data.get("edge_weight"))
    after, notes = apply_transforms(before, transforms, root=root)
    result = take_nodes(data, after.kept) if after.kept is not None else data.clone()
    result.edge_index = after.edge_index
    if "edge_weight" in result:
        del result.edge_weight
    if after.edge_weight is not None:
        result.edge_weight = after.edge_weight
    if after.kept is not None:
        earlier = data.get("node_id")
        result.node_id = after.kept if earlier is None else earlier[after.kept]
    result.num_nodes = after.num_nodes
    result.normalized = after.normalized
    result.fully_adjacent = after.fully_adjacent
    result.transform_notes = notes
    return result


def take_nodes(data: Data, kept: Tensor) -> Data:
    """Everything of the data but the edges, with some of its nodes."""
    part = Data()
    for name, value in data:
        if name == "edge_index" or (isinstance(value, Tensor) and data.is_edge_attr(name)):
            continue
        follows = isinstance(value, Tensor) and data.is_node_attr(name)
        part[name] = select_rows(value, kept) if follows else value
    return part


def apply_transforms(
    graph: EdgeGraph,
    transforms: Sequence[Transform],
    *,
    node_ptr: Tensor | None = None,
    root: str | os.PathLike[str] | None = None,
) -> tuple[EdgeGraph, list[str]]:
    """The graph after all transforms, in order, and what each did, in a line.

    Slow ones are read from disk where they are known.

    A file is found by the transform's settings and by what the graph is: its edges, weights and
    number of nodes.

    Args:
        graph: The graph, or many side by side.
        transforms: What to apply.
        node_ptr: `[G + 1]`; where the nodes of each of many graphs begin. `None`: there is one.
        root: The data root.
    """
    folder = cache_folder(data_root(root)) / "transforms"
    notes, report = [], dict(graph.report)
    for transform in transforms:
        transform.check(graph)
        graph = replace(graph, report={})  # one that is there twice tells of itself each time
        if transform.is_slow:
            graph = _remembered(transform, graph, node_ptr, folder)
        else:
            graph = apply_each(transform, graph, node_ptr)
        notes.append(_note(transform, graph.report))
        report |= graph.report
    return replace(graph, report=report), [note for note in notes if note]


def _note(transform: Transform, report: Mapping[str, float]) -> str:
    """What a transform did; empty where it has nothing to say."""
    start = f"{transform.name}."
    own = {k.removeprefix(start): v for k, v in report.items() if k.startswith(start)}
    return transform.describe(own) if own else ""


def _remembered(
    transform: Transform, graph: EdgeGraph, node_ptr: Tensor | None, folder: Path
) -> EdgeGraph:
    device = graph.edge_index.device
    content = {"edge_index": graph.edge_index.long().cpu()}
    if graph.edge_weight is not None:
        content["edge_weight"] = graph.edge_weight.detach().cpu()
    if node_ptr is not None:
        content["node_ptr"] = node_ptr.cpu()
    about: dict[str, Any] = {
        **transform.settings(),
        "version": transform.version,
        "nodes": graph.num_nodes,
        "normalized": graph.normalized,
        "graph": sha256_of_tensors(content),
    }
    plain = EdgeGraph(
        content["edge_index"], graph.num_nodes, content.get("edge_weight"), graph.normalized
    )
    path = cache_path(folder, transform.name, about)

    def build() -> dict[str, Tensor]:
        return _as_tensors(apply_each(transform, plain, content.get("node_ptr")))

    found = load_or_build(path, build)
    kept = found.get("kept")
    if kept is not None:
        kept = kept.to(device) if graph.kept is None else graph.kept[kept.to(device)]
    weight = found.get("edge_weight")
    start = len(_REPORT)
    report = {key[start:]: float(v) for key, v in found.items() if key.startswith(_REPORT)}
    return replace(
        graph,
        edge_index=found["edge_index"].to(device),
        num_nodes=int(found["num_nodes"]),
        edge_weight=None if weight is None else weight.to(device),
        normalized=bool(found["normalized"]),
        fully_adjacent=graph.fully_adjacent or bool(found.get("fully_adjacent", False)),
        kept=graph.kept if kept is None else kept,
        report={**graph.report, **report},
    )


def _as_tensors(graph: EdgeGraph) -> dict[str, Tensor]:
    tensors = {
        "edge_index": graph.edge_index,
        "num_nodes": torch.tensor(graph.num_nodes),
        "normalized": torch.tensor(graph.normalized),
        "fully_adjacent": torch.tensor(graph.fully_adjacent),
    }
    if graph.edge_weight is not None:
        tensors["edge_weight"] = graph.edge_weight
    if graph.kept is not None:
        tensors["kept"] = graph.kept
    for key, value in graph.report.items():
        tensors[f"{_REPORT}{key}"] = torch.tensor(value, dtype=torch.double)
    return tensors
