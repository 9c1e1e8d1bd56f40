import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Batch, Data

from adgn.data import PackedDataset, PackedGraphs


@st.composite
def graph_lists(draw, y_level=None):
    level = y_level or draw(st.sampled_from(["node", "graph"]))
    with_mask = draw(st.booleans())
    graphs = []
    for _ in range(draw(st.integers(1, 5))):
        n = draw(st.integers(1, 4))
        edges = draw(st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=5))
        graph = Data(
            x=torch.tensor(draw(st.lists(st.integers(0, 99), min_size=n, max_size=n))).view(n, 1),
            edge_index=torch.tensor(edges, dtype=torch.long).reshape(-1, 2).t().contiguous(),
        )
        rows = n if level == "node" else 1
        graph.y = torch.tensor(draw(st.lists(st.integers(0, 99), min_size=rows, max_size=rows)))
        if with_mask:
            graph.mask = torch.arange(n) == draw(st.integers(0, n - 1))
        graphs.append(graph)
    return graphs, level


def assert_same(found, expected):
    assert set(found.keys()) == set(expected.keys())
    for name in expected.keys():  # noqa: SIM118
        assert torch.equal(found[name], expected[name]), name


@given(graph_lists(), st.data())
def test_batch_equals_pyg_s_collation(case, data):
    graphs, level = case
    packed = PackedGraphs.from_data_list(graphs, y_level=level)
    chosen = data.draw(st.lists(st.integers(0, len(graphs) - 1), min_size=1, max_size=6))
    expected = Batch.from_data_list([graphs[i] for i in chosen])
    assert_same(packed.batch(chosen), expected)
    assert_same(packed.batch(torch.tensor(chosen)), expected)
    assert_same(packed.select(chosen).batch(), expected)
    assert packed.batch(chosen).num_graphs == len(chosen)


@given(graph_lists())
def test_items_are_the_graphs(case):
    graphs, level = case
    packed = PackedGraphs.from_data_list(graphs, y_level=level)
    assert len(packed) == len(graphs)
    for number, graph in enumerate(graphs):
        assert_same(packed[number], graph)
        assert_same(packed[number - len(graphs)], graph)


@given(graph_lists(), st.data())
def test_masks_slices_and_negative_numbers_choose_as_lists_do(case, data):
    graphs, level = case
    packed = PackedGraphs.from_data_list(graphs, y_level=level)
    count = len(graphs)
    flags = data.draw(st.lists(st.booleans(), min_size=count, max_size=count))
    by_mask = packed.select(torch.tensor(flags))
    by_list = packed.select([i for i, flag in enumerate(flags) if flag])
    assert len(by_mask) == sum(flags)
    assert torch.equal(by_mask.x, by_list.x)
    assert torch.equal(packed.select(slice(None, None, 2)).x, packed.select(range(0, count, 2)).x)
    assert torch.equal(packed.select([-1]).x, packed.select([count - 1]).x)


def two_graphs():
    pair = Data(x=torch.ones(2, 1), edge_index=torch.tensor([[0], [1]]), y=torch.ones(1))
    one = Data(x=torch.zeros(1, 1), edge_index=torch.tensor([[0], [0]]), y=torch.zeros(1))
    return [pair, one]


def test_out_of_range_and_misshapen_choices_are_refused():
    packed = PackedGraphs.from_data_list(two_graphs(), y_level="graph")
    for choice in ([2], [-3], torch.tensor([0, 7])):
        with pytest.raises(IndexError, match=r"graph (2|-3|7) is out of range for 2 graphs"):
            packed.select(choice)
    with pytest.raises(IndexError, match="graph 2 is out of range for 2 graphs"):
        packed[2]
    with pytest.raises(IndexError, match=r"shape \(3,\)"):
        packed.select(torch.tensor([True, False, True]))
    with pytest.raises(IndexError, match="float32"):
        packed.select(torch.tensor([0.5]))


def test_wrong_graphs_are_refused():
    with pytest.raises(ValueError, match="graphs is empty"):
        PackedGraphs.from_data_list([], y_level="graph")
    with pytest.raises(ValueError, match=r"graphs\[0\].y .*node.* needs 2"):
        PackedGraphs.from_data_list(two_graphs(), y_level="node")
    graphs = two_graphs()
    graphs[1].edge_index = torch.tensor([[0], [5]])
    with pytest.raises(ValueError, match=r"graphs\[1\].edge_index .* 0 to 5.* 1 nodes"):
        PackedGraphs.from_data_list(graphs, y_level="graph")
    graphs = two_graphs()
    graphs[0].mask = torch.tensor([True, True])
    with pytest.raises(ValueError, match=r"graphs\[0\].mask has 2 true"):
        PackedGraphs.from_data_list(graphs, y_level="graph")


def test_inconsistent_tensors_are_refused():
    packed = PackedGraphs.from_data_list(two_graphs(), y_level="graph")
    fields = dict(vars(packed))
    with pytest.raises(ValueError, match="y has 3 rows"):
        PackedGraphs(**{**fields, "y": torch.zeros(3)})
    with pytest.raises(ValueError, match="y_level='edge'"):
        PackedGraphs(**{**fields, "y_level": "edge"})
    with pytest.raises(ValueError, match=r"edge_index has shape \(3, 2\)"):
        PackedGraphs(**{**fields, "edge_index": torch.zeros(3, 2)})


def test_shared_edges_serve_all_graphs():
    edges = torch.tensor([[0, 1], [1, 0]])
    packed = PackedGraphs(
        x=torch.arange(6.0).view(6, 1),
        edge_index=edges,
        node_ptr=torch.tensor([0, 2, 4, 6]),
        edge_start=torch.zeros(3, dtype=torch.long),
        edge_count=torch.full((3,), 2),
        y=torch.zeros(3),
        y_level="graph",
    )
    assert packed.batch([2, 0]).edge_index.tolist() == [[0, 1, 2, 3], [1, 0, 3, 2]]
    assert packed.select([2, 0]).edge_index is edges


def test_to_moves_every_tensor():
    moved = PackedGraphs.from_data_list(two_graphs(), y_level="graph").to("meta")
    tensors = [value for value in vars(moved).values() if isinstance(value, torch.Tensor)]
    assert {tensor.device.type for tensor in tensors} == {"meta"}


def test_dataset_slices_keep_their_packed_form():
    dataset = PackedDataset(PackedGraphs.from_data_list(two_graphs(), y_level="graph"))
    assert len(dataset) == 2
    assert len(dataset[1:].packed) == 1
    assert torch.equal(dataset[1:].packed.x, dataset[1].x)
