import pytest
import torch
from torch import nn

from adgn.graph.checks import check_choice
from adgn.nn.base import elu, resolve_activation, softplus


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


@pytest.mark.parametrize(("name", "own"), [("softplus", softplus), ("elu", elu)])
def test_activations_that_threads_do_not_change_are_torchs(name, own):
    theirs = getattr(torch.nn.functional, name)
    x = torch.tensor([-800.0, -20.0, -1.5, 0.0, 1e-9, 0.7, 30.0, 800.0], dtype=torch.float64)
    x.requires_grad_()
    results = [(f(x), *torch.autograd.grad(f(x).sum(), x)) for f in (own, theirs)]
    for mine, other in zip(*results, strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-8, atol=1e-12)
    assert torch.autograd.gradcheck(own, x[1:3].detach().requires_grad_())


@pytest.mark.parametrize("own", [softplus, elu])
def test_the_number_of_threads_changes_no_bit_of_them(own):
    x = torch.randn(100_003, generator=torch.Generator().manual_seed(0))
    before, found = torch.get_num_threads(), []
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            given = x.clone().requires_grad_()
            value = own(given)
            found.append((value.detach(), *torch.autograd.grad(value.sum(), given)))
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(one, two) for one, two in zip(*found, strict=True))
