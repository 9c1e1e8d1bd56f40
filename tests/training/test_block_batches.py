import pytest
import torch

from adgn.graph import GraphBlocks
from adgn.training import BlockBatches

NODE_PTR = torch.tensor([0, 2, 5, 6])
EDGES = torch.tensor([[0, 2, 3, 4], [1, 3, 4, 2]])


def source(graphs=(0, 1, 2), size=2, **options):
    x = torch.arange(12.0).view(6, 2)
    blocks = GraphBlocks(EDGES, NODE_PTR, options.pop("edge_weight", None))
    y = torch.tensor([5, 6, 7])
    return BlockBatches(options.pop("x", x), blocks, y, torch.tensor(graphs), size, **options)


def test_a_batch_has_the_features_and_edges_of_its_graphs():
    (batch,) = source(graphs=(1,)).batches(0)
    assert batch.x.tolist() == [[4.0, 5.0], [6.0, 7.0], [8.0, 9.0]]
    assert batch.graph.edge_index.tolist() == [[0, 1, 2], [1, 2, 0]]
    assert batch.y.tolist() == [6]
    assert (batch.size, batch.num_graphs, batch.weight) == (1, 1, None)


def test_edge_weights_and_sparse_features_come_along():
    weighted = source(edge_weight=torch.tensor([1.0, 2.0, 3.0, 4.0]), graphs=(1,))
    (batch,) = weighted.batches(0)
    assert batch.graph.operator("none", torch.float32).to_dense().sum() == 9
    (sparse,) = source(x=torch.eye(6).to_sparse_csr(), graphs=(2,)).batches(0)
    assert sparse.x.to_dense().tolist() == [[0.0] * 5 + [1.0]]


def test_passes_are_shuffled_by_their_number_and_every_graph_comes_once():
    shuffled = source(size=1, seed=3)
    passes = [[int(b.y) for b in shuffled.batches(number)] for number in range(6)]
    assert all(sorted(order) == [5, 6, 7] for order in passes)
    assert len({tuple(order) for order in passes}) > 1
    assert passes[4] == [int(b.y) for b in shuffled.batches(4)]
    assert passes[4][1:] == [int(b.y) for b in shuffled.batches(4, first=1)]
    other = shuffled.with_seed(4)
    assert [[int(b.y) for b in other.batches(n)] for n in range(6)] != passes


def test_without_a_seed_batches_are_made_once_in_order():
    fixed = source()
    assert [b.y.tolist() for b in fixed.batches(0)] == [[5, 6], [7]]
    assert next(fixed.batches(0)) is next(fixed.batches(9))
    assert [b.y.tolist() for b in fixed.batches(0, first=1)] == [[7]]
    assert len(fixed) == 2


def test_weights_are_shares_of_the_batch():
    (batch,) = source(size=3, weight=torch.tensor([1.0, 1.0, 2.0])).batches(0)
    assert batch.weight.tolist() == [0.25, 0.25, 0.5]


def test_wrong_sizes_are_told():
    with pytest.raises(ValueError, match="batch_size=0"):
        source(size=0)
    with pytest.raises(ValueError, match="graphs is empty"):
        source(graphs=())
