import pytest

from adgn.data import DamagedFileError, DataError, MissingFileError
from adgn.data.errors import check_integer


@pytest.mark.parametrize("kind", [DataError, MissingFileError, DamagedFileError])
def test_one_except_clause_catches_them_all_with_their_message(kind):
    with pytest.raises(DataError) as caught:
        raise kind("x.npz is gone; download it")
    assert str(caught.value) == "x.npz is gone; download it"
    assert isinstance(caught.value, RuntimeError)


def test_a_missing_file_is_also_python_s_own_error():
    assert issubclass(MissingFileError, FileNotFoundError)
    assert not issubclass(DamagedFileError, OSError)


@pytest.mark.parametrize("value", [2.0, 2.5, True, "2", None, (2,), float("nan")])
def test_what_is_no_integer_is_called_so(value):
    with pytest.raises(ValueError, match=r"count=.* is not an integer; give .* of at least 1"):
        check_integer("count", value, 1)


def test_ranges_are_named():
    with pytest.raises(ValueError, match=r"seed=-1 is too small; give an integer from 0 to 9$"):
        check_integer("seed", -1, 0, at_most=9)
    with pytest.raises(ValueError, match=r"seed=10 is too large; give an integer from 0 to 9$"):
        check_integer("seed", 10, 0, at_most=9)
    with pytest.raises(ValueError, match=r"n=3 is too small; .* of at least 4: trees need them$"):
        check_integer("n", 3, 4, why="trees need them")


@pytest.mark.parametrize("value", [0, 5, 9])
def test_integers_in_range_pass(value):
    check_integer("seed", value, 0, at_most=9)  # must not raise
