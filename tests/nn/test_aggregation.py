import pytest
import torch
import torch_geometric.nn as pyg
from hypothesis import given

from adgn.nn import GCNAggregation, SumAggregation
from adgn.nn.aggregation import (
    AGGREGATIONS,
    check_aggregated,
    check_edge_features,
    resolve_aggregation,
)
from tests.graphs import CORNER_CASES, Example, graphs


@given(graphs())
def test_sum_is_the_sum_over_incoming_edges(graph: Example):
    phi = SumAggregation(3).double()
    x = graph.features(3)
    out = phi(x, graph.edge_index, graph.edge_weight)
    for node in range(graph.num_nodes):
        expected = torch.zeros(3, dtype=torch.float64)
        for source, weight in graph.neighbours(node):
            expected += weight * (phi.lin.weight @ x[source])
        torch.testing.assert_close(out[node], expected)


@pytest.mark.parametrize("case", CORNER_CASES)
def test_gcn_equals_pyg_s_layer_without_bias(case):
    graph = CORNER_CASES[case]
    phi, theirs = GCNAggregation(3).double(), pyg.GCNConv(3, 3, bias=False).double()
    theirs.load_state_dict(phi.state_dict())
    inputs = (graph.features(3), graph.edge_index, graph.edge_weight)
    torch.testing.assert_close(phi(*inputs), theirs(*inputs))


@pytest.mark.parametrize("kind", [SumAggregation, GCNAggregation])
def test_linear_in_the_states_with_exact_gradients(kind):
    graph = CORNER_CASES["weighted"]
    phi = kind(2).double()
    x, y = graph.features(2), graph.features(2, seed=1)

    def apply(x, weight=graph.edge_weight):
        return phi(x, graph.edge_index, weight)

    torch.testing.assert_close(apply(2 * x - y), 2 * apply(x) - apply(y))
    inputs = (x.clone().requires_grad_(), graph.edge_weight.clone().requires_grad_())
    assert torch.autograd.gradcheck(apply, inputs)


@pytest.mark.parametrize("kind", [SumAggregation, GCNAggregation])
def test_leading_dimensions_are_states_side_by_side(kind):
    graph = CORNER_CASES["repeated-edges"]
    phi = kind(2).double()
    x = torch.stack([graph.features(2), graph.features(2, seed=1)])
    out = phi(x, graph.edge_index)
    for side in range(2):
        torch.testing.assert_close(out[side], phi(x[side], graph.edge_index))


@pytest.mark.parametrize("kind", [SumAggregation, GCNAggregation])
def test_weights_start_as_torch_s_linear_layer_does(kind):
    torch.manual_seed(0)
    weight = kind(200).lin.weight
    assert weight.abs().max() <= 200**-0.5
    assert weight.std().item() == pytest.approx((200 * 3) ** -0.5, rel=0.02)


@pytest.mark.parametrize("name", AGGREGATIONS)
def test_every_name_gives_states_of_the_same_size(name):
    phi = resolve_aggregation(name, 4, {"edge_dim": 2} if name == "gine" else None)
    assert type(phi) is AGGREGATIONS[name]
    edge_index = torch.tensor([[0, 1], [1, 2]])
    features = {"edge_attr": torch.ones(2, 2)} if name == "gine" else {}
    assert phi(torch.ones(3, 4), edge_index, **features).shape == (3, 4)


def test_none_is_gcn_and_a_module_stays_as_it_is():
    assert isinstance(resolve_aggregation(None, 4), GCNAggregation)
    module = pyg.SAGEConv(4, 4)
    assert resolve_aggregation(module, 4) is module


def test_options_reach_the_aggregation():
    assert resolve_aggregation("gat", 4, {"heads": 2}).heads == 2
    assert resolve_aggregation("gcnii", 4, {"alpha": 0.3}).conv.alpha == 0.3


@pytest.mark.parametrize(
    ("phi", "phi_kwargs", "error", "message"),
    [
        ("sun", None, ValueError, "phi='sun' is not known. Did you mean 'sum'"),
        (3, None, TypeError, "phi is a int; expected one of cheb, gat, .*torch.nn.Module"),
        (pyg.GCNConv, None, TypeError, "phi is a type; expected"),
        ("sum", {"heads": 2}, ValueError, "phi='sum' does not take heads; it takes no options"),
        ("gcn", {"edge_dim": 2}, ValueError, "does not take edge_dim.*edge features are gat, gine"),
        ("gat", {"channels": 2}, ValueError, "phi='gat' does not take channels; it takes heads"),
        ("gine", None, ValueError, "phi='gine' needs edge_dim in phi_kwargs"),
        (torch.nn.Identity(), {"heads": 2}, ValueError, "phi_kwargs=.*Identity.*settings already"),
    ],
)
def test_what_cannot_be_resolved_is_named(phi, phi_kwargs, error, message):
    with pytest.raises(error, match=message):
        resolve_aggregation(phi, 4, phi_kwargs)


def test_edge_features_for_one_that_reads_none():
    edge_attr = torch.ones(2, 3)
    check_edge_features(resolve_aggregation("gine", 4, {"edge_dim": 3}), edge_attr)
    check_edge_features(torch.nn.Identity(), edge_attr)  # a user's module may read what it likes
    with pytest.raises(ValueError, match=r"phi=SumAggregation reads no edge features.*edge_dim=3"):
        check_edge_features(SumAggregation(4), edge_attr)


@pytest.mark.parametrize(
    ("returned", "got"), [(torch.ones(2, 3), r"\[2, 3\]"), ((torch.ones(2, 4),), "tuple")]
)
def test_a_user_s_module_must_keep_the_shape(returned, got):
    x = torch.ones(2, 4)
    check_aggregated(torch.nn.Identity(), torch.zeros(2, 4), x)  # must not raise
    with pytest.raises(ValueError, match=rf"phi=Identity returned {got} for x of shape \[2, 4\]"):
        check_aggregated(torch.nn.Identity(), returned, x)
