import torch

from adgn.nn import build_model


def test_does_not_look_at_the_graph(graph):
    model = build_model("mlp", 3, 4, 2, 2).double()
    states = model.encoder(graph.x)
    for layer in model.propagation.layers:
        states = torch.tanh(states @ layer.weight.t() + layer.bias)
    expected = model.readout(states)
    torch.testing.assert_close(model(graph.x, graph.edge_index, graph.edge_weight), expected)
    no_edges = torch.empty(2, 0, dtype=torch.long)
    torch.testing.assert_close(model(graph.x, no_edges), expected)
