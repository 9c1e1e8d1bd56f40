"""Outputs of some nodes: equal to those of all nodes, however few states are computed."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.autograd import gradcheck, gradgradcheck

from adgn.data import TreeNeighborsMatch
from adgn.graph import needed, set_backend
from adgn.graph.native import calls
from adgn.nn import ADGN, build_model
from adgn.training import Trainer
from adgn.training.batches import FullGraph, PackedBatches
from tests.graph.native.guards import Guards
from tests.graphs import both_ways, edges, graphs

SERVED = {
    "adgn": {"name": "adgn"},
    "identity": {"name": "adgn", "act": None, "phi": "gcn"},
    "relu, weights per layer": {"name": "adgn", "act": "relu", "weight_sharing": False},
    "both directions": {"name": "adgn", "direction": "both", "weight_sharing": False},
    "checkpoint": {"name": "adgn", "memory": "checkpoint", "bias": False},
    "gcn": {"name": "gcn", "norm": "layer", "residual": True},
    "gat": {"name": "gat", "heads": 2},
    "gin": {"name": "gin", "direction": "out"},
    "graphsage": {"name": "graphsage", "direction": "both"},
    "gcnii": {"name": "gcnii"},
}


@pytest.fixture
def always(monkeypatch):
    """Only what is needed is computed, also where nothing is gained by it."""
    monkeypatch.setattr(needed, "LARGEST_SHARE", 1e9)
    monkeypatch.setattr(needed, "LEAST_SAVED", -1e9)


def network(layers=3, channels=4, dtype=torch.float64, **options):
    torch.manual_seed(0)
    return build_model(
        in_channels=3, hidden_channels=channels, out_channels=2, num_layers=layers, **options
    ).to(dtype)


def with_gradients(net, x, *graph, nodes, alone):
    x = x.detach().requires_grad_()
    out = net(x, *graph, nodes=nodes) if alone else net(x, *graph)[nodes]
    weights = [x, *net.parameters()]
    grads = torch.autograd.grad(out.sin().sum(), weights, materialize_grads=True)
    return [out, *grads]


@pytest.mark.parametrize("kind", SERVED)
@pytest.mark.parametrize("served_by", ["auto", "torch"])
def test_values_and_gradients_are_those_of_all_nodes(always, kind, served_by):
    net = network(**SERVED[kind])

    @settings(max_examples=15)
    @given(graphs(max_nodes=9), st.data())
    def holds(example, data):
        node = st.integers(0, example.num_nodes - 1)
        nodes = torch.tensor(data.draw(st.lists(node, min_size=1, max_size=4)))
        graph = (example.edge_index, example.weight(torch.float64))
        x = example.features(3)
        assert net._needed(x, *graph, nodes) is not None
        few, all_nodes = (
            with_gradients(net, x, *graph, nodes=nodes, alone=alone) for alone in (True, False)
        )
        torch.testing.assert_close(few, all_nodes)

    with set_backend(served_by):
        holds()


@pytest.mark.parametrize("isa", ["baseline", "avx2", "avx512"])
@pytest.mark.parametrize("act", ["tanh", "relu", None])
@pytest.mark.parametrize("shared", [True, False])
def test_the_kernels_stay_in_their_arrays(always, native, monkeypatch, isa, act, shared):
    before = native.instruction_set
    if not native.use_instruction_set(isa):
        pytest.skip(f"this processor has no {isa}")
    # More steps than between two of the states that are kept, and rows of every number of tiles.
    layers, size = 20, 400
    generator = torch.Generator().manual_seed(1)
    targets = torch.arange(1, size).repeat(2)
    sources = (targets * torch.rand(targets.numel(), generator=generator)).long()
    graph = torch.stack(
        [sources, targets]
    )  # from smaller to larger numbers, so that few are reached
    nodes = torch.tensor([7, 399, 203])
    x = torch.randn(size, 3, generator=generator, dtype=torch.float64)
    try:
        for channels, dtype, close in ((5, torch.float64, 1e-9), (33, torch.float32, 1e-3)):
            options = {"act": act, "weight_sharing": shared, "epsilon": 0.2}
            net = network(layers, channels, dtype, name="adgn", **options)
            assert len(set(net._needed(x.to(dtype), graph, None, nodes).counts)) > 3
            guards = Guards()
            with monkeypatch.context() as patch:
                patch.setattr(calls, "buffers", guards)
                few = with_gradients(net, x.to(dtype), graph, nodes=nodes, alone=True)
            assert guards.untouched()
            whole = with_gradients(net, x.to(dtype), graph, nodes=nodes, alone=False)
            torch.testing.assert_close(few, whole, rtol=close, atol=close)
    finally:
        assert native.use_instruction_set(before)


def test_gradients_of_any_order(always):
    net = network(2, name="adgn")
    graph, nodes = both_ways((0, 1), (1, 2), (2, 3)), torch.tensor([0])
    x = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    assert gradcheck(lambda x: net(x, graph, nodes=nodes), x)
    assert gradgradcheck(lambda x: net(x, graph, nodes=nodes), x)
    with torch.no_grad():
        torch.testing.assert_close(net(x, graph, nodes=nodes), net(x, graph)[nodes])
    jacobian = torch.func.jacrev(lambda x: net(x, graph, nodes=nodes))(x)
    torch.testing.assert_close(jacobian, torch.func.jacrev(lambda x: net(x, graph)[nodes])(x))


def test_sparse_features(always):
    net, nodes = network(2, name="adgn"), torch.tensor([1, 3])
    x = torch.tensor([[0, 2, 0], [1, 0, 0], [0, 0, 0], [0, 5, 1]], dtype=torch.float64)
    graph, sparse = edges((0, 1), (2, 3)), x.to_sparse_csr()
    torch.testing.assert_close(net(sparse, graph, nodes=nodes), net(x, graph)[nodes])


@pytest.mark.parametrize(
    "options",
    [
        {"name": "adgn", "dropout": 0.5},
        {"name": "adgn", "fully_adjacent": True},
        {"name": "adgn", "integrator": "rk4"},
        {"name": "adgn", "phi": "gat"},
        {"name": "gcn", "norm": "batch"},
        {"name": "gcn", "norm": "pair"},
        {"name": "gat", "attention_dropout": 0.5},
        {"name": "gin", "mlp": "two-layer"},
        {"name": "cheb"},
        {"name": "grand"},
    ],
    ids=lambda options: " ".join(map(str, options.values())),
)
def test_what_looks_at_more_computes_all_nodes(always, options):
    net, nodes = network(2, **options), torch.tensor([2, 0, 2])
    x, graph = torch.randn(4, 3, dtype=torch.float64), both_ways((0, 1), (1, 2), (2, 3))
    assert net._needed(x, graph, None, nodes) is None
    for mode in (True, False):
        net.train(mode)
        torch.manual_seed(3)
        few = net(x, graph, nodes=nodes)
        torch.manual_seed(3)
        torch.testing.assert_close(few, net(x, graph)[nodes])


def test_a_hook_sees_all_nodes(always):
    net, nodes = network(2, name="gcn"), torch.tensor([0])
    x, graph = torch.randn(4, 3, dtype=torch.float64), both_ways((0, 1), (1, 2), (2, 3))
    assert net._needed(x, graph, None, nodes) is not None
    seen = []
    net.propagation.layers[1].register_forward_hook(lambda _, args, out: seen.append(len(out)))
    net(x, graph, nodes=nodes)
    assert seen == [4]


def test_wrong_use_is_named():
    x, graph = torch.randn(4, 3), both_ways((0, 1), (1, 2), (2, 3))
    with pytest.raises(ValueError, match=r"nodes\[0\] = 4 is out of range for 4 nodes"):
        ADGN(3, 8, 2, num_layers=2)(x, graph, nodes=torch.tensor([4]))
    with pytest.raises(ValueError, match=r"nodes\[0\] = 4 is out of range for 4 nodes"):
        build_model("grand", 3, 8, 2, num_layers=2)(x, graph, nodes=torch.tensor([4]))
    net = ADGN(3, 8, 2, num_layers=2, level="graph")
    with pytest.raises(ValueError, match="nodes was given at level='graph'"):
        net(x, graph, batch=torch.zeros(4, dtype=torch.long), nodes=torch.tensor([0]))


@pytest.mark.parametrize("name", ["adgn", "gcn"])
def test_training_on_trees_computes_what_the_root_needs(always, name):
    trees = TreeNeighborsMatch(3, num_permutations=20).packed
    source = PackedBatches(trees, 40, seed=0)
    first, second = list(source.batches(0))[:2]
    assert first.nodes is second.nodes is first.rows
    sizes = ((9, 9), 8, 9, 3)
    torch.manual_seed(0)
    net = build_model(name, *sizes, encoder="embedding")
    counts = net._needed(first.x, first.graph, None, first.nodes).counts
    assert counts == tuple(40 * count for count in (15, 7, 3, 1))
    trainer = Trainer(net, source, objective="classification", max_epochs=1)
    trainer._backward(first)
    few = [weight.grad.clone() for weight in net.parameters()]
    net.zero_grad()
    out = net(first.x, first.graph)[first.rows]
    trainer.objective.loss(out, first).backward()
    torch.testing.assert_close(few, [weight.grad for weight in net.parameters()])
    assert trainer.fit() == "max_epochs"


def test_all_nodes_in_another_order_are_scored_once():
    # As many rows as nodes: which of the two the outputs are cannot be told by their number.
    x, y, order = torch.randn(600, 3), torch.randn(600, 1), torch.randperm(600)
    graph, net = both_ways((0, 1), (1, 2)), ADGN(3, 8, 1, num_layers=2)
    trainer = Trainer(net, FullGraph(x, graph, y, order))
    expected = (net(x, graph).detach() - y).square().mean()
    assert trainer.evaluate("train")["mse"] == pytest.approx(float(expected), rel=1e-5)


def test_tiny_graphs_are_not_asked():
    x, graph, y = torch.randn(5, 3), both_ways((0, 1)), torch.randn(5, 1)
    (batch,) = FullGraph(x, graph, y, torch.tensor([4, 1])).batches(0)
    assert batch.nodes is None and batch.rows.tolist() == [4, 1]
    trees = TreeNeighborsMatch(2).packed
    assert next(PackedBatches(trees, 64).batches(0)).nodes is None
