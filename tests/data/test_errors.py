import pytest

from adgn.data import DamagedFileError, DataError, MissingFileError


@pytest.mark.parametrize("kind", [DataError, MissingFileError, DamagedFileError])
def test_one_except_clause_catches_them_all_with_their_message(kind):
    with pytest.raises(DataError) as caught:
        raise kind("x.npz is gone; download it")
    assert str(caught.value) == "x.npz is gone; download it"
    assert isinstance(caught.value, RuntimeError)


def test_a_missing_file_is_also_python_s_own_error():
    assert issubclass(MissingFileError, FileNotFoundError)
    assert not issubclass(DamagedFileError, OSError)
