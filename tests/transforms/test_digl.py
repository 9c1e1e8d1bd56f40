"""DIGL: against dense formulas, limits, sums of columns, the series, and wrong settings."""

import numpy as np
import pytest
import scipy.linalg
import torch
from hypothesis import given
from hypothesis import strategies as st

from adgn.transforms import DIGL, EdgeGraph, Undirected, apply_each
from adgn.transforms.digl import diffusion_operator
from tests.graphs import graphs


def dense(graph):
    matrix = np.zeros((graph.num_nodes,) * 2)
    weight = np.ones(graph.num_edges) if graph.edge_weight is None else graph.edge_weight.numpy()
    np.add.at(matrix, tuple(graph.edge_index.numpy()), weight)
    return matrix


def normalised(graph):
    matrix = dense(graph) + np.eye(graph.num_nodes)
    scale = matrix.sum(1) ** -0.5
    return scale[:, None] * matrix * scale


RANDOM = EdgeGraph(torch.randint(0, 12, (2, 40), generator=torch.Generator().manual_seed(1)), 12)
METHODS = ("exact", "series")


def by_power_iteration(matrix, alpha):
    found = np.eye(len(matrix))
    for _ in range(2000):
        found = (1 - alpha) * matrix @ found + alpha * np.eye(len(matrix))
    return found


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("alpha", [0.05, 0.3])
def test_pagerank_is_that_of_power_iteration(method, alpha):
    settings_ = {"alpha": alpha, "k": 12, "method": method, "tolerance": 1e-9}
    expected = by_power_iteration(normalised(RANDOM), alpha)
    expected = expected / expected.sum(0)
    np.testing.assert_allclose(dense(DIGL(**settings_)(RANDOM)), expected, atol=1e-6)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("t", [0.5, 5.0])
def test_heat_is_the_matrix_exponential(method, t):
    expected = scipy.linalg.expm(-t * (np.eye(12) - normalised(RANDOM)))
    expected = expected / expected.sum(0)
    result = DIGL(kernel="heat", t=t, k=12, method=method, tolerance=1e-9)(RANDOM)
    np.testing.assert_allclose(dense(result), expected, atol=1e-6)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("limit", [{"alpha": 1.0}, {"kernel": "heat", "t": 0.0}])
def test_without_diffusion_it_is_the_identity(method, limit):
    result = DIGL(**limit, k=5, method=method)(RANDOM)
    np.testing.assert_array_equal(dense(result), np.eye(12))


def test_near_the_limits_it_is_near_the_identity():
    for limit in ({"alpha": 1 - 1e-7}, {"kernel": "heat", "t": 1e-7}):
        np.testing.assert_allclose(dense(DIGL(**limit, k=12)(RANDOM)), np.eye(12), atol=1e-6)


@given(graphs(), st.integers(1, 4), st.sampled_from(METHODS))
def test_columns_sum_to_one_and_have_k_entries(graph, k, method):
    edge_index, nodes = graph.edge_index, graph.num_nodes
    k = min(k, nodes)
    result = dense(DIGL(k=k, method=method)(EdgeGraph(edge_index, nodes)))
    np.testing.assert_allclose(result.sum(0), 1, rtol=1e-5)
    assert ((result > 0).sum(0) <= k).all()


def test_the_largest_entries_stay():
    full = by_power_iteration(normalised(RANDOM), 0.2)
    kept = dense(DIGL(alpha=0.2, k=4)(RANDOM)) > 0
    for column in range(12):
        assert full[kept[:, column], column].min() >= full[~kept[:, column], column].max()


def test_a_threshold_keeps_what_reaches_it():
    full = by_power_iteration(normalised(RANDOM), 0.2)
    result = DIGL(alpha=0.2, threshold=0.05)(RANDOM)
    np.testing.assert_array_equal(dense(result) > 0, full >= 0.05)
    assert result.report["digl.empty_columns"] == 0
    everything = DIGL(alpha=0.2, threshold=2.0)(RANDOM)
    assert everything.num_edges == 0
    assert everything.report["digl.empty_columns"] == 12


def test_undirected_is_the_mean_of_both_directions():
    directed = dense(DIGL(k=4)(RANDOM))
    result = DIGL(k=4, undirected=True)(RANDOM)
    np.testing.assert_allclose(dense(result), (directed + directed.T) / 2, atol=1e-7)
    heard = dense(result).sum(0)
    np.testing.assert_allclose(heard, (1 + directed.sum(1)) / 2, rtol=1e-5)
    assert np.abs(heard - 1).max() > 0.1
    assert result.is_symmetric


def test_series_in_blocks_of_columns(monkeypatch):
    whole = DIGL(k=4, method="series")(RANDOM)
    monkeypatch.setattr("adgn.transforms.digl._BLOCK_ENTRIES", 36)  # three columns at a time
    pieces = DIGL(k=4, method="series")(RANDOM)
    assert torch.equal(pieces.edge_index, whole.edge_index)
    torch.testing.assert_close(pieces.edge_weight, whole.edge_weight)


@pytest.mark.parametrize("kernel", ["ppr", "heat"])
@pytest.mark.parametrize("tolerance", [1e-2, 1e-5])
def test_the_series_errs_by_no_more_than_it_says(kernel, tolerance):
    star = EdgeGraph(torch.stack([torch.zeros(30, dtype=torch.long), torch.arange(1, 31)]), 31)
    star = Undirected()(star)  # degrees of 31 and 2
    operator, degree = diffusion_operator(star)
    transform = DIGL(kernel=kernel, tolerance=tolerance)
    found, power = np.zeros((31, 31)), np.eye(31)
    for coefficient in transform.coefficients(float(np.sqrt(degree.max() / degree.min()))):
        found, power = found + coefficient * power, operator @ power
    exact = transform._dense(operator.toarray())
    assert np.abs(found - exact).max() <= tolerance


def test_weights_count_and_repeated_edges_add_up():
    once = EdgeGraph(torch.tensor([[0, 1], [1, 2]]), 3, torch.tensor([2.0, 1.0]))
    twice = EdgeGraph(torch.tensor([[0, 0, 1], [1, 1, 2]]), 3)
    first, second = DIGL(k=3)(once), DIGL(k=3)(twice)
    np.testing.assert_allclose(dense(first), dense(second), atol=1e-7)


def test_weights_are_an_operator_unless_asked_otherwise():
    assert DIGL(k=2)(RANDOM).normalized
    assert not DIGL(k=2, normalize=True)(RANDOM).normalized


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"k": 2, "threshold": 0.1}, "two rules"),
        ({"alpha": 0.0}, "alpha"),
        ({"alpha": 1.5}, "alpha"),
        ({"kernel": "heat", "t": -1.0}, "greater than or equal to 0"),
        ({"k": 0}, "greater than or equal to 1"),
        ({"tolerance": 0.0}, "tolerance"),
    ],
)
def test_impossible_settings(wrong, message):
    with pytest.raises(ValueError, match=message):
        DIGL(**wrong)


def test_a_column_without_more_entries_keeps_all_of_them():
    every, more = (DIGL(k=k)(RANDOM) for k in (12, 20))
    assert torch.equal(every.edge_index, more.edge_index)
    assert torch.equal(every.edge_weight, more.edge_weight)
    assert DIGL(k=20).expected_edges(12, 5) == 12 * 12


def test_many_graphs_may_be_smaller_than_k():
    ends = torch.tensor([[0, 1, 2, 3, 5], [1, 2, 3, 4, 6]])
    found = apply_each(DIGL(k=4), EdgeGraph(ends, 7), torch.tensor([0, 5, 7]))
    alone = DIGL(k=4)(EdgeGraph(torch.tensor([[0], [1]]), 2))
    last = found.edge_index[1] >= 5
    assert torch.equal(found.edge_index[:, last] - 5, alone.edge_index)
    assert torch.equal(found.edge_weight[last], alone.edge_weight)


def test_impossible_graphs():
    negative = EdgeGraph(torch.tensor([[0], [1]]), 2, torch.tensor([-1.0]))
    with pytest.raises(ValueError, match=r"edge_weight\[0\] = -1 is negative"):
        DIGL(k=1)(negative)
