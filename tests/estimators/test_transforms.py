"""Estimators whose graphs are transformed: at fit, at predict, in a folder; what is refused."""

import json

import numpy as np
import pytest
import torch

import adgn
from adgn.data import Preprocessing
from adgn.data.own.inputs import Inputs
from adgn.estimators.members import notes_on_fa
from adgn.estimators.ridge import RidgeModel
from adgn.transforms import DIGL, SDRF, resolve_transforms
from tests.estimators.graphs import many_graphs, two_groups

QUICK = {
    "settings": {"loop": {"max_epochs": 3}},
    "model": "gcn",
    "model_options": {"num_layers": 2},
}


@pytest.fixture(autouse=True)
def own_root(tmp_path, monkeypatch):
    monkeypatch.setenv("ADGN_DATA", str(tmp_path / "data"))


def inputs_of(graph, transform):
    return Inputs.of(graph, Preprocessing.fit(graph), resolve_transforms(transform))


@pytest.mark.parametrize("transform", ["digl:k=4", "fa", ["undirected", "sdrf:iterations=2"]])
def test_a_model_in_a_folder_predicts_alike(tmp_path, transform):
    graph, _ = two_groups()
    model = adgn.NodeClassifier(transform=transform, **QUICK).fit(graph)
    again = adgn.load(model.save(tmp_path / "model"))
    assert resolve_transforms(again.transform) == resolve_transforms(transform)
    np.testing.assert_array_equal(again.predict_proba(graph), model.predict_proba())
    json.loads((tmp_path / "model" / "config.json").read_text())


def test_a_new_graph_goes_through_the_transform():
    graph, _ = two_groups()
    other, _ = two_groups(seed=1)
    model = adgn.NodeClassifier(transform=[DIGL(k=4)], **QUICK).fit(graph)
    (member,) = model.members_
    expected = member.outputs(inputs_of_fitted(model, other)).double().softmax(-1)
    np.testing.assert_allclose(model.predict_proba(other), expected.numpy())


def inputs_of_fitted(model, graph):
    return Inputs.of(graph, model.preprocessing_, (DIGL(k=4),))


def test_networks_take_the_weights_as_they_are():
    graph, _ = two_groups()
    inputs = inputs_of(graph, "digl:k=4")
    taken, weight = inputs.graph("in")
    assert weight is None
    expected = torch.zeros(120, 120).index_put(tuple(inputs.edge_index.flip(0)), inputs.edge_weight)
    assert torch.equal(taken.operator("gcn", torch.float32).to_dense(), expected)
    plain = inputs_of(graph, "digl:k=4,normalize=true")
    assert plain.graph("in") == plain.edges("in")


def test_directions_mean_nothing_on_a_symmetric_result():
    graph, _ = two_groups()
    assert inputs_of(graph, None).directed
    assert not inputs_of(graph, "undirected").directed
    assert inputs_of(graph, "digl:k=4").directed
    assert not inputs_of(graph, "digl:k=4,undirected=true").directed


def test_what_was_done_is_noted():
    graph, _ = two_groups()
    model = adgn.NodeClassifier(transform="sdrf:iterations=2", **QUICK).fit(graph)
    assert any(note.startswith("2 edges added") for note in model.notes_)


def test_it_is_noted_which_members_fa_does_not_reach():
    graph, _ = two_groups()
    model = adgn.NodeClassifier(transform="fa", settings={"loop": {"max_epochs": 1}}).fit(graph)
    closed = [m.name for m in model.members_ if isinstance(m.model, RidgeModel)]
    assert closed  # after one epoch networks are no match for them
    (note,) = (note for note in model.notes_ if "'fa' has no effect" in note)
    assert all(name in note for name in closed)
    assert notes_on_fa(model.members_, inputs_of(graph, "undirected")) == []
    network = adgn.NodeClassifier(transform="fa", **QUICK).fit(graph)
    assert not any("no effect" in note for note in network.notes_)


def test_whole_graphs_are_transformed_one_by_one():
    graphs = many_graphs(12)
    inputs = inputs_of(graphs, [SDRF(iterations=1)])
    owner = graphs.graph_of_node
    assert torch.equal(owner[inputs.edge_index[0]], owner[inputs.edge_index[1]])
    added = inputs.edge_index.size(1) - graphs.num_edges
    assert 0 < added <= 2 * 12
    model = adgn.GraphClassifier(transform="digl:k=3", **QUICK).fit(graphs)
    assert model.predict().shape == (12,)


def test_what_cannot_be_is_refused_before_any_work():
    graph, _ = two_groups()
    for transform, message in (
        ("largest_component", "leaves nodes out, but every node of a graph is predicted"),
        ("diggl", "Did you mean 'digl'"),
        ("digl:k=0", "k=0 is not valid for transform digl"),
    ):
        with pytest.raises(ValueError, match=message):
            adgn.NodeClassifier(transform=transform, **QUICK).fit(graph)
    with pytest.raises(ValueError, match="'fa' has no meaning where whole graphs are predicted"):
        adgn.GraphClassifier(transform="fa", **QUICK).fit(many_graphs(12))
