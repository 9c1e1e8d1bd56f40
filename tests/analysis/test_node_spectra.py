"""The propositions of the paper over random weights, and that anti-symmetry is what they need."""

import pytest
import torch
import torch_geometric.nn as pyg
from hypothesis import given
from hypothesis import strategies as st

from adgn.analysis import node_spectrum
from adgn.nn import ADGN, AntiSymmetricConv, build_model

seeds = st.integers(0, 2**20)
RING = torch.tensor([[0, 1, 2, 3, 1, 2, 3, 0], [1, 2, 3, 0, 0, 1, 2, 3]])


class PlainConv(AntiSymmetricConv):
    """The same layer without the anti-symmetry: W in place of W − Wᵀ."""

    def w_self(self):
        return self.W - self.gamma * self.eye


def drawn(kind, seed, **options):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        conv = kind(6, **options).double()
        with torch.no_grad():
            for weight in conv.parameters():
                weight.copy_(torch.randn_like(weight))
        return conv, torch.randn(4, 6).double()


def test_a_rotation_has_the_eigenvalues_of_a_rotation(make_linear_layer):
    conv = make_linear_layer([[0.0, 3.0], [1.0, 5.0]], torch.eye(2), gamma=0.25)
    spectrum = node_spectrum(conv, torch.ones(4, 2).double(), RING)
    for values in spectrum.eigenvalues:
        ordered = values[values.imag.argsort()]
        torch.testing.assert_close(ordered, torch.tensor([-0.25 - 2j, -0.25 + 2j]).to(values))
    assert spectrum.amplification == pytest.approx(abs(1 + 0.1 * complex(-0.25, 2)))
    assert spectrum.largest_stable_step == pytest.approx(0.5 / (0.0625 + 4))


@given(seeds, st.sampled_from(["tanh", "relu", "sigmoid", "elu", None]))
def test_sum_without_diffusion_is_purely_imaginary(seed, act):
    conv, x = drawn(AntiSymmetricConv, seed, phi="sum", gamma=0.0, act=act)
    spectrum = node_spectrum(conv, x, RING)
    scale = spectrum.eigenvalues.abs().max().clamp(min=1)
    # A double eigenvalue is known to the root of the precision only, hence not 1e-12.
    assert spectrum.distance_from_axis.max() <= 1e-7 * scale
    assert spectrum.radius.max() == 0


@given(seeds, st.sampled_from(["tanh", "relu", "selu", None]), st.sampled_from([0.0, 0.5]))
def test_gcn_stays_within_the_bauer_fike_radius(seed, act, gamma):
    conv, x = drawn(AntiSymmetricConv, seed, phi="gcn", gamma=gamma, act=act)
    spectrum = node_spectrum(conv, x, RING)
    assert (spectrum.distance_from_axis <= spectrum.radius + 1e-7).all()
    assert (spectrum.radius <= spectrum.bound + 1e-9).all()
    # All four nodes of the ring have d̂ = 3.
    size = torch.linalg.matrix_norm(conv.phi.lin.weight.detach(), 2)
    slope = spectrum.slopes.amax(-1)
    torch.testing.assert_close(spectrum.bound, slope * (size / 3 + gamma))


@given(seeds)
def test_without_anti_symmetry_both_statements_fail(seed):
    conv, x = drawn(PlainConv, seed, phi="sum", gamma=0.0)
    spectrum = node_spectrum(conv, x, RING)
    assert (spectrum.distance_from_axis > 1e-3).any()
    assert (spectrum.distance_from_axis > spectrum.radius + 1e-3).any()


@pytest.mark.parametrize("phi", ["sum", "gcn", pyg.GCNConv(6, 6)])
def test_the_jacobian_is_that_of_the_right_hand_side(phi):
    conv, x = drawn(AntiSymmetricConv, 3, phi=phi, gamma=0.3)
    spectrum = node_spectrum(conv, x, RING, nodes=[2, 0])
    for place, node in enumerate([2, 0]):

        def rate(own, node=node):
            states = x.index_copy(0, torch.tensor([node]), own.unsqueeze(0))
            return (conv(states, RING) - states)[node] / conv.epsilon

        expected = torch.autograd.functional.jacobian(rate, x[node])
        torch.testing.assert_close(spectrum.jacobians[place], expected, rtol=1e-9, atol=1e-9)
    assert spectrum.nodes.tolist() == [2, 0]


def test_later_layers_are_measured_at_their_own_states():
    conv, x = drawn(AntiSymmetricConv, 5, phi="sum", num_iters=3)
    later = node_spectrum(conv, x, RING, layer=3)
    states = conv.trajectory(x, RING)[2].detach()
    single = AntiSymmetricConv(6, phi="sum").double()
    single.load_state_dict(conv.state_dict())
    torch.testing.assert_close(later.jacobians, node_spectrum(single, states, RING).jacobians)


def test_self_loops_enter_the_sum():
    conv, x = drawn(AntiSymmetricConv, 1, phi="sum", gamma=0.0, act=None)
    looped = torch.cat([RING, torch.tensor([[1], [1]])], dim=1)
    spectrum = node_spectrum(conv, x, looped)
    assert spectrum.radius[1] > 0
    assert spectrum.radius[[0, 2, 3]].max() == 0


@given(seeds)
def test_the_suggested_gamma_is_enough_and_not_much_more(seed):
    conv, x = drawn(AntiSymmetricConv, seed, phi="sum", gamma=0.0, epsilon=0.05)
    spectrum = node_spectrum(conv, x, RING)
    gamma = spectrum.suggest_gamma()
    if gamma is None:
        assert spectrum.amplification > 1
        return
    largest = (1 + 0.05 * spectrum.at_gamma(gamma)).abs().max()
    assert largest <= 1 + 1e-9
    if gamma > 0:
        assert (1 + 0.05 * spectrum.at_gamma(0.98 * gamma)).abs().max() > 1


def test_an_activation_that_falls_is_outside_the_theory():
    conv, x = drawn(AntiSymmetricConv, 0, phi="gcn", act="gelu")
    spectrum = node_spectrum(conv, x, RING)
    assert not spectrum.is_monotone
    falls = (spectrum.slopes < 0).any(-1)
    assert torch.equal(spectrum.radius.isnan(), falls)


def test_many_nodes_are_drawn_reproducibly():
    conv = AntiSymmetricConv(3, phi="sum")
    x, graph = torch.randn(50, 3), torch.tensor([[0], [1]])
    torch.manual_seed(0)
    before = torch.get_rng_state()
    first = node_spectrum(conv, x, graph, max_nodes=10, seed=1)
    assert torch.equal(before, torch.get_rng_state())
    assert first.nodes.unique().numel() == 10
    assert torch.equal(first.nodes, node_spectrum(conv, x, graph, max_nodes=10, seed=1).nodes)
    assert not torch.equal(first.nodes, node_spectrum(conv, x, graph, max_nodes=10, seed=2).nodes)


def test_wrong_inputs_are_refused():
    x = torch.randn(4, 3)
    with pytest.raises(TypeError, match="Stack is not made of AntiSymmetricConv"):
        node_spectrum(build_model("gcn", 3, 4, 1, 2), x, RING)
    model = ADGN(3, 4, 1, num_layers=2)
    with pytest.raises(ValueError, match="layer=3 is not valid; layers are 1 to 2"):
        node_spectrum(model, x, RING, layer=3)
    with pytest.raises(ValueError, match="node=4 is not valid"):
        node_spectrum(model, x, RING, nodes=[4])
    with pytest.raises(ValueError, match=r"nodes=\[\]"):
        node_spectrum(model, x, RING, nodes=[])
