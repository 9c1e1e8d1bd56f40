"""Which rank owns which node, and the files that say so."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from adgn.distributed.errors import RankError
from adgn.distributed.partition import (
    METHODS,
    partition,
    partition_quality,
    read_partition,
    write_partition,
)


def cliques(count, size):
    """Complete graphs in a ring, joined by single edges."""
    edges = [
        [c * size + i, c * size + j] for c in range(count) for i in range(size) for j in range(size)
    ]
    edges += [[c * size, ((c + 1) % count) * size + 1] for c in range(count)]
    return torch.tensor([edge for edge in edges if edge[0] != edge[1]]).t()


def methods(*names):
    marks = {
        "metis": pytest.mark.skipif("not __import__('importlib.util').util.find_spec('pymetis')")
    }
    return pytest.mark.parametrize(
        "method", [pytest.param(name, marks=marks.get(name, ())) for name in names]
    )


@methods("ldg", "blocks", "metis")
@pytest.mark.parametrize("parts", [2, 4])
def test_cliques_stay_whole(method, parts):
    edges = cliques(4, 20)
    quality = partition_quality(edges, partition(edges, 80, parts, method), parts)
    # One pass and its rounds may leave a node where room was found for it.
    assert quality.cut == parts if method != "ldg" else quality.cut_share < 0.06
    assert quality.balance < 1.1
    assert quality.bytes_per_product(16) == sum(quality.halo) * 16 * 4


@methods("ldg", "blocks", "metis")
def test_nodes_count_besides_edges(method):
    """A dense part of few nodes weighs as much as a path of many: products with the weights."""
    path = torch.arange(40, 124)
    edges = torch.cat([cliques(1, 40), torch.stack([path[:-1], path[1:]])], dim=1)
    owner = partition(edges, 124, 2, method)
    dense, sparse = owner[:40].bincount(minlength=2), owner[40:].bincount(minlength=2)
    assert dense.max() >= 36 and sparse.max() >= 76
    assert dense.argmax() != sparse.argmax()


@given(st.data())
@settings(deadline=None, max_examples=40)
def test_every_rank_has_a_node_and_few_have_too_many(data):
    nodes = data.draw(st.integers(1, 30))
    end = st.integers(0, nodes - 1)
    edges = data.draw(st.lists(st.tuples(end, end), max_size=60))
    edge_index = torch.tensor(edges).long().view(-1, 2).t()
    parts = data.draw(st.integers(1, nodes))
    owner = partition(edge_index, nodes, parts, data.draw(st.sampled_from(["ldg", "blocks"])))
    assert owner.unique().tolist() == list(range(parts))
    quality = partition_quality(edge_index, owner, parts)
    assert sum(quality.nodes) == nodes and sum(quality.entries) == len(edges)
    assert quality.cut == sum(owner[a] != owner[b] for a, b in edges)
    # A halo row is a node that another rank's node hears.
    heard = {(int(owner[b]), a) for a, b in edges if owner[a] != owner[b]}
    assert sum(quality.halo) == len(heard)


def test_wrong_numbers_are_refused():
    edges = cliques(2, 3)
    with pytest.raises(ValueError, match=r"7 workers cannot share a graph of 6 nodes"):
        partition(edges, 6, 7)
    with pytest.raises(ValueError, match=r"method='metsi'.*metis"):
        partition(edges, 6, 2, "metsi")
    assert "auto" in METHODS


def test_files(tmp_path):
    edges, file = cliques(2, 3), tmp_path / "two.safetensors"
    owner = partition(edges, 6, 2)
    write_partition(file, owner, edges, 2)
    assert read_partition(file, edges, 6, 2).equal(owner)
    with pytest.raises(RankError, match=r"is the partition of another graph \(6 nodes"):
        read_partition(file, edges.flip(1), 6, 2)
    with pytest.raises(RankError, match=r"has 2 parts, and there are 3 ranks"):
        read_partition(file, edges, 6, 3)
    for wrong in (-1, 2):
        write_partition(file, torch.tensor([0, 0, 1, 1, wrong, 0]), edges, 2)
        with pytest.raises(RankError, match=rf"two.safetensors gives node 4 to rank {wrong}, and"):
            read_partition(file, edges, 6, 2)
    file.write_bytes(b"something else")
    with pytest.raises(RankError, match="is no partition"):
        read_partition(file, edges, 6, 2)
    with pytest.raises(RankError, match="cannot read the partition"):
        read_partition(tmp_path / "none", edges, 6, 2)
