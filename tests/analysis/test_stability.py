"""Stability of steps, against its definition."""

import math

import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from adgn.analysis import (
    amplification,
    largest_stable_step,
    node_spectrum,
    smallest_stable_gamma,
)
from adgn.nn import AntiSymmetricConv
from tests.graphs import both_ways

numbers = st.floats(-3, 3).map(lambda value: round(value, 3))


@st.composite
def spectra(draw, real):
    pairs = draw(st.lists(st.tuples(real, numbers), min_size=1, max_size=6))
    return torch.tensor([complex(*pair) for pair in pairs], dtype=torch.complex128)


@given(spectra(st.floats(-3, -0.01)))
def test_the_largest_step_is_the_largest(values):
    step = largest_stable_step(values)
    assert amplification(values, step).max() <= 1 + 1e-9
    assert amplification(values, 1.01 * step).max() > 1


def test_an_eigenvalue_off_the_left_half_plane_allows_no_step():
    assert largest_stable_step(torch.tensor([-1 + 0j, 1j])) == 0
    assert largest_stable_step(torch.tensor([0.5 + 0j])) == 0
    assert largest_stable_step(torch.tensor([0j])) == math.inf


@given(spectra(st.just(0.0)), st.floats(0.05, 0.3))
def test_the_smallest_gamma_is_the_smallest(values, epsilon):
    gamma = smallest_stable_gamma(values, epsilon)
    assume(gamma is not None and gamma > 1e-3)
    assert amplification(values - gamma, epsilon).max() <= 1 + 1e-9
    assert amplification(values - 0.99 * gamma, epsilon).max() > 1


def test_gamma_cannot_help_a_step_beyond_the_frequency():
    assert smallest_stable_gamma(torch.tensor([1j]), 1.01) is None
    assert smallest_stable_gamma(torch.tensor([1j]), 0.99) is not None
    # Damping the one overshoots with the other: |1 + ε(λ − γ)| ≤ 1 needs γ ≥ 5 and γ ≤ 1.
    assert smallest_stable_gamma(torch.tensor([5 + 0j, -1 + 0j]), 1.0) is None
    assert smallest_stable_gamma(torch.tensor([-0.5 + 0j]), 1.0) == 0


def test_wrong_inputs_are_refused():
    with pytest.raises(ValueError, match="epsilon=-1"):
        amplification(torch.tensor([1j]), -1)
    with pytest.raises(ValueError, match="eigenvalues"):
        largest_stable_step(torch.tensor([complex("nan")]))


@pytest.mark.parametrize(
    ("name", "eigenvalue", "limit"),
    [
        ("heun", -1 + 0j, 2.0),
        ("rk3", 1j, 3**0.5),
        ("rk4", 1j, 8**0.5),
        ("ab2", -1 + 0j, 1.0),
        ("ab3", -1 + 0j, 6 / 11),
        ("heun", 1j, 0.0),
        ("implicit-midpoint", -1 + 5j, math.inf),
        ("etd1", -0.1 + 5j, math.inf),
    ],
)
def test_the_largest_stable_step_of_other_integrators_is_the_known_limit(name, eigenvalue, limit):
    """Intervals of stability on the real and on the imaginary axis, from textbooks."""
    values = torch.tensor([eigenvalue, eigenvalue.conjugate()])
    found = largest_stable_step(values, name)
    if name == "heun" and eigenvalue == 1j:  # |R| = √(1 + z⁴/4): all but nothing for tiny steps
        assert found < 0.02
    else:
        assert found == pytest.approx(limit, rel=2e-3)
    if 0 < limit < math.inf:
        assert float(amplification(values, 1.02 * limit, name).max()) > 1
        assert float(amplification(values, 0.98 * limit, name).max()) <= 1 + 1e-9


def test_a_layer_is_judged_by_its_own_integrator():
    """The same weights: Euler amplifies, RK4 does not."""
    ring = both_ways((0, 1), (1, 2), (2, 0))
    x = torch.ones(3, 4)
    growth = {}
    for name in ("euler", "rk4"):
        torch.manual_seed(0)
        conv = AntiSymmetricConv(4, "sum", gamma=0.0, epsilon=0.5, integrator=name)
        spectrum = node_spectrum(conv, x, ring)
        growth[name] = spectrum.amplification
        assert spectrum.integrator == conv.integrator
    assert growth["euler"] > 1.0001 > growth["rk4"]
