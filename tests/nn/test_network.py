import copy

import pytest
import torch
from torch import nn
from torch_geometric.data import Batch, Data

from adgn.graph import GraphBlocks
from adgn.nn import ADGN, GraphNetwork, available_models, build_model
from tests.graphs import CORNER_CASES, both_ways, edges

RING = both_ways((0, 1), (1, 2), (2, 3), (3, 0))


class Scale(nn.Module):
    """A propagation with nothing to learn: twice the state."""

    def forward(self, x, edge_index, edge_weight=None):
        return 2 * x


def test_node_level_is_encoder_propagation_readout():
    net = GraphNetwork(3, 8, 2, Scale())
    x = torch.randn(4, 3)
    torch.testing.assert_close(net(x, RING), net.readout(2 * net.encoder(x)))


def test_graph_level_reads_sum_max_and_mean():
    net = GraphNetwork(3, 3, 9, Scale(), level="graph", encoder=None, readout="none")
    x, batch = torch.randn(4, 3), torch.tensor([0, 1, 1, 1])
    output = net(x, RING, batch=batch)
    for graph, nodes in enumerate((x[:1], x[1:])):
        expected = torch.cat([2 * nodes.sum(0), 2 * nodes.amax(0), 2 * nodes.mean(0)])
        torch.testing.assert_close(output[graph], expected)


def test_the_two_layer_readout():
    net = GraphNetwork(3, 8, 2, Scale(), readout="mlp")
    first, second = net.readout.hidden, net.readout.output
    assert (first.out_features, second.out_features) == (4, 2)
    x = torch.randn(4, 3)
    states = 2 * net.encoder(x)
    leaky = nn.functional.leaky_relu
    torch.testing.assert_close(net(x, RING), leaky(second(leaky(first(states)))))
    graph_net = GraphNetwork(3, 8, 2, Scale(), readout="mlp", level="graph")
    assert graph_net.readout.hidden.in_features == 24


@pytest.mark.parametrize("level", ["node", "graph"])
@pytest.mark.parametrize("phi", ["sum", "gcn"])
def test_a_batch_equals_its_graphs_one_by_one(level: str, phi: str):
    net = ADGN(3, 8, 2, 5, phi=phi, level=level).double()
    examples = [graph for graph in CORNER_CASES.values() if graph.edge_weight is None]
    data = [Data(x=g.features(3), edge_index=g.edge_index) for g in examples]
    batch = Batch.from_data_list(data)
    together = net(batch.x, batch.edge_index, batch=batch.batch)
    single = [
        net(d.x, d.edge_index, batch=torch.zeros(d.num_nodes, dtype=torch.long)) for d in data
    ]
    torch.testing.assert_close(together, torch.cat(single), rtol=1e-10, atol=1e-10)
    blocks = GraphBlocks(batch.edge_index, batch.ptr)
    selected = blocks.select(torch.arange(len(data)))
    packed = net(batch.x, selected, batch=selected.batch, batch_size=len(data))
    torch.testing.assert_close(packed, together, rtol=1e-10, atol=1e-10)


def test_sparse_features_equal_dense_ones_in_values_and_gradients():
    net = ADGN(6, 4, 2, 3)
    x = torch.randn(4, 6) * (torch.rand(4, 6) < 0.4)
    results = []
    for features in (x, x.to_sparse_csr()):
        net.zero_grad()
        output = net(features, RING)
        output.square().sum().backward()
        results.append([output.detach()] + [p.grad.clone() for p in net.parameters()])
    for dense, sparse in zip(*results, strict=True):
        torch.testing.assert_close(sparse, dense)


def test_dropout_acts_while_training_only():
    net = ADGN(3, 8, 2, 2, dropout=0.5)
    x = torch.randn(4, 3)
    assert not torch.equal(net(x, RING), net(x, RING))
    net.eval()
    assert torch.equal(net(x, RING), net(x, RING))


def features_seen(x, **options):
    """The features as the propagation has them while training: the encoder is the identity."""
    net = GraphNetwork(6, 6, 6, Unchanged(), encoder="linear_no_bias", readout="none", **options)
    with torch.no_grad():
        net.encoder.weight.copy_(torch.eye(6))
    return net(x, RING), net


class Unchanged(torch.nn.Module):
    """A propagation that leaves the states as they are."""

    def forward(self, x, edge_index, edge_weight=None):
        return x


@pytest.mark.parametrize("layout", ["dense", "sparse"])
def test_first_dropout_of_features_is_before_the_encoder_and_once(layout):
    torch.manual_seed(0)
    x = torch.rand(4, 6) + 1
    given = x if layout == "dense" else x.to_sparse_csr()
    seen, net = features_seen(given, dropout=0.5, first_dropout="features")
    kept = seen != 0
    assert 0 < kept.sum() < x.numel()
    torch.testing.assert_close(seen[kept], 2 * x[kept])  # a second dropout would have 4
    net.eval()
    torch.testing.assert_close(net(given, RING), x)


@pytest.mark.parametrize("layout", ["dense", "sparse"])
def test_the_encoders_gradient_is_of_the_features_that_were_not_dropped(layout):
    torch.manual_seed(1)
    x = torch.rand(4, 6) + 1
    given = x if layout == "dense" else x.to_sparse_csr()
    seen, net = features_seen(given, dropout=0.5, first_dropout="features")
    seen.sum().backward()
    expected = seen.detach().sum(0).expand(6, 6)
    torch.testing.assert_close(net.encoder.weight.grad, expected)
    again = net(given, RING)
    assert not torch.equal(again, seen)


def test_without_an_encoder_features_are_the_first_states():
    for first in ("states", "features"):
        torch.manual_seed(2)
        net = GraphNetwork(
            6, 6, 6, Unchanged(), encoder="none", readout="none", dropout=0.5, first_dropout=first
        )
        seen = net(torch.ones(4, 6), RING)
        assert set(seen.flatten().tolist()) == {0.0, 2.0}


def test_integers_cannot_be_dropped():
    with pytest.raises(ValueError, match="first_dropout='features' does not fit encoder='embed"):
        ADGN([3, 4], 8, 2, 2, encoder="embedding", dropout=0.5, first_dropout="features")


def test_parameter_counts_and_repr():
    net = ADGN(3, 8, 2, 5, weight_sharing=False)
    per_layer = 8 * 8 + 8 * 8 + 8
    assert net.parameter_counts() == {
        "encoder": 32,
        "propagation": 5 * per_layer,
        "readout": 18,
        "total": 50 + 5 * per_layer,
    }
    assert "3 → 8 → 2" in repr(net)


def test_reset_parameters_draws_all_weights_anew():
    net = ADGN(3, 8, 2, 2, weight_sharing=False, readout="mlp")
    before = {name: tensor.clone() for name, tensor in net.named_parameters()}
    net.reset_parameters()
    assert not any(torch.equal(before[name], tensor) for name, tensor in net.named_parameters())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"level": "edge"}, "level='edge' is not known.*graph, node"),
        ({"encoder": "mpl"}, "encoder='mpl' is not known"),
        ({"readout": "lineer"}, "Did you mean 'linear'"),
        ({"encoder": None}, "encoder='none' needs hidden_channels=8 to equal in_channels=3"),
        ({"readout": "none"}, "set out_channels=8"),
        ({"dropout": 1.0}, "dropout=1.0"),
        ({"first_dropout": "feature"}, "first_dropout='feature' is not known.*Did you mean 'fe"),
        ({"out_channels": 0}, "out_channels=0"),
    ],
)
def test_wrong_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        GraphNetwork(
            **{
                "in_channels": 3,
                "hidden_channels": 8,
                "out_channels": 2,
                "propagation": Scale(),
                **arguments,
            }
        )


def test_a_graph_level_network_needs_batch():
    net = ADGN(3, 8, 2, 2, level="graph")
    with pytest.raises(ValueError, match="batch=None, but level='graph'"):
        net(torch.ones(4, 3), RING)


@pytest.mark.parametrize(
    ("x", "edge_index", "batch", "error", "message"),
    [
        (torch.ones(4, 2), RING, None, ValueError, "in_channels=3"),
        (torch.ones(4, 3).double(), RING, None, TypeError, "x has dtype"),
        (torch.full((4, 3), float("inf")), RING, None, ValueError, r"x\[0, 0\] = inf"),
        (torch.ones(4, 3), edges((0, 9)), None, ValueError, r"edge_index\[1, 0\] = 9"),
        (torch.ones(4, 3), RING, torch.zeros(3).long(), ValueError, r"batch has shape \[3\]"),
        (torch.ones(4, 3).to_sparse_coo(), RING, None, ValueError, r"to_sparse_csr\(\)"),
    ],
)
def test_wrong_inputs_are_named(x, edge_index, batch, error, message):
    net = ADGN(3, 8, 2, 2, level="node" if batch is None else "graph")
    with pytest.raises(error, match=message):
        net(x, edge_index, batch=batch)


def test_sparse_features_need_an_encoder():
    net = ADGN(3, 3, 2, 2, encoder=None)
    with pytest.raises(ValueError, match="sparse x needs an encoder"):
        net(torch.ones(4, 3).to_sparse_csr(), RING)


def test_a_gradient_in_sparse_features_is_refused_and_not_lost():
    x = torch.ones(4, 3).to_sparse_csr().requires_grad_()
    with pytest.raises(ValueError, match="the sparse x requires a gradient"):
        ADGN(3, 8, 2, 2)(x, RING)


def test_several_states_on_one_graph_at_graph_level():
    net, batch = ADGN(3, 8, 2, 2, level="graph"), torch.tensor([0, 0, 1, 1])
    x = torch.randn(5, 4, 3)
    together = net(x, RING, batch=batch)
    assert together.shape == (5, 2, 2)
    torch.testing.assert_close(together[3], net(x[3], RING, batch=batch))


def test_batch_may_be_of_any_integer_type():
    net, batch, x = ADGN(3, 8, 2, 2, level="graph"), torch.tensor([0, 0, 1, 1]), torch.randn(4, 3)
    assert torch.equal(net(x, RING, batch=batch.to(torch.uint8)), net(x, RING, batch=batch))


@pytest.mark.parametrize("name", sorted(available_models()))
def test_models_run_under_autocast(name):
    torch.manual_seed(0)
    model, x = build_model(name, 3, 4, 2, 2).eval(), torch.randn(4, 3)
    with torch.autocast("cpu", torch.bfloat16):
        output = model(x, RING)
        output.float().sum().backward()
    # bfloat16 has 8 bits of precision; the networks are two layers deep.
    torch.testing.assert_close(output.float(), model(x, RING), rtol=0.1, atol=0.1)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("phi", ["sum", "gcn"])
def test_half_precision(phi, dtype):
    torch.manual_seed(0)
    model, x = ADGN(3, 8, 2, 4, phi=phi), torch.randn(4, 3)
    half = copy.deepcopy(model).to(dtype)(x.to(dtype), RING)
    assert half.dtype == dtype
    torch.testing.assert_close(half.float(), model(x, RING), rtol=0.05, atol=0.05)


def test_an_embedding_reads_integers():
    model = build_model("gcn", [5, 3], 4, 2, num_layers=2, encoder="embedding")
    ring = torch.tensor([[0, 1], [1, 0]])
    assert model(torch.tensor([[4, 0], [1, 2]]), ring).shape == (2, 2)
    assert model.in_channels == 2
    assert repr(build_model(**model.configuration)) == repr(model)


@pytest.mark.parametrize(("encoder", "channels"), [("embedding", 2), ("linear", [5, 3])])
def test_an_embedding_needs_the_numbers_of_values_and_nothing_else_does(encoder, channels):
    with pytest.raises(ValueError, match=rf"encoder='{encoder}' does not fit in_channels=\(?[25]"):
        build_model("adgn", channels, 4, 2, num_layers=2, encoder=encoder)
