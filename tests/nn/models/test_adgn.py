import pytest
import torch
import torch_geometric.nn as pyg
from torch import nn

from adgn.analysis import node_spectrum, perturbation_growth
from adgn.graph import graph_operator
from adgn.nn import ADGN, build_model, model_spec
from adgn.nn.aggregation import AGGREGATIONS
from tests.graphs import both_ways

PATH = both_ways((0, 1), (1, 2), (2, 3))


@pytest.mark.parametrize("phi", ["sum", "gcn"])
def test_shared_weights_equal_layers_given_the_same_tensors(phi: str):
    shared = ADGN(3, 6, 2, 4, phi=phi).double()
    layered = ADGN(3, 6, 2, 4, phi=phi, weight_sharing=False).double()
    layered.encoder.load_state_dict(shared.encoder.state_dict())
    layered.readout.load_state_dict(shared.readout.state_dict())
    (layer,) = shared.propagation.layers
    for other in layered.propagation.layers:
        other.load_state_dict(layer.state_dict())
    x = torch.randn(4, 3, dtype=torch.float64)
    torch.testing.assert_close(layered(x, PATH), shared(x, PATH), rtol=1e-12, atol=1e-12)
    shared(x, PATH).sum().backward()
    layered(x, PATH).sum().backward()
    total = sum(other.W.grad for other in layered.propagation.layers)
    torch.testing.assert_close(total, layer.W.grad, rtol=1e-10, atol=1e-12)


def test_layer_dependent_weights_differ():
    first, second = ADGN(3, 6, 2, 2, weight_sharing=False).propagation.layers
    assert not torch.equal(first.W, second.W)


@pytest.mark.parametrize("weight_sharing", [True, False])
def test_the_randomised_variant_trains_encoder_and_readout_only(weight_sharing: bool):
    net = ADGN(3, 6, 2, 3, train_recurrent=False, weight_sharing=weight_sharing)
    before = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    optimizer = torch.optim.Adam(net.parameters())
    net(torch.randn(4, 3), PATH).square().sum().backward()
    optimizer.step()
    for name, tensor in net.state_dict().items():
        assert torch.equal(tensor, before[name]) == name.startswith("propagation.")
    assert net.parameter_counts()["propagation"] == 0


def test_information_reaches_as_far_as_there_are_layers():
    path = both_ways(*((i, i + 1) for i in range(9)))
    for layers in (3, 6):
        net = ADGN(1, 4, 1, layers).double()
        x = torch.randn(10, 1, dtype=torch.float64, requires_grad=True)
        (grad,) = torch.autograd.grad(net(x, path)[0].sum(), x)
        assert (grad.squeeze() != 0).tolist() == [node <= layers for node in range(10)]


@pytest.mark.parametrize("direction", ["in", "out", "undirected"])
@pytest.mark.parametrize("weight_sharing", [True, False])
def test_first_hops_are_powers_of_gcns_operator(direction: str, weight_sharing: bool):
    line = torch.tensor([[0, 1, 2, 3], [1, 2, 3, 1]])
    weight = torch.rand(4, dtype=torch.float64) + 0.5
    options = {"direction": direction, "weight_sharing": weight_sharing}
    net = ADGN(3, 6, 2, 4, first_hops=2, **options).double()
    plain = ADGN(6, 6, 2, 4, encoder="none", **options).double()
    plain.load_state_dict({k: v for k, v in net.state_dict().items() if "encoder" not in k})
    x = torch.randn(4, 3, dtype=torch.float64)
    hop = graph_operator(
        line, weight, num_nodes=4, normalization="gcn", direction=direction, like=x
    ).to_dense()
    start = hop @ hop @ net.encoder(x)
    torch.testing.assert_close(net(x, line, weight), plain(start, line, weight))
    entered, *after = net.propagation.trajectory(net.encoder(x), line, weight)
    torch.testing.assert_close(entered, start)
    assert len(after) == 4
    torch.testing.assert_close(net.readout(after[-1]), net(x, line, weight))


def test_with_first_hops_some_nodes_need_more_than_the_layers_tell():
    path = both_ways(*((i, i + 1) for i in range(2999)))
    x, nodes = torch.randn(3000, 3, dtype=torch.float64), torch.tensor([5])
    for hops in (0, 2):
        net = ADGN(3, 4, 2, 3, phi="gcn", first_hops=hops).double()
        needed = net.propagation.needed(x.new_empty(3000, 0), path, None, nodes)
        assert (needed is None) == (hops > 0)
        torch.testing.assert_close(net(x, path, nodes=nodes), net(x, path)[nodes])


def test_first_hops_and_layers_may_need_two_operators():
    net, plain = (ADGN(3, 4, 2, 3, phi="sum", first_hops=hops) for hops in (1, 0))
    operator, x = graph_operator(PATH, num_nodes=4), torch.randn(4, 3)
    torch.testing.assert_close(plain(x, operator), plain(x, PATH))
    with pytest.raises(
        ValueError, match=r"first_hops needs GCN's operator.*'none'.*pass the edges"
    ):
        net(x, operator)
    by_gcn = ADGN(3, 4, 2, 3, phi="gcn", first_hops=1)
    operator = graph_operator(PATH, num_nodes=4, normalization="gcn")
    torch.testing.assert_close(by_gcn(x, operator), by_gcn(x, PATH))


def test_the_spectrum_of_a_layer_is_at_the_states_after_the_first_hops():
    net, x = ADGN(3, 4, 2, 2, first_hops=1).double(), torch.randn(4, 3, dtype=torch.float64)
    hop = graph_operator(PATH, num_nodes=4, normalization="gcn", like=x)
    (layer,) = net.propagation.layers
    one = node_spectrum(net, x, PATH)
    other = node_spectrum(layer, hop @ net.encode(x).detach(), PATH)
    torch.testing.assert_close(one.jacobians, other.jacobians)
    assert perturbation_growth(net, x, PATH).by_layer[0] == 1


def test_what_first_hops_do_not_fit():
    with pytest.raises(
        ValueError, match=r"first_hops=1 does not fit direction='both'.*first_hops=0"
    ):
        ADGN(3, 4, 2, 5, first_hops=1, direction="both")
    with pytest.raises(ValueError, match="first_hops=2 does not fit blocks: leave out blocks"):
        ADGN(3, 4, 2, 5, first_hops=2, blocks=2)
    with pytest.raises(ValueError, match="first_hops=-1"):
        ADGN(3, 4, 2, 5, first_hops=-1)


def test_edge_weights_reach_the_layers():
    net, x = ADGN(3, 6, 2, 3), torch.randn(4, 3)
    ones = torch.ones(PATH.size(1))
    torch.testing.assert_close(net(x, PATH, ones), net(x, PATH))
    assert not torch.allclose(net(x, PATH, 2 * ones), net(x, PATH))


def test_phi_may_be_a_module_for_shared_weights_only():
    net = ADGN(3, 6, 2, 3, phi=pyg.GATConv(6, 6))
    assert net(torch.randn(4, 3), PATH).shape == (4, 2)
    with pytest.raises(ValueError, match="weight_sharing=False needs one per layer"):
        ADGN(3, 6, 2, 3, phi=pyg.GATConv(6, 6), weight_sharing=False)


@pytest.mark.parametrize("num_layers", [0, -1, 2.5])
def test_wrong_layer_counts_are_named(num_layers):
    with pytest.raises(ValueError, match="num_layers="):
        ADGN(3, 6, 2, num_layers)


def test_the_network_learns():
    torch.manual_seed(1)
    net = ADGN(2, 16, 1, 4, epsilon=0.5)
    x = torch.randn(4, 2)
    target = x[:, :1].flip(0)  # each node must report the number of the opposite one
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    for _ in range(300):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(net(x, PATH), target)
        loss.backward()
        optimizer.step()
    assert loss < 1e-3


def test_the_class_checks_its_options_and_has_their_defaults():
    layer = ADGN(3, 4, 2, 5).propagation.layers[0]
    options = model_spec("adgn").options()
    assert (layer.epsilon, layer.gamma) == (options.epsilon, options.gamma)
    with pytest.raises(ValueError, match=r"adgn has no option 'epsilom'. Did you mean 'epsilon'"):
        ADGN(3, 4, 2, 5, epsilom=0.5)
    with pytest.raises(ValueError, match="weight_sharing=1 is not valid for adgn"):
        ADGN(3, 4, 2, 5, weight_sharing=1)


def test_build_model_makes_an_adgn():
    torch.manual_seed(0)
    by_name = build_model("adgn", 3, 4, 2, 5, phi="gcn", epsilon=0.5, level="graph")
    torch.manual_seed(0)
    by_class = ADGN(3, 4, 2, 5, phi="gcn", epsilon=0.5, level="graph")
    assert isinstance(by_name, ADGN)
    assert repr(by_name) == repr(by_class)
    for left, right in zip(by_name.parameters(), by_class.parameters(), strict=True):
        assert torch.equal(left, right)


PYG_PHI = {
    "gat": lambda: pyg.GATConv(4, 4),
    "gcn": lambda: pyg.GCNConv(4, 4, bias=False),
    "gin": lambda: pyg.GINConv(nn.Linear(4, 4), train_eps=True),
    "ggnn": lambda: pyg.GatedGraphConv(4, 1),
    "graphsage": lambda: pyg.SAGEConv(4, 4),
}


@pytest.mark.parametrize("phi", PYG_PHI)
@pytest.mark.parametrize("weight_sharing", [True, False])
def test_phi_by_name_equals_pygs_antisymmetric_layer(graph, phi, weight_sharing):
    """PyG's AntiSymmetricConv around PyG's convolution, with the same weights."""
    model = build_model(
        "adgn", 3, 4, 2, 3, phi=phi, weight_sharing=weight_sharing, epsilon=0.3, gamma=0.2
    ).double()
    x = model.encoder(graph.x)
    for layer in model.propagation.layers:
        conv = pyg.AntiSymmetricConv(
            4, PYG_PHI[phi](), num_iters=layer.num_iters, epsilon=0.3, gamma=0.2
        ).double()
        conv.load_state_dict(layer.state_dict())
        x = conv(x, graph.edge_index)
    torch.testing.assert_close(model(graph.x, graph.edge_index), model.readout(x))


def test_gine_equals_pygs_antisymmetric_layer(graph):
    model = build_model("adgn", 3, 4, 2, 3, phi="gine", edge_dim=2).double()
    phi = pyg.GINEConv(nn.Linear(4, 4), train_eps=True, edge_dim=2)
    conv = pyg.AntiSymmetricConv(4, phi, num_iters=3).double()
    conv.load_state_dict(model.propagation.layers[0].state_dict())
    edge_attr = torch.rand(10, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    expected = model.readout(conv(model.encoder(graph.x), graph.edge_index, edge_attr))
    torch.testing.assert_close(model(graph.x, graph.edge_index, edge_attr=edge_attr), expected)


def test_gcnii_equals_its_formula(graph):
    """One step with the layer's residual taken from the current states."""
    model = build_model("adgn", 3, 4, 2, 1, phi="gcnii", phi_kwargs={"alpha": 0.3}).double()
    conv = pyg.GCN2Conv(4, alpha=0.3).double()
    layer = model.propagation.layers[0]
    conv.load_state_dict(layer.phi.conv.state_dict())
    x = model.encoder(graph.x)
    own = layer.W - layer.W.t() - 0.1 * torch.eye(4, dtype=torch.float64)
    rate = torch.tanh(x @ own.t() + conv(x, x, graph.edge_index) + layer.bias)
    torch.testing.assert_close(model(graph.x, graph.edge_index), model.readout(x + 0.1 * rate))


def test_randomised_trains_encoder_and_readout_only():
    counts = build_model("adgn", 3, 4, 2, 5, phi="gat", train_recurrent=False).parameter_counts()
    assert counts["propagation"] == 0
    assert counts["total"] == counts["encoder"] + counts["readout"] == 26


@pytest.mark.parametrize("phi", [p for p in AGGREGATIONS if p not in ("gat", "gine")])
def test_edge_dim_for_a_phi_without_edge_features(phi):
    with pytest.raises(ValueError, match=rf"phi='{phi}' does not take edge_dim.*are gat, gine"):
        build_model("adgn", 3, 4, 2, 5, phi=phi, edge_dim=2)


def test_gine_without_edge_dim():
    with pytest.raises(ValueError, match="phi='gine' needs edge_dim"):
        build_model("adgn", 3, 4, 2, 5, phi="gine")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, r"edge_attr=None, but GINEConv has edge_dim=2"),
        ({"edge_attr": torch.ones(10, 3)}, r"edge_attr has shape \[10, 3\]; expected \[10, 2\]"),
        ({"edge_attr": torch.ones(9, 2)}, r"edge_attr has shape \[9, 2\]; expected \[10, 2\]"),
        (
            {"edge_attr": torch.full((10, 2), torch.nan)},
            r"edge_attr\[0, 0\] = nan is not finite",
        ),
        (
            {"edge_attr": torch.ones(10, 2), "edge_weight": torch.ones(10)},
            r"append the weight to edge_attr",
        ),
    ],
)
def test_wrong_edge_features(graph, given, message):
    model = build_model("adgn", 3, 4, 2, 2, phi="gine", edge_dim=2)
    with pytest.raises(ValueError, match=message):
        model(graph.x.float(), graph.edge_index, **given)


def test_edge_features_of_another_dtype(graph):
    model = build_model("adgn", 3, 4, 2, 2, phi="gine", edge_dim=2)
    with pytest.raises(TypeError, match=r"edge_attr has dtype torch\.float64"):
        model(graph.x.float(), graph.edge_index, edge_attr=torch.ones(10, 2, dtype=torch.float64))
