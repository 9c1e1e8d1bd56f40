import pytest
import torch

from adgn import NodeClassifier
from adgn.data import GraphInputError
from adgn.estimators.explanation import _ridge_norms
from adgn.estimators.hops import HopView
from adgn.estimators.inputs import Inputs
from adgn.estimators.ridge import RidgeModel
from tests.estimators.graphs import two_groups


@pytest.mark.parametrize("direction", ["in", "out", "undirected"])
@pytest.mark.parametrize("operator", ["mean", "gcn", "sum"])
def test_the_derivative_of_a_closed_form_model(direction, operator):
    torch.manual_seed(0)
    x = torch.randn(6, 3, requires_grad=True)
    inputs = Inputs(x, torch.tensor([[0, 1, 2, 3, 4], [1, 2, 0, 4, 3]]))
    view = HopView(2, direction, operator)
    model = RidgeModel(view, torch.randn(9, 2), torch.randn(2))
    jacobian = torch.autograd.functional.jacobian(
        lambda features: model.outputs(Inputs(features, inputs.edge_index))[1], x
    )
    expected = jacobian.square().sum(dim=(0, 2)).sqrt()
    torch.testing.assert_close(_ridge_norms(model, inputs, 1).float(), expected)


def test_shares_are_one_in_sum_and_the_most_important_comes_first():
    graph, _ = two_groups(ids=[f"n{n}" for n in range(120)])
    model = NodeClassifier(settings={"loop": {"max_epochs": 10}}).fit(graph)
    explanation = model.explain("n7")
    assert float(explanation.share.sum()) == pytest.approx(1)
    assert explanation.share.tolist() == sorted(explanation.share.tolist(), reverse=True)
    assert sum(explanation.by_distance().values()) == pytest.approx(1)
    assert explanation.distance[explanation.nodes.to_pylist().index("n7")] == 0
    assert explanation.output.tolist() == model.predict_proba()[7].tolist()


def test_a_network_without_the_graph_depends_on_the_node_alone():
    graph, _ = two_groups()
    model = NodeClassifier(model="mlp", settings={"loop": {"max_epochs": 5}}).fit(graph)
    explanation = model.explain(3)
    assert explanation.nodes.to_pylist() == [3]
    assert explanation.by_distance() == {0: 1.0}


@pytest.mark.parametrize("row", ["n7", 500])
def test_an_unknown_id_is_told(row):
    graph, _ = two_groups()
    model = NodeClassifier(model="mlp", settings={"loop": {"max_epochs": 2}}).fit(graph)
    with pytest.raises(GraphInputError, match="ids"):
        model.explain(row)
