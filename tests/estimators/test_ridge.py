import numpy as np
import pytest
import torch
from sklearn.linear_model import Ridge

from adgn.estimators import ridge
from adgn.estimators.hops import HopView, hop_blocks, reduction
from adgn.estimators.inputs import Inputs, turned
from adgn.estimators.quality import Quality
from adgn.estimators.splits import Parts


def parts_of(n):
    order = torch.from_numpy(np.random.default_rng(0).permutation(n))
    return Parts(order[: n // 2], order[n // 2 : 3 * n // 4], order[3 * n // 4 :], "")


def random_inputs(nodes=40, features=5, edges=120, **options):
    torch.manual_seed(0)
    return Inputs(torch.randn(nodes, features), torch.randint(0, nodes, (2, edges)), **options)


@pytest.mark.parametrize("features", [5, 60])  # fewer and more than train rows: primal and dual
def test_the_solution_is_that_of_scikit_learn(features, monkeypatch):
    monkeypatch.setattr(ridge, "PENALTIES", (0.1,))
    inputs, parts = random_inputs(features=features), parts_of(40)
    y = torch.randn(40, 2)
    view = HopView(1, "in", "mean")
    model, _ = ridge.fit_ridge(inputs, y, parts, view, Quality("mse"))
    x = torch.cat(hop_blocks(inputs, view), dim=1).double().numpy()
    train = parts.train.numpy()
    centred = x[train] - x[train].mean(0)
    kernel = centred @ centred.T if features == 60 else centred.T @ centred
    expected = Ridge(alpha=0.1 * kernel.diagonal().mean()).fit(x[train], y[train].numpy())
    np.testing.assert_allclose(model.outputs(inputs), expected.predict(x), rtol=1e-4, atol=1e-5)


def test_hops_are_products_with_the_operator():
    inputs = Inputs(torch.tensor([[1.0], [2.0], [4.0]]), torch.tensor([[0, 1], [2, 2]]))
    mean = hop_blocks(inputs, HopView(1, "in", "mean"))[1]
    total = hop_blocks(inputs, HopView(1, "in", "sum"))[1]
    out = hop_blocks(inputs, HopView(1, "out", "sum"))[1]
    assert mean.view(-1).tolist() == [0.0, 0.0, 1.5]
    assert total.view(-1).tolist() == [0.0, 0.0, 3.0]
    assert out.view(-1).tolist() == [4.0, 4.0, 0.0]


def test_whole_graphs_have_means_sums_and_counts():
    inputs = Inputs(
        torch.tensor([[1.0], [3.0], [5.0]]),
        torch.empty(2, 0, dtype=torch.long),
        node_ptr=torch.tensor([0, 2, 3]),
    )
    (block,) = hop_blocks(inputs, HopView())
    assert block.tolist() == [[2.0, 4.0, 2.0], [5.0, 5.0, 1.0]]


def test_sparse_features_give_the_same():
    inputs = random_inputs()
    sparse = Inputs(inputs.x.to_sparse_csr(), inputs.edge_index)
    for dense, other in zip(
        hop_blocks(inputs, HopView(2)), hop_blocks(sparse, HopView(2)), strict=True
    ):
        torch.testing.assert_close(dense, other)


def test_too_many_features_are_projected_and_few_are_not(monkeypatch):
    inputs = random_inputs(features=30)
    assert reduction(inputs, torch.arange(40)) is None
    monkeypatch.setattr("adgn.estimators.hops._LARGEST_BLOCK", 40 * 20)
    projection = reduction(inputs, torch.arange(40))
    assert projection.shape == (30, 20)
    torch.testing.assert_close(projection.t() @ projection, torch.eye(20))


def test_the_probe_finds_where_the_information_is():
    """The class of a node is that of the nodes it points to; its own features are noise."""
    generator = torch.Generator().manual_seed(0)
    classes = torch.randint(0, 2, (400,), generator=generator)
    x = torch.nn.functional.one_hot(classes, 2).float()
    x = torch.cat([x[torch.randperm(400, generator=generator)][:200], x[200:]])
    points_to = torch.randint(200, 400, (200,), generator=generator)
    edges = torch.stack([torch.arange(200), points_to])
    y = torch.cat([classes[points_to], torch.full((200,), -1)])
    parts = Parts(torch.arange(100), torch.arange(100, 200), torch.empty(0), "")
    found = ridge.probe(Inputs(x, edges), y, parts, Quality("accuracy", 2))
    assert found.ranked()[0].direction in ("out", "undirected")
    assert found.scores[HopView(1, "out", "sum")] == 1.0
    assert found.features_alone < 0.7
    assert found.scores[HopView(1, "in", "sum")] < 0.7


def test_a_graph_without_edges_has_features_alone():
    inputs = Inputs(torch.randn(20, 2), torch.empty(2, 0, dtype=torch.long))
    y = torch.tensor([0, 1] * 10)
    found = ridge.probe(inputs, y, parts_of(20), Quality("accuracy", 2))
    assert list(found.scores) == [HopView()]


def test_weights_of_edges_that_become_one_are_averaged():
    edges = torch.tensor([[0, 1, 1], [1, 0, 2]])
    both, weight = turned(edges, torch.tensor([1.0, 3.0, 5.0]), 3, "undirected")
    assert both.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert weight.tolist() == [2.0, 2.0, 5.0, 5.0]


def test_an_unknown_direction_is_told():
    with pytest.raises(ValueError, match="direction='up'"):
        turned(torch.tensor([[0], [1]]), None, 2, "up")
