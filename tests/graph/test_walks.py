"""Random walks: certain ones step by step, and the mean of many against powers of the operator."""

import pytest
import torch

from adgn.graph import graph_operator
from adgn.graph.walks import walk_operators
from tests.graphs import edges

# Weighted, directed, with a repeated edge, a self loop, an edge of weight zero; node 5 is a dead
# end that is reached, and node 6 is alone.
GRAPH = edges(
    (1, 0), (2, 0), (1, 0), (0, 1), (2, 1), (1, 2), (2, 2), (5, 2), (4, 3), (0, 3), (3, 4)
)
WEIGHT = torch.tensor([1.0, 2.0, 0.5, 1.0, 3.0, 1.0, 2.0, 1.0, 0.0, 1.5, 1.0], dtype=torch.float64)


def transition(weight=WEIGHT):
    return graph_operator(GRAPH, weight, num_nodes=7, normalization="mean")


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def test_the_mean_of_many_walks_is_the_power_of_the_operator():
    """Within five standard errors √(p (1 − p) / n) of each entry; where p is 0 or 1, exactly."""
    walks = 20_000
    matrix = transition().to_dense()
    for step, found in enumerate(walk_operators(transition(), 4, walks, generator()), start=1):
        power = torch.linalg.matrix_power(matrix, step)
        error = (power * (1 - power)).clamp(min=0).div(walks).sqrt()
        # Powers have rounding errors, which tell 0 and 1 from certain and impossible no more.
        assert ((found.to_dense() - power).abs() <= 5 * error + 1e-12).all()
    assert (power > 0).sum() > 12  # and there was something to find


def test_without_weights_neighbours_are_alike():
    star = edges((1, 0), (2, 0), (3, 0))
    operator = graph_operator(star, num_nodes=4, normalization="mean", like=WEIGHT)
    (found,) = walk_operators(operator, 1, 3000, generator())
    dense = found.to_dense()
    # Five standard errors of a share of 1/3 among 3000.
    torch.testing.assert_close(dense[0, 1:], torch.full((3,), 1 / 3).double(), rtol=0, atol=0.043)
    assert float(dense[0].sum()) == pytest.approx(1)
    assert (dense[1:] == 0).all()  # nowhere to go


def test_walks_that_end_count_as_zero_from_then_on():
    line = graph_operator(edges((1, 0), (2, 1)), num_nodes=3, normalization="mean")
    one, two, three = (o.to_dense() for o in walk_operators(line, 3, 4))
    assert one.tolist() == [[0, 1, 0], [0, 0, 1], [0, 0, 0]]
    assert two.tolist() == [[0, 0, 1], [0, 0, 0], [0, 0, 0]]
    assert (three == 0).all()


def test_a_walk_goes_from_where_it_is():
    """Nodes at step s + 1 are heard by those at step s: seen with one walk per node."""
    possible = transition().to_dense() > 0
    one, two = (o.to_dense() for o in walk_operators(transition(), 2, 1, generator(3)))
    for node in range(7):
        if two[node].any():
            (middle,), (last,) = one[node].nonzero().tolist()[0], two[node].nonzero().tolist()[0]
            assert possible[node, middle] and possible[middle, last]


def test_the_generator_decides_and_the_global_one_stays_as_it_is():
    before = torch.get_rng_state()
    first, second, other = (
        walk_operators(transition(), 3, 5, generator(seed))[-1].to_dense() for seed in (1, 1, 2)
    )
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(first, second)
    assert not torch.equal(first, other)


def test_a_graph_without_edges():
    empty = graph_operator(torch.empty(2, 0).long(), num_nodes=3, normalization="mean")
    assert [o.num_entries for o in walk_operators(empty, 2, 5)] == [0, 0]


def test_probabilities_are_not_negative():
    weight = WEIGHT.clone()
    weight[1] = -0.1
    with pytest.raises(ValueError, match="edge_weight has negative numbers"):
        walk_operators(transition(weight), 2, 5)
    with pytest.raises(ValueError, match="walks=0 is not valid"):
        walk_operators(transition(), 2, 0)
