"""Sensitivity, against the matrix powers and exponentials that linear networks are."""

import pytest
import torch

from adgn.analysis import (
    DistanceProfile,
    hops_to,
    sensitivity,
    sensitivity_by_depth,
    sensitivity_by_distance,
)
from adgn.analysis.graphs import example_graph
from adgn.nn import ADGN, available_models, build_model


def block_norms(matrix, node, channels):
    """‖∂x_node/∂x_u‖ for all u, out of the Jacobian of all states."""
    rows = matrix[node * channels : (node + 1) * channels]
    return rows.view(channels, -1, channels).pow(2).sum((0, 2)).sqrt()


def weights(channels, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(channels, channels, generator=generator).double() for _ in range(2)]


def test_a_linear_network_is_a_matrix_power(make_linear_layer, make_path, make_rate_matrix):
    conv = make_linear_layer(*weights(3), epsilon=0.1, gamma=0.2, num_iters=6)
    graph, x = make_path(5), torch.randn(5, 3).double()
    step = torch.eye(15).double() + 0.1 * make_rate_matrix(conv, graph, 5)
    expected = block_norms(torch.linalg.matrix_power(step, 6), 1, 3)
    torch.testing.assert_close(sensitivity(conv, x, graph, 1).norms, expected)
    depths = sensitivity_by_depth(conv, x, graph, 1)
    for layer in range(7):
        power = torch.linalg.matrix_power(step, layer)
        torch.testing.assert_close(depths[layer], block_norms(power, 1, 3))
    torch.testing.assert_close(sensitivity(conv, x, graph, 1, layer=4).norms, depths[4])


def test_small_steps_approach_the_exponential_at_first_order(
    make_linear_layer, make_path, make_rate_matrix
):
    graph, x = make_path(4), torch.randn(4, 3).double()
    errors = []
    for steps in (20, 40, 80):
        conv = make_linear_layer(*weights(3), epsilon=1 / steps, num_iters=steps)
        exact = block_norms(torch.linalg.matrix_exp(make_rate_matrix(conv, graph, 4)), 0, 3)
        errors.append(float((sensitivity(conv, x, graph, 0).norms - exact).abs().max()))
    assert errors[0] / errors[1] == pytest.approx(2, rel=0.1)
    assert errors[1] / errors[2] == pytest.approx(2, rel=0.1)


def test_without_neighbours_the_flow_keeps_every_norm(make_linear_layer):
    # exp(tB) of an anti-symmetric B is orthogonal: sensitivity √d to itself, for all times.
    W, _ = weights(3)
    conv = make_linear_layer(W, torch.zeros(3, 3), epsilon=1e-4, num_iters=2000)
    norms = sensitivity(conv, torch.randn(1, 3).double(), torch.empty(2, 0).long(), 0).norms
    assert float(norms) == pytest.approx(3**0.5, rel=1e-3)


@pytest.mark.parametrize("name", available_models())
def test_any_model_is_measured(name):
    torch.manual_seed(0)
    options = {"adjoint": False} if name == "grand" else {}
    model = build_model(name, 3, 4, 1, num_layers=3, **options).double().eval()
    x, graph = torch.randn(6, 3).double(), example_graph("line", 6)
    start = model.encode(x).detach()
    whole = torch.autograd.functional.jacobian(lambda s: model.propagation(s, graph), start)
    result = sensitivity(model, x, graph, 2)
    torch.testing.assert_close(result.norms, whole[2].pow(2).sum((0, 2)).sqrt())


def test_probes_estimate_the_exact_norms():
    torch.manual_seed(0)
    model = ADGN(3, 16, 1, num_layers=6)
    x, graph = torch.randn(10, 3), example_graph("ring", 10)
    exact = sensitivity(model, x, graph, 0)
    rough = sensitivity(model, x, graph, 0, probes=400, seed=1)
    assert exact.probes is None and rough.probes == 400
    # Five standard errors of √(2 / 400) in the square, half of it in the norm.
    torch.testing.assert_close(rough.norms, exact.norms, rtol=2.5 * (2 / 400) ** 0.5, atol=0)
    again = sensitivity(model, x, graph, 0, probes=400, seed=1)
    assert torch.equal(again.norms, rough.norms)


def test_nothing_comes_from_farther_than_the_layers():
    torch.manual_seed(0)
    model = build_model("gcn", 3, 4, 1, num_layers=3)
    result = sensitivity(model, torch.randn(8, 3), example_graph("line", 8), 0)
    assert (result.norms[:4] > 0).all() and (result.norms[4:] == 0).all()
    assert result.distance.tolist() == list(range(8))


def test_renaming_nodes_renames_the_sensitivities():
    torch.manual_seed(0)
    model, x = ADGN(3, 4, 1, num_layers=5).double(), torch.randn(9, 3).double()
    graph, order = example_graph("random", 9, seed=3), torch.randperm(9)
    place = order.argsort()
    plain = sensitivity(model, x, graph, 4)
    renamed = sensitivity(model, x[order], place[graph], int(place[4]))
    torch.testing.assert_close(renamed.norms, plain.norms[order])
    assert torch.equal(renamed.distance, plain.distance[order])


def test_distances_follow_the_edges():
    directed = torch.tensor([[0, 1, 3], [1, 2, 2]])
    assert hops_to(2, directed, 5).tolist() == [2, 1, 0, 1, -1]
    assert hops_to(0, directed, 5).tolist() == [0, -1, -1, -1, -1]


@pytest.mark.parametrize(
    ("direction", "hops"),
    [("in", [1, 0, -1]), ("out", [-1, 0, 1]), ("both", [1, 0, 1]), ("undirected", [1, 0, 1])],
)
def test_distances_go_where_the_model_listens(direction, hops):
    path = torch.tensor([[0, 1], [1, 2]])
    model = ADGN(4, 8, 1, num_layers=3, direction=direction)
    found = sensitivity(model, torch.randn(3, 4), path, node=1)
    assert found.distance.tolist() == hops
    assert ((found.norms > 0) == (found.distance >= 0)).all()
    profile = sensitivity_by_distance(model, torch.randn(3, 4), path, nodes=[1])
    assert profile.pairs.tolist() == [1, hops.count(1)]


def test_profiles_group_by_distance():
    torch.manual_seed(0)
    model, x, graph = ADGN(3, 4, 1, num_layers=4), torch.randn(5, 3), example_graph("line", 5)
    profile = sensitivity_by_distance(model, x, graph)
    rows = [sensitivity(model, x, graph, node) for node in range(5)]
    norms, hops = torch.stack([r.norms for r in rows]), torch.stack([r.distance for r in rows])
    for distance in range(5):
        chosen = norms[hops == distance]
        assert profile.pairs[distance] == len(chosen)
        torch.testing.assert_close(profile.mean[distance], chosen.mean())
        torch.testing.assert_close(profile.largest[distance], chosen.max())
    lonely = sensitivity(model, x, torch.tensor([[0], [1]]), 1).by_distance()
    assert lonely.distance.tolist() == [0, 1] and lonely.pairs.tolist() == [1, 1]
    assert profile.reach(1e-12) == 4


def test_where_nothing_arrives_nothing_reaches_anywhere():
    def reach(*means):
        mean = torch.tensor(means, dtype=torch.float64)
        return DistanceProfile(torch.arange(len(mean)), mean, mean, torch.ones(len(mean))).reach()

    assert reach(0.0, 0.0, 0.0) == 0
    assert reach(0.0, 1.0, 0.0) == 1
    tiny = torch.finfo(torch.float64).tiny
    assert reach(tiny, tiny, 0.0) == 1


def test_training_is_not_disturbed():
    model = ADGN(3, 4, 1, num_layers=2, dropout=0.9).train()
    x, graph = torch.randn(4, 3), example_graph("ring", 4)
    torch.manual_seed(0)
    before = torch.get_rng_state()
    first = sensitivity(model, x, graph, 0, probes=2).norms
    assert torch.equal(first, sensitivity(model, x, graph, 0, probes=2).norms)
    assert torch.equal(before, torch.get_rng_state())
    assert model.training and all(p.requires_grad and p.grad is None for p in model.parameters())


def test_wrong_inputs_are_refused():
    model, x, graph = ADGN(3, 4, 1, num_layers=2), torch.randn(4, 3), example_graph("ring", 4)
    with pytest.raises(ValueError, match="node=7 is not valid; nodes are 0 to 3"):
        sensitivity(model, x, graph, 7)
    with pytest.raises(ValueError, match="probes=0"):
        sensitivity(model, x, graph, 0, probes=0)
    with pytest.raises(ValueError, match="layer=3"):
        sensitivity(model, x, graph, 0, layer=3)
    with pytest.raises(ValueError, match=r"nodes=\[\]"):
        sensitivity_by_distance(model, x, graph, nodes=[])
    with pytest.raises(ValueError, match=r"share=0"):
        sensitivity_by_distance(model, x, graph).reach(0)
