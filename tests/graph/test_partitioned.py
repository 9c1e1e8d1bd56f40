"""A rank's part of an operator: products, transposed products and gradients equal the whole's."""

import pytest
import torch

from adgn.graph import PartitionedGraph, PartitionedOperator, graph_operator
from adgn.graph.adjacency import NORMALIZATIONS
from adgn.graph.direction import OperatorDirection
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
            part = PartitionedGraph(EDGES, weight, owner, rank, size, exchange)
            operator = part.operator(normalization, torch.double, direction)
            own = x.detach()[part.nodes].requires_grad_()
            product = operator.transposed_product(own) if transposed else operator @ own
            (grad,) = torch.autograd.grad(product.pow(2).sum(), own)
            return part.nodes, product.detach(), grad

        for nodes, product, grad in on_ranks(size, work):
            torch.testing.assert_close(product, expected[transposed].detach()[nodes])
            torch.testing.assert_close(grad, there[nodes])


def test_states_of_several_kinds_at_once():
    owner = torch.tensor(OWNERS["two"])
    x = torch.randn(2, NODES, 3)
    expected = graph_operator(EDGES, num_nodes=NODES) @ x

    def work(rank, exchange):
        part = PartitionedGraph(EDGES, None, owner, rank, 2, exchange)
        return part.nodes, graph_operator(part, num_nodes=part.num_nodes, like=x) @ x[:, part.nodes]

    for nodes, product in on_ranks(2, work):
        torch.testing.assert_close(product, expected[:, nodes])


def test_what_looks_at_single_edges_is_refused():
    part = PartitionedGraph(EDGES, None, torch.zeros(NODES), rank=0, size=1, exchange=None)
    operator = part.operator("none", torch.float32)
    assert isinstance(operator, PartitionedOperator)
    with pytest.raises(AttributeError, match="'places' is not there for a graph that is spread"):
        operator.places  # noqa: B018
    with pytest.raises(ValueError, match=r"this rank has 9 nodes"):
        operator @ torch.zeros(3, 2)
