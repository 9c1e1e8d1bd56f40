import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Batch, Data

from adgn.graph import GraphBlocks, graph_operator, set_backend
from adgn.nn import AntiSymmetricConv
from tests.graphs import Example, edges, graphs


def pack(examples: list[Example], weighted: bool = False) -> GraphBlocks:
    counts = torch.tensor([0] + [example.num_nodes for example in examples])
    pointer = counts.cumsum(0)
    shifted = [
        example.edge_index + start
        for example, start in zip(examples, pointer[:-1].tolist(), strict=True)
    ]
    weight = torch.cat([example.edge_weight for example in examples]) if weighted else None
    return GraphBlocks(torch.cat(shifted, dim=1), pointer, weight)


@st.composite
def selections(draw: st.DrawFn, fewest: int = 1) -> tuple[list[Example], list[int], bool]:
    weighted = draw(st.booleans())
    examples = draw(st.lists(graphs(max_nodes=4, weighted=weighted), min_size=1, max_size=4))
    chosen = draw(st.lists(st.integers(0, len(examples) - 1), min_size=fewest, max_size=5))
    return examples, chosen, weighted


@given(selections())
def test_a_batch_equals_the_operator_built_from_its_edges(case):
    examples, chosen, weighted = case
    selected = pack(examples, weighted).select(torch.tensor(chosen))
    batch = Batch.from_data_list(
        [
            Data(
                edge_index=examples[i].edge_index,
                num_nodes=examples[i].num_nodes,
                edge_weight=examples[i].edge_weight,
            )
            for i in chosen
        ]
    )
    assert torch.equal(selected.batch, batch.batch)
    assert torch.equal(selected.node_ptr, batch.ptr)
    assert torch.equal(selected.edge_index, batch.edge_index)
    if weighted:
        assert torch.equal(selected.edge_weight, batch.edge_weight)
    for normalization in ("none", "gcn"):
        like = torch.empty(0, dtype=torch.float64)
        expected = graph_operator(
            batch.edge_index,
            batch.edge_weight if weighted else None,
            num_nodes=batch.num_nodes,
            normalization=normalization,
            like=like,
        )
        operator = graph_operator(
            selected, num_nodes=batch.num_nodes, normalization=normalization, like=like
        )
        torch.testing.assert_close(operator.to_dense(), expected.to_dense())
        x = torch.randn(batch.num_nodes, 3, dtype=torch.float64, requires_grad=True)
        (ours,) = torch.autograd.grad((operator @ x).pow(2).sum(), x)
        (theirs,) = torch.autograd.grad((expected @ x).pow(2).sum(), x)
        torch.testing.assert_close(ours, theirs)


@given(selections(fewest=0))
def test_native_and_torch_put_the_same_batch_together(case):
    examples, chosen, weighted = case
    blocks = pack(examples, weighted)
    dtype = torch.float64
    for normalization in ("none", "gcn"):
        numbers = torch.tensor(chosen, dtype=torch.long)
        ours = blocks.select(numbers).operator(normalization, dtype)
        with set_backend("torch"):
            theirs = blocks.select(numbers).operator(normalization, dtype)
        assert ours.shape == theirs.shape
        assert ours.is_symmetric == theirs.is_symmetric
        for mine, other in (
            (ours.pattern.csr.rowptr, theirs.pattern.csr.rowptr),
            (ours.pattern.csr.col, theirs.pattern.csr.col),
            (ours.value, theirs.value),
            (ours.pattern.transposed.rowptr, theirs.pattern.transposed.rowptr),
            (ours.pattern.transposed.col, theirs.pattern.transposed.col),
            (ours.transposed_value, theirs.transposed_value),
        ):
            assert mine.dtype == other.dtype
            assert torch.equal(mine, other)


def test_numbers_changed_after_the_selection_are_not_seen():
    blocks = pack([Example(2, edges((0, 1))), Example(3, edges((0, 2), (2, 1)))])
    numbers = torch.tensor([1, 0])
    selected = blocks.select(numbers)
    numbers.fill_(-7)
    dense = selected.operator("none", torch.float32).to_dense()
    assert dense.nonzero().tolist() == [[1, 2], [2, 0], [4, 3]]


def test_pointers_that_are_not_contiguous():
    pointer = torch.tensor([0, 9, 2, 9, 5])[::2]
    blocks = GraphBlocks(edges((0, 1), (2, 4)), pointer)
    dense = blocks.select(torch.tensor([1])).operator("none", torch.float32).to_dense()
    assert dense.nonzero().tolist() == [[2, 0]]


def test_node_index_gathers_the_features_of_the_batch():
    blocks = pack([Example(2, edges((0, 1))), Example(3, edges((0, 2))), Example(1, edges())])
    assert blocks.select(torch.tensor([2, 1, 2])).node_index.tolist() == [5, 2, 3, 4, 5]


def test_an_operator_of_a_batch_is_put_together_once():
    selected = pack([Example(2, edges((0, 1)))]).select(torch.tensor([0]))
    assert selected.operator("gcn", torch.float32) is selected.operator("gcn", torch.float32)


def test_edges_between_graphs_are_refused():
    with pytest.raises(ValueError, match=r"edge_index\[:, 1\] = \[1, 2\] joins graph 0 with"):
        GraphBlocks(edges((0, 1), (1, 2)), torch.tensor([0, 2, 4]))


@pytest.mark.parametrize("pointer", [[1, 2], [0, 3, 2], [[0, 2]], [0.0, 2.0]])
def test_wrong_pointers_are_refused(pointer):
    with pytest.raises(ValueError, match="node_ptr"):
        GraphBlocks(edges(), torch.tensor(pointer))


def test_graphs_that_are_not_there_are_refused():
    blocks = pack([Example(2, edges((0, 1)))])
    with pytest.raises(IndexError, match="from 0 to 3, but there are 1 graphs"):
        blocks.select(torch.tensor([0, 3]))


def test_weights_twice_are_refused():
    selected = pack([Example(2, edges((0, 1)))]).select(torch.tensor([0]))
    with pytest.raises(ValueError, match="pass it to GraphBlocks"):
        graph_operator(selected, torch.ones(1), num_nodes=2)


def test_what_is_written_into_the_arguments_later_is_not_seen():
    edge_index, weight = edges((0, 1)), torch.tensor([2.0])
    blocks = GraphBlocks(edge_index, torch.tensor([0, 2]), weight)
    weight.mul_(5)
    edge_index[1, 0] = 0
    operator = blocks.select(torch.tensor([0])).operator("none", torch.float32)
    assert operator.to_dense().tolist() == [[0.0, 0.0], [2.0, 0.0]]


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (torch.ones(3), r"edge_weight has shape \[3\]"),
        (torch.tensor([float("nan")]), "not finite"),
        (torch.ones(1, requires_grad=True), "requires a gradient"),
    ],
)
def test_wrong_weights_are_refused(weight, message):
    with pytest.raises(ValueError, match=message):
        GraphBlocks(edges((0, 1)), torch.tensor([0, 2]), weight)


def test_weights_of_another_dtype_are_not_cast():
    blocks = GraphBlocks(edges((0, 1)), torch.tensor([0, 2]), torch.ones(1, dtype=torch.float64))
    with pytest.raises(TypeError, match="edge_weight has dtype"):
        blocks.operator("none", torch.float32)


def test_a_batch_first_used_in_inference_mode_can_be_trained_on():
    blocks = GraphBlocks(torch.tensor([[0, 1, 2], [1, 0, 3]]), torch.tensor([0, 2, 4]))
    batch, x = blocks.select(torch.tensor([1, 0])), torch.randn(4, 3, requires_grad=True)
    layer = AntiSymmetricConv(3, phi="sum", num_iters=2)
    with torch.inference_mode():
        expected = layer(x, batch).clone()
    output = layer(x, batch)
    output.sum().backward()
    (batch.operator("none", torch.float32) @ x).sum().backward()
    torch.testing.assert_close(output.detach(), expected)


@pytest.mark.parametrize("normalization", ["none", "mean", "sym", "loops", "gcn", "gcn-improved"])
@pytest.mark.parametrize("direction", ["in", "out"])
def test_weights_that_are_an_operator_are_not_normalised_again(normalization, direction):
    ends, weight = edges((0, 1), (1, 0), (1, 2)), torch.tensor([0.2, 0.5, 0.3])
    batch = GraphBlocks(ends, torch.tensor([0, 3]), weight, normalized=True).select(
        torch.tensor([0])
    )
    plain = graph_operator(ends, weight, num_nodes=3, direction=direction).to_dense()
    assert torch.equal(batch.operator(normalization, torch.float32, direction).to_dense(), plain)


@pytest.mark.parametrize("normalization", ["laplacian", "skew"])
def test_operators_made_from_an_operator_are_made_from_its_weights(normalization):
    ends, weight = edges((0, 1), (1, 0), (1, 2)), torch.tensor([0.2, 0.5, 0.3])
    blocks = GraphBlocks(ends, torch.tensor([0, 3]), weight, normalized=True)
    expected = graph_operator(ends, weight, num_nodes=3, normalization=normalization)
    found = blocks.to("cpu").operator(normalization, torch.float32)
    assert torch.equal(found.to_dense(), expected.to_dense())
