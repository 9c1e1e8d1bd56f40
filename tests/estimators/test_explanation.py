import pytest
import torch

from adgn import Graph, GraphClassifier, NodeClassifier, NodeRegressor
from adgn.data import GraphInputError
from adgn.estimators.explanation import _one_graph, _ridge_norms
from adgn.estimators.hops import HopView
from adgn.estimators.inputs import Inputs
from adgn.estimators.ridge import RidgeModel
from tests.estimators.graphs import many_graphs, two_groups


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
    torch.testing.assert_close(_ridge_norms(model, inputs, [1]).float(), expected)


@pytest.mark.parametrize("operator", ["mean", "gcn", "sum"])
def test_the_derivative_of_a_closed_form_model_of_a_whole_graph(operator):
    torch.manual_seed(0)
    x = torch.randn(7, 3, requires_grad=True)
    edges = torch.tensor([[0, 1, 2, 3, 4, 6], [1, 2, 0, 4, 3, 5]])
    ptr = torch.tensor([0, 3, 5, 7])
    model = RidgeModel(HopView(2, "in", operator), torch.randn(21, 2), torch.randn(2))
    jacobian = torch.autograd.functional.jacobian(
        lambda features: model.outputs(Inputs(features, edges, node_ptr=ptr))[0], x
    )
    expected = jacobian.square().sum(dim=(0, 2)).sqrt()
    found = _ridge_norms(model, Inputs(x, edges, node_ptr=ptr), [0, 1, 2])
    torch.testing.assert_close(found.float(), expected)
    assert found[3:].tolist() == [0, 0, 0, 0]


def test_a_whole_graph_depends_on_its_own_nodes():
    graphs = many_graphs()
    model = GraphClassifier(settings={"loop": {"max_epochs": 2}}).fit(graphs)
    explanation = model.explain(3)
    own = (graphs.graph_of_node == 3).nonzero().view(-1).tolist()
    assert set(explanation.nodes.to_pylist()) == set(own)
    assert float(explanation.share.sum()) == pytest.approx(1)


@pytest.mark.parametrize("sparse", [False, True])
def test_one_graph_is_cut_out(sparse):
    x = torch.arange(14.0).view(7, 2)
    edges = torch.tensor([[0, 4, 3, 6], [1, 3, 4, 5]])
    given = x.to_sparse_csr() if sparse else x
    one = _one_graph(
        Inputs(given, edges, torch.arange(4.0), node_ptr=torch.tensor([0, 3, 5, 7])), 3, 5
    )
    assert (one.x.to_dense() if sparse else one.x).tolist() == x[3:5].tolist()
    assert one.edge_index.tolist() == [[1, 0], [0, 1]]
    assert one.edge_weight.tolist() == [1.0, 2.0]
    assert (one.num_nodes, one.num_rows) == (2, 1)


def test_an_id_of_several_graphs_is_asked_for_with_the_graph():
    nodes = {"of": ["a/b"] * 3 + ["c"] * 3, "id": [1, 2, 3] * 2, "v": [1.0, 2, 4, 3, 5, 6]}
    edges = {"of": ["a/b", "c"], "source": [1, 1], "target": [2, 2]}
    nodes["y"] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    options = {"graph": "of", "target_column": "y", "directed": True, "level": "node"}
    graph = Graph.from_tables(nodes, edges, **options)
    model = NodeRegressor(model="mlp", settings={"loop": {"max_epochs": 2}}).fit(graph)
    with pytest.raises(GraphInputError, match=r"id of 2 nodes .* name the graph too: 'a/b/2'"):
        model.explain(2)
    for name, place in (("a/b/2", 1), ("c/2", 4)):
        explanation = model.explain(name)
        assert explanation.id == name
        assert model.encoder_.decode(explanation.output.view(1, -1)) == model.predict()[place]


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
