"""States by layer: for every model, and the manners of a measurement."""

import itertools

import pytest
import torch
from torch import nn

from adgn.analysis import layer_states
from adgn.analysis.states import check_layer, check_node, in_double, measuring, states_from
from adgn.graph import graph_operator
from adgn.nn import ADGN, AntiSymmetricConv, available_models, build_model
from adgn.training import DivergedError


@pytest.mark.parametrize("name", available_models())
def test_every_model_shows_its_layers(name, make_path):
    torch.manual_seed(0)
    model = build_model(name, 3, 8, 2, num_layers=4).double().eval()
    x, graph = torch.randn(5, 3).double(), make_path(5)
    states = layer_states(model, x, graph)
    assert len(states) == 5
    torch.testing.assert_close(states[0], model.encode(x))
    torch.testing.assert_close(states[-1], model.propagation(states[0], graph))
    torch.testing.assert_close(model.read(states[-1]), model(x, graph))


@pytest.mark.parametrize("name", available_models())
def test_gradients_flow_from_each_state_to_the_one_before(name, make_path):
    torch.manual_seed(0)
    model = build_model(name, 3, 8, 2, num_layers=3).double().eval()
    start = model.encode(torch.randn(5, 3).double()).detach().requires_grad_()
    states = states_from(model.propagation, start, make_path(5))
    for before, after in itertools.pairwise(states):
        (gradient,) = torch.autograd.grad(after.sum(), before, retain_graph=True)
        assert gradient.abs().sum() > 0


@pytest.mark.parametrize("weight_sharing", [True, False])
def test_each_state_is_one_update_of_the_state_before(weight_sharing, make_path):
    model = ADGN(3, 4, 1, num_layers=3, weight_sharing=weight_sharing).double()
    graph = make_path(5)
    states = layer_states(model, torch.randn(5, 3).double(), graph)
    adjacency = graph_operator(graph, num_nodes=5, like=states[0]).to_dense()
    layers = list(model.propagation.layers) * (3 if weight_sharing else 1)
    for conv, before, after in zip(layers, states[:-1], states[1:], strict=True):
        inner = before @ conv.w_self().t() + adjacency @ before @ conv.phi.lin.weight.t()
        torch.testing.assert_close(after, before + 0.1 * torch.tanh(inner + conv.bias))


class PlainStack(nn.Module):
    """Layers of which only `layers` tells: the activation is applied outside of them."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))

    def forward(self, x, edge_index, edge_weight=None):
        for layer in self.layers:
            x = torch.tanh(layer(x))
        return x


def test_a_plain_module_list_is_enough(make_path):
    stack, x = PlainStack(), torch.randn(3, 4)
    states = layer_states(stack, x, make_path(3))
    expected = [x]
    for layer in stack.layers:
        expected.append(torch.tanh(layer(expected[-1])))
    torch.testing.assert_close(states, [state.detach() for state in expected])
    assert not any(layer._forward_pre_hooks for layer in stack.layers)


def test_a_model_that_shows_nothing_is_told_what_to_offer(make_path):
    with pytest.raises(TypeError, match=r"Linear does not show its states.*trajectory"):
        layer_states(nn.Linear(4, 4), torch.randn(3, 4), make_path(3))


def test_weights_that_are_not_finite_are_named(make_path):
    model = ADGN(3, 4, 1, num_layers=2)
    with torch.no_grad():
        model.propagation.layers[0].W[1, 2] = float("nan")
    with pytest.raises(ValueError, match=r"propagation\.layers\.0\.W\[1, 2\] = nan"):
        layer_states(model, torch.randn(3, 3), make_path(3))


def test_measuring_leaves_the_model_as_it_was():
    model = ADGN(3, 4, 1, num_layers=2, dropout=0.5).train()
    model.readout.eval()
    model.encoder.weight.requires_grad_(False)
    before = [p.requires_grad for p in model.parameters()]
    with pytest.raises(KeyError), measuring(model):
        assert not any(module.training for module in model.modules())
        assert not any(p.requires_grad for p in model.parameters())
        raise KeyError
    assert [p.requires_grad for p in model.parameters()] == before
    assert model.training and model.dropout.training and not model.readout.training


@pytest.mark.parametrize("act", ["identity", "relu"])
def test_overflow_is_called_divergence(act, make_path):
    conv = AntiSymmetricConv(4, phi="sum", num_iters=60, epsilon=10.0, act=act)
    with torch.no_grad():
        conv.phi.lin.weight.fill_(10.0)
    with pytest.raises(DivergedError, match="overflow"):
        layer_states(conv, torch.ones(4, 4), make_path(4))


def test_graphs_become_double(make_path):
    operator = graph_operator(make_path(3), num_nodes=3)
    model, x = AntiSymmetricConv(4), torch.ones(3, 4)
    assert in_double(model, x, operator, None)[2].value.dtype == torch.float64
    sparse = torch.eye(3).to_sparse_csr()
    assert in_double(model, x, sparse, None)[2].dtype == torch.float64
    given = torch.ones(4, requires_grad=True)
    copy, states, _, weight = in_double(model, x, make_path(3), given)
    assert states.dtype == copy.W.dtype == torch.float64 and model.W.dtype == torch.float32
    assert weight.dtype == torch.float64 and not weight.requires_grad


def test_wrong_inputs_are_refused(make_path):
    with pytest.raises(ValueError, match=r"x has shape \[2, 3, 4\]"):
        layer_states(AntiSymmetricConv(4), torch.ones(2, 3, 4), make_path(3))
    with pytest.raises(ValueError, match="node=3 is not valid; nodes are 0 to 2"):
        check_node(3, 3)
    with pytest.raises(ValueError, match="layer=0 is not valid; layers are 1 to 2"):
        check_layer(0, 2)
