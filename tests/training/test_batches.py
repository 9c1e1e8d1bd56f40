import pytest
import torch
from torch_geometric.data import Batch, Data
from torch_geometric.loader import DataLoader

from adgn.data import GraphPropertyDataset, GraphTransfer, PackedGraphs, TreeNeighborsMatch
from adgn.nn import ADGN
from adgn.training import FullGraph, LabelledBatch, LoaderBatches, PackedBatches, labelled_batch


@pytest.fixture(scope="module", params=["sssp", "diameter"])
def graphs(request, tmp_path_factory):
    root = tmp_path_factory.mktemp("data")
    sizes = {"train": (3, 5), "val": (1, 2), "test": (1, 2)}
    return GraphPropertyDataset(root, "train", request.param, min_nodes=5, **sizes)


def test_batch_is_what_pyg_makes_of_the_same_graphs(graphs):
    source = PackedBatches(graphs.packed, 4)
    chosen = torch.tensor([3, 0, 14, 3])
    ours = source.batch(chosen)
    theirs = Batch.from_data_list([graphs[int(i)] for i in chosen])
    assert torch.equal(ours.x, theirs.x)
    assert torch.equal(ours.y, theirs.y)
    assert torch.equal(ours.batch, theirs.batch)
    assert torch.equal(ours.graph.edge_index, theirs.edge_index)
    assert ours.num_graphs == theirs.num_graphs


def test_shares_make_every_graph_count_the_same(graphs):
    batch = PackedBatches(graphs.packed, 15).batch(torch.arange(15))
    if batch.weight is None:  # a target per graph
        assert batch.y.size(0) == 15
    else:
        per_graph = torch.zeros(15).index_add(0, batch.batch, batch.weight)
        torch.testing.assert_close(per_graph, torch.full((15,), 1 / 15))


def test_a_pass_has_every_graph_once_in_an_order_of_its_own(graphs):
    source = PackedBatches(graphs.packed, 4, seed=3)

    def order(number):
        return torch.cat([batch.graph.graphs for batch in source.batches(number)])

    assert order(0).sort().values.equal(torch.arange(15))
    assert order(0).equal(order(0))
    assert not order(0).equal(order(1))
    other = PackedBatches(graphs.packed, 4, seed=4)
    assert not order(0).equal(torch.cat([b.graph.graphs for b in other.batches(0)]))


def test_a_pass_can_begin_anywhere(graphs):
    source = PackedBatches(graphs.packed, 4, seed=3)
    whole = list(source.batches(2))
    for first in range(5):
        rest = list(source.batches(2, first))
        assert len(rest) == len(whole) - first
        assert all(a.x.equal(b.x) for a, b in zip(rest, whole[first:], strict=True))


def test_unshuffled_batches_are_made_once(graphs):
    source = PackedBatches(graphs.packed, 4)
    assert [a is b for a, b in zip(source.batches(0), source.batches(1), strict=True)] == [True] * 4


@pytest.mark.parametrize("dataset", [GraphTransfer("ring", 3, num_graphs=9), TreeNeighborsMatch(2)])
def test_graphs_of_one_structure_share_it_and_read_the_right_node(dataset):
    source = PackedBatches(dataset.packed, 4)
    chosen = torch.tensor([5, 2, 2])
    ours = source.batch(chosen)
    theirs = Batch.from_data_list([dataset[int(i)] for i in chosen])
    assert len(source._blocks) == 1
    assert torch.equal(ours.x, theirs.x)
    assert torch.equal(ours.y, theirs.y)
    assert torch.equal(ours.rows, theirs.mask.nonzero().view(-1))
    edges = {tuple(edge) for edge in ours.graph.edge_index.t().tolist()}
    assert edges == {tuple(edge) for edge in theirs.edge_index.t().tolist()}


def test_some_shared_some_not():
    packed = PackedGraphs(
        x=torch.arange(7.0).view(-1, 1),
        edge_index=torch.tensor([[0, 1, 0], [1, 0, 2]]),
        node_ptr=torch.tensor([0, 2, 4, 7]),
        edge_start=torch.tensor([0, 0, 2]),
        edge_count=torch.tensor([2, 2, 1]),
        y=torch.zeros(3, 1),
        y_level="graph",
    )
    batch = PackedBatches(packed, 3).batch(torch.tensor([2, 1, 0]))
    assert batch.x.view(-1).tolist() == [4, 5, 6, 2, 3, 0, 1]
    assert batch.graph.edge_index.tolist() == [[0, 3, 4, 5, 6], [2, 4, 3, 6, 5]]


def test_model_gives_the_same_on_a_packed_and_on_a_pyg_batch(graphs):
    level = graphs.packed.y_level
    model = ADGN(2, 6, 1, num_layers=3, level=level)
    ours = PackedBatches(graphs.packed, 15).batch(torch.arange(15))
    theirs = Batch.from_data_list(list(graphs))
    out = model(ours.x, ours.graph, batch=ours.batch)
    expected = model(theirs.x, theirs.edge_index, batch=theirs.batch)
    torch.testing.assert_close(out, expected)


def test_wrong_batch_sizes_and_empty_sets_are_refused(graphs):
    with pytest.raises(ValueError, match="batch_size=0"):
        PackedBatches(graphs.packed, 0)
    with pytest.raises(ValueError, match="graphs is empty"):
        PackedBatches(graphs.packed.select([]), 2)


def test_full_graph_scores_the_masked_nodes():
    x, y = torch.randn(4, 2), torch.tensor([3, 2, 1, 0])
    edges = torch.tensor([[0, 1], [1, 0]])
    (batch,) = FullGraph(x, edges, y, torch.tensor([True, False, True, False])).batches(0)
    assert batch.y.tolist() == [3, 1]
    assert batch.rows.tolist() == [0, 2]
    assert batch.size == 2
    assert list(FullGraph(x, edges, y, batch.rows).batches(0, first=1)) == []
    with pytest.raises(ValueError, match="no node"):
        FullGraph(x, edges, y, torch.zeros(4, dtype=torch.bool))


def random_transform(data):
    data = data.clone()
    data.x = data.x + torch.rand(1)
    return data


@pytest.mark.parametrize("with_generator", [False, True])
def test_any_loader_repeats_its_passes_and_leaves_random_numbers_alone(with_generator):
    dataset = GraphTransfer("line", 2, num_graphs=9, transform=random_transform)
    generator = torch.Generator() if with_generator else None
    loader = DataLoader(dataset, batch_size=2, shuffle=True, generator=generator)
    source = LoaderBatches(loader, "train", seed=1)
    before = torch.get_rng_state()
    whole = [batch.x for batch in source.batches(3)]
    assert torch.get_rng_state().equal(before)
    for batch in source.batches(3):
        torch.rand(1)  # what a model with dropout does between two batches
        assert batch.x.equal(whole[0])
        break
    rest = [batch.x for batch in source.batches(3, first=2)]
    assert all(a.equal(b) for a, b in zip(rest, whole[2:], strict=True))
    assert not whole[0].equal(next(source.batches(4)).x)


def test_pyg_data_of_every_kind():
    edges = torch.tensor([[0, 1], [1, 0]])
    node = Data(x=torch.ones(2, 1), edge_index=edges, y=torch.tensor([[1.0], [2.0]]))
    three = Data(x=torch.ones(3, 1), edge_index=edges, y=torch.ones(3, 1))
    batch = labelled_batch(Batch.from_data_list([node, three]), "train")
    assert batch.size == 2
    torch.testing.assert_close(batch.weight, torch.tensor([1 / 4, 1 / 4, 1 / 6, 1 / 6, 1 / 6]))
    graph = Data(x=torch.ones(2, 1), edge_index=edges, y=torch.ones(1, 1))
    assert labelled_batch(Batch.from_data_list([graph, graph]), "val").weight is None
    node.val_mask = torch.tensor([False, True])
    assert labelled_batch(node, "val").y.tolist() == [[2.0]]
    assert labelled_batch(node, "train").y.tolist() == [[1.0], [2.0]]


def test_several_values_of_each_graph_in_a_row():
    edges = torch.tensor([[0, 1], [1, 0]])
    graphs = [Data(x=torch.ones(n, 1), edge_index=edges, y=torch.ones(3) * n) for n in (2, 5)]
    assert labelled_batch(graphs[0], "train").y.tolist() == [[2, 2, 2]]
    batch = labelled_batch(Batch.from_data_list(graphs), "train")
    assert batch.y.tolist() == [[2, 2, 2], [5, 5, 5]]
    assert (batch.size, batch.weight) == (2, None)


def test_shares_are_counted_anew_among_the_rows_that_are_kept():
    owner = torch.tensor([0, 0, 1, 1, 1, 2])
    y = torch.arange(6)
    whole = LabelledBatch(y, y, y, 3, owner, 3, weight=torch.ones(6) / 6)
    part = whole.keep(torch.tensor([True, False, True, True, False, False]))
    assert (part.y.tolist(), part.rows.tolist(), part.size) == ([0, 2, 3], [0, 2, 3], 2)
    torch.testing.assert_close(part.weight, torch.tensor([1 / 2, 1 / 4, 1 / 4]))
    some = LabelledBatch(y, y, y[3:], 3, rows=torch.tensor([3, 4, 5]))
    part = some.keep(torch.tensor([False, True, True]))
    assert (part.y.tolist(), part.rows.tolist(), part.size) == ([4, 5], [4, 5], 2)
    given = LabelledBatch(y, y, y[:3], 1, weight=torch.tensor([0.5, 0.25, 0.25]))
    part = given.keep(torch.tensor([True, True, False]))
    torch.testing.assert_close(part.weight, torch.tensor([2 / 3, 1 / 3]))


def test_numbers_of_nodes_are_kept():
    assert labelled_batch(sampled(2, 3), "train").node_id.tolist() == [10, 11, 12]


def test_pyg_data_that_cannot_be_trained_on():
    edges = torch.tensor([[0, 1], [1, 0]])
    with pytest.raises(ValueError, match="no y"):
        labelled_batch(Data(x=torch.ones(2, 1), edge_index=edges), "train")
    with pytest.raises(TypeError, match="gave a list"):
        labelled_batch([1], "train")
    data = Data(x=torch.ones(3, 1), edge_index=edges, y=torch.ones(2).long())
    with pytest.raises(ValueError, match=r"2 rows; expected one per node \(3\) or graph \(1\)"):
        labelled_batch(data, "train")
    masks = torch.ones(3, 10, dtype=torch.bool)
    data = Data(x=torch.ones(3, 1), edge_index=edges, y=torch.ones(3), train_mask=masks)
    with pytest.raises(ValueError, match="choose one split"):
        labelled_batch(data, "train")


def sampled(seeds, nodes, **attributes):
    """What PyG's NeighborLoader gives: the seeds first, then the neighbours that it sampled."""
    data = Data(
        x=torch.ones(nodes, 1),
        edge_index=torch.stack([torch.arange(1, nodes), torch.arange(nodes - 1)]),
        y=torch.arange(nodes),
        n_id=torch.arange(nodes) + 10,
        **attributes,
    )
    data.input_id, data.batch_size = torch.arange(seeds), seeds
    return data


def test_of_a_sampled_neighbourhood_only_the_seeds_are_scored():
    batch = labelled_batch(sampled(2, 5), "train")
    assert (batch.rows.tolist(), batch.y.tolist(), batch.size) == ([0, 1], [0, 1], 2)
    mask = torch.tensor([False, True, True, True, False])
    batch = labelled_batch(sampled(2, 5, train_mask=mask), "train")
    assert (batch.rows.tolist(), batch.y.tolist(), batch.size) == ([1], [1], 1)
    alone = labelled_batch(sampled(1, 1, val_mask=torch.tensor([False])), "val")
    assert (alone.rows.tolist(), alone.y.tolist(), alone.size) == ([], [], 0)


def test_a_batch_size_that_no_sampler_set_means_nothing():
    data = sampled(2, 5)
    del data.n_id, data.input_id
    assert labelled_batch(data, "train").y.tolist() == [0, 1, 2, 3, 4]


def test_batches_without_a_scored_row_are_passed_over():
    edges = torch.tensor([[0], [1]])
    masks = [[False, False], [True, False], [False, False], [True, True]]
    loader = [
        Data(x=torch.full((2, 1), float(i)), edge_index=edges, y=torch.arange(2))
        for i, _ in enumerate(masks)
    ]
    for data, mask in zip(loader, masks, strict=True):
        data.train_mask = torch.tensor(mask)
    source = LoaderBatches(loader, "train")
    assert [int(batch.x[0]) for batch in source.batches(0)] == [1, 3]
    assert [int(batch.x[0]) for batch in source.batches(0, first=1)] == [3]
    nobody = LoaderBatches([loader[0], loader[2]], "train")
    with pytest.raises(ValueError, match="the train mask selects no node in any of the 2 batches"):
        list(nobody.batches(0))
