"""Tests of the kernels run with the code for each kind of processor."""

import pytest

ISAS = ("baseline", "avx2", "avx512")


@pytest.fixture(params=ISAS)
def isa(native, request):
    before = native.instruction_set
    if not native.use_instruction_set(request.param):
        pytest.skip(f"this processor has no {request.param}")
    yield request.param
    assert native.use_instruction_set(before)
