"""Operators that listen along the edges, against them, or both, against turned edges."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric import EdgeIndex
from torch_geometric.nn.conv.gcn_conv import gcn_norm

from adgn.graph import (
    GraphBlocks,
    TwoWayOperator,
    cache_info,
    clear_cache,
    edge_operator,
    graph_operator,
    set_backend,
    turned,
)
from adgn.graph.adjacency import NORMALIZATIONS
from adgn.graph.direction import DIRECTIONS, OPERATOR_DIRECTIONS, union_entries
from tests.graphs import CORNER_CASES, edges, graphs

EVERY_DIRECTION = pytest.mark.parametrize("direction", OPERATOR_DIRECTIONS)
EVERY_NORMALIZATION = pytest.mark.parametrize("normalization", NORMALIZATIONS)


def operator_of(graph, direction, normalization="none", **options):
    return graph_operator(
        graph.edge_index,
        graph.weight(torch.float64),
        num_nodes=graph.num_nodes,
        normalization=normalization,
        direction=direction,
        like=torch.empty(0, dtype=torch.float64),
        **options,
    )


@EVERY_DIRECTION
@EVERY_NORMALIZATION
@given(graph=graphs())
def test_it_is_the_operator_of_the_turned_graph(graph, normalization, direction):
    """In its values, in its transpose, and as a list of edges."""
    weight = graph.weight(torch.float64)
    like = torch.empty(graph.num_nodes, 1, dtype=torch.float64)
    kind = {"normalization": normalization, "like": like}
    turned_graph = turned(graph.edge_index, weight, graph.num_nodes, direction)
    expected = graph_operator(*turned_graph, num_nodes=graph.num_nodes, **kind).to_dense()
    operator = operator_of(graph, direction, normalization)
    torch.testing.assert_close(operator.to_dense(), expected, rtol=1e-12, atol=1e-12)
    csr = operator.pattern.transposed
    transposed = torch.zeros_like(expected)
    transposed[csr.row.long(), csr.col.long()] = operator.transposed_value
    torch.testing.assert_close(transposed, expected.t(), rtol=1e-12, atol=1e-12)
    listed = edge_operator(graph.edge_index, weight, direction=direction, **kind)
    dense = torch.zeros_like(expected).index_put(listed.places, listed.value, accumulate=True)
    torch.testing.assert_close(dense, expected, rtol=1e-12, atol=1e-12)


@EVERY_NORMALIZATION
@pytest.mark.parametrize("name", ["undirected", "weighted-undirected", "isolated-nodes"])
def test_all_directions_of_an_undirected_graph_are_one(name, normalization):
    expected, *others = (
        operator_of(CORNER_CASES[name], direction, normalization).to_dense()
        for direction in OPERATOR_DIRECTIONS
    )
    for other in others:
        torch.testing.assert_close(other, expected, rtol=1e-14, atol=0)


def test_degrees_are_those_of_the_turned_graph():
    """GCN's operator of the reversed graph, by PyG, is not the transpose."""
    graph = CORNER_CASES["weighted"]
    index, weight = gcn_norm(graph.edge_index.flip(0), graph.edge_weight, graph.num_nodes)
    expected = torch.zeros(4, 4, dtype=torch.float64)
    expected.index_put_((index[1], index[0]), weight, accumulate=True)
    outward = operator_of(graph, "out", "gcn").to_dense()
    torch.testing.assert_close(outward, expected)
    assert not torch.allclose(outward, operator_of(graph, "in", "gcn").to_dense().t())


def test_the_sum_of_the_reversed_graph_is_the_transpose_of_the_same_arrays():
    graph = CORNER_CASES["directed"]
    inward, outward = operator_of(graph, "in"), operator_of(graph, "out")
    assert outward.pattern.csr is inward.pattern.transposed
    assert outward.pattern.transposed is inward.pattern.csr
    assert torch.equal(outward.to_dense(), inward.to_dense().t())


@pytest.mark.parametrize("backend", ["auto", "torch"])
@EVERY_DIRECTION
@given(graph=graphs(weighted=True), seed=st.integers(0, 99))
def test_products_and_gradients_in_states_and_weights(graph, direction, backend, seed):
    x = graph.features(2, seed=seed).requires_grad_()
    weight = graph.edge_weight.clone().requires_grad_()
    results = []
    with set_backend(backend):
        for way in ("direct", "turned first"):
            if way == "direct":
                operator = graph_operator(
                    graph.edge_index, weight, num_nodes=graph.num_nodes, direction=direction
                )
            else:
                index, values = turned(graph.edge_index, weight, graph.num_nodes, direction)
                operator = graph_operator(index, values, num_nodes=graph.num_nodes)
            product = operator @ x
            results.append((product, *torch.autograd.grad(product.sin().sum(), [x, weight])))
    torch.testing.assert_close(*results, rtol=1e-12, atol=1e-12)


@EVERY_DIRECTION
@EVERY_NORMALIZATION
def test_every_form_of_a_graph(direction, normalization):
    graph = CORNER_CASES["weighted"]
    expected = operator_of(graph, direction, normalization).to_dense()
    size, weight = (graph.num_nodes, graph.num_nodes), graph.edge_weight
    kind = {"num_nodes": 4, "normalization": normalization, "direction": direction}
    wrapped = EdgeIndex(graph.edge_index, sparse_size=size)
    torch.testing.assert_close(graph_operator(wrapped, weight, **kind).to_dense(), expected)
    once = graph.edge_index[:, :-1]  # a sparse matrix adds up the weights of a repeated edge
    matrix = torch.sparse_coo_tensor(once.flip(0), weight[:-1], size).to_sparse_csr()
    simple = graph_operator(once, weight[:-1], **kind).to_dense()
    torch.testing.assert_close(graph_operator(matrix, **kind).to_dense(), simple)
    operator = graph_operator(graph.edge_index, weight, **kind)
    assert graph_operator(operator, **kind) is operator


@EVERY_DIRECTION
@EVERY_NORMALIZATION
@pytest.mark.parametrize("weighted", [False, True])
def test_batches_of_prepared_graphs(direction, normalization, weighted):
    index = edges((0, 1), (1, 2), (2, 2), (0, 1), (4, 3), (3, 5), (5, 3))
    weight = torch.linspace(0.5, 2, 7, dtype=torch.float64) if weighted else None
    selected = GraphBlocks(index, torch.tensor([0, 3, 6]), weight).select(torch.tensor([1, 0, 1]))
    kind = {"num_nodes": 9, "normalization": normalization, "direction": direction}
    kind["like"] = torch.empty(0, dtype=torch.float64)
    batch = graph_operator(selected, **kind)
    plain = graph_operator(selected.edge_index, selected.edge_weight, **kind)
    torch.testing.assert_close(batch.to_dense(), plain.to_dense())
    x = torch.randn(9, 3, dtype=torch.float64, requires_grad=True)
    grads = [torch.autograd.grad((one @ x).sin().sum(), x) for one in (batch, plain)]
    torch.testing.assert_close(*grads)
    assert graph_operator(selected, **kind) is batch


def test_edges_are_turned_once():
    clear_cache()
    graph = CORNER_CASES["directed"].edge_index.clone()
    first = [graph_operator(graph, num_nodes=4, direction=d) for d in OPERATOR_DIRECTIONS]
    before = cache_info()["misses"]
    again = [graph_operator(graph, num_nodes=4, direction=d) for d in OPERATOR_DIRECTIONS]
    assert all(one is other for one, other in zip(first, again, strict=True))
    assert len({id(one) for one in first}) == 3
    assert cache_info()["misses"] == before
    graph[0, 0] = 2  # another graph now
    assert graph_operator(graph, num_nodes=4, direction="out") is not first[1]


@given(graph=graphs(weighted=True))
def test_the_union_has_each_pair_once_with_the_mean_of_its_weights(graph):
    dense = operator_of(graph, "undirected").to_dense()
    ends = [tuple(pair) for pair in graph.edge_index.t().tolist()]
    for u in range(graph.num_nodes):
        for v in range(graph.num_nodes):
            weights = [
                weight
                for pair, weight in zip(ends, graph.edge_weight.tolist(), strict=True)
                if set(pair) == {u, v}
            ]
            mean = sum(weights) / len(weights) if weights else 0.0
            assert dense[u, v].item() == pytest.approx(mean)


@given(graph=graphs())
def test_entries_of_the_union_are_counted(graph):
    source, target, count = union_entries(*graph.edge_index, graph.num_nodes)
    pairs = list(zip(source.tolist(), target.tolist(), strict=True))
    assert count.tolist() == [pairs.count(pair) for pair in pairs]


@given(graph=graphs(), channels=st.integers(1, 3))
def test_two_ways_add_up(graph, channels):
    inward, outward = (operator_of(graph, direction, "gcn") for direction in ("in", "out"))
    y = graph.features(2 * channels)
    product = TwoWayOperator(inward, outward) @ y
    dense = torch.cat([inward.to_dense() @ y[:, :channels], outward.to_dense() @ y[:, channels:]])
    torch.testing.assert_close(product, dense.view(2, graph.num_nodes, channels).sum(0))


def test_errors():
    graph = edges((0, 1))
    with pytest.raises(ValueError, match=r"direction='outwards' is not known.*out"):
        graph_operator(graph, num_nodes=2, direction="outwards")
    with pytest.raises(ValueError, match="direction='both' is two operators"):
        turned(graph, None, 2, "both")
    with pytest.raises(ValueError, match="direction='both' is two operators"):
        graph_operator(graph, num_nodes=2, direction="both")
    one = graph_operator(graph, num_nodes=2)
    with pytest.raises(ValueError, match=r"\[2, 2\] and \[3, 3\]"):
        TwoWayOperator(one, graph_operator(graph, num_nodes=3))
    with pytest.raises(ValueError, match="two states per node"):
        TwoWayOperator(one, one) @ torch.ones(2, 3)
    assert set(OPERATOR_DIRECTIONS) == set(DIRECTIONS) - {"both"}
