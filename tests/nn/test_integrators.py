import math

import pytest
import torch

from adgn.graph import graph_operator, set_backend
from adgn.nn import ADGN, AntiSymmetricConv, build_model
from adgn.nn.integration import integrate
from adgn.nn.integrators import EULER, INTEGRATORS, Integrator, resolve_integrator, step

HEUN = Integrator("heun", order=2, a=((), (1.0,)), b=(0.5, 0.5))
RK4 = Integrator(
    "rk4",
    order=4,
    a=((), (0.5,), (0.0, 0.5), (0.0, 0.0, 1.0)),
    b=(1 / 6, 1 / 3, 1 / 3, 1 / 6),
)
TABLES = [*INTEGRATORS.values(), HEUN, RK4]
PATH = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_order_is_the_one_that_is_stated(table):
    """On a linear field, whose exact solution is the matrix exponential."""
    generator = torch.Generator().manual_seed(0)
    matrix = torch.randn(4, 4, dtype=torch.float64, generator=generator)
    x = torch.randn(3, 4, dtype=torch.float64, generator=generator)
    exact = x @ torch.linalg.matrix_exp(matrix).t()
    errors = []
    for count in (64, 128):
        state = x
        for _ in range(count):
            state = step(lambda x: x @ matrix.t(), state, 1 / count, table)
        errors.append(float((state - exact).abs().max()))
    assert math.log2(errors[0] / errors[1]) == pytest.approx(table.order, abs=0.1)


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_tables_are_explicit_and_consistent(table):
    assert [len(row) for row in table.a] == list(range(len(table.b)))
    assert sum(table.b) == pytest.approx(1)


def test_euler_is_the_update():
    x = torch.tensor([1.0, 2.0])
    assert torch.equal(step(torch.sin, x, 0.1), x + 0.1 * x.sin())


@pytest.mark.parametrize("phi", ["sum", "gat"])
def test_a_layer_steps_its_rate_by_any_table(phi):
    layer = AntiSymmetricConv(4, phi=phi, num_iters=2, epsilon=0.5, integrator=HEUN).double()
    x = torch.randn(3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    expected = x
    for _ in range(2):
        first = layer.rate(expected, PATH)
        second = layer.rate(expected + 0.5 * first, PATH)
        expected = expected + 0.25 * (first + second)
    torch.testing.assert_close(layer(x, PATH), expected)


def test_a_table_gets_its_name_in_the_layer(monkeypatch):
    monkeypatch.setitem(INTEGRATORS, "heun", HEUN)
    assert AntiSymmetricConv(4, integrator="heun").integrator is HEUN


@pytest.mark.parametrize("weight_sharing", [True, False])
def test_a_model_passes_its_integrator_to_all_layers(monkeypatch, weight_sharing):
    monkeypatch.setitem(INTEGRATORS, "heun", HEUN)
    options = {"weight_sharing": weight_sharing, "integrator": "heun"}
    model = build_model("adgn", 4, 4, 4, 3, encoder="none", readout="none", **options).double()
    layers = model.propagation.layers
    assert all(layer.integrator is HEUN for layer in layers)
    x = torch.randn(3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    expected = x
    for layer in [layers[0]] * 3 if weight_sharing else layers:
        first = layer.rate(expected, PATH)
        second = layer.rate(expected + layer.epsilon * first, PATH)
        expected = expected + layer.epsilon / 2 * (first + second)
    torch.testing.assert_close(model(x, PATH), expected)


def test_a_model_takes_names_and_tables_of_integrators():
    assert ADGN(4, 4, 1, num_layers=2).propagation.layers[0].integrator is EULER
    table = ADGN(4, 4, 1, num_layers=2, integrator=RK4).propagation.layers[0].integrator
    assert table is RK4
    with pytest.raises(ValueError, match=r"integrator='eular' is not known\. Did you mean 'euler'"):
        build_model("adgn", 4, 4, 1, 2, integrator="eular")


def test_gradients_of_another_integrator():
    operator = graph_operator(PATH, num_nodes=3, like=torch.empty(0, dtype=torch.float64))
    shapes = ((3, 2), (2, 2, 2), (2, 2, 2), (2, 2))  # one set of weights per step
    leaves = [torch.randn(s, dtype=torch.float64).requires_grad_() for s in shapes]

    def solve(x, w_self, w_neigh, bias):
        weights = (w_self, w_neigh, bias)
        options = {"epsilon": 0.3, "act": torch.tanh, "num_steps": 2, "integrator": RK4}
        return integrate(x, operator, *weights, **options)

    assert torch.autograd.gradcheck(solve, leaves)


def test_native_kernels_serve_euler_alone(native):
    layer = AntiSymmetricConv(4, phi="sum", integrator=HEUN)
    with set_backend("native"), pytest.raises(RuntimeError, match="integrator='heun'"):
        layer(torch.ones(3, 4), PATH)


def test_names_are_looked_up():
    assert resolve_integrator("euler") is EULER
    assert resolve_integrator(RK4) is RK4
    with pytest.raises(ValueError, match=r"integrator='eular' is not known\. Did you mean 'euler'"):
        AntiSymmetricConv(4, integrator="eular")
