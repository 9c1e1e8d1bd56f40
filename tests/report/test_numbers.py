import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adgn.experiments.records import Moments
from adgn.report.numbers import NOT_FINITE, duration, number_format

FINITE = st.floats(-1e6, 1e6)


@given(FINITE, st.sampled_from(["", "%", "s", "ms"]))
def test_a_number_is_within_half_a_unit_of_its_last_place(value, unit):
    form = number_format(unit)
    text = form.plain(value)
    assert len(text.split(".")[1]) == form.decimals
    half = 0.5 * 10**-form.decimals
    shown = float(text.replace("−", "-"))
    assert abs(shown - form.scale * value) <= half * (1 + 1e-9) + 1e-9 * abs(form.scale * value)


@given(FINITE)
def test_a_difference_has_the_sign_of_what_is_shown(value):
    text = number_format("").signed(value)
    shown = float(text.replace("−", "-"))
    assert text[0] == ("+" if shown > 0 else "−" if shown < 0 else "0")


@pytest.mark.parametrize("value", [None, math.inf, -math.inf, math.nan])
def test_what_is_not_a_number_is_said(value):
    form = number_format("%")
    assert form.plain(value) == NOT_FINITE
    assert form.moments(Moments(mean=value, std=0.1)) == NOT_FINITE


def test_a_missing_deviation_is_left_out():
    assert number_format("").moments(Moments(mean=-1.0)) == "−1.000"
    assert number_format("").moments(Moments(mean=-1.0, std=math.nan)) == "−1.000"


def test_times_round_into_the_next_unit():
    assert duration(59.7) == "60 s"
    assert duration(3599.9) == "1 h 0 min"
    assert duration(None) == "–"


def test_halves_go_up_and_large_numbers_keep_all_digits():
    form = number_format("%")
    assert form.plain(0.03125) == "3.13"
    assert form.plain(-0.00001) == "0.00"
    assert number_format("").plain(1e300).replace("0", "") == "1."
