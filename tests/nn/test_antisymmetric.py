import copy

import pytest
import torch
import torch_geometric.nn as pyg
from hypothesis import assume, given
from hypothesis import strategies as st
from torch import Tensor, nn
from torch_geometric import EdgeIndex

from adgn.graph import cache_info
from adgn.nn import ADGN, AntiSymmetricConv, SumAggregation
from tests.graphs import CORNER_CASES, Example, edges, graphs

TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-10}
CORNERS = pytest.mark.parametrize("graph", CORNER_CASES.values(), ids=CORNER_CASES.keys())
DTYPES = pytest.mark.parametrize("dtype", TOLERANCE, ids=str)


def assert_near(actual: Tensor, expected: Tensor) -> None:
    tolerance = TOLERANCE[actual.dtype]
    torch.testing.assert_close(actual, expected, rtol=tolerance, atol=tolerance)


def gradients(layer: nn.Module, x: Tensor, *inputs: Tensor | None) -> tuple[Tensor, dict]:
    """The output, and the gradients of a fixed functional of it in x, weights and parameters."""
    x = x.clone().requires_grad_()
    edge_index, weight = inputs
    if weight is not None:
        weight = weight.clone().requires_grad_()
    output = layer(x, edge_index, weight)
    direction = torch.linspace(-1, 1, output.numel(), dtype=output.dtype).view_as(output)
    wanted = {"x": x, "weight": weight, **dict(layer.named_parameters())}
    wanted = {name: tensor for name, tensor in wanted.items() if tensor is not None}
    grads = torch.autograd.grad((direction * output).sum(), wanted.values(), allow_unused=True)
    # Where no edge exists an unused gradient and a zero one mean the same.
    return output, {
        name: torch.zeros_like(wanted[name]) if grad is None else grad
        for name, grad in zip(wanted, grads, strict=True)
    }


class Transcription(nn.Module):
    """The paper's equation, node by node and neighbour by neighbour, sharing a layer's weights."""

    def __init__(self, layer: AntiSymmetricConv, graph: Example, kind: str) -> None:
        super().__init__()
        self.W, self.bias, self.phi = layer.W, layer.bias, layer.phi
        self.layer, self.graph, self.kind = layer, graph, kind

    def named_parameters(self, *args, **kwargs):
        return self.layer.named_parameters(*args, **kwargs)

    def neighbourhood(self, node: int, weights: list[Tensor]) -> list[tuple[int, Tensor]]:
        pairs = self.graph.edge_index.t().tolist()
        into = [(s, weights[e]) for e, (s, t) in enumerate(pairs) if t == node]
        if self.kind == "sum":
            return into
        loops = [weight for source, weight in into if source == node]
        own = loops[-1] if loops else torch.ones((), dtype=self.W.dtype)
        return [(s, weight) for s, weight in into if s != node] + [(node, own)]

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None) -> Tensor:
        num_edges = self.graph.edge_index.size(1)
        weights = list(torch.ones(num_edges, dtype=x.dtype) if edge_weight is None else edge_weight)
        layer, V = self.layer, self.phi.lin.weight
        identity = torch.eye(x.size(1), dtype=x.dtype)
        around = [self.neighbourhood(u, weights) for u in range(len(x))]
        degree = [
            sum((w for _, w in near), start=torch.zeros((), dtype=x.dtype)) for near in around
        ]
        for _ in range(layer.num_iters):
            new = []
            for u in range(len(x)):
                phi = torch.zeros_like(x[u])
                for j, weight in around[u]:
                    scale = 1 if self.kind == "sum" else 1 / torch.sqrt(degree[j] * degree[u])
                    phi = phi + scale * weight * (V @ x[j])
                inside = (self.W - self.W.T - layer.gamma * identity) @ x[u] + phi + self.bias
                new.append(x[u] + layer.epsilon * torch.tanh(inside))
            x = torch.stack(new)
        return x


def assert_same_values_and_gradients(left: nn.Module, right: nn.Module, graph: Example, x: Tensor):
    weight = graph.weight(x.dtype)
    output, grads = gradients(left, x, graph.edge_index, weight)
    expected, expected_grads = gradients(right, x, graph.edge_index, weight)
    assert_near(output, expected)
    assert grads.keys() == expected_grads.keys()
    for name in grads:
        assert_near(grads[name], expected_grads[name])


@CORNERS
@DTYPES
@pytest.mark.parametrize("phi", ["sum", "gcn"])
def test_equals_the_equation_of_the_paper(graph: Example, dtype: torch.dtype, phi: str):
    layer = AntiSymmetricConv(5, phi, num_iters=3, epsilon=0.3, gamma=0.2).to(dtype)
    reference = Transcription(layer, graph, phi)
    assert_same_values_and_gradients(layer, reference, graph, graph.features(5, dtype))


@given(graph=graphs(max_nodes=5), phi=st.sampled_from(["sum", "gcn"]))
def test_equals_the_equation_on_any_graph(graph: Example, phi: str):
    layer = AntiSymmetricConv(3, phi, num_iters=2).double()
    assert_same_values_and_gradients(
        layer, Transcription(layer, graph, phi), graph, graph.features(3)
    )


@CORNERS
@DTYPES
def test_equals_pyg_with_its_state_dict(graph: Example, dtype: torch.dtype):
    theirs = pyg.AntiSymmetricConv(5, num_iters=3, epsilon=0.3, gamma=0.2).to(dtype)
    nn.init.normal_(theirs.bias)
    ours = AntiSymmetricConv(5, num_iters=3, epsilon=0.3, gamma=0.2).to(dtype)
    ours.load_state_dict(theirs.state_dict(), strict=True)
    assert_same_values_and_gradients(ours, theirs, graph, graph.features(5, dtype))


@given(graph=graphs())
def test_equals_pyg_on_any_graph(graph: Example):
    loops = graph.edge_index[0][graph.edge_index[0] == graph.edge_index[1]].tolist()
    if graph.edge_weight is not None:
        # Of repeated self loops PyG uses one weight, yet sends the gradient to all of them.
        assume(len(set(loops)) == len(loops))
    ours = AntiSymmetricConv(4, num_iters=2).double()
    theirs = pyg.AntiSymmetricConv(4, num_iters=2).double()
    theirs.load_state_dict(ours.state_dict(), strict=True)
    assert_same_values_and_gradients(ours, theirs, graph, graph.features(4))


@pytest.mark.parametrize("bias", [True, False])
def test_state_dicts_go_both_ways(bias: bool):
    ours, theirs = AntiSymmetricConv(4, bias=bias), pyg.AntiSymmetricConv(4, bias=bias)
    theirs.load_state_dict(ours.state_dict(), strict=True)
    ours.load_state_dict(theirs.state_dict(), strict=True)
    assert list(ours.state_dict()) == list(theirs.state_dict())


def test_several_states_on_one_graph_as_in_pyg():
    ours, theirs = AntiSymmetricConv(4, num_iters=2), pyg.AntiSymmetricConv(4, num_iters=2)
    theirs.load_state_dict(ours.state_dict())
    x, edge_index = torch.randn(2, 3, 4), edges((0, 1), (1, 2), (2, 1))
    assert_near(ours(x, edge_index), theirs(x, edge_index))


@pytest.mark.parametrize("phi", ["sum", "gcn"])
@given(graph=graphs(max_nodes=4))
def test_gradcheck(phi: str, graph: Example):
    layer = AntiSymmetricConv(2, phi, num_iters=2, epsilon=0.5).double()
    names = [name for name, _ in layer.named_parameters()]

    def function(x, weight, *parameters):
        state = dict(zip(names, parameters, strict=True))
        return torch.func.functional_call(layer, state, (x, graph.edge_index, weight))

    weight = graph.edge_weight
    if weight is not None:
        weight = weight.clone().requires_grad_()
    inputs = (graph.features(2).requires_grad_(), weight, *layer.parameters())
    assert torch.autograd.gradcheck(function, inputs)


def test_second_derivatives():
    layer = AntiSymmetricConv(2, "gcn", num_iters=2).double()
    graph = CORNER_CASES["weighted"]
    x, weight = graph.features(2).requires_grad_(), graph.edge_weight.clone().requires_grad_()
    assert torch.autograd.gradgradcheck(lambda x, w: layer(x, graph.edge_index, w), (x, weight))


def test_forward_mode_and_vmap_give_the_jacobian_of_backward():
    layer = AntiSymmetricConv(3, "gcn", num_iters=2).double()
    graph = CORNER_CASES["weighted"]

    def function(x):
        return layer(x, graph.edge_index, graph.edge_weight)

    x = graph.features(3)
    backward = torch.autograd.functional.jacobian(function, x)
    assert_near(torch.func.jacrev(function)(x), backward)
    assert_near(torch.func.jacfwd(function)(x), backward)


@given(graph=graphs(), seed=st.integers(0, 2**16))
def test_permuting_the_nodes_permutes_the_output(graph: Example, seed: int):
    order = torch.randperm(graph.num_nodes, generator=torch.Generator().manual_seed(seed))
    place = torch.argsort(order)
    x = graph.features(3)
    for phi in ("sum", "gcn"):
        layer = AntiSymmetricConv(3, phi, num_iters=4).double()
        moved = layer(x[order], place[graph.edge_index], graph.edge_weight)
        assert_near(moved, layer(x, graph.edge_index, graph.edge_weight)[order])


@given(graph=graphs(weighted=True))
def test_all_forms_of_a_graph_agree(graph: Example):
    distinct = {pair: e for e, pair in enumerate(map(tuple, graph.edge_index.t().tolist()))}
    keep = list(distinct.values())  # a matrix cannot hold repeated edges apart
    edge_index, weight = graph.edge_index[:, keep], graph.edge_weight[keep]
    size = (graph.num_nodes, graph.num_nodes)
    dense = torch.zeros(size, dtype=torch.float64).index_put((edge_index[1], edge_index[0]), weight)
    x = graph.features(3)
    for phi in ("sum", "gcn"):
        layer = AntiSymmetricConv(3, phi, num_iters=2).double()
        expected = layer(x, edge_index, weight)
        assert_near(layer(x, EdgeIndex(edge_index, sparse_size=size), weight), expected)
        assert_near(layer(x, dense.to_sparse_coo()), expected)
        assert_near(layer(x, dense.to_sparse_csr()), expected)
        assert_near(layer(x, dense.to_sparse_csc()), expected)


def test_num_iters_repeats_the_same_update():
    once, thrice = AntiSymmetricConv(3, "sum"), AntiSymmetricConv(3, "sum", num_iters=3)
    thrice.load_state_dict(once.state_dict())
    x, edge_index = torch.randn(3, 3), edges((0, 1), (1, 2))
    repeated = once(once(once(x, edge_index), edge_index), edge_index)
    assert_near(thrice(x, edge_index), repeated)


def test_any_module_can_be_phi():
    phi = pyg.SAGEConv(4, 4)
    layer = AntiSymmetricConv(4, phi, num_iters=2, epsilon=0.5)
    x, edge_index = torch.randn(3, 4), edges((0, 1), (1, 2))
    expected = x
    for _ in range(2):
        inside = expected @ layer.w_self().T + phi(expected, edge_index) + layer.bias
        expected = expected + 0.5 * inside.tanh()
    assert_near(layer(x, edge_index), expected)


def test_phi_as_a_module_keeps_the_weights_it_came_with():
    phi = pyg.GCNConv(4, 4, bias=False)
    before = phi.lin.weight.clone()
    AntiSymmetricConv(4, phi)
    assert torch.equal(phi.lin.weight, before)


def test_pygs_gcn_as_phi_is_the_built_in_one():
    ours = AntiSymmetricConv(4, "gcn", num_iters=2)
    with_module = AntiSymmetricConv(4, pyg.GCNConv(4, 4, bias=False), num_iters=2)
    with_module.load_state_dict(ours.state_dict())
    x, edge_index, weight = torch.randn(3, 4), edges((0, 1), (1, 2)), torch.tensor([0.5, 2.0])
    assert_near(with_module(x, edge_index, weight), ours(x, edge_index, weight))
    assert_near(
        with_module(x, edge_index, edge_weight=weight), ours(x, edge_index, edge_weight=weight)
    )


@pytest.mark.parametrize("act", ["relu", None, torch.sin, nn.ELU, nn.LeakyReLU(0.2)])
def test_activations(act):
    layer = AntiSymmetricConv(2, "sum", act=act)
    x, edge_index = torch.randn(2, 2), edges((0, 1))
    inside = x @ layer.w_self().T + layer.phi(x, edge_index) + layer.bias
    function = {"relu": torch.relu, None: lambda h: h, nn.ELU: nn.ELU()}.get(act, act)
    assert_near(layer(x, edge_index), x + 0.1 * function(inside))


def test_initialisation_follows_the_paper():
    channels = 64
    layer = AntiSymmetricConv(channels, "gcn")
    bound = 1 / channels**0.5  # kaiming uniform with a = √5, and the bias's own
    for tensor in (layer.W, layer.phi.lin.weight, layer.bias):
        assert tensor.abs().max() <= bound
        assert abs(tensor.std().item() - bound / 3**0.5) < 0.2 * bound
    before = copy.deepcopy(layer.state_dict())
    layer.reset_parameters()
    assert not torch.equal(layer.W, before["W"])
    assert not torch.equal(layer.phi.lin.weight, before["phi.lin.weight"])


def test_the_graph_is_prepared_once_for_all_steps():
    layer, x, edge_index = AntiSymmetricConv(2, num_iters=5), torch.randn(2, 2), edges((0, 1))
    layer(x, edge_index)
    before = cache_info()["misses"]
    for _ in range(3):
        layer(x, edge_index).sum().backward()
    assert cache_info()["misses"] == before


def test_a_layer_can_be_copied():
    layer, x, edge_index = AntiSymmetricConv(2), torch.randn(2, 2), edges((0, 1))
    expected = layer(x, edge_index)
    assert torch.equal(copy.deepcopy(layer)(x, edge_index), expected)


def test_autocast():
    layer, x, edge_index = AntiSymmetricConv(8), torch.randn(3, 8), edges((0, 1), (1, 2))
    with torch.autocast("cpu", torch.bfloat16):
        output = layer(x, edge_index)
    torch.testing.assert_close(output.float(), layer(x, edge_index), rtol=0.05, atol=0.05)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"in_channels": 0}, ValueError, "in_channels=0"),
        ({"num_iters": 0}, ValueError, "num_iters=0"),
        ({"num_iters": 1.5}, ValueError, "num_iters=1.5"),
        ({"epsilon": 0}, ValueError, "epsilon=0"),
        ({"epsilon": -0.1}, ValueError, "epsilon=-0.1"),
        ({"epsilon": float("nan")}, ValueError, "epsilon=nan"),
        ({"gamma": -0.1}, ValueError, "gamma=-0.1"),
        ({"phi": "sun"}, ValueError, "phi='sun' is not known. Did you mean 'sum'"),
        ({"phi": 3}, TypeError, "phi is a int"),
        ({"act": "tahn"}, ValueError, "act='tahn' is not known. Did you mean 'tanh'"),
        ({"act": 3}, TypeError, "act is a int"),
        ({"bias": "no"}, TypeError, "bias='no' is not valid; it must be True or False"),
        ({"phi": "gat", "phi_kwargs": {"heads": 0}}, ValueError, "heads=0 is not valid"),
    ],
)
def test_wrong_arguments_are_named(arguments, error, message):
    with pytest.raises(error, match=message):
        AntiSymmetricConv(**{"in_channels": 4, **arguments})


@pytest.mark.parametrize("phi", ["sum", "gcn"])
@pytest.mark.parametrize(
    ("x", "edge_index", "error", "message"),
    [
        (torch.ones(3, 2), edges((0, 1)), ValueError, "in_channels=4"),
        (torch.ones(3, 4).double(), edges((0, 1)), TypeError, "x has dtype torch.float64"),
        (torch.full((3, 4), float("nan")), edges((0, 1)), ValueError, r"x\[0, 0\] = nan"),
        (torch.ones(3, 4), edges((0, 3)), ValueError, r"edge_index\[1, 0\] = 3 is out of range"),
        (torch.ones(3, 4), edges((0, 1)).to("meta"), ValueError, "edge_index is on meta"),
    ],
)
def test_wrong_inputs_are_named(phi, x, edge_index, error, message):
    with pytest.raises(error, match=message):
        AntiSymmetricConv(4, phi)(x, edge_index)


def test_a_phi_of_another_size_is_named():
    layer = AntiSymmetricConv(4, pyg.GCNConv(4, 3))
    with pytest.raises(ValueError, match=r"phi=GCNConv returned \[2, 3\]"):
        layer(torch.ones(2, 4), edges((0, 1)))


@pytest.mark.parametrize(
    ("phi", "name", "advice"),
    [
        (pyg.GATConv(4, 4), "edge_weight", "such as phi='gcn'"),
        (pyg.SAGEConv(4, 4), "edge_attr", "such as phi='gine'"),
        (pyg.SAGEConv(4, 4), "temperature", "leave temperature out"),
    ],
)
def test_what_a_phi_does_not_take_is_named(phi, name, advice):
    layer = AntiSymmetricConv(4, phi)
    message = rf"{name} was given, but phi={type(phi).__name__} does not take it.*{advice}"
    with pytest.raises(ValueError, match=message):
        layer(torch.ones(2, 4), edges((0, 1)), **{name: torch.ones(1)})


def test_a_phi_that_takes_anything_is_given_it():
    class Anything(nn.Module):
        def forward(self, x, edge_index, **kwargs):
            return kwargs["scale"] * x

    layer, x = AntiSymmetricConv(4, Anything(), gamma=0.0, act=None, bias=False), torch.ones(2, 4)
    expected = x + 0.1 * (x @ layer.w_self().T + 3 * x)
    assert_near(layer(x, edges((0, 1)), scale=3), expected)


def test_edge_weights_of_a_model_whose_phi_takes_none():
    model = ADGN(4, 4, 1, 2, phi=pyg.GATConv(4, 4))
    with pytest.raises(ValueError, match="edge_weight was given, but phi=GATConv"):
        model(torch.ones(2, 4), edges((0, 1)), torch.ones(1))


def test_a_subclass_of_an_aggregation_is_called():
    class Silent(SumAggregation):
        def forward(self, x, edge_index, edge_weight=None):
            return torch.zeros_like(x)

    layer, x, edge_index = AntiSymmetricConv(4, Silent(4)), torch.randn(2, 4), edges((0, 1))
    expected = x + 0.1 * (x @ layer.w_self().T + layer.bias).tanh()
    assert_near(layer(x, edge_index), expected)


@pytest.mark.parametrize("part", ["phi", "phi.lin"])
@pytest.mark.parametrize("weight_sharing", [True, False])
def test_hooks_on_an_aggregation_are_called(part, weight_sharing):
    model = ADGN(4, 4, 1, 3, weight_sharing=weight_sharing)
    calls = []
    first = model.propagation.layers[0].get_submodule(part)
    expected = model(torch.ones(2, 4), edges((0, 1)))
    first.register_forward_hook(lambda *_: calls.append(1))
    assert_near(model(torch.ones(2, 4), edges((0, 1))), expected)
    assert len(calls) == (3 if weight_sharing else 1)


@pytest.mark.parametrize("norm", [nn.utils.parametrizations.spectral_norm])
def test_parametrised_weights_are_honoured(norm):
    layer = AntiSymmetricConv(4, "sum")
    norm(layer.phi.lin)
    layer.eval()
    x, edge_index = torch.randn(2, 4), edges((0, 1))
    inside = x @ layer.w_self().T + layer.phi(x, edge_index) + layer.bias
    assert_near(layer(x, edge_index), x + 0.1 * inside.tanh())
    for _ in range(2):
        layer(x, edge_index).sum().backward()


def test_a_graph_with_wrong_nodes_is_named_for_any_phi():
    layer = AntiSymmetricConv(4, pyg.SAGEConv(4, 4))
    with pytest.raises(ValueError, match=r"edge_index\[1, 0\] = 6 is out of range"):
        layer(torch.ones(2, 4), edges((0, 6)))


def test_an_aggregation_of_another_size_is_named():
    with pytest.raises(ValueError, match=r"phi=SumAggregation\(8\).*in_channels=4"):
        AntiSymmetricConv(4, SumAggregation(8))


def test_a_frozen_phi_stays_frozen():
    phi = pyg.GCNConv(4, 4).requires_grad_(False)
    ADGN(4, 4, 1, 2, phi=phi)
    assert not any(parameter.requires_grad for parameter in phi.parameters())


def test_act_kwargs_that_cannot_be_used_are_refused():
    with pytest.raises(ValueError, match="act_kwargs="):
        AntiSymmetricConv(4, act=nn.LeakyReLU(), act_kwargs={"negative_slope": 0.5})
    with pytest.raises(ValueError, match=r"act_kwargs=.* does not fit Tanh"):
        AntiSymmetricConv(4, act="tanh", act_kwargs={"slope": 0.5})


def test_a_wrong_size_is_called_by_the_networks_argument():
    with pytest.raises(ValueError, match="hidden_channels=0"):
        ADGN(4, 0, 1, 1)


def test_repr_is_one_line_in_the_form_of_pygs():
    expected = "AntiSymmetricConv(8, phi=GCNAggregation(8), num_iters=1, epsilon=0.1, gamma=0.1)"
    assert str(AntiSymmetricConv(8)) == expected
    theirs = pyg.AntiSymmetricConv(8, pyg.GCNConv(8, 8), num_iters=2)
    assert str(AntiSymmetricConv(8, pyg.GCNConv(8, 8), num_iters=2)) == str(theirs)
    assert "\n" not in str(AntiSymmetricConv(8, "gin", phi_kwargs={"mlp": "two-layer"}))
