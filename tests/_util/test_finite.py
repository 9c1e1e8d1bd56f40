import json
import math

from hypothesis import given
from hypothesis import strategies as st

from adgn._util.finite import finite_or_none

numbers = st.floats() | st.integers() | st.none() | st.text()
values = st.recursive(
    numbers, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=10
)


@given(values)
def test_strict_json_takes_everything(value):
    json.dumps(finite_or_none(value), allow_nan=False)


@given(numbers)
def test_finite_numbers_stay(number):
    lost = isinstance(number, float) and not math.isfinite(number)
    assert finite_or_none([number]) == [None if lost else number]
