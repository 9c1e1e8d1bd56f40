"""Integrators: orders, exact solutions, invariants, gradients, and the kernels beside the loop."""

import functools
import math
import sys

import numpy as np
import pytest
import torch

from adgn.graph import GraphBlocks, graph_operator, set_backend
from adgn.nn import ADGN, AntiSymmetricConv, build_model
from adgn.nn.implicit import implicit_rate
from adgn.nn.integration import integrate
from adgn.nn.integration_run import integrate_reference
from adgn.nn.integrators import (
    EULER,
    HEUN,
    INTEGRATORS,
    RK4,
    AdamsBashforth,
    Adaptive,
    Exponential,
    ImplicitMidpoint,
    RungeKutta,
    VectorField,
    resolve_integrator,
)
from tests import warm
from tests.crossing import covering
from tests.graphs import both_ways

PATH = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
NAMES = list(INTEGRATORS)
FIXED = [name for name, one in INTEGRATORS.items() if not isinstance(one, Adaptive)]
SUMS = [name for name, one in INTEGRATORS.items() if one.adds_rates]


def linear_field(matrix, bias=None):
    """The field of a linear equation, all of it in the matrix of a node's own state."""
    return VectorField(matrix, torch.zeros_like, bias, None)


def antisymmetric_field(channels=3, gamma=0.1, scale=1.0, act=torch.tanh):
    """The field of an anti-symmetric layer on a ring of five nodes, in double precision."""
    torch.manual_seed(3)
    layer = AntiSymmetricConv(channels, phi="sum", gamma=gamma, act=act).double()
    with torch.no_grad():
        layer.W.mul_(scale)
    ring = both_ways((0, 1), (1, 2), (2, 3), (3, 4), (4, 0))
    x = torch.randn(5, channels, dtype=torch.float64)
    return layer.requires_grad_(False).field(x, ring), x


def solve(integrator, field, x, time, count):
    """The states after some time, in so many steps."""
    return integrator.advance(lambda _: field, x, time / count, 0, count)


@functools.cache
def known_solution():
    """A field, its first states and those at time 2."""
    field, x = antisymmetric_field()
    return field, x, solve(RK4, field, x, 2.0, 1000)


def measured_order(integrator, field, x, time, exact, counts=(32, 64)):
    """From the errors of two numbers of steps."""
    errors = [float((solve(integrator, field, x, time, n) - exact).abs().max()) for n in counts]
    return math.log2(errors[0] / errors[1])


@pytest.mark.parametrize("name", FIXED)
def test_the_order_on_a_linear_field_is_the_one_that_is_stated(name):
    """The exact solution is the matrix exponential; exponential integrators have it exactly."""
    generator = torch.Generator().manual_seed(0)
    matrix = torch.randn(4, 4, dtype=torch.float64, generator=generator)
    x = torch.randn(3, 4, dtype=torch.float64, generator=generator)
    exact = x @ torch.linalg.matrix_exp(matrix).t()
    integrator = INTEGRATORS[name]
    if isinstance(integrator, Exponential):
        torch.testing.assert_close(solve(integrator, linear_field(matrix), x, 1.0, 3), exact)
        return
    order = measured_order(integrator, linear_field(matrix), x, 1.0, exact, (64, 128))
    assert order == pytest.approx(integrator.order, abs=0.15)


@pytest.mark.parametrize("name", FIXED)
def test_the_order_on_the_field_of_a_layer_is_the_one_that_is_stated(name):
    field, x, exact = known_solution()
    order = measured_order(INTEGRATORS[name], field, x, 2.0, exact)
    assert order == pytest.approx(INTEGRATORS[name].order, abs=0.25)


@pytest.mark.parametrize("name", ["dopri5", "bosh3"])
@pytest.mark.parametrize("tolerance", [1e-4, 1e-7])
def test_adaptive_integrators_meet_their_tolerance(name, tolerance):
    field, x, exact = known_solution()
    integrator = resolve_integrator(name, {"rtol": tolerance, "atol": tolerance})
    error = float((solve(integrator, field, x, 2.0, 4) - exact).abs().max())
    assert error <= 10 * tolerance * (1 + float(exact.abs().max()))
    coarse = resolve_integrator(name, {"rtol": 1e-1, "atol": 1e-1})
    assert error < float((solve(coarse, field, x, 2.0, 4) - exact).abs().max())


@pytest.mark.parametrize("name", ["ab2", "ab3"])
def test_multi_step_methods_are_zero_stable(name):
    """At step size zero the roots are 1 and 0: nothing grows, and the 1 is simple."""
    integrator = INTEGRATORS[name]
    assert integrator.amplification(np.zeros(1, dtype=complex))[0] == pytest.approx(1)
    companion = np.diag(np.ones(integrator.order - 1), -1)
    companion[0, 0] = 1
    assert sorted(np.abs(np.linalg.eigvals(companion)))[:-1] == pytest.approx(
        [0] * (integrator.order - 1)
    )
    assert sum(integrator.weights) == pytest.approx(1)


@pytest.mark.parametrize("name", [name for name in FIXED if not name.startswith("etd")])
def test_amplification_is_the_growth_of_long_solutions(name):
    """Of a rotation with damping, for steps inside and outside of the region of stability."""
    integrator = INTEGRATORS[name]
    for rate in (-0.3 + 0.9j, -0.1 + 2.5j, 0.9j):
        matrix = torch.tensor([[rate.real, -rate.imag], [rate.imag, rate.real]], dtype=torch.double)
        x = torch.tensor([[1.0, 0.0]], dtype=torch.double)
        states = list(integrator.states(lambda _, m=matrix: linear_field(m), x, 1.0, 0, 60))
        growth = float((states[-1].norm() / states[39].norm()) ** (1 / 20))
        expected = float(integrator.amplification(np.array([rate]))[0])
        assert growth == pytest.approx(expected, rel=0.02)


def test_the_stability_function_of_runge_kutta_methods_is_the_start_of_the_exponential():
    z = np.array([0.1 + 0.2j, -0.3j])
    for name in ("euler", "heun", "rk3", "rk4"):
        order = INTEGRATORS[name].order
        series = sum(z**k / math.factorial(k) for k in range(order + 1))
        np.testing.assert_allclose(INTEGRATORS[name].amplification(z), np.abs(series), rtol=1e-12)


def test_implicit_midpoint_keeps_the_norm_and_euler_does_not():
    generator = torch.Generator().manual_seed(1)
    weight = torch.randn(6, 6, dtype=torch.float64, generator=generator)
    x = torch.randn(4, 6, dtype=torch.float64, generator=generator)
    field = linear_field(weight - weight.t())
    kept = INTEGRATORS["implicit-midpoint"].advance(lambda _: field, x, 0.1, 0, 1000)
    assert abs(float(kept.norm() / x.norm()) - 1) < 1e-12
    grown = EULER.advance(lambda _: field, x, 0.1, 0, 1000)
    assert float(grown.norm() / x.norm()) > 10


def test_implicit_steps_that_do_not_contract_are_solved_by_newtons_method():
    """With steps so long that the iteration of the fixed point diverges."""
    field, x = antisymmetric_field(channels=4, scale=5.0)
    rate = implicit_rate(field, x, 1.0, 1e-12, 2000)
    residual = rate - field(x + rate)
    assert float(residual.norm() / rate.norm()) < 1e-11
    iterated = field(x)
    for _ in range(200):
        iterated = field(x + iterated)
    assert float((iterated - field(x + iterated)).norm() / iterated.norm()) > 1e-3


def test_an_equation_without_a_solution_in_time_is_told():
    field, x = antisymmetric_field()
    integrator = ImplicitMidpoint(tolerance=1e-14, most=3)
    with pytest.raises(ArithmeticError, match=r"residual of .* after 3 rates.*smaller epsilon"):
        integrator.advance(lambda _: field, x, 0.5, 0, 1)


@covering("name, sets, act", FIXED, [1, 3], [torch.tanh, torch.sigmoid])
def test_gradients_are_those_of_the_discrete_scheme(name, sets, act):
    operator = graph_operator(PATH, num_nodes=3, like=torch.empty(0, dtype=torch.float64))
    shapes = ((3, 2), (sets, 2, 2), (sets, 2, 2), (sets, 2))
    torch.manual_seed(0)
    leaves = [torch.randn(s, dtype=torch.float64).requires_grad_() for s in shapes]
    options = {"epsilon": 0.3, "act": act, "num_steps": 3, "integrator": name}

    def solution(*leaves):
        return integrate(leaves[0], operator, *leaves[1:], **options)

    assert torch.autograd.gradcheck(solution, leaves)


@pytest.mark.parametrize("name", ["dopri5", "bosh3"])
@pytest.mark.parametrize("weight_sharing", [True, False])
def test_adaptive_gradients_are_those_of_the_equation_up_to_the_tolerance(name, weight_sharing):
    """Beside those of very many steps of another method."""
    gradients = []
    for integrator, options in (("rk4", None), (name, {"rtol": 1e-9, "atol": 1e-11})):
        torch.manual_seed(0)
        fine = 20 if integrator == "rk4" else 1
        model = build_model(
            *("adgn", 4, 4, 4, 3 * fine if weight_sharing else 3),
            encoder="none",
            readout="none",
            weight_sharing=weight_sharing,
            epsilon=0.3 / fine if weight_sharing else 0.3,
            integrator=integrator,
            integrator_options=options,
        ).double()
        x = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
        states = model(x, PATH)
        states.square().sum().backward()
        gradients.append([states, x.grad, *(parameter.grad for parameter in model.parameters())])
    tolerance = 1e-6 if weight_sharing else 1e-3  # where layers differ, each is one step of RK4
    for expected, found in zip(*gradients, strict=True):
        torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.long
def test_a_first_call_in_inference_mode_spoils_no_gradient():
    """What torchdiffeq makes when it is imported must serve gradients later."""
    program = (
        "import sys, torch; from adgn.nn import build_model\n"
        "assert 'torchdiffeq' not in sys.modules\n"
        "edges, x = torch.tensor([[0, 1], [1, 0]]), torch.randn(2, 3)\n"
        "for options in ({'name': 'grand'}, {'name': 'adgn', 'integrator': 'dopri5'}):\n"
        "    model = build_model(options.pop('name'), 3, 4, 1, 2, **options)\n"
        "    with torch.inference_mode():\n"
        "        model(x, edges)\n"
        "    model(x, edges).sum().backward()\n"
    )
    found = warm.run([sys.executable, "-c", program])
    assert found.returncode == 0, found.stderr


def test_adjoint_gradients_agree_with_direct_ones_up_to_the_tolerance():
    torch.manual_seed(0)
    gradients = []
    for adjoint in (False, True):
        torch.manual_seed(0)
        options = {"adjoint": adjoint, "rtol": 1e-9, "atol": 1e-9}
        layer = AntiSymmetricConv(
            4, "gin", num_iters=5, integrator="dopri5", integrator_options=options
        ).double()
        x = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
        layer(x, PATH).square().sum().backward()
        gradients.append([x.grad, *(parameter.grad for parameter in layer.parameters())])
    for direct, adjoint in zip(*gradients, strict=True):
        torch.testing.assert_close(direct, adjoint, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("name", [*SUMS, "many stages"])
@pytest.mark.parametrize("act", [torch.tanh, torch.relu, None])
@pytest.mark.parametrize("blocks", [False, True])
@pytest.mark.parametrize("sets", [1, 6])
def test_kernels_step_like_the_plain_loop(native, name, act, blocks, sets):
    """Values, gradients, and several threads, on one graph and on many small ones."""
    torch.manual_seed(4)
    integrator = INTEGRATORS.get(name) or RungeKutta(
        name,
        1,
        tuple(tuple(0.1 * j for j in range(i)) for i in range(6)),
        (0.1, 0.2, 0.0, 0.1, 0.1, 0.5),
    )
    operator, nodes = random_operator(blocks)
    channels = 7
    shapes = ((nodes, channels), (sets, channels, channels), (sets, channels, channels))
    tensors = [0.3 * torch.randn(shape, dtype=torch.float64) for shape in shapes]
    tensors.append(torch.randn(sets, channels, dtype=torch.float64))
    sent = torch.randn(nodes, channels, dtype=torch.float64)
    options = {"epsilon": 0.2, "act": act, "num_steps": 6, "integrator": integrator}
    results = []
    for function in (integrate, integrate_reference):
        leaves = [tensor.clone().requires_grad_() for tensor in tensors]
        with set_backend("native" if function is integrate else "torch"):
            states = function(leaves[0], operator, *leaves[1:], **options)
            results.append([states, *torch.autograd.grad((states * sent).sum(), leaves)])
    for found, expected in zip(*results, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)
    with set_backend("native"), torch.no_grad():
        again = integrate(tensors[0], operator, *tensors[1:], **options)
    assert torch.equal(again, results[0][0])


def random_operator(blocks):
    """A random graph, or many small ones as blocks."""
    if not blocks:
        edges = torch.randint(0, 70, (2, 300))
        return graph_operator(edges, num_nodes=70, like=torch.empty(0, dtype=torch.float64)), 70
    graphs = [torch.randint(0, 9, (2, 20)) + 9 * number for number in range(8)]
    packed = GraphBlocks(torch.cat(graphs, dim=1), torch.arange(0, 73, 9))
    return packed.select(torch.arange(8)).operator("none", torch.float64), 72


@pytest.mark.parametrize("name", [name for name in SUMS if INTEGRATORS[name].one_step])
def test_checkpoints_change_nothing_but_memory(native, name):
    torch.manual_seed(5)
    results = []
    for memory in ("full", "checkpoint"):
        torch.manual_seed(5)
        conv = AntiSymmetricConv(5, "gcn", num_iters=9, integrator=name, memory=memory)
        x = torch.randn(3, 5, requires_grad=True)
        states = conv(x, PATH)
        states.sum().backward()
        results.append([states.detach(), x.grad, conv.W.grad, conv.phi.lin.weight.grad])
    for full, checkpointed in zip(*results, strict=True):
        torch.testing.assert_close(full, checkpointed, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["implicit-midpoint", "etd2", "bosh3"])
@pytest.mark.parametrize("phi", ["sum", "gat"])
def test_checkpoints_work_for_the_other_one_step_integrators(name, phi):
    results = []
    for memory in ("full", "checkpoint"):
        torch.manual_seed(5)
        conv = AntiSymmetricConv(4, phi, num_iters=5, integrator=name, memory=memory).double()
        x = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
        conv(x, PATH).sum().backward()
        results.append([x.grad, conv.W.grad])
    for full, checkpointed in zip(*results, strict=True):
        tolerance = 1e-4 if name == "bosh3" else 1e-9  # its steps end at checkpoints
        torch.testing.assert_close(full, checkpointed, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("phi", ["sum", "gat"])
def test_the_trajectory_ends_where_forward_does(name, phi):
    torch.manual_seed(6)
    conv = AntiSymmetricConv(4, phi, num_iters=5, integrator=name).double()
    x = torch.randn(3, 4, dtype=torch.float64)
    states = conv.trajectory(x, PATH)
    assert len(states) == 6
    tolerance = 1e-4 if name in ("dopri5", "bosh3") else 1e-10
    torch.testing.assert_close(states[-1], conv(x, PATH), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("phi", ["sum", "gat"])
@pytest.mark.parametrize("weight_sharing", [True, False])
def test_a_model_steps_the_rates_of_its_layers(phi, weight_sharing):
    options = {"weight_sharing": weight_sharing, "integrator": "heun", "phi": phi}
    model = build_model("adgn", 4, 4, 4, 3, encoder="none", readout="none", **options).double()
    layers = model.propagation.layers
    x = torch.randn(3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    expected = x
    for layer in [layers[0]] * 3 if weight_sharing else layers:
        first = layer.rate(expected, PATH)
        second = layer.rate(expected + layer.epsilon * first, PATH)
        expected = expected + layer.epsilon / 2 * (first + second)
    torch.testing.assert_close(model(x, PATH), expected)


@pytest.mark.parametrize("name", NAMES)
def test_every_integrator_is_an_option_of_the_model_and_says_what_it_costs(name):
    torch.manual_seed(0)
    model = build_model("adgn", 3, 8, 2, num_layers=4, integrator=name)
    out = model(torch.randn(3, 3), PATH)
    out.sum().backward()
    assert out.shape == (3, 2)
    assert all(parameter.grad is not None for parameter in model.parameters())
    assert "rate" in INTEGRATORS[name].cost
    assert INTEGRATORS[name].order >= 1


def test_wrong_input_is_told():
    assert resolve_integrator("euler") is EULER
    assert resolve_integrator(HEUN) is HEUN
    with pytest.raises(ValueError, match=r"integrator='eular' is not known\. Did you mean 'euler'"):
        AntiSymmetricConv(4, integrator="eular")
    with pytest.raises(ValueError, match=r"integrator='eular' is not known\. Did you mean 'euler'"):
        build_model("adgn", 4, 4, 1, 2, integrator="eular")
    with pytest.raises(ValueError, match=r"'rk4' has no option 'rtol'; it has none"):
        ADGN(4, 4, 1, num_layers=2, integrator="rk4", integrator_options={"rtol": 1.0})
    with pytest.raises(ValueError, match=r"'dopri5' has no option 'tol'; it has rtol, atol"):
        ADGN(4, 4, 1, num_layers=2, integrator="dopri5", integrator_options={"tol": 1.0})
    with pytest.raises(ValueError, match="rtol=0"):
        resolve_integrator("dopri5", {"rtol": 0})
    with pytest.raises(ValueError, match="has its settings already"):
        resolve_integrator(RK4, {"order": 3})
    with pytest.raises(ValueError, match=r"memory='checkpoint' is not available for .*'ab2'"):
        AntiSymmetricConv(4, integrator="ab2", memory="checkpoint")
    with pytest.raises(ValueError, match="set weight_sharing=True"):
        ADGN(4, 4, 1, num_layers=2, integrator="ab3", weight_sharing=False)
    with pytest.raises(ValueError, match=r"rows of \[0, 2\] numbers"):
        RungeKutta("wrong", 2, ((), (1.0, 2.0)), (0.5, 0.5))


@pytest.mark.parametrize("name", ["rk4", "ab2", "etd2"])
def test_second_derivatives(name):
    torch.manual_seed(1)
    conv = AntiSymmetricConv(2, "sum", num_iters=3, integrator=name).double()
    x = torch.randn(3, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradgradcheck(lambda x: conv(x, PATH), (x,))


def test_implicit_steps_have_no_second_derivatives():
    x = torch.randn(3, 2, dtype=torch.float64, requires_grad=True)
    conv = AntiSymmetricConv(2, "sum", integrator="implicit-midpoint").double()
    with pytest.raises(RuntimeError, match="first derivatives only"):
        torch.autograd.grad(conv(x, PATH).sum(), x, create_graph=True)


def test_integrators_with_no_region_or_no_sums_say_so():
    with pytest.raises(NotImplementedError, match="'dopri5' has no region of stability"):
        INTEGRATORS["dopri5"].amplification(np.zeros(1, dtype=complex))
    with pytest.raises(NotImplementedError, match="'etd1' does more than to add up rates"):
        INTEGRATORS["etd1"].program(2, 0.1)


def test_an_adams_bashforth_program_uses_the_first_rates_of_its_start():
    """The first rate of each step of the start, not the stages between."""
    integrator = INTEGRATORS["ab2"]
    assert isinstance(integrator, AdamsBashforth)
    factors, ends = integrator.program(3, 2.0)
    assert ends.tolist() == [0, 1, 1, 1]
    assert factors.tolist() == [[2, 0, 0], [1, 1, 0], [3, 0, -1], [3, -1, 0]]
