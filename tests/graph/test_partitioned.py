"""A rank's part of an operator: products, transposed products and gradients equal the whole's."""

import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from adgn.graph import (
    CSR,
    GraphPart,
    PartitionedGraph,
    PartitionedOperator,
    cut_part,
    graph_operator,
)
from adgn.graph.adjacency import NORMALIZATIONS
from adgn.graph.blocks import graph_as_given
from adgn.graph.direction import OperatorDirection
from adgn.graph.partitioned import Matrix
from tests.helpers.rank_threads import on_ranks

NODES = 9
EDGES = torch.tensor([[0, 1, 2, 3, 4, 5, 6, 0, 2, 2, 5, 7], [1, 2, 3, 4, 5, 6, 0, 4, 6, 2, 1, 0]])
OWNERS = {
    "two": [0, 0, 0, 1, 1, 1, 0, 1, 1],
    "three, one without nodes": [0, 2, 0, 2, 0, 2, 0, 2, 0],
    "nothing cut": [0] * 8 + [1],  # node 8 is isolated
}


@pytest.mark.parametrize("owners", OWNERS)
@pytest.mark.parametrize("direction", OperatorDirection.__args__)
@pytest.mark.parametrize("normalization", NORMALIZATIONS)
def test_products_are_those_of_the_whole(owners, direction, normalization):
    owner, size = torch.tensor(OWNERS[owners]), 3
    weight = torch.linspace(0.5, 2.0, EDGES.size(1), dtype=torch.double)
    whole = graph_operator(
        EDGES, weight, num_nodes=NODES, normalization=normalization, direction=direction
    )
    x = torch.randn(NODES, 3, dtype=torch.double, generator=torch.Generator().manual_seed(0))
    x.requires_grad_()
    expected = (whole @ x, whole.transposed_product(x))
    for transposed in (False, True):
        (there,) = torch.autograd.grad(expected[transposed].pow(2).sum(), x, retain_graph=True)

        def work(rank, exchange, transposed=transposed):
            part = PartitionedGraph(cut_part(EDGES, weight, owner, rank, size), exchange)
            operator = part.operator(normalization, torch.double, direction)
            own = x.detach()[part.nodes].requires_grad_()
            product = operator.transposed_product(own) if transposed else operator @ own
            (grad,) = torch.autograd.grad(product.pow(2).sum(), own)
            return part.nodes, product.detach(), grad

        for nodes, product, grad in on_ranks(size, work):
            torch.testing.assert_close(product, expected[transposed].detach()[nodes])
            torch.testing.assert_close(grad, there[nodes])


@given(st.data())
@settings(max_examples=30)
def test_rows_of_any_graph_are_those_of_the_whole(data):
    """Loops, repeated edges, isolated nodes; ranks that have no node, no edge or no halo."""
    nodes, size = data.draw(st.integers(1, 10)), 3
    end = st.integers(0, nodes - 1)
    ends = data.draw(st.lists(st.tuples(end, end), max_size=25))
    edges = torch.tensor(ends).long().view(-1, 2).t().contiguous()
    owner = torch.tensor(data.draw(st.lists(st.integers(0, 2), min_size=nodes, max_size=nodes)))
    weights = st.lists(st.floats(0.125, 4.0), min_size=len(ends), max_size=len(ends))
    weight = data.draw(st.none() | weights.map(lambda w: torch.tensor(w, dtype=torch.double)))
    x = torch.eye(nodes, dtype=torch.double)
    kinds = list(itertools.product(NORMALIZATIONS, OperatorDirection.__args__))
    like = torch.empty(0, dtype=torch.double)
    expected = [
        graph_operator(
            edges, weight, num_nodes=nodes, normalization=kind, direction=direction, like=like
        ).to_dense()
        for kind, direction in kinds
    ]

    def work(rank, exchange):
        part = PartitionedGraph(cut_part(edges, weight, owner, rank, size), exchange)
        found = [part.operator(kind, torch.double, direction) for kind, direction in kinds]
        return part.nodes, [operator @ x[part.nodes] for operator in found]

    for own, rows in on_ranks(size, work):
        for dense, found in zip(expected, rows, strict=True):
            torch.testing.assert_close(found, dense[own], rtol=1e-12, atol=1e-14)


def test_weights_that_are_an_operator_stay_as_they_are():
    owner = torch.tensor(OWNERS["two"])
    weight = torch.linspace(0.5, 2.0, EDGES.size(1))
    graph, _ = graph_as_given(EDGES, weight, NODES, normalized=True)
    whole = graph_operator(graph, num_nodes=NODES, normalization="gcn").to_dense()

    def work(rank, exchange):
        cut = cut_part(EDGES, weight, owner, rank, 2, normalized=True)
        part = PartitionedGraph(cut, exchange)
        return part.nodes, part.operator("gcn", torch.float32) @ torch.eye(NODES)[part.nodes]

    for nodes, rows in on_ranks(2, work):
        torch.testing.assert_close(rows, whole[nodes])


def test_a_negative_degree_names_the_node():
    """Node 5 is of rank 1, in another place than in the whole graph; rank 0 hears it."""
    weight = torch.ones(EDGES.size(1))
    weight[EDGES[1] == 5] = -1.0
    owner = torch.tensor(OWNERS["two"])

    def work(rank, exchange):
        part = PartitionedGraph(cut_part(EDGES, weight, owner, rank, 2), exchange)
        with pytest.raises(ValueError, match="gives node 5 the degree -1; mean normalisation"):
            part.operator("mean", torch.float32)

    on_ranks(2, work)


def test_a_part_is_small():
    """A rank keeps the edges of its nodes alone, in 32 bits."""
    nodes = 1000
    ring = torch.stack([torch.arange(nodes), (torch.arange(nodes) + 1) % nodes])
    owner = torch.arange(nodes) // 250
    part = cut_part(ring, None, owner, 2, 4)
    assert part.number.tolist() == list(range(499, 751))
    assert part.edge_index.shape == (2, 251) and part.edge_index.dtype == torch.int32
    assert part.spread and not cut_part(ring, None, torch.zeros(nodes), 0, 1).spread


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rank": 2}, "rank=2 is not there among 2"),
        ({"edge_index": torch.tensor([[0], [7]])}, "edge_index has values outside of 0 to 2"),
        ({"owner": torch.tensor([0, 1, 5])}, "owner has values outside of 0 to 1"),
        ({"number": torch.tensor([3, 1, 2])}, "ascending"),
        ({"edge_weight": torch.ones(4)}, "edge_weight has 4 entries for 1 edges"),
    ],
)
def test_parts_that_cannot_be(change, message):
    right = {"rank": 0, "size": 2, "number": torch.arange(3), "owner": torch.tensor([0, 1, 1])}
    right |= {"edge_index": torch.tensor([[0], [1]]), "edge_weight": None, "spread": True}
    with pytest.raises(ValueError, match=message):
        GraphPart(**{**right, **change})


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_a_matrix_with_more_columns_leaves_the_first_as_it_was(dtype):
    rowptr, col = torch.tensor([0, 2, 2, 3], dtype=dtype), torch.tensor([0, 1, 1], dtype=dtype)
    matrix = Matrix(CSR(rowptr, col, (3, 2)), torch.tensor([1.0, 2.0, 3.0]))
    row, place = torch.tensor([2, 0, 2]), torch.tensor([0, 1, 1])
    more = matrix.appended(row, place, torch.tensor([4.0, 5.0, 6.0]), 2)
    assert rowptr.tolist() == [0, 2, 2, 3] and col.tolist() == [0, 1, 1]
    assert more.csr.rowptr.tolist() == [0, 3, 3, 6] and more.csr.shape == (3, 4)
    dense = torch.zeros(3, 4)
    dense[more.csr.row.long(), more.csr.col.long()] = more.value
    assert dense.tolist() == [[1, 2, 0, 5], [0, 0, 0, 0], [0, 3, 4, 6]]


def test_states_of_several_kinds_at_once():
    owner = torch.tensor(OWNERS["two"])
    x = torch.randn(2, NODES, 3)
    expected = graph_operator(EDGES, num_nodes=NODES) @ x

    def work(rank, exchange):
        part = PartitionedGraph(cut_part(EDGES, None, owner, rank, 2), exchange)
        return part.nodes, graph_operator(part, num_nodes=part.num_nodes, like=x) @ x[:, part.nodes]

    for nodes, product in on_ranks(2, work):
        torch.testing.assert_close(product, expected[:, nodes])


def test_what_looks_at_single_edges_is_refused():
    part = PartitionedGraph(cut_part(EDGES, None, torch.zeros(NODES), 0, 1), exchange=None)
    operator = part.operator("none", torch.float32)
    assert isinstance(operator, PartitionedOperator)
    with pytest.raises(AttributeError, match="'places' is not there for a graph that is spread"):
        operator.places  # noqa: B018
    with pytest.raises(ValueError, match=r"this rank has 9 nodes"):
        operator @ torch.zeros(3, 2)
