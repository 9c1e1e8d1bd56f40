import math

import networkx as nx
import pytest
import torch

from adgn.graph import cache_info, graph_operator
from adgn.graph.spectrum import spectral_radius
from tests.graphs import edges


def of(graph: nx.Graph) -> torch.Tensor:
    return torch.tensor(list(graph.to_directed().edges)).t()


def true_radius(edge_index, nodes):
    matrix = graph_operator(edge_index, num_nodes=nodes).to_dense().double()
    return float(torch.linalg.eigvals(matrix).abs().max())


@pytest.mark.parametrize(
    "graph",
    [
        nx.path_graph(40),
        nx.star_graph(9),  # bipartite: ±√9
        nx.cycle_graph(12),
        nx.complete_graph(5),
        nx.barabasi_albert_graph(60, 2, seed=0),
        nx.disjoint_union(nx.complete_graph(4), nx.path_graph(30)),
        nx.gnp_random_graph(40, 0.1, seed=1, directed=True),
    ],
)
def test_the_radius_is_the_largest_eigenvalue(graph):
    edge_index, nodes = of(graph), len(graph)
    operator = graph_operator(edge_index, num_nodes=nodes)
    (found,) = spectral_radius(operator).tolist()
    assert found == pytest.approx(true_radius(edge_index, nodes), rel=0.01)


def test_a_directed_cycle_with_a_tail_has_radius_one():
    ring = edges((0, 1), (1, 2), (2, 3), (3, 0), (3, 4), (4, 5))
    (found,) = spectral_radius(graph_operator(ring, num_nodes=6)).tolist()
    assert found == pytest.approx(1.0, abs=1e-6)


def test_without_cycles_it_is_exactly_zero():
    tree = torch.stack([torch.arange(40), torch.arange(40) + 1])
    assert spectral_radius(graph_operator(tree, num_nodes=41)).tolist() == [0.0]
    none = torch.empty(2, 0, dtype=torch.long)
    assert spectral_radius(graph_operator(none, num_nodes=3)).tolist() == [0.0]


def test_each_graph_of_a_batch_has_its_own():
    star, ring = of(nx.star_graph(4)), of(nx.cycle_graph(5)) + 5
    operator = graph_operator(torch.cat([star, ring], 1), num_nodes=10)
    batch = torch.tensor([0] * 5 + [1] * 5)
    found = spectral_radius(operator, batch, num_graphs=3)  # the third one has no node
    torch.testing.assert_close(found, torch.tensor([2.0, 2.0, 0.0]))
    assert spectral_radius(operator, batch).shape == (2,)


def test_of_negative_weights_the_magnitude_counts():
    square = of(nx.cycle_graph(4))
    weight = torch.full((8,), -3.0)
    (found,) = spectral_radius(graph_operator(square, weight, num_nodes=4)).tolist()
    assert found == pytest.approx(6.0)


def test_weights_have_gradients():
    star = of(nx.star_graph(4))
    weight = torch.ones(8, dtype=torch.float64, requires_grad=True)
    (found,) = spectral_radius(graph_operator(star, weight, num_nodes=5))
    (gradient,) = torch.autograd.grad(found, weight)
    # ρ = √(Σ w_out w_in): each of the eight weights changes it by 1 / (2ρ).
    torch.testing.assert_close(gradient, torch.full_like(gradient, 1 / (2 * math.sqrt(4))))


def test_it_is_worked_out_once():
    operator = graph_operator(of(nx.star_graph(4)), num_nodes=5)
    first = spectral_radius(operator)
    before = cache_info()["misses"]
    assert spectral_radius(operator) is first
    assert cache_info()["misses"] == before
