"""The whole layer's spectrum: against Kronecker products, and matrix-free against exact."""

import pytest
import torch

from adgn.analysis import layer_spectrum
from adgn.analysis.graphs import example_graph
from adgn.nn import ADGN, build_model


def sorted_by_place(values):
    return values[(values.real.round(decimals=8) * 1e3 + values.imag).argsort()]


def test_a_linear_layer_has_the_spectrum_of_its_matrix(
    make_linear_layer, make_path, make_rate_matrix
):
    torch.manual_seed(0)
    conv = make_linear_layer(torch.randn(3, 3), torch.randn(3, 3), epsilon=0.2, gamma=0.1)
    graph = make_path(4)
    spectrum = layer_spectrum(conv, torch.randn(4, 3).double(), graph)
    expected = torch.linalg.eigvals(make_rate_matrix(conv, graph, 4))
    torch.testing.assert_close(sorted_by_place(spectrum.rates), sorted_by_place(expected))
    torch.testing.assert_close(spectrum.eigenvalues, 1 + 0.2 * spectrum.rates)
    assert spectrum.spectral_radius == pytest.approx(float((1 + 0.2 * expected).abs().max()))
    assert spectrum.method == "exact" and spectrum.size == 12 and spectrum.note == ""


@pytest.mark.parametrize("name", ["adgn", "gcn", "gcnii", "gat"])
@pytest.mark.parametrize("kind", ["line", "grid", "random"])
def test_matrix_free_equals_exact(name, kind):
    torch.manual_seed(1)
    model = build_model(name, 3, 5, 1, num_layers=3)
    x, graph = torch.randn(12, 3), example_graph(kind, 12)
    exact = layer_spectrum(model, x, graph, layer=2, method="exact")
    free = layer_spectrum(model, x, graph, layer=2, method="matrix-free", count=4, tolerance=1e-10)
    assert free.method == "matrix-free"
    assert free.spectral_radius == pytest.approx(exact.spectral_radius, abs=1e-7)
    assert free.max_real == pytest.approx(exact.max_real, abs=1e-7)
    assert free.min_real == pytest.approx(exact.min_real, abs=1e-7)
    for value in free.eigenvalues:
        assert (exact.eigenvalues - value).abs().min() < 1e-7


def test_the_layer_is_that_of_torch_func():
    torch.manual_seed(2)
    model = build_model("gcn", 3, 4, 1, num_layers=1).double()
    x, graph = torch.randn(5, 3).double(), example_graph("ring", 5)
    start = model.encode(x).detach()
    _ = model(x, graph)  # the operator is built outside of the transform
    jacobian = torch.func.jacrev(lambda s: model.propagation(s, graph))(start).reshape(20, 20)
    spectrum = layer_spectrum(model, x, graph)
    expected = torch.linalg.eigvals(jacobian.detach())
    torch.testing.assert_close(
        sorted_by_place(spectrum.eigenvalues), sorted_by_place(expected), rtol=1e-7, atol=1e-9
    )
    assert spectrum.rates is None


def test_a_large_graph_is_measured_matrix_free_and_the_cost_is_said():
    model = ADGN(3, 16, 1, num_layers=2, phi="gcn")
    x, graph = torch.randn(200, 3), example_graph("random", 200)
    with pytest.raises(ValueError, match=r"200 nodes × 16 channels.*size 3200 would take 0\.08 GB"):
        layer_spectrum(model, x, graph, method="exact")
    spectrum = layer_spectrum(model, x, graph, count=1, tolerance=1e-3)
    assert spectrum.method == "matrix-free"
    assert "size 3200 would take 0.08 GB" in spectrum.note
    again = layer_spectrum(model, x, graph, count=1, tolerance=1e-3)
    assert torch.equal(spectrum.eigenvalues, again.eigenvalues)


def test_wrong_inputs_are_refused(make_path):
    model, x = ADGN(3, 2, 1, num_layers=2), torch.randn(3, 3)
    with pytest.raises(ValueError, match=r"method='exakt' is not known. Did you mean 'exact'"):
        layer_spectrum(model, x, make_path(3), method="exakt")
    with pytest.raises(ValueError, match=r"finds at most 3 eigenvalues .* count=6"):
        layer_spectrum(model, x, make_path(3), method="matrix-free")
    with pytest.raises(ValueError, match="layer=9"):
        layer_spectrum(model, x, make_path(3), layer=9)
