from pathlib import Path

import platformdirs
import pytest

from adgn.data import DamagedFileError, DataError, MissingFileError
from adgn.data import data_root as resolve
from adgn.data.root import check_integer


def test_argument_then_variable_then_user_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("ADGN_DATA", str(tmp_path / "variable"))
    assert resolve(tmp_path / "argument") == tmp_path / "argument"
    assert resolve() == tmp_path / "variable"
    monkeypatch.setenv("ADGN_DATA", "")
    assert resolve() == Path(platformdirs.user_cache_dir("adgn")) / "data"
    monkeypatch.delenv("ADGN_DATA")
    assert resolve() == Path(platformdirs.user_cache_dir("adgn")) / "data"


def test_home_and_relative_paths_become_absolute(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert resolve("~/data") == tmp_path / "data"
    monkeypatch.chdir(tmp_path)
    assert resolve("here/../data") == tmp_path / "data"


def test_a_file_is_refused(tmp_path, monkeypatch):
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(DataError, match=r"file \(root\) is a file; give a folder"):
        resolve(file)
    monkeypatch.setenv("ADGN_DATA", str(file))
    with pytest.raises(DataError, match=r"ADGN_DATA\) is a file"):
        resolve()


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
