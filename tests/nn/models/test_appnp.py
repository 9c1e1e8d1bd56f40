import pytest
import torch
import torch_geometric.nn as pyg

from adgn.nn import build_model


@pytest.mark.parametrize("weighted", [False, True])
def test_equals_a_pyg_network(graph, weighted):
    model = build_model("appnp", 3, 4, 2, 5, alpha=0.2).double()
    weights = (graph.edge_weight,) if weighted else ()
    propagated = pyg.APPNP(K=5, alpha=0.2)(
        torch.relu(model.encoder(graph.x)), graph.edge_index, *weights
    )
    torch.testing.assert_close(
        model(graph.x, graph.edge_index, *weights), model.readout(propagated)
    )


def test_is_prediction_before_propagation(graph):
    """Without the readout's bias, the readout may as well come before the propagation."""
    model = build_model("appnp", 3, 4, 2, 5).double()
    torch.nn.init.zeros_(model.readout.bias)
    predictions = model.readout(torch.relu(model.encoder(graph.x)))
    propagated = pyg.APPNP(K=5, alpha=0.1)(predictions, graph.edge_index)
    torch.testing.assert_close(model(graph.x, graph.edge_index), propagated)
