import pytest
import torch
from torch import nn

from adgn.graph.checks import check_choice
from adgn.nn.base import resolve_activation


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("tanh", torch.tanh),
        ("Tanh", torch.tanh),
        ("leaky_relu", nn.functional.leaky_relu),
        ("LeakyReLU", nn.functional.leaky_relu),
        ("leaky relu", nn.functional.leaky_relu),
        ("identity", lambda x: x),
        ("silu", nn.functional.silu),
    ],
)
def test_a_name_is_the_function_of_that_name(name, function):
    x = torch.linspace(-2, 2, 9)
    assert torch.equal(resolve_activation(name)(x), function(x))


def test_options_reach_the_activation():
    x = torch.tensor([-1.0, 1.0])
    for act in ("elu", nn.ELU):
        out = resolve_activation(act, {"alpha": 0.5})(x)
        torch.testing.assert_close(out, nn.functional.elu(x, alpha=0.5))


@pytest.mark.parametrize("act", [None, nn.Tanh(), torch.sin, torch.relu])
def test_what_is_an_activation_already_stays_as_it_is(act):
    assert resolve_activation(act) is act


def test_a_class_gives_an_instance():
    assert isinstance(resolve_activation(nn.ReLU), nn.ReLU)


@pytest.mark.parametrize(
    ("name", "near"), [("tahn", "tanh"), ("rellu", "relu"), ("sigmiod", "sigmoid")]
)
def test_an_unknown_name_gets_the_nearest(name, near):
    with pytest.raises(ValueError, match=rf"act='{name}' is not known. Did you mean '{near}'"):
        resolve_activation(name)


@pytest.mark.parametrize("act", [3, ["tanh"], dict])
def test_what_cannot_be_an_activation_is_refused(act):
    with pytest.raises(TypeError, match=rf"act is a {type(act).__name__}; expected a name"):
        resolve_activation(act)


@pytest.mark.parametrize("name", ["Module", "MultiheadAttention", "GLU", "Softmax2d", "Threshold"])
def test_other_modules_that_torch_defines_beside_activations_are_refused(name):
    with pytest.raises(ValueError, match=f"act='{name}' is not known"):
        resolve_activation(name)


def test_activations_without_a_shorthand_keep_their_place_in_training():
    before = torch.get_rng_state()
    assert resolve_activation("RReLU").training
    assert torch.get_rng_state().equal(before)
    assert resolve_activation("softsign")(torch.ones(1)) == 0.5


def test_a_choice_among_names():
    check_choice("level", "node", ("node", "graph"))  # must not raise
    with pytest.raises(ValueError, match=r"level='nodes' is not known. Did you mean 'node'"):
        check_choice("level", "nodes", ("node", "graph"))
    with pytest.raises(ValueError, match=r"level=None is not known.*graph, node"):
        check_choice("level", None, iter(("node", "graph")))
