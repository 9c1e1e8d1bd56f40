"""A rank's share of one graph in a file of its own, so that no rank reads the whole graph.

FOLDER/rank-0.safetensors, rank-1.safetensors, …: the nodes of a rank with features, targets and
splits, the edges that touch them, and the owners of the other ends (`adgn.graph.parts`). Each file
says of which task, partition and rank it is, and has a checksum.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from adgn._util.files import parse_json, write_file
from adgn.distributed.errors import RankError
from adgn.distributed.exchange import RowExchange
from adgn.distributed.ranks import ProcessRanks, Ranks
from adgn.graph import GraphPart, PartitionedGraph
from adgn.graph.kernels import torch_csr
from adgn.graph.partitioned import Exchange
from adgn.training.batches import FullGraph, LabelledBatch
from adgn.training.config import TaskConfig, config_differences
from adgn.training.shares import WholeGraph, digest, graph_share
from adgn.training.tasks import TaskData

_FORMAT = 2  # 1 had the nodes of a rank in another order
_ABOUT = "adgn"
_FIT = "fit"  # the train batch, where it is another than the one of the train split
_DATA = ("in_channels", "out_channels", "level", "constant", "embeddings", "notes", "transforms")
_CSR = ("x.crow", "x.col", "x.value")


def shard_file(folder: Path, rank: int) -> Path:
    """Where the shard of a rank is."""
    return folder / f"rank-{rank}.safetensors"


def write_shards(
    folder: Path, data: TaskData, owner: Tensor, parts: int, task: TaskConfig
) -> list[Path]:
    """Writes the share of each rank into a folder; for this the whole data are needed, once.

    Args:
        folder: Made if it is not there.
        data: A task's data, which are one graph.
        owner: `[N]`; the rank of each node.
        parts: How many ranks.
        task: The settings that the data were made with.

    Returns:
        The files, by rank.
    """
    graph = WholeGraph.of(data)
    settings = _settings(task)
    name = hashlib.blake2b(digest(data).encode(), digest_size=16)
    name.update(owner.cpu().to(torch.int32).numpy().data)
    name.update(json.dumps([parts, settings], sort_keys=True).encode())
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for rank in range(parts):
        part = graph.part(owner, rank, parts)
        tensors = _tensors(graph_share(data, PartitionedGraph(part, None)), part)
        about = {
            "format": _FORMAT,
            "set": name.hexdigest(),
            "rank": rank,
            "parts": parts,
            "task": settings,
            "spread": part.spread,
            "normalized": part.normalized,
            "splits": list(data.sources),
            "data": {key: getattr(data, key) for key in (*_DATA, "fully_adjacent")},
        }
        about["checksum"] = _checksum(about, tensors)
        files.append(shard_file(folder, rank))
        write_file(files[-1], save(tensors, {_ABOUT: json.dumps(about)}))
    return files


def read_shard(
    folder: Path,
    ranks: Ranks,
    task: TaskConfig,
    device: torch.device | str = "cpu",
    exchange: Exchange | None = None,
) -> TaskData:
    """This rank's share of a task's data, from a folder that `write_shards` wrote.

    Raises:
        RankError: Its file is not there, damaged, or of another rank, task or number of ranks; or
            the files of the ranks are of several partitions.
    """
    file = shard_file(folder, ranks.rank)
    about, tensors = _read(file, ranks, device)
    again = (
        f"write the shards anew: `adgn partition {task.name} --parts {ranks.size} --shards FOLDER`"
    )
    if about.get("checksum") != _checksum(about, tensors):
        raise RankError(f"{file} does not have the checksum that it was written with; {again}")
    if about["parts"] != ranks.size:
        raise RankError(
            f"{file} is one of {about['parts']} shards, and there are {ranks.size} ranks; take "
            f"--workers {about['parts']}, or {again}"
        )
    if about["rank"] != ranks.rank:
        raise RankError(
            f"{file} is the shard of rank {about['rank']}, not of rank {ranks.rank}; give each "
            f"file the name that it was written with, or {again}"
        )
    if differences := config_differences(_settings(task), about["task"]):
        raise RankError(f"{file} is of other data ({'; '.join(differences[:3])}); {again}")
    ranks.agree({"the partition of the shards": about["set"]})
    if exchange is None:
        assert isinstance(ranks, ProcessRanks)
        exchange = RowExchange(ranks)
    try:
        return _task_data(about, tensors, exchange)
    except (KeyError, TypeError, ValueError) as error:
        raise RankError(f"{file} is no shard ({error}); {again}") from error


def _read(
    file: Path, ranks: Ranks, device: torch.device | str
) -> tuple[dict[str, Any], dict[str, Tensor]]:
    try:
        with safe_open(file, "pt", device=str(device)) as opened:
            about = parse_json((opened.metadata() or {})[_ABOUT])
            if about["format"] > _FORMAT:
                raise RankError(f"{file} was written by a newer version of adgn; take that one")
            if about["format"] < _FORMAT:
                raise RankError(
                    f"{file} was written by an older version of adgn; write the shards anew with "
                    "`adgn partition`"
                )
            return about, {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
    except FileNotFoundError as error:
        raise RankError(
            f"rank {ranks.rank} of {ranks.size} has no shard: {file} is not there; copy it to this "
            "machine, or write the shards with `adgn partition`"
        ) from error
    except OSError as error:
        raise RankError(f"cannot read the shard {file}: {error.strerror or error}") from error
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        raise RankError(
            f"{file} is no shard, or damaged ({error}); write it anew with `adgn partition`"
        ) from error


def _settings(task: TaskConfig) -> dict[str, Any]:
    """The settings that the data depend on; where they lie may be another place."""
    return task.model_dump(mode="json", exclude={"root"})


def _tensors(data: TaskData, part: GraphPart) -> dict[str, Tensor]:
    """The share of a rank as named tensors."""
    found: dict[str, Tensor | None] = {
        "number": part.number,
        "owner": part.owner,
        "edge_index": part.edge_index,
        "edge_weight": part.edge_weight,
    }
    train = data.train
    assert isinstance(train, FullGraph)
    first = train.whole
    if first.x.layout == torch.sparse_csr:
        arrays = (first.x.crow_indices(), first.x.col_indices(), first.x.values())
        found |= dict(zip(_CSR, arrays, strict=True))
    else:
        found["x"] = first.x
    assert first.node_id is not None
    found["node_id"] = first.node_id.clone()  # may be the very tensor of `number`
    sources = dict(data.sources)
    if all(train is not source for source in sources.values()):
        sources[_FIT] = train  # type: ignore[index]
    for split, source in sources.items():
        assert isinstance(source, FullGraph)
        batch = source.whole
        found |= {f"{split}.{key}": getattr(batch, key) for key in ("rows", "y", "weight")}
    return {name: t.detach().cpu().contiguous() for name, t in found.items() if t is not None}


def _task_data(
    about: Mapping[str, Any], tensors: Mapping[str, Tensor], exchange: Exchange
) -> TaskData:
    part = GraphPart(
        rank=about["rank"],
        size=about["parts"],
        number=tensors["number"],
        owner=tensors["owner"],
        edge_index=tensors["edge_index"],
        edge_weight=tensors.get("edge_weight"),
        spread=about["spread"],
        normalized=about["normalized"],
    )
    graph = PartitionedGraph(part, exchange)
    known = dict(about["data"])
    if "x" in tensors:
        x = tensors["x"]
    else:
        crow, col, value = (tensors[name] for name in _CSR)
        x = torch_csr(crow, col, value, (graph.num_nodes, known["in_channels"]), check=True)
    if x.size(0) != graph.num_nodes:
        raise ValueError(f"x has {x.size(0)} rows for {graph.num_nodes} nodes")

    def source(split: str) -> FullGraph:
        rows, y = tensors[f"{split}.rows"], tensors[f"{split}.y"]
        batch = LabelledBatch(x, graph, y, rows.numel(), rows=rows, node_id=tensors["node_id"])
        return FullGraph.of_batch(replace(batch, weight=tensors.get(f"{split}.weight")))

    sources: dict[Any, FullGraph] = {split: source(split) for split in about["splits"]}
    train = source(_FIT) if f"{_FIT}.rows" in tensors else sources["train"]
    for name in ("embeddings", "notes", "transforms"):  # JSON has lists
        known[name] = None if known[name] is None else tuple(known[name])
    return TaskData(train=train, sources=sources, **known)


def _checksum(about: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> str:
    """A digest of all that a shard has but for the digest itself."""
    hashed = hashlib.blake2b(digest_size=16)
    told = {key: value for key, value in about.items() if key != "checksum"}
    hashed.update(json.dumps(told, sort_keys=True).encode())
    for name in sorted(tensors):
        tensor = tensors[name].cpu().contiguous()
        hashed.update(f"{name}{tensor.dtype}{list(tensor.shape)}".encode())
        hashed.update(tensor.numpy().data)
    return hashed.hexdigest()
