"""PyG's explainers, which put masks on the edges of layers."""

import pytest
import torch
import torch_geometric.nn as pyg
from torch import nn
from torch_geometric.explain import Explainer, GNNExplainer
from torch_geometric.explain.algorithm.utils import clear_masks, set_masks

from adgn.graph import graph_operator
from adgn.nn import ADGN, AntiSymmetricConv
from tests.graphs import edges

GRAPH = edges((0, 1), (1, 2), (2, 3), (3, 0), (3, 3), (0, 1), (0, 0))
FEATURES = torch.randn(7, 3, generator=torch.Generator().manual_seed(1)).double()


def linear() -> nn.Module:
    return nn.Linear(8, 8)


CASES = {
    "gcn": (None, {}, lambda: None),
    "gat": ("gat", {"heads": 2}, lambda: pyg.GATConv(8, 4, heads=2)),
    "gat with edge features": ("gat", {"edge_dim": 3}, lambda: pyg.GATConv(8, 8, edge_dim=3)),
    "ggnn": ("ggnn", {}, lambda: pyg.GatedGraphConv(8, 1)),
    "gin": ("gin", {}, lambda: pyg.GINConv(linear(), train_eps=True)),
    "gine": ("gine", {"edge_dim": 3}, lambda: pyg.GINEConv(linear(), 0.0, True, edge_dim=3)),
    "graphsage": ("graphsage", {}, lambda: pyg.SAGEConv(8, 8)),
}


def masked(layer: nn.Module, x, sigmoid: bool, **given):
    mask = nn.Parameter(torch.linspace(-1, 1, 7, dtype=torch.float64))
    set_masks(layer, mask, GRAPH, apply_sigmoid=sigmoid)
    output = layer(x, GRAPH, **given)
    (grad,) = torch.autograd.grad(output.sin().sum(), mask)
    clear_masks(layer)
    return output, grad


@pytest.mark.parametrize("sigmoid", [True, False])
@pytest.mark.parametrize("name", CASES)
def test_masks_and_their_gradients_are_those_of_pygs_layer(name, sigmoid):
    torch.manual_seed(0)
    phi, options, theirs = CASES[name]
    ours = AntiSymmetricConv(8, phi, num_iters=3, phi_kwargs=options).double()
    other = pyg.AntiSymmetricConv(8, theirs(), num_iters=3).double()
    other.load_state_dict(ours.state_dict())
    x = torch.randn(5, 8, dtype=torch.float64)
    given = {"edge_attr": FEATURES} if "edge_dim" in options else {}
    unmasked = ours(x, GRAPH, **given)
    output, grad = masked(ours, x, sigmoid, **given)
    expected, expected_grad = masked(other, x, sigmoid, **given)
    torch.testing.assert_close(output, expected)
    torch.testing.assert_close(grad, expected_grad)
    assert not torch.allclose(output, unmasked)
    torch.testing.assert_close(ours(x, GRAPH, **given), unmasked, rtol=0, atol=0)


@pytest.mark.parametrize("weight_sharing", [True, False])
@pytest.mark.parametrize("phi", ["sum", "gcnii"])
def test_a_mask_of_ones_changes_nothing_and_one_of_zeros_cuts_the_graph(phi, weight_sharing):
    model = ADGN(8, 8, 2, 3, phi=phi, weight_sharing=weight_sharing)
    x = torch.randn(5, 8)
    for mask, graph in ((torch.ones(7), GRAPH), (torch.zeros(7), GRAPH[:, :0])):
        set_masks(model, mask, GRAPH, apply_sigmoid=False)
        output = model(x, GRAPH)
        clear_masks(model)
        if phi == "sum" or bool(mask.all()):  # gcnii: degrees of the whole graph stay
            torch.testing.assert_close(output, model(x, graph))
        else:
            assert not torch.allclose(output, model(x, GRAPH))


def test_layers_may_be_left_out_of_an_explanation():
    model = ADGN(8, 8, 2, 2, weight_sharing=False)
    model.propagation.layers[0].phi.explain = False
    x = torch.randn(5, 8)
    set_masks(model, torch.zeros(7), GRAPH, apply_sigmoid=False)
    cut = model.propagation.layers[1](model.propagation.layers[0](model.encode(x), GRAPH), GRAPH)
    torch.testing.assert_close(model(x, GRAPH), model.read(cut))


def explainer(model: nn.Module, level: str, **options) -> Explainer:
    return Explainer(
        model,
        GNNExplainer(epochs=5),
        explanation_type="model",
        edge_mask_type="object",
        model_config={
            "mode": "multiclass_classification",
            "task_level": level,
            "return_type": "raw",
        },
        **options,
    )


def test_gnn_explainer_finds_the_edges_that_a_node_hears():
    torch.manual_seed(0)
    model = ADGN(8, 16, 3, num_layers=2)
    path = edges((0, 1), (1, 2), (2, 3), (3, 4))
    found = explainer(model, "node", node_mask_type="attributes")(torch.randn(5, 8), path, index=3)
    assert (found.edge_mask > 0).tolist() == [False, True, True, False]


def test_gnn_explainer_of_a_graph():
    torch.manual_seed(0)
    model = ADGN(8, 16, 3, num_layers=2, level="graph")
    batch = torch.zeros(5, dtype=torch.long)
    found = explainer(model, "graph")(torch.randn(5, 8), GRAPH, batch=batch)
    assert bool((found.edge_mask > 0).all())


def test_only_edges_can_be_masked():
    layer = AntiSymmetricConv(8, "sum")
    set_masks(layer, torch.ones(7), GRAPH)
    with pytest.raises(ValueError, match=r"masks the edges of a \[2, E\] edge_index"):
        layer(torch.randn(5, 8), graph_operator(GRAPH, num_nodes=5))
