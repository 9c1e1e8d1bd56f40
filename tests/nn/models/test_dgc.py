import pytest
import torch
from torch_geometric.nn.conv.gcn_conv import gcn_norm
from torch_geometric.utils import to_dense_adj

from adgn.nn import build_model


def dense_normalised(edge_index, edge_weight, improved):
    if edge_weight is None:  # without weights PyG's gcn_norm forgets `improved`
        edge_weight = torch.ones(edge_index.size(1), dtype=torch.float64)
    edges, weights = gcn_norm(edge_index, edge_weight, 7, improved=improved, dtype=torch.float64)
    return to_dense_adj(edges, edge_attr=weights, max_num_nodes=7)[0].t()  # rows are targets


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("improved", [False, True])
@pytest.mark.parametrize("diffusion", ["adjacency", "laplacian"])
def test_equals_the_closed_form(graph, weighted, improved, diffusion):
    model = build_model(
        "dgc", 3, 4, 2, 6, epsilon=0.3, improved=improved, diffusion=diffusion
    ).double()
    weight = graph.edge_weight if weighted else None
    adjacency = dense_normalised(graph.edge_index, weight, improved)
    eye = torch.eye(7, dtype=torch.float64)
    change = adjacency if diffusion == "adjacency" else eye - adjacency
    step = torch.linalg.matrix_power(eye - 0.3 * change, 6)
    expected = model.readout(torch.tanh(step @ model.encoder(graph.x)))
    torch.testing.assert_close(model(graph.x, graph.edge_index, weight), expected)


def test_the_papers_setting_is_the_default():
    options = build_model("dgc", 3, 4, 2, 6).propagation
    assert (options.diffusion, options.normalization) == ("adjacency", "gcn-improved")


def test_the_heat_equation_ends_where_the_graph_is_in_balance():
    """On a connected undirected graph only the part along the square roots of degrees stays."""
    ring = torch.tensor([[0, 1, 2, 3, 1, 2, 3, 0], [1, 2, 3, 0, 0, 1, 2, 3]])
    model = build_model(
        "dgc", 2, 2, 2, 400, encoder="none", readout="none", act=None, diffusion="laplacian"
    )
    x = torch.randn(4, 2, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(model(x, ring), x.mean(0).expand(4, 2))
