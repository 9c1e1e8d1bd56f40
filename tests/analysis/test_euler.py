"""Stability of the Euler step, against its definition."""

import math

import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from adgn.analysis import amplification, largest_stable_step, smallest_stable_gamma

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
