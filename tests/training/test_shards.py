"""A rank that has nothing but its shard, and shards that are missing, damaged or of others."""

import shutil

import pytest
import torch
from safetensors.torch import load_file

from adgn.distributed.errors import RankError
from adgn.distributed.partition import partition
from adgn.distributed.ranks import Ranks
from adgn.graph.blocks import graph_as_given
from adgn.nn import build_model
from adgn.training import FullGraph, TaskData
from adgn.training.config import TaskConfig
from adgn.training.shards import read_shard, shard_file, write_shards
from adgn.training.shares import digest
from tests.helpers.rank_threads import on_ranks, on_store

EDGES = torch.tensor([[0, 1, 2, 3, 4, 5, 6, 0, 2, 2, 5, 7], [1, 2, 3, 4, 5, 6, 0, 4, 6, 2, 1, 0]])
OWNER = torch.tensor([0, 0, 0, 1, 1, 1, 0, 1, 1])
TASK = TaskConfig(name="nine-nodes")


class One(Ranks):
    """A rank that is not asked to agree with others."""

    def __init__(self, rank, size=2):
        self.rank, self.size = rank, size


def nine_nodes(*, sparse=False, normalized=False, weighted=False):
    x = torch.randn(9, 4, generator=torch.Generator().manual_seed(0))
    x = (x * (x > 0.5)).to_sparse_csr() if sparse else x
    y = torch.tensor([0, 1, 2, -1, 0, 1, 2, 0, 1])
    weight = torch.linspace(0.5, 2.0, EDGES.size(1)) if normalized or weighted else None
    graph, rest = graph_as_given(EDGES, weight, 9, normalized=normalized)
    class_weight = torch.tensor([1.0, 2.0, 3.0, 1.0])[y]
    nodes = {"train": torch.tensor([5, 0, 3]), "val": torch.tensor([1, 2, 7]), "test": None}
    nodes["test"] = torch.arange(9) > 5
    sources = {
        split: FullGraph(x, graph, y, rows, edge_weight=rest, weight=class_weight)
        for split, rows in nodes.items()
    }
    notes = {"notes": ("a note",), "transforms": ("turned",)}
    return TaskData(4, 3, "node", sources["train"], sources, {"accuracy": 0.5}, **notes)


@pytest.fixture
def folder(tmp_path):
    write_shards(tmp_path, nine_nodes(), OWNER, 2, TASK)
    return tmp_path


@pytest.mark.parametrize(
    "kind", [{}, {"sparse": True}, {"normalized": True}, {"weighted": True}], ids=str
)
def test_shards_have_all_that_training_needs(tmp_path, kind):
    data = nine_nodes(**kind)
    write_shards(tmp_path, data, OWNER, 2, TASK)
    torch.manual_seed(0)
    network = build_model("gcn", 4, 8, 3, 3)
    whole = data.train.whole
    with torch.no_grad():
        expected = network(whole.x, whole.graph, edge_weight=whole.edge_weight)

    def work(rank, exchange):
        share = read_shard(tmp_path, One(rank), TASK, exchange=exchange)
        batch = share.train.whole
        with torch.no_grad():
            return share, network(batch.x, batch.graph)

    for rank, (share, output) in enumerate(on_ranks(2, work)):
        own = share.train.whole.graph.nodes
        assert own.sort().values.tolist() == (rank == OWNER).nonzero().view(-1).tolist()
        torch.testing.assert_close(output, expected[own])
        assert share.train is share.sources["train"]
        about = (share.constant, share.notes, share.transforms, share.out_channels)
        assert about == ({"accuracy": 0.5}, ("a note",), ("turned",), 3)
        for split, source in data.sources.items():
            batch, there = share.sources[split].whole, source.whole
            kept = (OWNER[there.rows] == rank) & (there.y != -1)
            assert batch.node_id[batch.rows].tolist() == there.rows[kept].tolist()
            assert batch.y.tolist() == there.y[kept].tolist()


def test_shards_of_an_older_version_are_refused(folder, monkeypatch):
    monkeypatch.setattr("adgn.training.shards._FORMAT", 3)
    with pytest.raises(RankError, match=r"by an older version of adgn; write the shards anew"):
        read_shard(folder, One(0), TASK, exchange=None)


def test_weights_of_prepared_graphs_count_in_the_digest():
    """Ranks, or a shard and a run, whose graphs differ in weights alone are told apart."""

    def of(weight):
        graph, _ = graph_as_given(EDGES, weight, 9, normalized=True)
        source = FullGraph(torch.zeros(9, 4), graph, torch.arange(9), torch.arange(9))
        return digest(TaskData(4, 9, "node", source, {"train": source}, {}))

    weight = torch.linspace(0.5, 2.0, EDGES.size(1))
    assert of(weight) == of(weight.clone())
    assert of(weight) != of(weight * 2)


def test_a_file_has_the_share_of_a_rank_alone(folder):
    files = [load_file(shard_file(folder, rank)) for rank in (0, 1)]
    assert files[0]["x"].size(0) == 4 and files[1]["x"].size(0) == 5
    assert files[0]["edge_index"].size(1) == 10 and files[1]["edge_index"].size(1) == 7


def damage(kind, folder):
    first, second = shard_file(folder, 0), shard_file(folder, 1)
    if kind == "missing":
        second.unlink()
    elif kind == "cut off":
        second.write_bytes(second.read_bytes()[:-40])
    elif kind == "no shard":
        second.write_bytes(b"something else")
    elif kind == "a flipped bit":
        data = bytearray(second.read_bytes())
        data[-3] ^= 4
        second.write_bytes(bytes(data))
    elif kind == "of rank 0":
        shutil.copy(first, second)
    elif kind == "of another partition":
        write_shards(folder / "other", nine_nodes(), OWNER.roll(1), 2, TASK)
        shutil.copy(shard_file(folder / "other", 1), second)
    elif kind == "a folder":
        second.unlink()
        second.mkdir()


MESSAGES = {
    "missing": r"rank 1 of 2 has no shard: .*rank-1.safetensors is not there; copy it",
    "cut off": r"rank-1.safetensors is no shard, or damaged",
    "no shard": r"rank-1.safetensors is no shard, or damaged",
    "a flipped bit": r"rank-1.safetensors does not have the checksum",
    "of rank 0": r"rank-1.safetensors is the shard of rank 0, not of rank 1",
    "of another partition": r"ranks differ in the partition of the shards: rank 0 has \w+, rank 1 ",
    "a folder": r"(cannot read the shard|is no shard)",
}


@pytest.mark.parametrize("kind", MESSAGES)
def test_every_rank_is_told_what_is_wrong_with_a_shard(folder, kind):
    damage(kind, folder)

    def work(ranks):
        with ranks.reporting_errors():
            read_shard(folder, ranks, TASK, exchange=object())

    for error in on_store(2, work):
        with pytest.raises(RankError, match=MESSAGES[kind]):
            raise error


def test_no_byte_of_a_header_may_change(folder):
    file = shard_file(folder, 1)
    data = file.read_bytes()
    end = 8 + int.from_bytes(data[:8], "little")
    assert b"out_channels" in data[:end] and b"spread" in data[:end]
    read_shard(folder, One(1), TASK, exchange=object())
    for place in range(len(data[:end].rstrip())):
        changed = bytearray(data)
        changed[place] ^= 1
        file.write_bytes(bytes(changed))
        refused = r"rank-1.safetensors (does not have|is no shard|was written by a newer version)"
        with pytest.raises(RankError, match=refused):
            read_shard(folder, One(1), TASK, exchange=object())


def test_other_data_and_other_numbers_of_ranks(folder):
    with pytest.raises(RankError, match=r"of other data \(name: 'ten-nodes', not 'nine-nodes'\)"):
        read_shard(folder, One(0), TaskConfig(name="ten-nodes"))
    with pytest.raises(RankError, match=r"is one of 2 shards, and there are 3 ranks; take"):
        read_shard(folder, One(0, 3), TASK)


def test_a_graph_whose_parts_are_not_joined(tmp_path):
    """Ranks that exchange nothing must all know it."""
    edges = torch.tensor([[0, 1, 2, 3], [1, 0, 3, 2]])
    source = FullGraph(torch.eye(4), edges, torch.zeros(4).long(), torch.arange(4))
    data = TaskData(4, 2, "node", source, {"train": source}, {})
    write_shards(tmp_path, data, partition(edges, 4, 2), 2, TASK)
    for rank in (0, 1):
        share = read_shard(tmp_path, One(rank), TASK, exchange=object())
        operator = share.train.whole.graph.operator("gcn", torch.float32)
        assert not operator.halo.exchanged
        assert (operator @ torch.ones(2, 1)).flatten().tolist() == pytest.approx([1.0, 1.0])
